/* Bounds that a candidate has to keep: 'p99 < 2ms'. */
#ifndef DOMUS_TOOL_TUNE_BOUNDS_H
#define DOMUS_TOOL_TUNE_BOUNDS_H

#include "tools/domus/tune/figures.h"

#define TUNE_BOUNDS_MAX 8

typedef struct tune_bound {
    char name[TUNE_NAME_SIZE];
    bool is_most; /* the figure has to be below the value, or at it */
    double value; /* above 0 */
} tune_bound;

/* Read NAME < VALUE, or with <=, > or >=; that a figure is equal to the value keeps each of them.
 * Returns whether it is one. */
bool tune_bound_read(const char *text, tune_bound *ret_bound);

/* Returns by what a figure breaks a bound: the logarithm of the ratio; 0: it keeps it. */
double tune_bound_broken(const tune_bound *bound, double figure);

#endif
