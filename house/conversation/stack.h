/* Stacks: each stack holds one conversation of an actor.
 *
 * A stack begins in the C frame of the run (dispatch.c) and moves to a pooled one when it parks for
 * the first time. A stack whose row names a frame is pooled from the start. A stack waits for
 * promises: for one of them, for all, or for the first that completes. Answers that come before the
 * conversation waits for them are kept. A pooled stack is named by its address and its serial, and
 * the serial changes when the conversation ends. Only the thread that runs the house touches a
 * stack, except for the fields that other threads read to walk a chain of asks: `house`, `serial`,
 * `parent`, `parent_serial`. */
#ifndef DOMI_HOUSE_CONVERSATION_STACK_H
#define DOMI_HOUSE_CONVERSATION_STACK_H

#include "house/conversation/promise.h"

#include <errno.h>

typedef enum domi_wait {
    DOMI_WAIT_NONE,
    DOMI_WAIT_ONE, /* the stack waits for one promise, `awaited` */
    DOMI_WAIT_ALL,
    DOMI_WAIT_FIRST,
    DOMI_WAIT_KEPT, /* the stack holds no conversation but a kept ask, until the ask's deadline */
    /* the stack holds no conversation but the promises of a channel's requests (asks.h) */
    DOMI_WAIT_PEER,
} domi_wait;

struct domus_stack {
    /* the stack's node, which is in the exception mailbox when all answers were there before the
     * stack parked */
    domi_node node;
    _Atomic(domi_house *) house;
    domi_manager *manager; /* the manager of the thread that runs the stack's house now */
    /* the ask that this conversation still has to answer; NULL: none, or it was answered */
    domi_envelope *ask;
    /* the message that the conversation handles; NULL: none, or the handler has passed it on */
    domi_envelope *message;
    /* the pooled stack of this conversation, which may be this stack itself; NULL: none yet */
    domus_stack *pooled;
    /* the function with which the conversation goes on when its wait is over */
    domus_resumed *then;

    /* sender of the conversation's message, valid when the envelope has left this stack */
    domus_address sender;
    uint32_t frame_size; /* size of the stack's `frame` in bytes */
    /* whether the ask of the conversation was answered, kept, stashed or forwarded */
    bool answered;
    bool barrier;       /* whether this conversation has raised the barrier that is up */
    bool barrier_fresh; /* whether the conversation has raised the barrier and not parked since */
    bool end_acts;      /* whether a verb has asked for work at the end of the turn (turn.h) */
    uint8_t wait;       /* for which of its promises the stack waits, a domi_wait */
    bool parked;        /* whether the stack is in the house's list of parked stacks */
    bool queued;        /* whether the stack's node is in the exception mailbox */
    bool cancelled; /* whether the conversation was cancelled, so that it may not wait any more */
    /* whether the conversation is over; its stack is freed when no mailbox holds a node of it */
    bool ended;
    bool outlives; /* whether the conversation goes on when the connection of its channel ends */
    /* whether the actor that keeps the stack's ask works for it (domus_keep_working()) */
    bool works;
    /* serial of the stack, which grows when a conversation ends, so that old references are
     * known */
    _Atomic uint32_t serial;
    uint32_t pending; /* number of promises in the list `waiting` */
    /* promises of the conversation that have not completed, the newest first */
    domi_promise *waiting;
    /* promises that have completed and whose answers no handler was shown, the oldest first; linked
     * by answer.next */
    domi_promise *answers;

