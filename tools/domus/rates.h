/* Rates of events and shares of time of a program between two samples, or since its start. */
#ifndef DOMUS_TOOL_RATES_H
#define DOMUS_TOOL_RATES_H

#include "tools/domus/sample.h"

/* The rates and shares of one thread. */
typedef struct thread_rates {
    /* shares of the thread's time for each phase, which add up to 1, or are all 0 if unknown */
    double shares[PHASES];
    double rates[COUNTERS]; /* events of the thread a second, for each counter */
    uint64_t counts[COUNTERS];
} thread_rates;

typedef struct runner_rates {
    /* shares of the runner's time, which add up to 1 as those of a thread do */
    double run, search, park;
    double rates[COUNTERS];
    uint64_t counts[COUNTERS];
} runner_rates;

typedef struct behaviour_rates {
    /* share of one thread's time that runs of the behaviour's actors took; it may exceed 1 */
    double share;
    double runs, messages, failures; /* events of the behaviour a second */
    double wait_ns;                  /* ns that one message for the behaviour waits, on average */
    /* number of the behaviour's actors that are alive now, and bytes that they use */
    uint64_t alive, bytes;
    uint64_t failed; /* number of the behaviour's failures since the start of the program */
} behaviour_rates;

/* Returns whether the samples `before` and `now` come from the same process. */
bool rates_can_samples_be_compared(const sample *before, const sample *now);

/* Returns the time between two samples in seconds, more than 0. If `before` is NULL, it is the time
 * since the start. */
double rates_get_seconds_between(const sample *before, const sample *now);

/* Get the rates of a thread between two samples; its number is below now->thread_count. If `before`
 * lacks the thread, they count from its start. */
void rates_between_samples_of_thread(const sample *before, const sample *now, uint32_t thread,
                                     thread_rates *ret_rates);

/* Get the sums of the rates over all threads; the shares are means. */
void rates_between_samples_of_all_threads(const sample *before, const sample *now,
                                          thread_rates *ret_rates);

void rates_between_samples_of_runner(const sample *before, const sample *now, uint32_t runner,
                                     runner_rates *ret_rates);

void rates_between_samples_of_behaviour(const sample *before, const sample *now, uint32_t behaviour,
                                        behaviour_rates *ret_rates);

#endif
