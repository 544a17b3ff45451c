/* Blocking work: a function that may block runs on a helper thread, and its return resumes the
 * conversation that asked for it.
 *
 * Helper threads are made on demand, blocking.threadsMax (64) at most, and end after
 * blocking.idleExpiry (10 s) without work. Jobs begin in the order in which they came. While all
 * helper threads are busy, up to blocking.queueMax (4,096) jobs wait.
 *
 * This is the place for calls that wait (poll(2), nanosleep(2), a client library). A handler that
 * makes one holds up its thread, and the signal of the stall report ends such calls with EINTR
 * there, soon after stall.threshold (domus/stall.h). Helper threads get no such signal.
 *
 * Thread-safety: only from within a handler, with the stack that the handler was given. */
#ifndef DOMUS_BLOCKING_H
#define DOMUS_BLOCKING_H

#include <domus/conversation.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The type of the reply of blocking work. Its payload is the int that the function returned. */
DOMUS_API extern const domus_type domus_blocking_type;

/* Run `function(argument)` on a helper thread, and suspend the conversation: write `return
 * domus_blocking(...)`. When the function has returned, `then` is resumed: a negative result is the
 * error of the answer; any other result is the payload, an int. The function must not call any
 * domus_* that takes a stack; it may call domus_outside_*.
 *
 * Ownership: `argument` stays the caller's. It must last until `then` is resumed: keep it in the
 * frame, in the actor's state, or on the heap. If the conversation is cancelled or the actor stops,
 * work that has begun is waited for, and work that has not begun fails with -ECANCELED. A deadline
 * does not end the work. (If a system stops and the work lasts longer than shutdown.actorTimeout,
 * the work is abandoned: its actor is not ended, and domus_system_free() frees nothing until the
 * work has returned. Call domus_system_free() again then.)
 *
 * Returns DOMUS_PARKED; -ENOMEM; -ECANCELED in a conversation that was cancelled. These failures
 * also return DOMUS_PARKED, and `then` is resumed with the error: -ENOMEM for the job; -EAGAIN when
 * blocking.queueMax jobs wait, or when no thread could be made; -ESHUTDOWN when the system stops;
 * -EOPNOTSUPP in a test kit. */
DOMUS_API int domus_blocking(domus_stack *stack, int (*function)(void *argument), void *argument,
                             domus_resumed *then);

#ifdef __cplusplus
}
#endif

#endif
