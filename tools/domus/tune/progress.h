/* The lines of `domus tune` on stderr while it runs: on a terminal one line that changes, otherwise
 * a line for each run. */
#ifndef DOMUS_TOOL_TUNE_PROGRESS_H
#define DOMUS_TOOL_TUNE_PROGRESS_H

#include "tools/domus/tune/record.h"

typedef struct tune_progress {
    bool is_terminal;
    bool has_line; /* the line on the terminal has no line end yet */
} tune_progress;

void tune_progress_begin(tune_progress *progress);

/* Show that a run begins, if this is a terminal. `records` has the runs before it. */
void tune_progress_show(tune_progress *progress, const tune_records *records);

/* Show the last run of `records`. */
void tune_progress_add(tune_progress *progress, const tune_records *records);

/* End the line that changes, so that other text can be printed. */
void tune_progress_clear(tune_progress *progress);

#endif
