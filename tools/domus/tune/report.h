/* The result of a search, as YAML that can be given to --config: all but the values that won are
 * comments. */
#ifndef DOMUS_TOOL_TUNE_REPORT_H
#define DOMUS_TOOL_TUNE_REPORT_H

#include "tools/domus/tune/record.h"

#include <stdio.h>

/* Print the verdict, the values that won, what they cost elsewhere, and the front. `words` are
 * those of the command line that repeats the search; NULL ends them. */
void tune_report_print(const tune_records *records, char *const *words, FILE *out);

/* Print all runs as JSON. Returns whether that was possible. */
bool tune_report_json(const tune_records *records, FILE *out);

/* Print the candidates as a picture: the rate to the right, and p99, or else cpu, upwards. Returns
 * whether there was something to show. */
bool tune_report_svg(const tune_records *records, FILE *out);

#endif
