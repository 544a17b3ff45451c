/* Bounds that a candidate must keep, such as 'p99 < 2ms'. */
#ifndef DOMUS_TOOL_TUNE_BOUNDS_H
#define DOMUS_TOOL_TUNE_BOUNDS_H

#include "tools/domus/tune/figures.h"

#define TUNE_BOUNDS_MAX 8

typedef struct tune_bound {
    char name[TUNE_NAME_SIZE];
    bool is_most; /* true: the figure may be at most the value; false: at least */
    double value; /* the value, above 0 */
} tune_bound;

/* Read a bound: NAME < VALUE, or with <=, > or >=; a figure equal to the value keeps each of them.
 * Returns whether it is valid. */
bool tune_bound_read(const char *text, tune_bound *ret_bound);

/* Returns by how much a figure breaks a bound, as the logarithm of their ratio; 0 if it keeps the
 * bound. */
double tune_bound_broken(const tune_bound *bound, double figure);

#endif
