/* The figures that a load prints, read from its output.
 *
 * Two forms are read: lines `NAME VALUE [UNIT]`, as the benches of this tree print them, and the
 * outputs of wrk, ab, h2load, hey and redis-benchmark --csv. Lines of other forms are passed over.
 * Times are kept in seconds, and rates in events a second. */
#ifndef DOMUS_TOOL_TUNE_FIGURES_H
#define DOMUS_TOOL_TUNE_FIGURES_H

#include <stdbool.h>
#include <stddef.h>

#define TUNE_FIGURES_MAX 64
#define TUNE_NAME_SIZE   64 /* bytes of the name of a figure, with a NUL */

typedef struct tune_figure {
    char name[TUNE_NAME_SIZE];
    double value;
} tune_figure;

typedef struct tune_figures {
    size_t count;
    tune_figure each[TUNE_FIGURES_MAX];
    char error[160]; /* why the output is refused; "": it is not */
} tune_figures;

/* The names that tools' outputs give, and that have a meaning for the search: rate (1/s), p50, p90,
 * p95, p99, p999 and max (s), count (requests), seconds, errors. */

/* Read the output of a load. Returns whether it is right: no own line stands there twice. Otherwise
 * `error` says what is wrong. */
bool tune_figures_read(const char *text, size_t size, tune_figures *ret_figures);

/* Returns the figure of a name; NULL: there is none. */
const tune_figure *tune_figures_find(const tune_figures *figures, const char *name);

/* Set a figure. Returns whether there was room for it. */
bool tune_figures_set(tune_figures *figures, const char *name, double value);

/* Read a number with a unit of time (ns, us, ms, s), a multiplier (k, M) or none: "2ms". The unit
 * may be apart: "2 ms". Returns whether all of the text is that. */
bool tune_value_read(const char *text, double *ret_value);

/* Write a value with a unit that fits its name: 51.2 k, 1.25 ms. */
void tune_value_show(const char *name, double value, char *ret_text, size_t size);

/* Returns whether the figures of a name are times. */
bool tune_is_time(const char *name);

#endif
