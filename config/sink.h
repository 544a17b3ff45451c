/* Any thread leaves lines in a sink, and one thread of the sink writes them.
 *
 * A descriptor that nobody reads holds up each thread that writes to it, so only the sink's thread
 * writes. All others leave their lines in a queue of a fixed number of places. They never wait and
 * allocate nothing; when no place is free the line is dropped and counted. The count is written
 * before the next line that gets through. Lines are written in the order in which they were left.
 *
 * After a fork the child does not have the sink's thread: its lines wait in the queue for ever, and
 * are dropped once that is full. */
#ifndef DOMI_CONFIG_SINK_H
#define DOMI_CONFIG_SINK_H

#include <domus/log.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct domi_sink domi_sink;

/* Most texts of domi_sink_add_text() that wait; more are dropped. */
#define DOMI_SINK_TEXTS_MAX 4u

/* Make a sink for `lines_max` lines and begin its thread, which writes to `fd` and blocks all
 * signals. Each line begins with `name`, which stays the caller's as long as the sink.
 * With `ret_source`, which may be NULL, it keeps its last lines for viewers, who read them there
 * until domi_sink_free(). Returns 0; -ENOMEM; a negative errno when the thread cannot be made. */
int domi_sink_open(const char *name, int fd, uint32_t lines_max, domus_log_source *ret_source,
                   domi_sink **ret_sink);

/* Leave one line of the log in a sink. This function has the type of domus_hooks.log.
 * Thread-safety: any thread. */
void domi_sink_add_log_line(void *sink, domus_log_level level, uint32_t thread, const char *text);

/* Leave one line of the program's own in a sink: its bytes are escaped (domus/text.h). Any
 * thread. */
void domi_sink_add_line(domi_sink *sink, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Leave a text of whole lines, on the heap, in a sink: it is written as it is, and freed in every
 * case. Any thread. */
void domi_sink_add_text(domi_sink *sink, char *text);

/* Returns how many lines were dropped because no place was free or because they could not be
 * written. This function has the type of domus_hooks.log_dropped. Any thread. */
uint64_t domi_sink_count_dropped_lines(void *sink);

/* Write the lines that wait, for at most `within_ns` (a little longer if a write is stuck), and end
 * the thread. Lines that are left after that are accepted and never written. */
void domi_sink_close(domi_sink *sink, uint64_t within_ns);

/* Free a closed sink that no thread uses any more; nothing is freed if its thread is still stuck in
 * a write. NULL is allowed. */
void domi_sink_free(domi_sink *sink);

#endif
