/* Conversations: asking, answering, waiting for several, deadlines, cancelling.
 *
 * A conversation begins with each message that an actor handles. It may ask others and wait: the
 * handler names a function and returns, the thread goes on, and when the answer is there, the named
 * function is resumed with it on the same actor. Meanwhile the actor's other conversations go on
 * too (but see domus_barrier()). The actor's state and the conversation's frame (domus_frame()) are
 * kept across a wait.
 *
 * An ask that has failed always resumes, with its error: the negative errno that the handler of the
 * ask returned; -ENOMSG when the conversation of that handler ended without an answer; -ESTALE when
 * the asked actor is gone, or stops before it handles the ask; -ENOBUFS when its mailbox is full;
 * -EBUSY while memory is critical (domus/memory.h); -EOPNOTSUPP when it has no row for the type;
 * -ETIMEDOUT when the deadline has passed; -ECANCELED when the conversation was cancelled; -EDEADLK
 * when the ask would wait for itself (domus_barrier()); -EHOSTDOWN when the asked actor is in
 * another system, which cannot be reached or does not answer any more (domus/remote.h); -ENOMEM.
 *
 * Thread-safety of all functions here: only from within a handler, with the stack that the handler
 * was given. */
#ifndef DOMUS_CONVERSATION_H
#define DOMUS_CONVERSATION_H

#include <domus/actor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The outcome of an ask, a sleep, a receive or blocking work that a conversation waited for. */
typedef struct domus_answer {
    /* 0, or the negative errno of a failure, with which there is no payload */
    int error;
    const domus_type *type; /* type of the reply; NULL when there is an error, and after a sleep */
    /* Payload of the reply, valid until the resumed function returns. Then the library releases
     * what it owns, unless domus_take() took it. */
    const void *payload;
    uint64_t tag; /* the tag that was given to the ask (or sleep, receive); 0 after domus_ask() */
    /* After domus_wait_all() the answers are a list, in the order in which they came;
     * otherwise NULL. */
    const struct domus_answer *next;
} domus_answer;

/* A function with which a conversation goes on when its wait is over. Returns as a domus_handler
 * does. */
typedef int domus_resumed(domus_stack *stack, void *self, const domus_answer *answer);

/* --- ask ------------------------------------------------------------------------------------ */

/* Ask, and suspend the conversation: write `return domus_ask(...)`. When the answer is there,
 * `then` is resumed with it. Without the `return`, or when a handler calls this twice, nobody gets
 * one of the answers (waits_lost of the profile counts, and the log tells it once for each type).
 * The payload (type->size bytes; NULL when the size is 0) is copied. A handler that passes on a
 * pointer from a payload that it was shown calls domus_take() first.
 *
 * Ownership: the ask owns what the payload owns, unless this returns a negative errno; then the
 * caller still does.
 *
 * Returns DOMUS_PARKED; -ENOMEM when there is no memory for the conversation; -ENOBUFS when the
 * messages of this thread take memory.threadMax; -EBUSY when hardly any memory is left; -EMSGSIZE
 * when the payload is too large; -ECANCELED in a conversation that was cancelled. */
DOMUS_API int domus_ask(domus_stack *stack, domus_address to, const domus_type *type,
                        const void *payload, domus_resumed *then);

/* Ask as domus_ask() does, but fail with -ETIMEDOUT if no answer came within `timeout_ns` (rounded
 * up to ticks of 1 ms; never early).
 *
 * The time-out travels with the ask as a deadline. Asks that are made while answering it inherit
 * the deadline, or keep a sooner one of their own; an ask whose deadline has passed is dropped
 * before it is handled. An answer that comes later is dropped. Both are counted. */
DOMUS_API int domus_ask_within(domus_stack *stack, domus_address to, const domus_type *type,
                               const void *payload, uint64_t timeout_ns, domus_resumed *then);

/* Make one of several asks, whose answer will carry `tag`. This does not suspend: end the handler
 * with `return domus_wait_all(...)` or `return domus_wait_first(...)`. With a `timeout_ns` of 0 the
 * ask has no time-out of its own.
 *
 * Returns 0, also when the ask fails later; otherwise a negative errno as domus_ask() does. */
DOMUS_API int domus_ask_add(domus_stack *stack, domus_address to, const domus_type *type,
                            const void *payload, uint64_t timeout_ns, uint64_t tag);

/* Suspend until everything that is under way (asks, sleeps, receives) has come. `then` gets a list
 * of the answers that no function was shown yet, in the order in which they came. If nothing is
 * under way and there is nothing to show, it gets one answer without type and payload.
 *
 * Returns DOMUS_PARKED; -ENOMEM; -ECANCELED. */
