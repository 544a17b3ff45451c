/* Foreign descriptors: an actor gets an event when a descriptor is ready, so that client libraries
 * without threads of their own (libpq, c-ares, hiredis) can run in an actor.
 *
 * A watch is level-triggered: while the descriptor is ready, one event is under way, and when that
 * event was handled, the library looks again. The descriptor stays the caller's, and the library
 * does not read it. The caller must not close it before it has taken the watch back. An actor that
 * watches a descriptor is pinned to its thread.
 *
 * A library that polls by itself does not fit a handler: poll(2) there holds up the thread, and the
 * signal of the stall report ends it with EINTR (domus/stall.h). Use blocking work for it.
 *
 * Thread-safety of all functions here: only from within a handler, with the stack that the handler
 * was given. */
#ifndef DOMUS_DESCRIPTOR_H
#define DOMUS_DESCRIPTOR_H

#include <domus/actor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A handle of a watch on a descriptor. It is used by value; a stale handle does no harm. */
typedef struct domus_fd_watch {
    struct domi_descriptor *descriptor;
    uint32_t generation;
} domus_fd_watch;

/* The payload of an event of domus_ready_type: a watched descriptor is ready. */
typedef struct domus_ready {
    int fd;
    /* what the descriptor is ready for, as poll(2) returns it, such as POLLIN, POLLOUT, POLLHUP,
     * POLLERR */
    uint32_t events;
    /* 0, or a negative errno: the descriptor cannot be watched, or the ring of the thread has
     * failed (domus_hooks.failed). After an error no more events come. */
    int error;
} domus_ready;

DOMUS_API extern const domus_type domus_ready_type;

/* Watch the descriptor `fd` for `events` (POLLIN, POLLOUT, POLLPRI, as of poll(2)) until the watch
 * is taken back or the actor stops. `ret_watch` may be NULL.
 *
 * Returns 0; -EBADF for a negative `fd`; -ENOMEM; -EOPNOTSUPP in a test kit, in a pool, and on a
 * detached actor, which may block in poll(2) itself; the error of the thread's ring when the
 * ring has failed. */
DOMUS_API int domus_watch_fd(domus_stack *stack, int fd, uint32_t events,
                             domus_fd_watch *ret_watch);

/* Watch for other `events` from now on. An event that is under way still comes. Returns 0; -ENOENT
 * when there is no such watch. */
DOMUS_API int domus_fd_change(domus_stack *stack, domus_fd_watch watch, uint32_t events);

/* Take a watch back: no event of it comes after this, and the descriptor may be closed. Returns 0;
 * -ENOENT when there is no such watch. */
DOMUS_API int domus_unwatch_fd(domus_stack *stack, domus_fd_watch watch);

#ifdef __cplusplus
}
#endif

#endif
