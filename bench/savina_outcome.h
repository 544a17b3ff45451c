/* The results of one row of the Savina bench: who did it, how fast, and what the figures mean.
 *
 * A missing figure is NAN: the contender is not installed, or could not do the row. */
#ifndef DOMUS_BENCH_SAVINA_OUTCOME_H
#define DOMUS_BENCH_SAVINA_OUTCOME_H

#include "bench/savina_rows.h"

#include <stdbool.h>
#include <stddef.h>

/* The side that did a row: domus on its loops, in one of two placements; domus in a pool, by one of
 * the four policies; a peer; or threads without actors. */
enum savina_side {
    SAVINA_NEAR, /* children live where their parent does: the library's default */
    SAVINA_SPREAD,
    SAVINA_RINGS,
    SAVINA_DEQUES,
    SAVINA_STEALING,
    SAVINA_SHARING,
    SAVINA_CAF_STEALING,
    SAVINA_CAF_SHARING,
    SAVINA_ERLANG,
    SAVINA_THREADS, /* no peer, but a bound for rows that compute: a program without actors */
    SAVINA_SIDES,
};

#define SAVINA_LOOPS      2 /* number of the sides of domus without pools, which come first */
#define SAVINA_PLACEMENTS 6 /* number of all sides of domus */
/* the peers are the sides from SAVINA_PLACEMENTS to the one before this */
#define SAVINA_PEERS_END 9

struct savina_figures {
    double first; /* messages/s of the first round in a process */
    /* the median round, in the unit of the row's kind: messages/s, ns, or CPU seconds per second */
    double value;
    double p99_ns;  /* 99 percent of the latencies are at most this; only in latency rows */
    double p999_ns; /* */
};

struct savina_outcome {
    const struct savina_row *row;
    uint64_t size;
    uint32_t threads;
    struct savina_figures of[SAVINA_SIDES];
    double ratio[SAVINA_PLACEMENTS]; /* how many times better than the better peer */
    /* rate of SAVINA_SPREAD as a part of the bare limit between threads; NAN: none */
    double of_limit;
    /* rate of SAVINA_SPREAD as a part of a bare ring by value with as many messages under way,
     * measured in turn; NAN: none */
    double of_ring;
};

/* The settings of a whole run of the bench. */
struct savina_run {
    bool is_long;
    uint32_t rounds;    /* number of rounds in one process */
    uint32_t processes; /* number of processes of each contender for each row */
    /* messages/s that bare C passes from one thread to another; NAN: not measured */
    double limit;
};

/* Returns the goal of a row, as how many times better than the better peer domus has to be: with
 * two threads rows bound by messages share one goal. 0: no goal. */
double savina_goal(const struct savina_outcome *outcome);

/* The part of the limit that a message-bound row may reach instead of the goal, with two threads
 * and spread. */
#define SAVINA_LIMIT_SHARE 0.5

/* Returns whether a placement reaches the goal, by its ratio or by its part of the limit. */
bool savina_is_met(const struct savina_outcome *outcome, enum savina_side placement);

const char *savina_side_name(enum savina_side side);

/* Returns the scheduler of CAF that was better in this row. */
enum savina_side savina_better_caf(const struct savina_outcome *outcome);

/* Returns the best pool in this row of messages; SAVINA_SIDES if no pool did the row. */
enum savina_side savina_best_pool(const struct savina_outcome *outcome);

/* Return the rate of the best pool divided by that of domus near with as many threads, of the
 * better peer, and of threads without actors. NAN: one of the two figures is missing. */
double savina_pool_to_near(const struct savina_outcome *outcome);
double savina_pool_to_peer(const struct savina_outcome *outcome);
double savina_pool_to_threads(const struct savina_outcome *outcome);

/* Goals of pools with two runners: how many times the better peer, in a row that is bound by its
 * messages and has no `goal_pool`; and how many times threads without actors, in a row that such
 * threads do, too. */
#define SAVINA_POOL_TO_PEER    3.0
#define SAVINA_POOL_TO_THREADS 0.95

/* Call a function for each figure of an outcome that is not missing. `who` is the name of a side,
 * or "" for a figure that belongs to no side; `name` is the name of the figure. */
typedef void savina_tell(void *context, const struct savina_outcome *outcome, const char *who,
                         const char *name, double value, const char *unit);
void savina_figures_each(const struct savina_outcome *outcome, savina_tell *tell, void *context);

#endif