DOMUS_API int domus_wait_all(domus_stack *stack, domus_resumed *then);

/* Suspend until one of the things that are under way has come. `then` gets the oldest answer that
 * no function was shown yet. The others stay under way: wait again for the next one, or end. An
 * answer that comes after the end of the conversation is dropped and counted. The actors that work
 * on the other asks do not hear of the end; only a cancel of the conversation tells them.
 *
 * Returns DOMUS_PARKED; -ENOMEM; -ECANCELED. */
DOMUS_API int domus_wait_first(domus_stack *stack, domus_resumed *then);

/* Take what the payload of `answer` owns, as domus_take() does. `answer` is one of the list that
 * this function was shown after domus_wait_all(). If the function was shown a single answer, it may
 * be that one, also when domus_receive_now() has shown another message since.
 *
 * Returns as domus_take(); -EINVAL also for any other answer. */
DOMUS_API int domus_take_answer(domus_stack *stack, const domus_answer *answer);

/* The number of asks, sleeps, receives and blocking functions of this conversation that are under
 * way and have not ended. */
DOMUS_API uint32_t domus_pending(const domus_stack *stack);

/* Suspend for `time_ns` (rounded up to ticks of 1 ms; never early). The answer has neither
 * type nor payload.
 * Returns as domus_wait_all(). */
DOMUS_API int domus_sleep(domus_stack *stack, uint64_t time_ns, domus_resumed *then);

/* Begin a sleep as one of several things to wait for. Its answer has neither type nor
 * payload, and carries `tag`. Use it to give several asks one time-out together. Returns 0;
 * -ENOMEM; -ECANCELED. */
DOMUS_API int domus_sleep_add(domus_stack *stack, uint64_t time_ns, uint64_t tag);

/* The time, on the clock of domus_now_ns(), after which nobody waits for the answer of this
 * conversation any more. Returns 0 if there is no deadline, or if the answer was given. */
DOMUS_API uint64_t domus_deadline_ns(const domus_stack *stack);

/* The payload of the ask that this conversation answers, also behind a wait, for functions that are
 * not handed it. Returns NULL if that is not of `type`, if the conversation answers no ask, or if
 * the ask was answered, forwarded or kept. */
DOMUS_API const void *domus_asked(const domus_stack *stack, const domus_type *type);

/* --- answer --------------------------------------------------------------------------------- */

/* Answer the ask that is handled. `payload` may point into the ask's own payload, or into memory
 * that this payload owns; both are gone after this. If the reply is to own what the ask owned, call
 * domus_take() before.
 *
 * Ownership: the reply owns what its payload owns, unless this returns a negative errno; then the
 * caller still does.
 *
 * Returns 0; -EINVAL when the message is no ask; -EALREADY when it was answered, forwarded or kept;
 * -EMSGSIZE. If there is no memory for the reply, this returns 0, the asker gets -ENOMEM, and what
 * the reply owns is released. */
DOMUS_API int domus_reply(domus_stack *stack, const domus_type *type, const void *payload);

/* Let the ask that is handled fail with `error`, a negative errno (any other number lets
 * it fail with -EINVAL). The handler goes on; a handler that returns a negative errno does
 * the same and ends.
 *
 * Returns 0; -EINVAL when the message is no ask; -EALREADY when it was answered,
 * forwarded or kept. */
DOMUS_API int domus_fail(domus_stack *stack, int error);

/* Pass on the message that is handled (or was just received), unchanged and without a copy. The
 * answer to a forwarded ask goes to the actor that asked first. A forwarded notice keeps its
 * sender. The payload is gone after this, and the message keeps what the payload owns.
 *
 * Returns 0; otherwise the message stays with this actor: -ESTALE and -ENOBUFS as domus_notice();
 * -EINVAL when it is an event or an answer; -EALREADY when it was answered, forwarded or kept, or
 * after domus_take(). */
DOMUS_API int domus_forward(domus_stack *stack, domus_address to);

/* A handle of an ask that was kept. It is used by value, only by the actor that kept the
 * ask, and once. */
typedef struct domus_kept {
    domus_stack *stack;
    uint32_t serial;
} domus_kept;

