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
    SAVINA_THREADS, /* no peer, but a bound for rows that compute */
    SAVINA_SIDES,
};

#define SAVINA_LOOPS      2 /* the sides of domus without pools, which are the first ones */
#define SAVINA_PLACEMENTS 6 /* all sides of domus */
#define SAVINA_PEERS_END  9 /* peers are the sides from SAVINA_PLACEMENTS on, up to this one */

struct savina_figures {
    double first;   /* messages/s of the first round in a process */
    double value;   /* messages/s of the median round; ns of the median; CPU seconds per second */
    double p99_ns;  /* latency rows only, as the next field */
    double p999_ns; /* */
};

struct savina_outcome {
    const struct savina_row *row;
    uint64_t size;
    uint32_t threads;
    struct savina_figures of[SAVINA_SIDES];
    double ratio[SAVINA_PLACEMENTS]; /* times better than the better peer */
    /* the rate of SAVINA_SPREAD as a part of the bare limit between threads; NAN: none */
    double of_limit;
    /* the same of a bare ring by value with as many messages under way, measured in
     * turn; NAN: none */
    double of_ring;
};

/* The settings of a whole run of the bench. */
struct savina_run {
    bool is_long;
    uint32_t rounds;    /* in one process */
    uint32_t processes; /* processes of each contender for each row */
    double limit;       /* messages/s that bare C passes from one thread to another; NAN: none */
};

/* How many times the better peer domus is to be: with two threads message-bound rows share one
 * goal. 0: none. */
double savina_goal(const struct savina_outcome *outcome);

/* With two threads, and spread, a message-bound row may reach this part of the limit instead. */
#define SAVINA_LIMIT_SHARE 0.5

/* Returns whether a placement reaches the goal, by its ratio or by its part of the limit. */
bool savina_is_met(const struct savina_outcome *outcome, enum savina_side placement);

const char *savina_side_name(enum savina_side side);

/* Returns the scheduler of CAF that was better in this row. */
enum savina_side savina_better_caf(const struct savina_outcome *outcome);

/* Returns the pool that was best in this row of messages; SAVINA_SIDES if none did it. */
enum savina_side savina_best_pool(const struct savina_outcome *outcome);

/* The best pool, held against domus near with as many threads, against the better peer, and against
 * threads without actors. NAN: one of the two is not there. */
double savina_pool_to_near(const struct savina_outcome *outcome);
double savina_pool_to_peer(const struct savina_outcome *outcome);
double savina_pool_to_threads(const struct savina_outcome *outcome);

/* Goals of pools with two runners: how many times the better peer, in a row that is bound by its
 * messages and has no `goal_pool`; and how many times threads without actors, in a row that such
 * threads do, too. */
#define SAVINA_POOL_TO_PEER    3.0
#define SAVINA_POOL_TO_THREADS 0.95

/* Tell all figures of an outcome that are there, one by one. `who` is the name of a side, or "" for
 * a figure that belongs to no side; `name` is the name of the figure. */
typedef void savina_tell(void *context, const struct savina_outcome *outcome, const char *who,
                         const char *name, double value, const char *unit);
void savina_figures_each(const struct savina_outcome *outcome, savina_tell *tell, void *context);

#endif