    domi_promise *answers_last; /* the newest one of the promises in `answers` */
    /* the promise that the conversation waits for if `wait` is DOMI_WAIT_ONE */
    domi_promise *awaited;
    domus_stack *next;     /* the next stack in the house's list of parked stacks */
    domus_stack *previous; /* the stack before this one in the house's list of parked stacks */
    /* the promise of the asker for the ask that this stack answers; NULL: it answers no ask */
    _Atomic(domi_promise *) parent;
    _Atomic uint32_t parent_serial; /* serial that the promise `parent` had when the ask was made */
    /* number of promises of this stack that ended on a thief's thread while home's wheel still held
     * them; also the bit DOMI_STACK_COUNTED */
    uint32_t away;
    /* type of the message that began the conversation; NULL: no message did */
    const domus_type *begun_by;
    /* the message that a receive of this conversation took, while it is handled: an ask; also a
     * notice, for a receive that returns to its caller (detached.h) */
    domi_envelope *received;

    domi_promise first; /* the first promise of the conversation, which needs no allocation */
    alignas(16) unsigned char frame[];
};

/* Bit in the field `away` of a stack: the channel of the house counts this conversation, and is
 * told of its end. The bit is in this field because the end of a stack reads the field anyway.
 * Channels actors are never lent, so the count in the other bits stays 0 beside it. */
#define DOMI_STACK_COUNTED UINT32_C(0x80000000)

/* number of bytes of a stack that lie before its frame */
#define DOMI_STACK_HEAD offsetof(domus_stack, frame)

/* Value of `away` in a stack that lies in a C frame because there is no memory for a pooled one
 * (domi_stack_init_in_c_frame()). */
#define DOMI_STACK_LOCAL UINT32_C(0x7fffffff)

static_assert(DOMI_TAKES(DOMI_STACK_HEAD, 320), "what pool.c's sizes leave for the frame");
static_assert(DOMUS_FRAME_MAX + DOMI_STACK_HEAD <= 1088, "the largest frame fits");

/* Make a pooled stack for `house` with a zeroed frame. Returns NULL without memory, or if the frame
 * is larger than DOMUS_FRAME_MAX. */
domus_stack *domi_stack_new(domi_manager *manager, domi_house *house, uint32_t frame_size);

/* Set up a stack with a zeroed frame in `place`. The caller has `place` in a C frame, with
 * DOMI_STACK_HEAD + `frame_size` bytes, aligned to 16. The conversation ends with this turn: a verb
 * that would let it wait fails with -ENOMEM. This serves functions that have to be called even
 * without memory for a pooled stack. */
domus_stack *domi_stack_init_in_c_frame(void *place, domi_manager *manager, domi_house *house,
                                        uint32_t frame_size);

/* Returns the pooled stack of this conversation, and makes it if there is none yet; NULL if there
 * is no memory. */
domus_stack *domi_stack_get_or_make_pooled(domus_stack *stack);

/* Forget the ask that began this conversation, because it was answered or passed on. Asks that the
 * conversation makes from now on are made for no other actor. */
static inline void domi_stack_forget_ask_that_began_it(domus_stack *stack)
{
    stack->ask = NULL;
    /* Relaxed: a walker over the chain of asks that has read the old parent finds that the parent's
     * wait is over, or will be soon. */
    if (stack->pooled != NULL)
        atomic_store_explicit(&stack->pooled->parent, NULL, memory_order_relaxed);
}

/* Let `message` leave this conversation. If it is the message that the handler was shown, remember
 * its sender. */
DOMI_INLINE void domi_stack_let_message_leave(domus_stack *stack, const domi_envelope *message)
{
    if (stack->message != message)
        return;
    stack->message = NULL;
    stack->sender = (domus_address){message->sender, message->sender_lease};
}

/* Let the ask that began this conversation leave it, with the envelope of the ask. */
DOMI_INLINE void domi_stack_let_ask_leave(domus_stack *stack, const domi_envelope *ask)
{
    domi_stack_forget_ask_that_began_it(stack);
    stack->answered = true;
    domi_stack_let_message_leave(stack, ask);
}

/* Park the conversation, or end it, as `result` of the function that was entered says. This is the
 * part of domi_turn_end() (turn.h) that is not inlined. */
void domi_stack_park_or_end(domus_stack *stack, int result);

/* Release the message that a receive took, because the function that was resumed with it has
 * returned or receives again. An ask that was neither answered nor kept fails with `error`. */
