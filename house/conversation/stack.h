/* Stacks: each one holds a conversation that an actor is having.
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
    DOMI_WAIT_ONE, /* the stack waits for `awaited` */
    DOMI_WAIT_ALL,
    DOMI_WAIT_FIRST,
    DOMI_WAIT_KEPT, /* the stack only holds an ask that is answered later, until its deadline */
    DOMI_WAIT_PEER, /* no conversation: it holds the promises of a channel's requests (peer.h) */
} domi_wait;

struct domus_stack {
    /* queued in the exception mailbox when everything that the stack waits for is there */
    domi_node node;
    _Atomic(domi_house *) house;
    domi_manager *manager;  /* the manager of the thread that runs the house now */
    domi_envelope *ask;     /* the ask that this conversation still has to answer; NULL: none, or it
                               was answered */
    domi_envelope *message; /* the message being handled; NULL: none, or the handler has passed it
                               on */
    /* the stack itself, or the pooled stack to which it moves; NULL: none yet */
    domus_stack *pooled;
    domus_resumed *then; /* the function that is called when the wait is over */

    domus_address sender; /* sender of the message, once the envelope has left this stack */
    uint32_t frame_size;  /* bytes of `frame` */
    bool answered;        /* the ask that it handles was answered, kept, stashed or forwarded */
    bool barrier;         /* this conversation raised the barrier */
    bool barrier_fresh;   /* the conversation has not parked since it raised the barrier */
    bool end_acts;        /* a verb wants something to be done at the end of the turn (turn.h) */
    uint8_t wait;         /* a domi_wait */
    bool parked;          /* the stack is in the house's list of parked stacks */
    bool queued;          /* the stack's node is in the exception mailbox */
    bool cancelled;       /* the conversation was cancelled, and may not wait any more */
    /* the conversation is over; the stack is freed when no mailbox holds a node of it */
    bool ended;
    bool outlives; /* the conversation goes on when its channel's connection is gone */
    bool works;    /* its ask is kept by an actor that works for it (domus_keep_working()) */
    /* grows when the conversation ends, so that old references are known */
    _Atomic uint32_t serial;
    uint32_t pending;      /* number of promises in `waiting` */
    domi_promise *waiting; /* promises that have not completed, the newest first */
    domi_promise *answers; /* promises that completed and were not shown to a handler, the oldest
                              first; linked by answer.next */

    domi_promise *answers_last;     /* the newest promise in `answers` */
    domi_promise *awaited;          /* the promise that a DOMI_WAIT_ONE waits for */
    domus_stack *next;              /* links in the house's list of parked stacks */
    domus_stack *previous;          /* links that list backwards */
    _Atomic(domi_promise *) parent; /* promise of the asker, for the ask that this stack answers;
                                       NULL: it answers no ask */
    _Atomic uint32_t parent_serial; /* serial of `parent` when it asked */
    uint32_t away; /* number of promises that ended on a thief's thread while home's wheel still
                      held them; also the bit DOMI_STACK_COUNTED */
    const domus_type *begun_by; /* type of its first message; NULL: it began otherwise */
    domi_envelope *received;    /* the message that a receive took, while it is handled: an ask, or,
                                   for a receive that returns to its caller (detached.h), also a
                                   notice */

    domi_promise first; /* the first promise of the conversation, which needs no allocation */
    alignas(16) unsigned char frame[];
};

/* Bit in `away`: the channel of the house counts this conversation and is told of its end. The bit
 * is there because `away` is read anyway when a stack ends. Channels actors are never lent, so the
 * count in the other bits stays 0 beside it. */
#define DOMI_STACK_COUNTED UINT32_C(0x80000000)

#define DOMI_STACK_HEAD offsetof(domus_stack, frame) /* bytes of a stack before its frame */

/* Value of `away` in a stack that lies in a C frame, because there is no memory for a pooled
 * one (domi_stack_init_local). */
#define DOMI_STACK_LOCAL UINT32_C(0x7fffffff)

static_assert(DOMI_TAKES(DOMI_STACK_HEAD, 320), "what pool.c's sizes leave for the frame");
static_assert(DOMUS_FRAME_MAX + DOMI_STACK_HEAD <= 1088, "the largest frame fits");

/* Make a pooled stack for `house` with a zeroed frame. Returns NULL without memory, or if the frame
 * is larger than DOMUS_FRAME_MAX. */
