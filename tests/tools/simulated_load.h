/* A simulated load: its figures have a known best combination, noise, drift and disturbed runs. */
#ifndef DOMT_SIMULATED_LOAD_H
#define DOMT_SIMULATED_LOAD_H

#include "tools/domus/tune/search.h"

/* Changes of a figure in percent, by key and value. Value 0 is today's. */
typedef struct domt_percents {
    double at[TUNE_KEYS_MAX][TUNE_VALUES_MAX + 1];
} domt_percents;

typedef struct domt_simulated_load {
    /* Changes of the rate; those of value 0 are 0. */
    domt_percents percents;
    domt_percents p99s; /* changes of the latency; those of value 0 are 0 */
    double noise;       /* standard deviation of a run, in percent */
    double drift;       /* standard deviation of the change from run to run, in percent */
    uint32_t wild;      /* disturbed runs in percent; each loses a fifth of its rate */
    double p99_most;    /* limit of the latency, where today's is 1; 0: no limit */
    uint64_t chance;
    double drifted;
} domt_simulated_load;

/* Run a candidate once. Returns the outcome. */
tune_outcome domt_simulated_run_candidate(domt_simulated_load *load, const tune_point *point);

/* Run the search of a plan to its end. */
void domt_simulated_run_search(domt_simulated_load *load, const tune_plan *plan,
                               tune_search *search);

/* Returns the true rate of a candidate; today's is 1. */
double domt_simulated_rate_of_candidate(const domt_simulated_load *load, const tune_point *point);

/* Returns the true latency of a candidate; today's is 1. */
double domt_simulated_latency_of_candidate(const domt_simulated_load *load,
                                           const tune_point *point);

/* Returns the rate of the best of all combinations of a plan. */
double domt_simulated_best_rate_of_plan(const domt_simulated_load *load, const tune_plan *plan);

#endif
