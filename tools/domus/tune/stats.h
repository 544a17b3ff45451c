/* The statistics of a search: medians, and intervals that need no shape of the noise.
 *
 * Figures of runs are compared as logarithms of ratios, because a noise of 2 % is the same on both
 * sides of 1 there. The functions know no runs and no candidates, and are pure. */
#ifndef DOMUS_TOOL_TUNE_STATS_H
#define DOMUS_TOOL_TUNE_STATS_H

#include <stddef.h>
#include <stdint.h>

#define TUNE_PAIRS_MIN 6  /* with fewer no interval holds in 95 of 100 cases */
#define TUNE_PAIRS_MAX 50 /* pairs of which an interval is made */

typedef struct tune_interval {
    double low, middle, high;
} tune_interval;

/* Returns the median of `count` values (1 at least), whose order is changed. */
double tune_median(double *values, size_t count);

/* The interval in which the median of the values' distribution lies in at least 95 of 100 cases,
 * whatever that distribution is: from the k-th least to the k-th greatest value. `middle` is their
 * median. `count` is from TUNE_PAIRS_MIN to TUNE_PAIRS_MAX. One of 9 values may be wild, and two of
 * 12, without any effect on the other end. */
tune_interval tune_interval_of(const double *values, size_t count);

/* Returns how many standard errors a mean may lie away by chance, in 95 of 100 cases, if the
 * variance was estimated with so many degrees of freedom (Student). 0: infinity. */
double tune_student(size_t freedom);

/* The next number of a sequence that its seed determines (splitmix64). */
uint64_t tune_chance(uint64_t *state);

#endif
