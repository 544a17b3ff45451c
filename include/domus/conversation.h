/* Conversations: asking, answering, waiting for several, deadlines, cancelling.
 *
 * A conversation begins with each message that an actor handles. It may ask others and wait: the
 * handler returns, the thread goes on, and a named function is resumed with the answer, on the same
 * actor. Meanwhile the actor's other conversations go on too (but see domus_barrier()). What is
 * kept across a wait are the actor's state and the conversation's frame (domus_frame()).
 *
 * A failed ask always resumes, with its error: what the other side's handler returned; -ENOMSG when
 * that ended without an answer; -ESTALE when the actor is gone or stopped before; -ENOBUFS when its
 * mailbox is full; -EBUSY while memory is critical (domus/memory.h); -EOPNOTSUPP when it does not
 * know the type; -ETIMEDOUT; -ECANCELED; -EDEADLK when the ask would wait for itself; -ENOMEM.
 *
 * Thread-safety of all functions here: only from within a handler, with the stack it was given. */
#ifndef DOMUS_CONVERSATION_H
#define DOMUS_CONVERSATION_H

#include <domus/actor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What came of something that a conversation waited for. */
typedef struct domus_answer {
    int error;              /* 0, or a negative errno: the exception; no payload then */
    const domus_type *type; /* of the reply; NULL with an error, and after a sleep */
    const void *payload;    /* valid until the resumed function returns; then what it owns is
                               released, unless domus_take() took it */
    uint64_t tag;           /* as the ask was given; 0 by domus_ask() */
    const struct domus_answer *next; /* after domus_wait_all(): one for each, as they came */
} domus_answer;

/* Go on with a conversation. Returns as a domus_handler does. */
typedef int domus_resumed(domus_stack *stack, void *self, const domus_answer *answer);

/* --- ask ------------------------------------------------------------------------------------ */

/* Ask, and suspend: `return domus_ask(...)` is one step; `then` resumes with the answer. The
 * payload (type->size bytes; NULL when 0) is copied; what it owns goes with it in every case but a
 * negative return. A pointer out of a payload that this handler was shown is taken first.
 *
 * Returns DOMUS_PARKED; -ENOMEM when nothing could be kept; -ENOBUFS when this thread's messages
 * take memory.threadMax; -EBUSY when there is hardly any memory left; -EMSGSIZE; -ECANCELED in a
 * conversation that was cancelled. */
DOMUS_API int domus_ask(domus_stack *stack, domus_address to, const domus_type *type,
                        const void *payload, domus_resumed *then);

/* As domus_ask(), and after `timeout_ns` it fails with -ETIMEDOUT (ticks of 1 ms; never early).
 *
 * The time-out travels with the ask as a deadline. Asks that are made while answering it inherit
 * the deadline, or keep a sooner one of their own; an ask whose deadline has passed is dropped
 * before it is handled. An answer that comes later is dropped. Both are counted. */
DOMUS_API int domus_ask_within(domus_stack *stack, domus_address to, const domus_type *type,
                               const void *payload, uint64_t timeout_ns, domus_resumed *then);

/* Ask one of several. Its answer will carry `tag`. Nothing waits yet: end with
 * `return domus_wait_all(...)` or `return domus_wait_first(...)`. `timeout_ns` 0: none of its own.
 *
 * Returns 0, also when it fails later; else as domus_ask(). */
DOMUS_API int domus_ask_add(domus_stack *stack, domus_address to, const domus_type *type,
                            const void *payload, uint64_t timeout_ns, uint64_t tag);

/* Suspend until all that is under way has come: `then` gets a list of what has not been shown yet,
 * in the order in which it came. With nothing under way and nothing to show, an answer without
 * type and payload.
 *
 * Returns DOMUS_PARKED; -ENOMEM; -ECANCELED. */
DOMUS_API int domus_wait_all(domus_stack *stack, domus_resumed *then);

/* Suspend until one of what is under way has come: `then` gets the oldest that has not been shown.
 * The others stay under way: wait again for the next, or end; an answer that comes after the end
 * is dropped and counted. To let those who work on the others know, cancel the conversation.
 *
 * Returns DOMUS_PARKED; -ENOMEM; -ECANCELED. */
DOMUS_API int domus_wait_first(domus_stack *stack, domus_resumed *then);

/* After domus_wait_all(): take what the payload of `answer` owns, which is one of those that this
 * function was shown. Where one answer was shown, it is that one, also when domus_receive_now() has
 * shown something else since.
 *
 * Returns as domus_take(); -EINVAL also for what is not among them. */
DOMUS_API int domus_take_answer(domus_stack *stack, const domus_answer *answer);

/* How many are under way and not answered. */
DOMUS_API uint32_t domus_pending(const domus_stack *stack);

/* Suspend for `time_ns` (ticks of 1 ms; never early). The answer has neither type nor payload.
 * Returns as domus_wait_all(). */
