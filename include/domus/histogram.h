/* Histograms of times, as profile.level: histograms measures them (domus/profile.h).
 *
 * They are log-linear: each power of two has 64 places of equal width, so a place is at most 1/64
 * as wide as its times are long, and its middle is at most 0.8 % beside each of them. Times below
 * 64 ns have a place each; the last place also counts times of 68 s and more. So two histograms are
 * added place by place, and a quantile is found without any sorting.
 *
 * Thread-safety: a histogram is a value of its owner; these functions only use what they are given.
 */
#ifndef DOMUS_HISTOGRAM_H
#define DOMUS_HISTOGRAM_H

#include <domus/export.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The number of places of a histogram: 64 below 64 ns, and 64 for each power of two from 2^6 to
 * 2^35 ns. */
#define DOMUS_HISTOGRAM_PLACES (64u + 30u * 64u)

/* A histogram of times, which takes 15.5 KiB. */
typedef struct domus_histogram {
    uint64_t count;  /* number of times that the histogram has in all its places */
    uint64_t sum_ns; /* sum of all these times, as they were measured, in ns */
    uint64_t places[DOMUS_HISTOGRAM_PLACES];
} domus_histogram;

/* Returns the shortest time of a place in nanoseconds; for DOMUS_HISTOGRAM_PLACES, and for a larger
 * number, the time at which the last place would end. */
DOMUS_API uint64_t domus_histogram_bound_ns(uint32_t place);

/* Returns the quantile `share` (0 to 1) in nanoseconds: the middle of the place up to which that
 * share of the times lies, or for the last place its beginning. 0 if there are no times. */
DOMUS_API uint64_t domus_histogram_quantile_ns(const domus_histogram *histogram, double share);

/* Add all times of `from` to `to`. */
DOMUS_API void domus_histogram_merge(domus_histogram *to, const domus_histogram *from);

/* Take the times of `before`, an older snapshot of the same histogram, out of `now`. */
DOMUS_API void domus_histogram_subtract(domus_histogram *now, const domus_histogram *before);

#ifdef __cplusplus
}
#endif

#endif
