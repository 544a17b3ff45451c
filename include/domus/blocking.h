/* Blocking work: functions that may block run on helper threads, and their end resumes the
 * conversation.
 *
 * Helper threads are made on demand, blocking.threadsMax at most, and end after
 * blocking.idleExpiry without work. Jobs are begun in the order in which they came; while all
 * threads are busy they wait, blocking.queueMax at most.
 *
 * Thread-safety: only from within a handler, with the stack it was given. */
#ifndef DOMUS_BLOCKING_H
#define DOMUS_BLOCKING_H

#include <domus/conversation.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The reply of blocking work: what the function returned, an int. */
DOMUS_API extern const domus_type domus_blocking_type;

/* Run `function(argument)` on a helper thread, and suspend: `return domus_blocking(...)` is one
 * step. `then` resumes with its end: a negative value is the answer's error, else the payload is
 * the int. The function must not call domus_* with a stack; domus_outside_* it may.
 *
 * Ownership: `argument` is the caller's, and is to last until `then` is resumed: in the frame, in
 * the actor's state, or on the heap. Work that has begun is waited for, also when the conversation
 * is cancelled or the actor stops; work that has not fails with -ECANCELED. A deadline does not end
 * it. (When a system stops and shutdown.actorTimeout passes, it is abandoned: its actor is not
 * ended, and domus_system_free() frees nothing until the work has returned: call it again then.)
 *
 * Returns DOMUS_PARKED, also when it fails later: -EAGAIN at blocking.queueMax, or when no thread
 * could be made; -ESHUTDOWN; -EOPNOTSUPP in a test kit. -ENOMEM; -ECANCELED in a conversation that
 * was cancelled. */
DOMUS_API int domus_blocking(domus_stack *stack, int (*function)(void *argument), void *argument,
                             domus_resumed *then);

#ifdef __cplusplus
}
#endif

#endif
