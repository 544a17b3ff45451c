/* Stacks: the conversations that an actor is having.
 *
 * A stack lives in the run's own frame (dispatch.c) and moves to a pooled one when it first parks;
 * one whose row names a frame is pooled from the start. What it waits for are promises; it parks on
 * one of them, on all, or on the first, and answers that come before they are wanted are kept. A
 * pooled stack is named by its address and its serial, which changes when it ends. Only the thread
 * that runs the house touches it, except what others read to walk a chain of asks: `house`,
 * `serial`, `parent`, `parent_serial`. */
#ifndef DOMI_HOUSE_CONVERSATION_STACK_H
#define DOMI_HOUSE_CONVERSATION_STACK_H

#include "house/conversation/promise.h"

typedef enum domi_wait {
    DOMI_WAIT_NONE,
    DOMI_WAIT_ONE, /* for `awaited` */
    DOMI_WAIT_ALL,
    DOMI_WAIT_FIRST,
    DOMI_WAIT_KEPT, /* for nothing: it only holds an ask that is answered later */
} domi_wait;

struct domus_stack {
    domi_node node; /* into the exception mailbox when what it waits for is there already */
    _Atomic(domi_house *) house;
    domi_manager *manager;  /* who runs it now */
    domi_envelope *ask;     /* the ask that it will answer; NULL: none, or answered */
    domi_envelope *message; /* what is being handled; NULL: nothing, or gone elsewhere */
    domus_stack *pooled;    /* itself, or the one that it moves to; NULL: none yet */
    domus_resumed *then;

    domus_address sender; /* of an ask, once its envelope is gone */
    uint32_t frame_size;
    uint8_t wait;       /* domi_wait */
    bool answered;      /* what it handles was an ask and has its answer, or is gone on */
    bool barrier;       /* it raised the barrier */
    bool barrier_fresh; /* ... and has not parked since */
    bool parked;        /* linked at the house */
    bool queued;        /* its node is in the exception mailbox */
    bool cancelled;     /* it may not wait any more */
    bool ended;         /* free it when no node of it is in the mailbox */
    _Atomic uint32_t serial;
    uint32_t pending;      /* promises in `waiting` */
    domi_promise *waiting; /* what is under way */
    domi_promise *answers; /* what has come and was not shown, the oldest first; by answer.next */

    domi_promise *answers_last;
    domi_promise *awaited;
    domus_stack *next; /* among the house's parked ones */
    domus_stack *previous;
    _Atomic(domi_promise *) parent; /* of who asked what it answers; NULL: nobody */
    _Atomic uint32_t parent_serial;
    uint32_t away; /* promises that a thief has done with, and that are on home's wheel still; and
                      DOMI_STACK_COUNTED */
    const domus_type *begun_by; /* the message that it began with; NULL: something else */
    domi_envelope *received;    /* what a receive took, while it is handled: an ask, or, of a
                                   receive that returned (detached.h), a notice */

    domi_promise first;
    uint64_t counted_at; /* io's key of the channel that has begun it, and with DOMI_STACK_COUNTED
                            counts it */
    alignas(16) unsigned char frame[];
};

/* In `away`, which is looked at when a stack ends: a channel counts this conversation, and is told
 * of its end. Channels actors are never lent, so no other bit is set beside it. */
#define DOMI_STACK_COUNTED UINT32_C(0x80000000)

#define DOMI_STACK_HEAD offsetof(domus_stack, frame)

static_assert(DOMI_STACK_HEAD == 320, "what pool.c's sizes leave for the frame");
static_assert(DOMUS_FRAME_MAX + DOMI_STACK_HEAD <= 1088, "the largest frame fits");

/* A pooled stack for `house` with a zeroed frame; NULL without memory or for a frame too large. */
domus_stack *domi_stack_new(domi_manager *manager, domi_house *house, uint32_t frame_size);

/* The pooled one of `stack`, made if need be; NULL without memory. */
domus_stack *domi_stack_pooled(domus_stack *stack);

