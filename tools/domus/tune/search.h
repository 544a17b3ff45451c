/* The search for the best values: which candidate runs next, and what the runs so far say.
 *
 * It is pure: it starts no process and reads no clock, so a simulated load can test it. A caller
 * asks for the next run, does it, hands its outcome in, and goes on until there is none.
 *
 *     STAGE of key 1 -> STAGE of key 2 -> ... -> DUEL -> DONE
 *                \______________\______________________/   nothing was better than today's values
 *
 * A *stage* looks at one key; all other keys have the best values so far. Its *rivals* are the
 * values of that key and its value of today, which is the *base*. A *round* runs each rival that is
 * left once, in an order by chance, so that drift hits all alike; a rival's figure is the
 * logarithm of its ratio to the base in the same round, and the median of its rounds counts. The
 * *noise* is the standard error of that figure; it is measured by how far the ratios of one rival
 * lie apart from round to round, over all stages.
 *
 * After each round from the second one on, the worse half of the rivals leaves, as far as each of
 * their rounds was worse than the best by more than the noise. A stage ends when its best is better
 * than the base by more than chance gives in 95 of 100 cases (twice the noise), when that bound is
 * no larger than `least`, or behind TUNE_ROUNDS_MAX rounds. The best is chosen if it is better than
 * the base by more than the noise.
 *
 * The best of all stages was chosen from many, so its figures flatter it. Only the *duel* is
 * believed: pairs of runs of it and of today's configuration, whose figures nobody has seen before.
 */
#ifndef DOMUS_TOOL_TUNE_SEARCH_H
#define DOMUS_TOOL_TUNE_SEARCH_H

#include "tools/domus/tune/stats.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TUNE_KEYS_MAX   16
#define TUNE_VALUES_MAX 16 /* most values of a key that are tried, besides today's */
#define TUNE_ROUNDS_MAX 5  /* most rounds of a stage */
#define TUNE_SWEEP      10 /* number of rounds of the full sweep with which a search is compared */
/* most deviations of ratios that are kept: the last ones, by which the noise is measured */
#define TUNE_OFFS_MAX 256
#define TUNE_RUNS_MAX 10000

/* A candidate: for each key the number of its value, from 1 on; 0: today's value. */
typedef struct tune_point {
    uint8_t choice[TUNE_KEYS_MAX];
} tune_point;

typedef struct tune_plan {
    size_t keys; /* number of keys that the search tries, 1..TUNE_KEYS_MAX */
    /* number of values that are tried of each key, 1..TUNE_VALUES_MAX */
    size_t values[TUNE_KEYS_MAX];
    bool is_more_better; /* a larger figure of the search's goal is better */
    double least;        /* logarithm of the smallest ratio of figures that matters */
    size_t pairs;        /* number of pairs of runs in the duel: TUNE_PAIRS_MIN..TUNE_PAIRS_MAX */
    size_t runs_max;     /* number of runs that the search may do, at least
                            tune_plan_least_number_of_runs() */
    uint64_t seed;
} tune_plan;

/* The outcome of a run, as the caller of the search has measured it. */
typedef struct tune_outcome {
    bool has_failed;
    double goal;   /* figure of the goal that the run has measured, above 0 */
    double broken; /* largest logarithm by which the run has broken a bound; 0: all were kept */
} tune_outcome;

typedef struct tune_rival {
    uint8_t choice;
    bool has_left;
    size_t rounds;
    /* logarithms of the ratio of the rival's goal figure to the base's, by round; above 0 is
     * better */
    double logs[TUNE_ROUNDS_MAX];
    /* by how much each run of the rival has broken a bound, as in tune_outcome */
    double brokens[TUNE_ROUNDS_MAX];
    double log, broken; /* medians of `logs` and of `brokens` */
} tune_rival;

typedef enum tune_state { TUNE_STAGE, TUNE_DUEL, TUNE_DONE } tune_state;

