/* A load that is made up: its figures have a known best, noise, drift and wild runs. */
#ifndef DOMT_SIMULATED_LOAD_H
#define DOMT_SIMULATED_LOAD_H

#include "tools/domus/tune/search.h"

/* Changes of a figure in percent, by key and value. */
typedef struct domt_percents {
    double at[TUNE_KEYS_MAX][TUNE_VALUES_MAX + 1];
} domt_percents;

typedef struct domt_simulated_load {
    /* How much each value of a key changes the rate; [0] is today's, 0. */
    domt_percents percents;
    domt_percents p99s; /* the same of its latency */
    double noise;       /* the standard deviation of a run, in percent */
    double drift;       /* the same of the change from each run to the next */
    uint32_t wild;      /* in percent: so many runs are disturbed, and lose a fifth */
    double p99_most;    /* the bound of its latency, which is 1 today; 0: there is none */
    uint64_t chance;
    double drifted;
} domt_simulated_load;

/* Returns the outcome of a run of a candidate. */
tune_outcome domt_simulated_run(domt_simulated_load *load, const tune_point *point);

/* Do the search of a plan to its end. */
void domt_simulated_search(domt_simulated_load *load, const tune_plan *plan, tune_search *search);

/* Returns the true rate of a candidate; today's is 1. */
double domt_simulated_rate(const domt_simulated_load *load, const tune_point *point);

/* Returns the true latency of a candidate; today's is 1. */
double domt_simulated_p99(const domt_simulated_load *load, const tune_point *point);

/* Returns the rate of the best of all combinations of a plan. */
double domt_simulated_best(const domt_simulated_load *load, const tune_plan *plan);

#endif
