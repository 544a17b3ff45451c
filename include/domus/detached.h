/* Detached actors: state actors on a thread of their own, which may block.
 *
 * An actor is detached if it is spawned with domus_spawn_options.detached. Other actors talk to it
 * as to any actor. Its handlers run on its own thread, which may be on any CPU and sleeps while the
 * actor has no mail. This thread has no ring, so the actor has no channels and no domus_watch_fd().
 * Children of a detached actor live on the system's threads. When the actor has ended, its thread
 * is kept for the next detached actor; there are detached.threadsMax (64) such threads at most, and
 * outsiders (domus/outsider.h) count with them.
 *
 * A detached actor that blocks holds up only itself and its own stop. A system that stops waits for
 * it, for shutdown.actorTimeout; if it still blocks then, the stop fails (domus_system_stop()) and
 * the system cannot be freed.
 *
 * Thread-safety: only from within a handler, with the stack that the handler was given. */
#ifndef DOMUS_DETACHED_H
#define DOMUS_DETACHED_H

#include <domus/receive.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A message that a detached actor has received by domus_receive_now(). */
typedef struct domus_received {
    const domus_type *type;
    /* The payload, valid until the next domus_receive_now() or the handler's return. Then the
     * library releases what it owns, unless domus_take() took it. */
    const void *payload;
    domus_address sender; /* the actor that sent the message; nobody, if it came from outside */
    /* Whether the message is an ask: then domus_reply(), domus_fail() and domus_keep() concern it
     * for as long as its payload is valid. */
    bool is_ask;
} domus_received;

/* Receive the first waiting ask or notice that `pattern` takes, or else the next one that comes
 * within `within_ns` (0: look only at the mail that waits; DOMUS_FOR_EVER: no time-out). Other mail
 * stays where it is, in order. The thread sleeps meanwhile, and the function returns with the
 * message. An ask that was neither answered nor kept before the next call, or before the handler
 * returns, fails with -ENOMSG. The same holds for the ask with which domus_receive() has resumed
 * this function.
 *
 * domus_take(), domus_stash() and domus_message_take() concern the message that was received last.
 * When that message is gone (answered, kept, forwarded, put aside, made an object), they concern
 * the message with which the handler began.
 *
 * Returns 0; -ETIMEDOUT; -ECANCELED when the actor is to stop or to restart; -EOPNOTSUPP on an
 * actor that is not detached; -ENOMEM. */
DOMUS_API int domus_receive_now(domus_stack *stack, const domus_pattern *pattern,
                                uint64_t within_ns, domus_received *ret_received);

#ifdef __cplusplus
}
#endif

#endif
