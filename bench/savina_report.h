/* The results of the Savina bench, written as JSON, and as a page for people with a plot. */
#ifndef DOMUS_BENCH_SAVINA_REPORT_H
#define DOMUS_BENCH_SAVINA_REPORT_H

#include "bench/savina_outcome.h"

/* Write DIRECTORY/performance.md, performance.json, and performance.svg by gnuplot with the script
 * `gnuplot_script`. Returns 0, or the negative errno of a system call or of
 * command_run_and_read_figures(). */
int savina_report(const char *directory, const char *gnuplot_script, const struct savina_run *run,
                  const struct savina_outcome *outcomes, size_t count);

#endif