DOMUS_API int domus_sleep(domus_stack *stack, uint64_t time_ns, domus_resumed *then);

/* Sleep as one of several: its answer has neither type nor payload, and carries `tag`. So asks get
 * one time-out together, or a wait its end. Returns 0; -ENOMEM; -ECANCELED. */
DOMUS_API int domus_sleep_add(domus_stack *stack, uint64_t time_ns, uint64_t tag);

/* When nobody waits for this conversation's answer any more, on the clock of domus_now_ns(); 0:
 * there is no deadline, or it was answered. */
DOMUS_API uint64_t domus_deadline_ns(const domus_stack *stack);

/* --- answer --------------------------------------------------------------------------------- */

/* Answer the ask that is handled; what the payload owns goes with it. `payload` may point into the
 * ask's own payload, or into what that owns; both are gone after this. A reply that is to own what
 * the ask owned needs a domus_take() before.
 *
 * Returns 0; -EINVAL when this is no ask; -EALREADY when it was answered, forwarded or kept;
 * -EMSGSIZE. A reply that cannot be kept for want of memory reaches the asker as -ENOMEM (and its
 * payload is released). */
DOMUS_API int domus_reply(domus_stack *stack, const domus_type *type, const void *payload);

/* Fail the ask that is handled with `error`, a negative errno (any other number fails it with
 * -EINVAL), and go on. (A handler that returns a negative errno does the same and ends.) Returns 0;
 * -EINVAL when this is no ask; -EALREADY. */
DOMUS_API int domus_fail(domus_stack *stack, int error);

/* Pass on the message that is handled (or was just received), as it is and without a copy. An ask:
 * the answer goes to who asked first. A notice: its sender stays. Its payload is gone after this,
 * and what it owns goes with it.
 *
 * Returns 0; else it is still ours: -ESTALE, -ENOBUFS; -EINVAL when it is an event or an answer;
 * -EALREADY when it was answered, forwarded or kept, or when what it owns was taken. */
DOMUS_API int domus_forward(domus_stack *stack, domus_address to);

/* An ask that was kept, by value. Only the actor that kept it may use it, once. */
typedef struct domus_kept {
    domus_stack *stack;
    uint32_t serial;
} domus_kept;

/* Keep the ask that is handled, to answer it later from any handler of this actor. It counts as a
 * conversation (scheduler.conversationsMax). When the actor stops, it fails with -ESTALE. Its
 * payload stays valid until it is answered, forwarded, or fails; what it owns is released then,
 * unless it was taken before it was kept. It fails without a word when its asker cancels, which may
 * happen between any two handlers: a later handler that needs the payload copies it before.
 *
 * Returns 0; -EINVAL when this is no ask; -EALREADY; -ENOMEM, or -ECANCELED when the actor stops,
 * and it is not kept. */
DOMUS_API int domus_keep(domus_stack *stack, domus_kept *ret_kept);

/* As domus_reply(), domus_fail() and domus_forward(), for an ask that was kept. -ENOENT when it was
 * answered or cancelled; the last -EALREADY when what it owns was taken. (An asker whose time is
 * over does not tell: the answer is late then.) */
DOMUS_API int domus_kept_reply(domus_stack *stack, domus_kept kept, const domus_type *type,
                               const void *payload);
DOMUS_API int domus_kept_fail(domus_stack *stack, domus_kept kept, int error);
DOMUS_API int domus_kept_forward(domus_stack *stack, domus_kept kept, domus_address to);

/* --- several at once ------------------------------------------------------------------------ */

/* Until this conversation ends, the actor takes only replies, exceptions and events (and what its
 * channels bring); asks and notices wait in order and run then.
 *
 * An ask that meets the barrier and was made, directly or through others, on behalf of the
 * conversation that raised it, fails at once with -EDEADLK: it would wait for itself. Independent
 * conversations that wait for each other's barriers are not found: give asks a time-out.
 *
 * Returns 0; -EALREADY when it is raised by this conversation; -EBUSY by another. */
DOMUS_API int domus_barrier(domus_stack *stack);

/* A conversation, by value; a stale one is harmless. */
typedef struct domus_conversation {
    domus_stack *stack;
    uint32_t serial;
} domus_conversation;

/* The one that this handler is in, to be cancelled later. Returns 0; -ENOMEM. */
DOMUS_API int domus_conversation_of(domus_stack *stack, domus_conversation *ret_conversation);

/* Cancel a conversation of this actor that waits: what it waits for fails with -ECANCELED, and it
 * can wait for nothing more. Those who work on its asks are told: an ask that they have not begun
 * is dropped, conversations that answer one are cancelled too, and so on. (An ask that was
 * forwarded is not followed.) Blocking work that has begun is waited for.
 *
 * Returns 0; -ENOENT when it has ended or does not wait; -EALREADY. */
DOMUS_API int domus_cancel(domus_stack *stack, domus_conversation conversation);

#ifdef __cplusplus
}
#endif

#endif
