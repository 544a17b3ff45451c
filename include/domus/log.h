/* The log of a system while it runs: which lines are written, and the last ones for viewers.
 *
 * The library writes lines of three levels (domus/hooks.h). Lines that are less severe than the
 * level of the system are not made: the configuration has the level of the start (log.level), and
 * it may change at any time. Handlers of a program write lines of theirs by domus_log_write(), too,
 * or where they like.
 *
 * A log source keeps the last lines, so that somebody can read them who does not read the place to
 * which they are written. domus_main() has one while the observation port is open, and gives it to
 * that port (domus/front.h). */
#ifndef DOMUS_LOG_H
#define DOMUS_LOG_H

#include <domus/hooks.h>

#ifdef __cplusplus
extern "C" {
#endif

struct domus_stack;
struct domus_system;

/* Returns the word of a level in the configuration: "error", "warning" or "info"; "" for no level.
 * Thread-safety: any thread. */
DOMUS_API const char *domus_log_level_name(domus_log_level level);

/* Set the level of a system's log: lines of this level, and those that are more severe, are
 * written, on all its threads, from the next line on. Returns 0; -EINVAL for no level.
 * Thread-safety: any thread, from domus_system_new() until domus_system_free(). */
DOMUS_API int domus_system_set_log_level(struct domus_system *system, domus_log_level level);

/* Returns the level of a system's log that was set last. Thread-safety: any thread, from
 * domus_system_new() until domus_system_free(). */
DOMUS_API domus_log_level domus_system_log_level(const struct domus_system *system);

/* Write a line into the log of the system, by the rules of the library's own lines: if the level of
 * the system has it, at most DOMUS_LOG_LINES_PER_SECOND of a thread in a second, cut at
 * DOMUS_LOG_TEXT_MAX bytes, and with all escaped that is no printable ASCII. It is for what the
 * reader of the log has to know of, not for each request (domus/http_access.h). Thread-safety: only
 * from within a handler, with the stack it was given. */
DOMUS_API void domus_log_write(const struct domus_stack *stack, domus_log_level level,
                               const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The number of lines that the log source of domus_main() keeps. */
#define DOMUS_LOG_KEPT 256u

/* A line of the log that a log source has kept. */
typedef struct domus_log_line {
    uint64_t number; /* number of the line in its log source, from 1 on */
    uint64_t utc_ns; /* the time when the line was kept, in ns since 1970, UTC */
    domus_log_level level;
    /* number of the thread that wrote the line; DOMUS_LOG_OUTSIDE: a foreign thread */
    uint32_t thread;
    char text[DOMUS_LOG_TEXT_MAX + 1]; /* text of the line: printable ASCII, NUL-terminated */
} domus_log_line;

/* A log source: the last lines of a log, which any thread may read. */
typedef struct domus_log_source {
    /* Copy the kept line with the lowest number that is `from` or more. If that is more than
     * `from`, the lines between are no longer kept. Returns 0; -ENOENT when there is no such line
     * yet. Thread-safety: any thread, many at once. It does not block. */
    int (*read)(void *context, uint64_t from, domus_log_line *ret_line);
    void *context; /* argument that `read` gets */
} domus_log_source;

#ifdef __cplusplus
}
#endif

#endif
