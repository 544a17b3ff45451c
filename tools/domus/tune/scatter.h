/* The candidates as a picture: the rate to the right, and p99, or else cpu, upwards. */
#ifndef DOMUS_TOOL_TUNE_SCATTER_H
#define DOMUS_TOOL_TUNE_SCATTER_H

#include "tools/domus/tune/record.h"

#include <stdio.h>

/* The scale that gives candidates their places in a picture whose sides have the length 1. */
typedef struct tune_scale {
    int axis; /* index in tune_axes of the figure that is drawn upwards */
    double least[2], most[2];
} tune_scale;

/* Make the scale. Returns whether at least two candidates have figures for both sides. */
bool tune_scale_make(const tune_spot *spots, size_t count, tune_scale *ret_scale);

/* Get the place of a candidate: to the right, and upwards. Returns whether it has one. */
bool tune_scale_place(const tune_scale *scale, const tune_spot *spot, double ret_place[2]);

/* Print the picture with letters, in lines of a comment, unless there is nothing to show. */
void tune_scatter_print(const tune_records *records, const tune_spot *spots, size_t count,
                        FILE *out);

#endif