/* Keep the ask that is handled, to answer it later from any handler of this actor. A kept ask
 * counts as a conversation (scheduler.conversationsMax; at that number the actor handles no asks
 * and notices). When the actor stops, the ask fails with -ESTALE. Its payload stays valid until the
 * ask is answered, forwarded, or fails; then the library releases what the payload owns, unless
 * domus_take() took it before the ask was kept.
 *
 * When the asker cancels or ends (a connection that closes, an actor that stops), or the deadline
 * of the ask passes, nobody waits for it any more, also if it was forwarded to this actor: the ask
 * fails, and this actor is not told. This may happen between any two turns of the actor, so a later
 * handler cannot rely on the payload: copy it now if it is needed later. An actor that has a list
 * of kept asks hears of it from domus_kept_reply(), and sees it by domus_kept_is_wanted();
 * domus/waiters.h is a list with bounds that drops those. Or do not keep the ask, but wait in its
 * conversation (domus_sleep()): a cancel, of the asker or by domus_cancel(), then resumes it.
 *
 * A kept ask waits for what others bring. So when the peer of a channel has finished sending, which
 * may mean that it is gone, asks of its requests that actors of this node keep for
 * channel.halfCloseKept (100 ms) more are cancelled, and one that is kept later at the latest when
 * the time since then has doubled; conversations that work for its requests go on
 * (domus/channel.h), and so do asks that were kept by domus_keep_working().
 *
 * Returns 0; -EINVAL when the message is no ask; -EALREADY when it was answered, forwarded or kept;
 * -ENOMEM; -ECANCELED when the actor stops. With an error the ask is not kept. */
DOMUS_API int domus_keep(domus_stack *stack, domus_kept *ret_kept);

/* Do what domus_keep() does, for an ask that this actor works for: a query at a database, a call of
 * another program. Its answer comes by itself, so the ask is not cancelled because the peer has
 * finished sending. All else that ends a kept ask ends it. */
DOMUS_API int domus_keep_working(domus_stack *stack, domus_kept *ret_kept);

/* Do what domus_reply(), domus_fail() and domus_forward() do, for an ask that was kept.
 *
 * Returns as these do; -ENOENT when the ask was answered or cancelled, its deadline has passed, or
 * its asker waits no more; from domus_kept_forward() -EALREADY after domus_take(). (With 0 the
 * answer was sent, but it may still come too late, and is dropped then.) */
DOMUS_API int domus_kept_reply(domus_stack *stack, domus_kept kept, const domus_type *type,
                               const void *payload);
DOMUS_API int domus_kept_fail(domus_stack *stack, domus_kept kept, int error);
DOMUS_API int domus_kept_forward(domus_stack *stack, domus_kept kept, domus_address to);

/* Returns whether this actor still keeps the ask, and somebody waits for its answer. */
DOMUS_API bool domus_kept_is_wanted(const domus_stack *stack, domus_kept kept);

/* --- several at once ------------------------------------------------------------------------ */

/* Raise a barrier: until this conversation ends, the actor handles only replies, exceptions and
 * events, and what its channels bring. Asks and notices wait, in order, and are handled afterwards.
 *
 * If an ask meets the barrier and was made, directly or through other actors, for the conversation
 * that raised the barrier, it fails at once with -EDEADLK, because it would wait for itself. The
 * library does not find independent conversations that wait for each other's barriers: give asks a
 * time-out.
 *
 * Returns 0; -EALREADY when this conversation has raised a barrier; -EBUSY when another one of this
 * actor has. */
DOMUS_API int domus_barrier(domus_stack *stack);

/* A handle of a conversation. It is used by value; a handle whose conversation has ended does no
 * harm. */
typedef struct domus_conversation {
    domus_stack *stack;
    uint32_t serial;
} domus_conversation;

/* Set `ret_conversation` to the conversation that this handler is in, for a later domus_cancel().
 * Returns 0; -ENOMEM. */
DOMUS_API int domus_conversation_of(domus_stack *stack, domus_conversation *ret_conversation);

/* Cancel a waiting conversation of this actor: everything that it waits for fails with -ECANCELED,
 * and it can wait for nothing more. The actors that it has asked are told: an ask that was not
 * handled yet is dropped, and a conversation that would answer an ask is cancelled too, and so on
 * along the chain of asks, also where one was forwarded. Blocking work that has
 * begun is waited for.
 *
 * Returns 0; -ENOENT when the conversation has ended or does not wait; -EALREADY when it
 * was cancelled. */
DOMUS_API int domus_cancel(domus_stack *stack, domus_conversation conversation);

/* Wake a conversation of this actor that sleeps (domus_sleep()): all its sleeps are over now,
 * without an error, and count as no cancel. It goes on in a later turn, perhaps before asks and
 * notices that were put earlier. Its asks are not touched.
 *
 * Returns 0, also when the conversation waits for asks alone, or when the sleep is over already and
 * the conversation has not gone on yet; -ENOENT when it has ended or does not wait; -EALREADY when
 * it was cancelled. */
DOMUS_API int domus_wake(domus_stack *stack, domus_conversation conversation);

#ifdef __cplusplus
}
#endif

#endif
