/* The lines of `domus tune` on stderr while it runs: on a terminal one line that changes, otherwise
 * a line for each run. */
#ifndef DOMUS_TOOL_TUNE_PROGRESS_H
#define DOMUS_TOOL_TUNE_PROGRESS_H

#include "tools/domus/tune/record.h"

typedef struct tune_progress {
    bool is_terminal;
    bool has_line; /* on the terminal there is one that is not ended */
} tune_progress;

void tune_progress_begin(tune_progress *progress);

/* Show that a run begins; on a terminal only. `records` has those before it. */
void tune_progress_show(tune_progress *progress, const tune_records *records);

/* Show the last run of `records`. */
void tune_progress_add(tune_progress *progress, const tune_records *records);

/* End the line that changes, so that something else can be printed. */
void tune_progress_clear(tune_progress *progress);

#endif
