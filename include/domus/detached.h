/* Detached actors: state actors on a thread of their own, which may block.
 *
 * Spawned with domus_spawn_options.detached. Everybody talks to them as to any other actor; what
 * they do, they do on their own thread, which sleeps while they have no mail, may be on any CPU,
 * and has no ring: no channels, no domus_watch_fd(). Their children live on the system's threads. A
 * thread is kept when its actor has ended, for the next one; there are detached.threadsMax at most.
 *
 * A detached actor that blocks holds up nobody but itself, and its own stop: a system that stops
 * waits for it (shutdown.actorTimeout), then says so and cannot be freed.
 *
 * Thread-safety: only from within a handler, with the stack it was given. */
#ifndef DOMUS_DETACHED_H
#define DOMUS_DETACHED_H

#include <domus/receive.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A message that was received at once. */
typedef struct domus_received {
    const domus_type *type;
    const void *payload;  /* valid until the next domus_receive_now(), or the handler's return; then
                             what it owns is released, unless domus_take() took it */
    domus_address sender; /* nobody: from outside */
    bool is_ask;          /* then domus_reply(), domus_fail(), domus_keep() are about it as long */
} domus_received;

/* Receive, and return: the first waiting ask or notice that `pattern` takes, or the next one that
 * comes within `within_ns` (0: only what is there; DOMUS_FOR_EVER); the others stay, in order. The
 * thread sleeps meanwhile. An ask that was neither answered nor kept by the next call, or by the
 * handler's return, fails with -ENOMSG; so does the ask that this step was resumed with by
 * domus_receive().
 *
 * domus_take(), domus_stash() and domus_message_take() are about what was received last. When it is
 * gone (answered, kept, forwarded, put aside, made an object) they are about what the handler began
 * with.
 *
 * Returns 0; -ETIMEDOUT; -ECANCELED when the actor is to stop, or to begin anew; -EOPNOTSUPP on an
 * actor that is not detached; -ENOMEM. */
DOMUS_API int domus_receive_now(domus_stack *stack, const domus_pattern *pattern,
                                uint64_t within_ns, domus_received *ret_received);

#ifdef __cplusplus
}
#endif

#endif