domus_stack *domi_stack_new(domi_manager *manager, domi_house *house, uint32_t frame_size);

/* Set up a stack with a zeroed frame in `place`, which the caller has in a C frame and which has
 * DOMI_STACK_HEAD + `frame_size` bytes, aligned to 16. The conversation ends with this turn: a verb
 * that would let it wait fails with -ENOMEM. For functions that have to be called even if there is
 * no memory for a pooled stack. */
domus_stack *domi_stack_init_local(void *place, domi_manager *manager, domi_house *house,
                                   uint32_t frame_size);

/* Returns the pooled stack of `stack`, and makes it if there is none yet; NULL if there
 * is no memory. */
domus_stack *domi_stack_pool(domus_stack *stack);

/* Forget the ask that this conversation began with, because it was answered or passed on. Asks that
 * the conversation makes from now on are made for no other actor. */
static inline void domi_stack_leave_ask(domus_stack *stack)
{
    stack->ask = NULL;
    /* Relaxed: a walker that has read the parent already finds that the parent's wait is over, or
     * it soon will be. */
    if (stack->pooled != NULL)
        atomic_store_explicit(&stack->pooled->parent, NULL, memory_order_relaxed);
}

/* `message` leaves this conversation. If it is the one that is shown, its sender is remembered. */
DOMI_INLINE void domi_stack_let_message_go(domus_stack *stack, const domi_envelope *message)
{
    if (stack->message != message)
        return;
    stack->message = NULL;
    stack->sender = (domus_address){message->sender, message->sender_lease};
}

/* The ask that this conversation began with leaves it, with its envelope. */
DOMI_INLINE void domi_stack_let_ask_go(domus_stack *stack, const domi_envelope *ask)
{
    domi_stack_leave_ask(stack);
    stack->answered = true;
    domi_stack_let_message_go(stack, ask);
}

/* The function that was entered returned `result`: park the conversation, or end it. The part of
 * domi_turn_end() (turn.h) that is not an inline function. */
void domi_stack_park_or_end(domus_stack *stack, int result);

/* The function that was resumed with a received message has returned, or receives again: release
 * that message. An ask that was neither answered nor kept fails with `error`. */
void domi_stack_end_received(domus_stack *stack, int error);

/* An answer (a reply or an exception) has come to `house`, which runs: resume the stack that waits
 * for it, keep the answer, or drop it if it is late. Takes the envelope. */
void domi_stack_take_answer(domi_manager *manager, domi_house *house, domi_envelope *answer);

/* A promise has completed. Its `answer` is filled already; `message` (or NULL) is the envelope that
 * holds the answer's payload. Resumes the stack if it waited for nothing else. */
void domi_stack_complete(domi_manager *manager, domi_promise *promise, domi_envelope *message);

/* Handle a node that a run took from the exception mailbox and that is not an envelope. It is a
 * promise that failed on this side, or a stack whose answers were all there when it parked. */
void domi_stack_run_node(domi_manager *manager, domi_node *node);

/* Free a stack that has ended, unless one of its nodes is still in a mailbox, in a list of notes,
 * or on home's wheel. */
void domi_stack_free_if_done(domi_manager *manager, domus_stack *stack);

/* Throw away a node of the kind that domi_stack_run_node() takes, together with its mailbox, and
 * give up its promise. */
void domi_stack_drop_node(domi_manager *manager, domi_node *node);

/* Cancel a parked stack. Everything that it waits for fails with -ECANCELED; an ask that it only
 * keeps fails with `error`. */
void domi_stack_cancel(domi_manager *manager, domus_stack *stack, int error);

/* A kept ask was answered, has failed or was forwarded, so the stack that held it ends. */
void domi_stack_end_kept(domi_manager *manager, domus_stack *kept);

/* Cancel the ask of `stack` if it is kept, and those that the conversation waits for where they are
 * kept. */
void domi_stack_cancel_kept(domi_manager *manager, domus_stack *stack);

/* The house stops or restarts: cancel all its parked stacks. */
void domi_stack_cancel_all(domi_manager *manager, domi_house *house);

/* Nobody waits any more for the answers that `holder` has promises for (peer.h): cancel these
 * requests where they are. NULL is allowed. */
void domi_stack_end_of_peer(domi_manager *manager, domus_stack *holder);