typedef enum tune_verdict {
    TUNE_OPEN,
    TUNE_BETTER, /* verdict: the best candidate is better than today's values */
    TUNE_SAME,   /* verdict: no difference between candidates exceeds the noise */
    TUNE_KEEPS,  /* verdict: the best candidate keeps the bounds, which today's values break */
    TUNE_BROKEN, /* verdict: no candidate keeps the bounds */
    /* verdict: a run with today's value, or with the best values so far, has failed */
    TUNE_BASE_LOST,
    /* verdict: the best candidate of the stages was worse than today's values in the duel */
    TUNE_WORSE,
    /* verdict: the best candidate of the stages broke the bounds in the duel, and today's values
     * kept them */
    TUNE_BREAKS,
    TUNE_FAILS, /* verdict: the best candidate of the stages has failed in the duel */
    TUNE_VERDICTS,
} tune_verdict;

typedef struct tune_search {
    tune_plan plan;
    tune_state state;
    tune_verdict verdict;
    tune_point best; /* the best candidate that the stages have found so far */
    size_t runs;     /* number of runs whose outcomes the search has recorded */
    uint64_t chance;
    /* Members of a search for its current stage. */
    size_t key, rounds, rivals_count;
    /* the rivals of the current stage; the base is the first */
    tune_rival rivals[TUNE_VALUES_MAX + 1];
    /* Members of a search for the current round: the rivals in the order of their runs, and the
     * outcomes of those before `at`. */
    size_t order[TUNE_VALUES_MAX + 1], order_count, at;
    /* outcomes of the current round by the index of the rival */
    tune_outcome outcomes[TUNE_VALUES_MAX + 1];
    /* Members of a search for the noise over all stages: how far ratios of a rival deviated from
     * its earlier ones. */
    double offs[TUNE_OFFS_MAX];
    size_t offs_count;
    /* logarithm of the smallest ratio that the search would have noticed, in the worst stage */
    double noise;
    /* Members of a search for its duel. */
    /* results of each pair of runs in the duel; `pair_brokens` of today's values and of the best
     * candidate */
    double pair_logs[TUNE_PAIRS_MAX], pair_brokens[2][TUNE_PAIRS_MAX];
    size_t pairs;
    /* outcome of the first run of a duel's pair, while the second one is under way */
    tune_outcome first;
    bool has_first, is_today_first;
    /* interval of the ratio of the best candidate to today's values that the duel has measured */
    tune_interval interval;
} tune_search;

/* Returns the smallest number of runs for a search by this plan: one round of each stage and a
 * duel. */
size_t tune_plan_least_number_of_runs(const tune_plan *plan);

/* Returns the default of `runs_max`: four rounds of each stage, and the duel of the best candidate
 * with today's values; most loads need no more. */
size_t tune_plan_usual_number_of_runs(const tune_plan *plan);

/* Returns the number of runs of a full sweep: TUNE_SWEEP rounds of all combinations. */
double tune_plan_number_of_runs_of_full_sweep(const tune_plan *plan);

void tune_search_begin_first_stage(tune_search *search, const tune_plan *plan);

/* Get the candidate of the next run. The same one is returned until
 * tune_search_use_outcome_of_run() was called. Returns whether there is one; otherwise `state` is
 * TUNE_DONE and there is a verdict.
 */
bool tune_search_get_candidate_of_next_run(tune_search *search, tune_point *ret_point);

/* Record the outcome of the run that tune_search_get_candidate_of_next_run() has named. */
void tune_search_use_outcome_of_run(tune_search *search, const tune_outcome *outcome);

/* Get what is known of the best candidate so far: its median ratio to its base, and the noise of
 * that ratio (INFINITY: unknown). Returns the candidate. */
tune_point tune_search_get_best_candidate_so_far(const tune_search *search, double *ret_log,
                                                 double *ret_noise);

/* Returns whether a candidate is today's configuration. */
bool tune_point_has_only_todays_values(const tune_point *point);

#endif