void domi_stack_end_received_message(domus_stack *stack, int error);

/* Handle an answer (a reply or an exception) that has come to `house`, which runs: resume the stack
 * that waits for it, keep the answer, or drop it if it is late. Consumes the envelope. */
void domi_stack_handle_answer(domi_manager *manager, domi_house *house, domi_envelope *answer);

/* Complete a promise whose `answer` is filled already; `message` (or NULL) is the envelope that
 * holds the answer's payload. Resumes the stack if it waited for nothing else. */
void domi_stack_complete_promise(domi_manager *manager, domi_promise *promise,
                                 domi_envelope *message);

/* Handle a node from the exception mailbox that is not an envelope: a promise that failed on this
 * side, or a stack whose answers were all there when it parked. */
void domi_stack_handle_exception_node(domi_manager *manager, domi_node *node);

/* Free a stack that has ended, unless one of its nodes is still in a mailbox, in a list of notes,
 * or on home's wheel. */
void domi_stack_free_if_done(domi_manager *manager, domus_stack *stack);

/* Drop a node of the kind that domi_stack_handle_exception_node() handles, because its mailbox is
 * emptied, and give up its promise. */
void domi_stack_drop_exception_node(domi_manager *manager, domi_node *node);

/* Cancel a parked stack. Everything that it waits for fails with -ECANCELED; an ask that it only
 * keeps fails with `error`. */
void domi_stack_cancel_conversation(domi_manager *manager, domus_stack *stack, int error);

/* End the stack that held a kept ask, because the ask was answered, has failed or was forwarded. */
void domi_stack_end_kept_ask(domi_manager *manager, domus_stack *kept);

/* Cancel the ask of `stack` if it is kept. Otherwise cancel those asks for which the conversation
 * waits and which other actors keep. */
void domi_stack_cancel_kept_asks(domi_manager *manager, domus_stack *stack);

/* Cancel all parked stacks of a house that stops or restarts. */
void domi_stack_cancel_all_parked_of_house(domi_manager *manager, domi_house *house);

/* Cancel the requests that `holder` has promises for (asks.h), because nobody waits for their
 * answers any more. NULL is allowed. */
void domi_stack_cancel_asks_promised_to_peer(domi_manager *manager, domus_stack *holder);

/* True if blocking work of a parked conversation still runs, and so still uses the memory that the
 * work was given. */
bool domi_stack_has_blocking_work(const domi_house *house);

/* Free all parked stacks of a house that is gone. Asks that still wait for an answer fail with
 * -ESTALE. */
void domi_stack_free_all_of_house(domi_manager *manager, domi_house *house);

static inline bool domi_node_is_stack(const domi_node *node)
{
    return node->slab >= DOMI_SLAB_STACK_SMALL && node->slab <= DOMI_SLAB_STACK_LARGE;
}

static inline domi_house *domi_stack_get_house(const domus_stack *stack)
{
    return atomic_load_explicit((_Atomic(domi_house *) *)(uintptr_t)&stack->house,
                                memory_order_relaxed);
}

static inline domus_stack *domi_promise_get_stack(const domi_promise *promise)
{
    return atomic_load_explicit((_Atomic(domus_stack *) *)(uintptr_t)&promise->stack,
                                memory_order_relaxed);
}

static inline uint32_t domi_stack_serial(const domus_stack *stack)
{
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&stack->serial,
                                memory_order_relaxed);
}

/* True if `ask`, which `house` handles or keeps, is a request of the peer of its channel
 * (asks.h). */
static inline bool domi_ask_is_of_peer(domi_envelope *ask, const domi_house *house)
{
    const domi_return *back = domi_envelope_get_return_of_ask(ask);

    if (ask->sender != house)
        return false;
    if (back->promise == NULL)
        return true;
    /* false for an ask of the house to itself and a request that has expired: these are answered
     * through the mailbox */
    return domi_promise_serial(back->promise) == back->serial &&
           domi_promise_get_stack(back->promise)->wait == DOMI_WAIT_PEER;
}

