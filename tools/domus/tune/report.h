/* The result of a search, as YAML that can be given to --config: all but the values that won are
 * comments. */
#ifndef DOMUS_TOOL_TUNE_REPORT_H
#define DOMUS_TOOL_TUNE_REPORT_H

#include "tools/domus/tune/record.h"

#include <stdio.h>

/* Print the verdict, the winning values, their effect on other figures, and the front. `words` are
 * the words of a command line that repeats the search; NULL ends them. */
void tune_report_print(const tune_records *records, char *const *words, FILE *out);

/* Print all runs as JSON. Returns whether that succeeded. */
bool tune_report_json(const tune_records *records, FILE *out);

/* Print the candidates as an SVG picture: the rate to the right, and p99, or else cpu, upwards.
 * Returns whether there was anything to show. */
bool tune_report_svg(const tune_records *records, FILE *out);

#endif
