/* A histogram that one thread writes and any thread reads (domus/histogram.h).
 *
 * An add is two counters: no atomic read-modify-write, no loop. A reader sees each place as it was
 * at some moment, so what is added meanwhile may be in the sum of times and in no place yet. */
#ifndef DOMI_BASE_HISTOGRAM_H
#define DOMI_BASE_HISTOGRAM_H

#include "base/counter.h"

#include <domus/histogram.h>

/* A histogram has 2^6 places for the times between two powers of two. */
#define DOMI_HISTOGRAM_BITS 6u

typedef struct domi_histogram {
    domi_counter sum_ns;
    domi_counter places[DOMUS_HISTOGRAM_PLACES];
} domi_histogram;

/* Returns the place of a time in a histogram: the number of its highest 1 bit, and the six bits
 * behind that. */
static inline uint32_t domi_histogram_place_of_time(uint64_t time_ns)
{
    if (time_ns < 1u << DOMI_HISTOGRAM_BITS)
        return (uint32_t)time_ns;
    uint32_t shift = 63u - (uint32_t)__builtin_clzll(time_ns) - DOMI_HISTOGRAM_BITS;
    uint32_t place = (shift << DOMI_HISTOGRAM_BITS) + (uint32_t)(time_ns >> shift);
    return place < DOMUS_HISTOGRAM_PLACES ? place : DOMUS_HISTOGRAM_PLACES - 1;
}

/* Add a time to a histogram that stands for `weight` times of about that length. Called by the
 * owner. */
static inline void domi_histogram_add_weighted_time(domi_histogram *histogram, uint64_t time_ns,
                                                    uint32_t weight)
{
    domi_counter_add(&histogram->sum_ns, time_ns * weight);
    domi_counter_add(&histogram->places[domi_histogram_place_of_time(time_ns)], weight);
}

/* Add one time to a histogram. Called by its owner. */
static inline void domi_histogram_add_time(domi_histogram *histogram, uint64_t time_ns)
{
    domi_histogram_add_weighted_time(histogram, time_ns, 1);
}

/* Add all times of a histogram, which its owner may be writing, to the copy `to`. Called by any
 * thread. */
void domi_histogram_add_all_to_copy(const domi_histogram *histogram, domus_histogram *to);

#endif