/* Returns 0 if the conversation may wait; -ECANCELED if it was cancelled or its actor stops or
 * restarts; -ENOMEM if it cannot wait at all (DOMI_STACK_LOCAL). */
static inline int domi_stack_check_may_wait(const domus_stack *stack)
{
    uint32_t marks = domi_stack_get_house(stack)->marks;

    if ((stack->pooled != NULL && stack->pooled->cancelled) ||
        (marks & (DOMI_MARK_STOPPING | DOMI_MARK_RESTART)) != 0)
        return stack->pooled != NULL && stack->pooled->away == DOMI_STACK_LOCAL ? -ENOMEM
                                                                                : -ECANCELED;
    return 0;
}

/* Make a promise, for which the conversation then waits, too. Returns 0; -ENOMEM; -ECANCELED if the
 * conversation was cancelled or its actor stops or restarts. */
static inline int domi_stack_add_promise(domus_stack *stack, domi_promise_kind kind,
                                         domi_promise **ret_promise)
{
    int error = domi_stack_check_may_wait(stack);

    if (DOMI_UNLIKELY(error != 0))
        return error;
    domus_stack *pooled = domi_stack_get_or_make_pooled(stack);
    if (DOMI_UNLIKELY(pooled == NULL))
        /* a pooled stack that was made just now is freed when the handler returns */
        return -ENOMEM;
    domi_promise *promise = domi_promise_new(stack->manager, pooled, kind);
    if (DOMI_UNLIKELY(promise == NULL))
        return -ENOMEM;
    *ret_promise = promise;
    return 0;
}

/* Link a promise of `kind` at its stack, which waits for it until
 * domi_promise_unlink_ask_off_wheel(). */
DOMI_INLINE void domi_promise_link_to_stack(const domi_manager *manager, domus_stack *stack,
                                            domi_promise *promise, domi_promise_kind kind)
{
    domi_promise_change_state(promise, DOMI_PROMISE_WAITING);
    promise->kind = (uint8_t)kind;
    promise->wait.since_ns = manager->now_ns;
    promise->previous = NULL;
    promise->next = stack->waiting;
    if (promise->next != NULL)
        promise->next->previous = promise;
    stack->waiting = promise;
    stack->pending++;
    domi_stack_get_house(stack)->asks++;
}

/* Begin to wait for the answer to an ask of `type` to `to`, with the first promise of a pooled
 * stack, which is free. This does the same as domi_promise_new(), but sets no field that the answer
 * sets anyway. */
DOMI_INLINE void domi_promise_begin_wait_for_answer(domi_manager *manager, domus_stack *stack,
                                                    const domus_type *type, domus_address to)
{
    domi_promise *promise = &stack->first;

    domi_promise_link_to_stack(manager, stack, promise, DOMI_PROMISE_ASK);
    promise->answer.error = 0;
    promise->answer.tag = 0;
    promise->wait.asked = type;
    promise->target = to;
}

/* Unlink a promise that is an ask and on no wheel: the stack waits no longer for it. */
DOMI_INLINE void domi_promise_unlink_ask_off_wheel(domi_promise *promise)
{
    domus_stack *stack = domi_promise_get_stack(promise);

    /* Relaxed: another thread that reads a promise's serial only compares it with the one that it
     * knew. */
    atomic_store_explicit(&promise->serial, domi_promise_serial(promise) + 1, memory_order_relaxed);
    if (promise->next != NULL)
        promise->next->previous = promise->previous;
    if (promise->previous != NULL)
        promise->previous->next = promise->next;
    else
        stack->waiting = promise->next;
    stack->pending--;
    domi_stack_get_house(stack)->asks--;
}

/* Finish and release a promise in one step, for an answer that is shown at once. The promise must
 * be WAITING. Mostly it is the first promise of its stack, an ask, and on no wheel. */