/* True if blocking work of a parked conversation still runs, and so still uses the memory that it
 * was given. */
bool domi_stack_has_work(const domi_house *house);

/* The house is gone: free its parked stacks. Asks that still wait for an answer fail
 * with -ESTALE. */
void domi_stack_drop_all(domi_manager *manager, domi_house *house);

static inline bool domi_node_is_stack(const domi_node *node)
{
    return node->slab >= DOMI_SLAB_STACK_SMALL && node->slab <= DOMI_SLAB_STACK_LARGE;
}

static inline domi_house *domi_stack_house(const domus_stack *stack)
{
    return atomic_load_explicit((_Atomic(domi_house *) *)(uintptr_t)&stack->house,
                                memory_order_relaxed);
}

static inline domus_stack *domi_promise_stack(const domi_promise *promise)
{
    return atomic_load_explicit((_Atomic(domus_stack *) *)(uintptr_t)&promise->stack,
                                memory_order_relaxed);
}

static inline uint32_t domi_stack_serial(const domus_stack *stack)
{
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&stack->serial,
                                memory_order_relaxed);
}

/* True if `ask`, which `house` handles, holds or has kept, is a request of the peer of its
 * channel (peer.h). */
static inline bool domi_ask_is_of_peer(domi_envelope *ask, const domi_house *house)
{
    const domi_return *back = domi_envelope_return(ask);

    if (ask->sender != house)
        return false;
    if (back->promise == NULL)
        return true;
    /* an ask of the house to itself, or a request that has expired, is for the mailbox */
    return domi_promise_serial(back->promise) == back->serial &&
           domi_promise_stack(back->promise)->wait == DOMI_WAIT_PEER;
}

/* Returns 0, or -ECANCELED if the conversation was cancelled or its actor stops or restarts:
 * such a conversation waits for nothing more. Returns -ENOMEM if the conversation cannot wait at
 * all (DOMI_STACK_LOCAL). */
static inline int domi_stack_check_may_wait(const domus_stack *stack)
{
    uint32_t marks = domi_stack_house(stack)->marks;

    if ((stack->pooled != NULL && stack->pooled->cancelled) ||
        (marks & (DOMI_MARK_STOPPING | DOMI_MARK_RESTART)) != 0)
        return stack->pooled != NULL && stack->pooled->away == DOMI_STACK_LOCAL ? -ENOMEM
                                                                                : -ECANCELED;
    return 0;
}

/* Make a promise, which is one more thing that the conversation waits for. Returns 0; -ENOMEM;
 * -ECANCELED if the conversation was cancelled or its actor stops or restarts. */
static inline int domi_stack_add_promise(domus_stack *stack, domi_promise_kind kind,
                                         domi_promise **ret_promise)
{
    int error = domi_stack_check_may_wait(stack);

    if (DOMI_UNLIKELY(error != 0))
        return error;
    domus_stack *pooled = domi_stack_pool(stack);
    if (DOMI_UNLIKELY(pooled == NULL))
        return -ENOMEM; /* a new pooled stack is freed when the handler returns */
    domi_promise *promise = domi_promise_new(stack->manager, pooled, kind);
    if (DOMI_UNLIKELY(promise == NULL))
        return -ENOMEM;
    *ret_promise = promise;
    return 0;
}

/* The stack waits for one more thing of `kind`, by this promise, until
 * domi_promise_unlink_plain(). */
DOMI_INLINE void domi_promise_link(const domi_manager *manager, domus_stack *stack,
                                   domi_promise *promise, domi_promise_kind kind)
{
    domi_promise_move(promise, DOMI_PROMISE_WAITING);
    promise->kind = (uint8_t)kind;
    promise->wait.since_ns = manager->now_ns;
    promise->previous = NULL;
    promise->next = stack->waiting;
    if (promise->next != NULL)
        promise->next->previous = promise;
    stack->waiting = promise;
    stack->pending++;
    domi_stack_house(stack)->asks++;
}

/* Begin to wait, with the first promise of a pooled stack, which is free, for the answer to an ask
 * of `type` to `to`. As domi_promise_new(), but without what an answer brings anyway. */
