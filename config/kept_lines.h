/* The last lines of a sink, for viewers of the observation port (domus/log.h).
 *
 * Only the thread of the sink adds lines, and viewers read them, under a lock that no other thread
 * ever takes. So no thread that leaves a line pays for it. */
#ifndef DOMI_CONFIG_KEPT_LINES_H
#define DOMI_CONFIG_KEPT_LINES_H

#include <domus/log.h>

typedef struct domi_kept_lines domi_kept_lines;

/* Make a ring for the last DOMUS_LOG_KEPT lines of a sink, 140 KB. Returns NULL without memory. */
domi_kept_lines *domi_kept_lines_new(void);

/* Free a ring of kept lines. NULL is allowed. */
void domi_kept_lines_free(domi_kept_lines *kept);

/* Keep a line of the sink, in the place of the oldest one. */
void domi_kept_lines_add_line(domi_kept_lines *kept, domus_log_level level, uint32_t thread,
                              const char *text);

/* Read a kept line, as domus_log_source.read. Any thread. */
int domi_kept_lines_read_line(void *kept, uint64_t from, domus_log_line *ret_line);

#endif
