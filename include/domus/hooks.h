/* Hooks: where a system's memory comes from, and where its log lines go. Given at its creation
 * (domus_system_new_with(), domus/system.h), to one system; others may have others.
 *
 * Thread-safety: every function of a hook is called from any thread, also from those that run
 * actors and connections, and from several at once. None may call domus or leave by longjmp.
 *
 * No hook may block: while a thread is in one, all its actors and connections wait. A write to a
 * pipe or a terminal does block when nobody reads it. So a log hook hands its line to a thread of
 * the program, in a queue that has a bound, and drops what does not fit, as domus_main() does. */
#ifndef DOMUS_HOOKS_H
#define DOMUS_HOOKS_H

#include <domus/export.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Everything that the library allocates for the system comes from here, to the last byte given back
 * by domus_system_free(). (Not so: thread stacks and the rings' own pages, which the C library and
 * the kernel map, and what libdomus-config holds.) When memory is refused, a call answers -ENOMEM.
 */
typedef struct domus_allocator {
    /* `bytes` zeroed bytes, aligned to 16; NULL: there are none. */
    void *(*allocate)(void *context, size_t bytes);
    void (*free)(void *context, void *memory, size_t bytes);

    /* The same in whole pages of 4 KiB, for large things; aligned to a page. */
    void *(*map)(void *context, size_t bytes);
    void (*unmap)(void *context, void *memory, size_t bytes);

    void *context;
} domus_allocator;

typedef enum domus_log_level {
    DOMUS_LOG_ERROR,   /* an actor has ended for want of a rule, or could not be stopped */
    DOMUS_LOG_WARNING, /* an actor has failed, was restarted, or holds up its thread */
    DOMUS_LOG_INFO,
} domus_log_level;

/* The thread of a log line that none of the system's own threads wrote. */
#define DOMUS_LOG_OUTSIDE UINT32_MAX

/* Log lines of one thread in one second; the rest is only counted (log_lines_dropped in
 * domus/profile.h), and the next line that passes says how many there were. */
#define DOMUS_LOG_LINES_PER_SECOND 100u

/* Bytes of a log line, without the zero at its end; longer ones are cut. */
#define DOMUS_LOG_TEXT_MAX 511u

/* All may be NULL: the C library's and the kernel's memory, and no log. */
typedef struct domus_hooks {
    const domus_allocator *allocator; /* all its functions are set */

    /* One line without a newline, of printable ASCII (as of domus/text.h); valid during the call.
     */
    void (*log)(void *context, domus_log_level level, uint32_t thread, const char *text);
    void *log_context;

    /* How many lines the hook above has dropped so far: asked when a profile is read
     * (log_lines_dropped of domus_outside_profile()). NULL: none. `context` is log_context. */
    uint64_t (*log_dropped)(void *context);

    /* The kernel has taken a thread's ring away, or lost its completions (`error`: -EBADR, -EBADF,
     * ...): the system cannot serve its connections any more, which are reset, and is to be
     * stopped. Called once, by that thread; domus_system_wait() returns as well. NULL: none. */
    void (*failed)(void *context, int error);
    void *failed_context;
} domus_hooks;

#ifdef __cplusplus
}
#endif

#endif
