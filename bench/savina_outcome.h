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
    /* domus on its loops; children live where their parent does, which is the library's default */
    SAVINA_NEAR,
    SAVINA_SPREAD,
    SAVINA_RINGS,
    SAVINA_DEQUES,
    SAVINA_STEALING,
    SAVINA_SHARING,
    SAVINA_CAF_STEALING,
    SAVINA_CAF_SHARING,
    SAVINA_ERLANG,
    SAVINA_THREADS, /* no peer: a program without actors, as a bound for rows that compute */
    SAVINA_SIDES,
};

#define SAVINA_LOOPS      2 /* number of the sides of domus without pools; they come first */
#define SAVINA_PLACEMENTS 6 /* number of all sides of domus, with and without pools */
/* peers are the sides from SAVINA_PLACEMENTS to the one before this */
#define SAVINA_PEERS_END 9

struct savina_figures {
    double first; /* messages/s of the first round in a process */
    /* figure of the median round, in the unit of the row's kind: messages/s, ns, or CPU seconds per
     * second */
    double value;
    double p99_ns;  /* the 99th percentile of the latencies, in rows of latencies */
    double p999_ns; /* the 99.9th percentile of the latencies, in rows of latencies */
};

struct savina_outcome {
    const struct savina_row *row;
    uint64_t size;
    uint32_t threads;
    struct savina_figures of[SAVINA_SIDES];
    /* for each side of domus, how many times better it was than the better peer */
    double ratio[SAVINA_PLACEMENTS];
    /* rate of SAVINA_SPREAD as a part of the bare limit between threads; NAN: the row has no such
     * limit */
    double of_limit;
    /* rate of SAVINA_SPREAD as a part of a bare ring by value, with as many messages under way and
     * measured in turn; NAN: not measured */
    double of_ring;
};

/* The settings of one run of the whole bench. */
struct savina_run {
    bool is_long;
    uint32_t rounds;    /* number of rounds that one process does */
    uint32_t processes; /* number of processes that each contender runs for each row */
    /* messages/s that bare C passes from one thread to another; NAN: not measured */
    double limit;
};

/* Returns the goal of a row: how many times better than the better peer domus has to be. With two
 * threads all rows bound by messages have the same goal. 0: the row has no goal. */
double savina_ratio_goal_of_row(const struct savina_outcome *outcome);

/* The part of the bare limit that is enough instead of the goal, in a row bound by messages with
 * two threads and the placement spread. */
#define SAVINA_LIMIT_SHARE 0.5

/* Returns whether a placement of domus reaches the row's goal, by its ratio or by its part of the
 * limit. */
bool savina_is_goal_met(const struct savina_outcome *outcome, enum savina_side placement);

const char *savina_side_name(enum savina_side side);

/* Returns the scheduler of CAF that was the better one in this row. */
enum savina_side savina_better_caf_of_row(const struct savina_outcome *outcome);

/* Returns the policy of the best pool in this row of messages; SAVINA_SIDES if no pool did the
 * row. */
enum savina_side savina_best_pool_of_row(const struct savina_outcome *outcome);

/* Return the rate of the best pool divided by another rate: that of domus near with as many
 * threads; of the better peer; of threads without actors. NAN: one of the two figures is
 * missing. */
double savina_ratio_of_best_pool_to_near(const struct savina_outcome *outcome);
double savina_ratio_of_best_pool_to_peer(const struct savina_outcome *outcome);
double savina_ratio_of_best_pool_to_threads(const struct savina_outcome *outcome);

/* Goals of pools with two runners, as how many times another rate: that of the better peer, in a
 * row that is bound by its messages and has no `goal_pool`; and that of threads without actors, in
 * a row that such threads do, too. */
#define SAVINA_POOL_TO_PEER    3.0
#define SAVINA_POOL_TO_THREADS 0.95

/* The function that savina_call_for_each_figure() calls for each figure of an outcome that is not
 * missing. `who` is the name of a side, or "" for a figure that belongs to no side; `name` is the
 * name of the figure. */
typedef void savina_tell(void *context, const struct savina_outcome *outcome, const char *who,
                         const char *name, double value, const char *unit);
void savina_call_for_each_figure(const struct savina_outcome *outcome, savina_tell *tell,
                                 void *context);

#endif
