/* The statistics of a search: medians and intervals (stats.h). */
#include "tools/domus/tune/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_doubles_for_sorting(const void *one_, const void *other_)
{
    double one = *(const double *)one_, other = *(const double *)other_;

    return (one > other) - (one < other);
}

double tune_sort_and_get_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles_for_sorting);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* Returns how many values are left out at each end of the interval, so that it misses the median in
 * at most 2.5 of 100 cases at each end: each value lies on either side of the median like the toss
 * of a coin, and `below` is the probability that so few or fewer lie on one side. */
static size_t count_values_outside_of_median_interval(size_t count)
{
    double way = pow(0.5, (double)count), below = way;
    size_t out = 0;

    for (;;) {
        way *= (double)(count - out) / (double)(out + 1);
        if (below + way > 0.025)
            return out;
        below += way;
        out++;
    }
}

tune_interval tune_95_percent_interval_of_median(const double *values, size_t count)
{
    double sorted[TUNE_PAIRS_MAX];
    size_t out = count_values_outside_of_median_interval(count);

    memcpy(sorted, values, count * sizeof *values);
    double middle = tune_sort_and_get_median(
        sorted, count); /* tune_sort_and_get_median() also sorts the values */
    return (tune_interval){sorted[out], middle, sorted[count - 1 - out]};
}

double tune_student_t_of_95_percent(size_t freedom)
{
    static const double few[] = {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23};

    if (freedom == 0)
        return INFINITY;
    return freedom <= 10 ? few[freedom - 1] : 1.96 + 2.7 / (double)freedom;
}

uint64_t tune_next_random_number(uint64_t *state)
{
    uint64_t number = *state += 0x9e3779b97f4a7c15u;

    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9u;
    number = (number ^ number >> 27) * 0x94d049bb133111ebu;
    return number ^ number >> 31;
}