/* The ask that it began with has left it: what it asks from now on is asked for nobody else. */
static inline void domi_stack_on_its_own(domus_stack *stack)
{
    stack->ask = NULL;
    /* Relaxed: who has read the parent already finds that it is done, or soon will be. */
    if (stack->pooled != NULL)
        atomic_store_explicit(&stack->pooled->parent, NULL, memory_order_relaxed);
}

/* One more thing that the conversation waits for. Returns 0; -ENOMEM; -ECANCELED in one that was
 * cancelled, or whose actor stops. */
int domi_stack_promise(domus_stack *stack, domi_promise_kind kind, domi_promise **ret_promise);

/* A conversation that was cancelled, or whose actor stops, waits for nothing more: -ECANCELED. */
int domi_stack_may_wait(const domus_stack *stack);

/* The handler returned `result`: park the conversation, or end it. */
void domi_stack_return(domus_stack *stack, int result);

/* What was received is done with: an ask that was neither answered nor kept fails with `error`. */
void domi_stack_end_received(domus_stack *stack, int error);

/* From the next return on it waits for this; `then` goes on. */
void domi_stack_wait(domus_stack *pooled, domi_wait wait, domi_promise *awaited,
                     domus_resumed *then);

/* The answer of an ask (a reply or exception of the house that runs): resume its stack, keep it, or
 * drop it when it is late. Takes the envelope. */
void domi_stack_answer(domi_manager *manager, domi_house *house, domi_envelope *answer);

/* A promise is done otherwise: its `answer` says how, `message` (or NULL) is what it came in. */
void domi_stack_done(domi_manager *manager, domi_promise *promise, domi_envelope *message);

/* A node of the exception mailbox that is no envelope: a promise that failed here, or a stack whose
 * answers were there already. */
void domi_stack_node(domi_manager *manager, domi_node *node);

/* Free one that has ended, unless a node of it is in a list still. */
void domi_stack_free_if_done(domi_manager *manager, domus_stack *stack);

/* Home: a promise that was given up while its house was away is done with. */
void domi_stack_noted(domi_manager *home, domi_promise *promise);

/* Such a node goes with its mailbox. */
void domi_stack_drop_node(domi_manager *manager, domi_node *node);

/* Cancel a parked one: all that it waits for fails with -ECANCELED; what it keeps fails with
 * `error`. */
void domi_stack_cancel(domi_manager *manager, domus_stack *stack, int error);

/* An ask that is kept has its answer: the stack that held it is done. */
void domi_stack_kept_end(domi_manager *manager, domus_stack *kept);

/* The house stops: cancel all. */
void domi_stack_cancel_all(domi_manager *manager, domi_house *house);

/* Blocking work of a parked conversation still runs, and uses what it was given. */
bool domi_stack_has_work(const domi_house *house);

/* The house is gone: free its parked stacks; asks that wait for an answer fail with -ESTALE. */
void domi_stack_drop_all(domi_manager *manager, domi_house *house);

/* The ask `back` came from was made, directly or through others, while answering for `holder`. Any
 * thread. */
bool domi_stack_in_chain(const domi_return *back, const domus_stack *holder);

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

/* One in the run's own frame: of all its fields only these are ever looked at there. */
DOMI_INLINE void domi_stack_begin(domus_stack *stack, domi_manager *manager, domi_house *house)
{
    atomic_init(&stack->house, house);
    stack->manager = manager;
    stack->ask = stack->message = stack->received = NULL;
    stack->pooled = NULL;
    stack->sender = (domus_address){NULL, 0};
    stack->frame_size = 0;
    stack->answered = stack->barrier = stack->barrier_fresh = false;
}

/* Answers are linked by what the user sees: a promise's node may still be in the mailbox. */
static inline domi_promise *domi_promise_next_answer(const domi_promise *promise)
{
    if (promise->answer.next == NULL)
        return NULL;
    return (domi_promise *)(void *)((char *)(uintptr_t)promise->answer.next -
                                    offsetof(domi_promise, answer));
}

/* What it waits for is there: true if it may go on at once. */
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
