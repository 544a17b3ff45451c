/* A simulated load for `domus tune`: its figures have a known best combination of values, noise,
 * drift and disturbed runs. */
#ifndef DOMT_SIMULATED_LOAD_H
#define DOMT_SIMULATED_LOAD_H

#include "tools/domus/tune/search.h"

/* Changes of a figure in percent, by the number of a key and of its value. Value 0 is today's. */
typedef struct domt_percents {
    double at[TUNE_KEYS_MAX][TUNE_VALUES_MAX + 1];
} domt_percents;

typedef struct domt_simulated_load {
    /* Changes of the load's rate in percent; those of value 0 are 0. */
    domt_percents percents;
    domt_percents p99s; /* changes of the load's latency in percent; those of value 0 are 0 */
    double noise;       /* standard deviation of the rate of a run, in percent */
    double drift;       /* standard deviation of the drift from one run to the next, in percent */
    /* how many percent of the runs are disturbed; each of them loses a fifth of its rate */
    uint32_t wild;
    double p99_most; /* limit of the latency, where today's latency is 1; 0: no limit */
    uint64_t chance;
    double drifted;
} domt_simulated_load;

/* Run a candidate once with the simulated load. Returns the outcome. */
tune_outcome domt_simulated_run_candidate(domt_simulated_load *load, const tune_point *point);

/* Run the search of a plan with the simulated load to its end. */
void domt_simulated_run_search(domt_simulated_load *load, const tune_plan *plan,
                               tune_search *search);

/* Returns the rate of a candidate without noise, where today's rate is 1. */
double domt_simulated_rate_of_candidate(const domt_simulated_load *load, const tune_point *point);

/* Returns the latency of a candidate without noise, where today's latency is 1. */
double domt_simulated_latency_of_candidate(const domt_simulated_load *load,
                                           const tune_point *point);

/* Returns the rate of the best of all combinations of values of a plan. */
double domt_simulated_best_rate_of_plan(const domt_simulated_load *load, const tune_plan *plan);

#endif