DOMI_INLINE void domi_promise_begin_ask(domi_manager *manager, domus_stack *stack,
                                        const domus_type *type, domus_address to)
{
    domi_promise *promise = &stack->first;

    domi_promise_link(manager, stack, promise, DOMI_PROMISE_ASK);
    promise->answer.error = 0;
    promise->answer.tag = 0;
    promise->wait.asked = type;
    promise->target = to;
}

/* The stack waits no longer for this promise, which is an ask and not on the wheel. */
DOMI_INLINE void domi_promise_unlink_plain(domi_promise *promise)
{
    domus_stack *stack = domi_promise_stack(promise);

    /* Relaxed: another thread that reads the serial only asks whether the promise is still the one
     * it knew. */
    atomic_store_explicit(&promise->serial, domi_promise_serial(promise) + 1, memory_order_relaxed);
    if (promise->next != NULL)
        promise->next->previous = promise->previous;
    if (promise->previous != NULL)
        promise->previous->next = promise->next;
    else
        stack->waiting = promise->next;
    stack->pending--;
    domi_stack_house(stack)->asks--;
}

/* Finish and release a promise in one step, for an answer that is shown at once. The promise is
 * WAITING. Mostly it is the first one of its stack, an ask, and on no wheel. */
DOMI_INLINE void domi_promise_close(domi_manager *manager, domi_promise *promise)
{
    DOMI_CHECK(promise->state == DOMI_PROMISE_WAITING);
    if (DOMI_UNLIKELY(promise->node.slab != DOMI_SLAB_STACK_PROMISE || promise->noted ||
                      promise->timed || promise->uncounted)) {
        domi_promise_close_slow(manager, promise);
        return;
    }
    domi_promise_move(promise, DOMI_PROMISE_FREE);
    domi_promise_unlink_plain(promise);
}

/* True if a conversation that returned `result` only waits on, in its pooled stack, for one promise
 * that is not done, and nothing else has to be done at the end of its turn. */
DOMI_INLINE bool domi_stack_waits_on(const domus_stack *stack, int result)
{
    return result == DOMUS_PARKED && stack->received == NULL && stack->wait == DOMI_WAIT_ONE &&
           stack->parked && !stack->barrier_fresh && stack->awaited->state != DOMI_PROMISE_DONE;
}

/* Set what the conversation waits for once its handler has returned, and the function `then` that
 * goes on afterwards. */
static inline void domi_stack_set_wait(domus_stack *pooled, domi_wait wait, domi_promise *awaited,
                                       domus_resumed *then)
{
    pooled->wait = (uint8_t)wait;
    pooled->awaited = awaited;
    pooled->then = then;
}

/* The deadline of the ask that this conversation answers. 0: it has none, or there is no ask. */
static inline uint64_t domi_stack_deadline_ns(const domus_stack *stack)
{
    return stack->ask != NULL ? domi_envelope_deadline_ns(stack->ask) : 0;
}

/* The frame of this conversation; NULL: it has none. */
static inline void *domi_stack_frame(domus_stack *stack)
{
    return stack->frame_size != 0 ? stack->frame : NULL;
}

/* Set up a stack in the run's own C frame, except its message and ask, which the caller sets
 * for each message that it handles. Only the fields set here and these two are ever read in
 * such a stack. */
DOMI_INLINE void domi_stack_prepare(domus_stack *stack, domi_manager *manager, domi_house *house)
{
    atomic_init(&stack->house, house);
    stack->manager = manager;
    stack->received = NULL;
    stack->pooled = NULL;
    stack->sender = (domus_address){NULL, 0};
    stack->frame_size = 0;
    stack->answered = stack->barrier = stack->barrier_fresh = stack->end_acts = false;
}

/* Begin a stack in the same way, for a turn without a message. */
DOMI_INLINE void domi_stack_begin(domus_stack *stack, domi_manager *manager, domi_house *house)
{
    domi_stack_prepare(stack, manager, house);
    stack->ask = stack->message = NULL;
}

/* Answers are linked by their public part (domus_answer), because the node of the promise may still
 * be in the mailbox. */
static inline domi_promise *domi_promise_next_answer(const domi_promise *promise)
{
    if (promise->answer.next == NULL)
        return NULL;
    return (domi_promise *)(void *)((char *)(uintptr_t)promise->answer.next -
                                    offsetof(domi_promise, answer));
}

/* True if the promises that the stack waits for have completed, so that it may go on at once. */
static inline bool domi_stack_is_satisfied(const domus_stack *stack)
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
