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
#define TUNE_NAME_SIZE   64 /* most bytes of the name of a figure, with a zero */

typedef struct tune_figure {
    char name[TUNE_NAME_SIZE];
    double value;
} tune_figure;

typedef struct tune_figures {
    size_t count;
    tune_figure each[TUNE_FIGURES_MAX];
    char error[160]; /* reason why the load's output is refused; "": it is accepted */
} tune_figures;

/* Names of figures that outputs of tools give, and that mean something for the search: rate (1/s),
 * p50, p90, p95, p99, p999 and max (s), count (requests), seconds, errors. */

/* Read the figures from the output of a load. Returns whether it is valid: no own line may be there
 * twice. Otherwise `error` tells what is wrong. */
bool tune_figures_read_output(const char *text, size_t size, tune_figures *ret_figures);

/* Returns the figure with this name; NULL if the load has printed none. */
const tune_figure *tune_figures_find_by_name(const tune_figures *figures, const char *name);

/* Set the figure with this name. Returns false if there is no room for it. */
bool tune_figures_set_figure(tune_figures *figures, const char *name, double value);

/* Read a number with a unit of time (ns, us, ms, s), a multiplier (k, M) or neither: "2ms". A blank
 * may stand before the unit: "2 ms". Returns whether the whole text is such a number. */
bool tune_value_read_with_unit(const char *text, double *ret_value);

/* Write the value of a figure with a unit that fits the figure's name: 51.2 k, 1.25 ms. */
void tune_value_write_with_unit(const char *name, double value, char *ret_text, size_t size);

/* Returns whether figures with this name are times, which are shown with a unit of time. */
bool tune_is_figure_a_time(const char *name);

#endif
