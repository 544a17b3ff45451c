/* A sink: any thread leaves lines in it, and one thread of its own writes them.
 *
 * A descriptor that nobody reads holds up whoever writes to it, so only the sink's thread does. All
 * others leave their lines in a queue of a fixed number of places. They never wait and allocate
 * nothing; when no place is free the line is dropped and counted. The count is written before the
 * next line that gets through. Lines are written in the order in which they were left.
 *
 * After a fork the child has no such thread: its lines are dropped once the queue is full. */
#ifndef DOMI_CONFIG_SINK_H
#define DOMI_CONFIG_SINK_H

#include <domus/hooks.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct domi_sink domi_sink;

/* Texts of more than one line that may wait; more are dropped. */
#define DOMI_SINK_TEXTS_MAX 4u

/* Make a sink for `lines_max` lines and begin its thread, which writes to `fd` and blocks all
 * signals. Each line begins with `name`, which stays the caller's as long as the sink.
 * Returns 0; -ENOMEM; a negative errno when the thread cannot be made. */
int domi_sink_open(const char *name, int fd, uint32_t lines_max, domi_sink **ret_sink);

/* Leave one line of the log. Has the type of domus_hooks.log. Thread-safety: any thread. */
void domi_sink_log(void *sink, domus_log_level level, uint32_t thread, const char *text);

/* Leave one line of the program's own: its bytes are escaped (domus/text.h). Any thread. */
void domi_sink_add_line(domi_sink *sink, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Leave a text of whole lines, on the heap: it is written as it is, and freed in every case. Any
 * thread. */
void domi_sink_add_text(domi_sink *sink, char *text);

/* How many lines were dropped, for want of a place or because they could not be written. Has the
 * type of domus_hooks.log_dropped. Any thread. */
uint64_t domi_sink_dropped(void *sink);

/* Write what waits, for at most `within_ns` (a little longer when a write itself is stuck), and end
 * the thread. Lines that are left after that are accepted and never written. */
void domi_sink_close(domi_sink *sink, uint64_t within_ns);

/* Free a closed sink that no thread uses any more; nothing is freed while its thread is stuck in a
 * write. NULL is taken. */
void domi_sink_free(domi_sink *sink);

#endif
