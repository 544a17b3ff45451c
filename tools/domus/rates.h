/* Rates: what happened between two samples of a program, or since its start. */
#ifndef DOMUS_TOOL_RATES_H
#define DOMUS_TOOL_RATES_H

#include "tools/domus/sample.h"

/* The work of one thread. */
typedef struct thread_rates {
    double shares[PHASES];  /* of its time, 0..1, with a sum of 1, or all 0 if it is not known */
    double rates[COUNTERS]; /* a second */
    uint64_t counts[COUNTERS];
} thread_rates;

typedef struct runner_rates {
    double run, search, park; /* shares, likewise */
    double rates[COUNTERS];
    uint64_t counts[COUNTERS];
} runner_rates;

typedef struct behaviour_rates {
    double share; /* of the time of one thread that its runs took: it may be more than 1 */
    double runs, messages, failures; /* a second */
    double wait_ns;                  /* ns that one message waits, on average */
    uint64_t alive, bytes;           /* now */
    uint64_t failed;                 /* failures since the start */
} behaviour_rates;

/* Returns whether `now` goes on from `before`: both are of one process. */
bool rates_go_on(const sample *before, const sample *now);

/* The time between them in seconds, more than 0. `before` may be NULL: since the start. */
double rates_seconds(const sample *before, const sample *now);

/* Get the work of a thread: a number below now->thread_count. A thread that `before` lacks is taken
 * from its start. */
void rates_of_thread(const sample *before, const sample *now, uint32_t thread,
                     thread_rates *ret_rates);

/* The sums of all threads; the shares are means. */
void rates_of_all(const sample *before, const sample *now, thread_rates *ret_rates);

void rates_of_runner(const sample *before, const sample *now, uint32_t runner,
                     runner_rates *ret_rates);

void rates_of_behaviour(const sample *before, const sample *now, uint32_t behaviour,
                        behaviour_rates *ret_rates);

#endif