DOMI_INLINE void domi_promise_finish_and_release(domi_manager *manager, domi_promise *promise)
{
    DOMI_CHECK(promise->state == DOMI_PROMISE_WAITING);
    if (DOMI_UNLIKELY(promise->node.slab != DOMI_SLAB_STACK_PROMISE || promise->noted ||
                      promise->timed || promise->uncounted)) {
        domi_promise_finish_and_release_slow(manager, promise);
        return;
    }
    domi_promise_change_state(promise, DOMI_PROMISE_FREE);
    domi_promise_unlink_ask_off_wheel(promise);
}

/* True if a conversation that returned `result` goes on waiting in its pooled stack for one promise
 * that is not done, and the end of its turn has nothing else to do. */
DOMI_INLINE bool domi_stack_goes_on_waiting(const domus_stack *stack, int result)
{
    return result == DOMUS_PARKED && stack->received == NULL && stack->wait == DOMI_WAIT_ONE &&
           stack->parked && !stack->barrier_fresh && stack->awaited->state != DOMI_PROMISE_DONE;
}

/* Set the promises that the conversation waits for when its handler has returned, and the function
 * `then` that goes on afterwards. */
static inline void domi_stack_set_wait(domus_stack *pooled, domi_wait wait, domi_promise *awaited,
                                       domus_resumed *then)
{
    pooled->wait = (uint8_t)wait;
    pooled->awaited = awaited;
    pooled->then = then;
}

/* Returns the deadline of the ask that this conversation answers; 0: the ask has none, or there is
 * no ask. */
static inline uint64_t domi_stack_deadline_ns(const domus_stack *stack)
{
    return stack->ask != NULL ? domi_envelope_deadline_ns(stack->ask) : 0;
}

/* Returns the frame of this conversation; NULL: it has none. */
static inline void *domi_stack_get_frame(domus_stack *stack)
{
    return stack->frame_size != 0 ? stack->frame : NULL;
}

/* Set up a stack in the run's own C frame, except for `message` and `ask`, which the caller sets
 * for each message. No field but those set here and these two is ever read in such a stack. */
DOMI_INLINE void domi_stack_set_up_in_frame_of_run(domus_stack *stack, domi_manager *manager,
                                                   domi_house *house)
{
    atomic_init(&stack->house, house);
    stack->manager = manager;
    stack->received = NULL;
    stack->pooled = NULL;
    stack->sender = (domus_address){NULL, 0};
    stack->frame_size = 0;
    stack->answered = stack->barrier = stack->barrier_fresh = stack->end_acts = false;
}

/* Begin a stack as domi_stack_set_up_in_frame_of_run() does, for a turn that handles no message. */
DOMI_INLINE void domi_stack_begin_without_message(domus_stack *stack, domi_manager *manager,
                                                  domi_house *house)
{
    domi_stack_set_up_in_frame_of_run(stack, manager, house);
    stack->ask = stack->message = NULL;
}

/* Returns the promise of the next answer. Answers are linked by their public part (domus_answer),
 * because the node of the promise may still be in the mailbox. */
static inline domi_promise *domi_promise_of_next_answer(const domi_promise *promise)
{
    if (promise->answer.next == NULL)
        return NULL;
    return (domi_promise *)(void *)((char *)(uintptr_t)promise->answer.next -
                                    offsetof(domi_promise, answer));
}

/* True if the stack has the answers that it waits for and may go on at once. */
static inline bool domi_stack_has_what_it_awaits(const domus_stack *stack)
{
    switch (stack->wait) {
    case DOMI_WAIT_ONE:
        return stack->awaited->state == DOMI_PROMISE_DONE;
    case DOMI_WAIT_ALL:
        return stack->pending == 0;
    case DOMI_WAIT_FIRST:
        return stack->answers != NULL || stack->pending == 0;
    default:
        return false;
    }
}

#endif
