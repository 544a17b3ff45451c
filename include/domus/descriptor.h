/* Foreign descriptors: readiness as events, so that client libraries without threads of their own
 * (libpq, c-ares, hiredis) run in an actor.
 *
 * Level-triggered: while the descriptor is ready, one event is under way, and the next one is
 * looked for when that was handled. The descriptor stays the caller's; it is not read, and is
 * closed only after its watch was taken back. An actor that watches one is pinned to its thread.
 *
 * Thread-safety of all functions here: only from within a handler, with the stack it was given. */
#ifndef DOMUS_DESCRIPTOR_H
#define DOMUS_DESCRIPTOR_H

#include <domus/actor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A watch on a descriptor, by value; a stale one is harmless. */
typedef struct domus_fd_watch {
    struct domi_descriptor *descriptor;
    uint32_t generation;
} domus_fd_watch;

/* The payload of the event domus_ready_type. */
typedef struct domus_ready {
    int fd;
    uint32_t events; /* as poll(2) returns them: POLLIN, POLLOUT, POLLHUP, POLLERR ... */
    int error;       /* a negative errno: it cannot be watched, or the ring of its thread has failed
                        (domus_hooks.failed), and no more events come; else 0 */
} domus_ready;

DOMUS_API extern const domus_type domus_ready_type;

/* Watch `fd` for `events` (POLLIN, POLLOUT, POLLPRI, as of poll(2)) until the watch is taken back
 * or the actor stops. `ret_watch` may be NULL.
 *
 * Returns 0; -EBADF for a negative one; -ENOMEM; -EOPNOTSUPP on a detached actor, which may simply
 * wait, and in a test kit; the ring's error when it has failed. */
DOMUS_API int domus_watch_fd(domus_stack *stack, int fd, uint32_t events,
                             domus_fd_watch *ret_watch);

/* Watch for other events from now on; an event that is under way still comes. Returns 0; -ENOENT.
 */
DOMUS_API int domus_fd_change(domus_stack *stack, domus_fd_watch watch, uint32_t events);

/* Take it back: no event comes after this, and the descriptor may be closed. Returns 0; -ENOENT. */
DOMUS_API int domus_unwatch_fd(domus_stack *stack, domus_fd_watch watch);

#ifdef __cplusplus
}
#endif

#endif
