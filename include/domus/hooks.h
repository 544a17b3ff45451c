/* Hooks: functions of the program from which a system gets its memory, and to which it gives
 * its log lines. Each system has its own hooks, given when it is made
 * (domus_system_new_with(), domus/system.h).
 *
 * Thread-safety: a hook is called from any thread, also from the threads that run actors and
 * connections, and from several threads at once. No hook may call domus or leave by longjmp.
 *
 * No hook may block: while a thread is in a hook, all its actors and connections wait. A write to
 * a pipe or a terminal blocks when nobody reads it. So a log hook should hand its line to a
 * thread of the program, by a queue that has a bound, and drop lines that do not fit, as
 * domus_main() does. */
#ifndef DOMUS_HOOKS_H
#define DOMUS_HOOKS_H

#include <domus/export.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The source of all memory that the library allocates for the system. domus_system_free() gives
 * every byte back. (Thread stacks and the rings' own pages do not come from here, because the C
 * library and the kernel map them, nor does the memory of libdomus-config.) When an allocator
 * refuses memory, the call that needs it answers -ENOMEM. */
typedef struct domus_allocator {
    /* Return `bytes` zeroed bytes, aligned to 16, or NULL if there is no memory. */
    void *(*allocate)(void *context, size_t bytes);
    void (*free)(void *context, void *memory, size_t bytes);

    /* Return zeroed memory for a large object, in whole pages of 4 KiB and aligned to a page, or
     * NULL. */
    void *(*map)(void *context, size_t bytes);
    void (*unmap)(void *context, void *memory, size_t bytes);

    void *context;
} domus_allocator;

/* Levels of lines of the log, the most severe first. */
typedef enum domus_log_level {
    /* an actor has ended because there was no rule for its failure, or an actor could not be
     * stopped */
    DOMUS_LOG_ERROR,
    DOMUS_LOG_WARNING, /* an actor has failed, was restarted, or holds up its thread */
    DOMUS_LOG_INFO,
} domus_log_level;

/* The value of `thread` in a call of the log hook for a line that none of the system's own threads
 * wrote. */
#define DOMUS_LOG_OUTSIDE UINT32_MAX

/* The most log lines of one thread in one second. Further lines are only counted (log_lines_dropped
 * in domus/profile.h), and the next line that is logged says how many were left out. */
#define DOMUS_LOG_LINES_PER_SECOND 100u

/* The most bytes of a log line, without the zero at its end. A longer line is cut. */
#define DOMUS_LOG_TEXT_MAX 511u

/* The hooks of a system. All of them may be NULL. Without hooks memory comes from the C library and
 * the kernel, and nothing is logged. */
typedef struct domus_hooks {
    /* source of the memory that the system takes, with all its functions set; NULL: the C
     * library */
    const domus_allocator *allocator;

    /* Log one line. `text` has no newline and only printable ASCII (as of domus/text.h); it is
     * valid during the call. */
    void (*log)(void *context, domus_log_level level, uint32_t thread, const char *text);
    void *log_context;

    /* Return the number of lines that `log` has dropped so far. The library calls this when a
     * profile is read (log_lines_dropped of domus_outside_profile()). `context` is log_context.
     * NULL: `log` drops no lines. */
    uint64_t (*log_dropped)(void *context);

    /* A function that is called when the ring of a thread has failed: the kernel has taken it away
     * or has lost completions (`error` is -EBADR, -EBADF, ...). The thread cannot serve its
     * connections any more and resets them; the program should stop the system. That thread calls
     * this once, and domus_system_wait() returns as well. NULL: no such call. */
    void (*failed)(void *context, int error);
    void *failed_context;

    /* A function that is called when an actor has called domus_quit(). The thread that runs the
     * actor calls this, each time, so it must not wait. Whoever waits in domus_system_wait() goes
     * on in every case. NULL: no such call. */
    void (*quit)(void *context);
    void *quit_context;
} domus_hooks;

#ifdef __cplusplus
}
#endif

#endif
