/* The statistics of a search: medians, and intervals that assume no shape of the noise.
 *
 * Figures of runs are compared as logarithms of ratios, in which a noise of 2 % is equally large on
 * both sides of 1. The functions know nothing of runs and candidates, and are pure. */
#ifndef DOMUS_TOOL_TUNE_STATS_H
#define DOMUS_TOOL_TUNE_STATS_H

#include <stddef.h>
#include <stdint.h>

/* number of pairs of runs below which no interval holds in 95 of 100 cases */
#define TUNE_PAIRS_MIN 6
#define TUNE_PAIRS_MAX 50 /* most pairs of runs of which an interval is made */

typedef struct tune_interval {
    double low, middle, high;
} tune_interval;

/* Returns the median of `count` (at least 1) values, and sorts them. */
double tune_sort_and_get_median(double *values, size_t count);

/* Returns the interval that contains the median of the values' distribution in at least 95 of 100
 * cases, whatever the distribution is: from the k-th smallest to the k-th greatest value. `middle`
 * is the median of the values. `count` is from TUNE_PAIRS_MIN to TUNE_PAIRS_MAX. One of 9 values
 * may be an outlier, and two of 12, without any effect on the other end. */
tune_interval tune_95_percent_interval_of_median(const double *values, size_t count);

/* Returns how many standard errors a mean may deviate by chance, in 95 of 100 cases, if the
 * variance was estimated with so many degrees of freedom (Student's t). `freedom` 0 means
 * infinity. */
double tune_student_t_of_95_percent(size_t freedom);

/* Returns the next random number of a sequence that its seed determines (splitmix64). */
uint64_t tune_next_random_number(uint64_t *state);

#endif
