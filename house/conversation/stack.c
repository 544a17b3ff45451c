/* This file makes, parks and ends stacks. turn.c lets a parked stack go on. */
#include "house/conversation/stack.h"

#include "base/check.h"
#include "house/conversation/answer.h"
#include "house/conversation/circle.h"
#include "house/conversation/dead.h"
#include "house/family/family.h"
#include "house/message/mailbox.h"
#include "house/message/owned.h"
#include "house/message/pool.h"

#include <errno.h>
#include <string.h>

domus_stack *domi_stack_new(domi_manager *manager, domi_house *house, uint32_t frame_size)
{
    size_t bytes = DOMI_STACK_HEAD + frame_size;
    uint32_t slab = bytes <= 384   ? DOMI_SLAB_STACK_SMALL
                    : bytes <= 640 ? DOMI_SLAB_STACK_MEDIUM
                                   : DOMI_SLAB_STACK_LARGE;

    if (frame_size > DOMUS_FRAME_MAX)
        return NULL;
    domus_stack *stack = domi_pool_take(manager, slab);
    if (stack == NULL)
        return NULL;

    atomic_store_explicit(&stack->house, house, memory_order_relaxed);
    stack->manager = manager;
    stack->ask = stack->message = stack->received = NULL;
    stack->pooled = stack;
    stack->then = NULL;
    stack->sender = (domus_address){NULL, 0};
    stack->frame_size = frame_size;
    stack->wait = DOMI_WAIT_NONE;
    stack->answered = stack->barrier = stack->barrier_fresh = stack->end_acts = false;
    stack->parked = stack->queued = stack->cancelled = stack->ended = false;
    stack->pending = stack->away = 0;
    stack->waiting = stack->answers = stack->answers_last = stack->awaited = NULL;
    atomic_store_explicit(&stack->parent, NULL, memory_order_relaxed);
    stack->begun_by = NULL;
    stack->first.node.slab = DOMI_SLAB_STACK_PROMISE;
    stack->first.state = DOMI_PROMISE_FREE;
    stack->first.queued = stack->first.noted = stack->first.timed = false;
    stack->first.uncounted = false;
    domi_wheel_node_init(&stack->first.wheel);
    atomic_store_explicit(&stack->first.stack, stack, memory_order_relaxed);
    memset(stack->frame, 0, frame_size);
    return stack;
}

/* Record which promise of the asker waits for this ask, for walks over the chain of asks
 * (cancel.c). */
static void set_parent(domus_stack *pooled, domi_envelope *ask)
{
    const domi_return *back = domi_envelope_return(ask);

    /* release: a walker that reads one of these two values also sees that the wait before this one
     * is over (cancel.c). */
    atomic_store_explicit(&pooled->parent_serial, back->serial, memory_order_release);
    atomic_store_explicit(&pooled->parent, back->promise, memory_order_release);
}

domus_stack *domi_stack_pool(domus_stack *stack)
{
    if (stack->pooled == NULL)
        stack->pooled = domi_stack_new(stack->manager, domi_stack_house(stack), 0);
    domus_stack *pooled = stack->pooled;
    if (pooled != NULL && stack->ask != NULL)
        set_parent(pooled, stack->ask);
    if (pooled != NULL && stack->message != NULL && pooled->begun_by == NULL)
        pooled->begun_by = stack->message->type;
    return pooled;
}

int domi_stack_check_may_wait(const domus_stack *stack)
{
    uint32_t marks = domi_stack_house(stack)->marks;

    if ((stack->pooled != NULL && stack->pooled->cancelled) ||
        (marks & (DOMI_MARK_STOPPING | DOMI_MARK_RESTART)) != 0)
        return -ECANCELED;
    return 0;
}

int domi_stack_add_promise(domus_stack *stack, domi_promise_kind kind, domi_promise **ret_promise)
{
    int error = domi_stack_check_may_wait(stack);

    if (error != 0)
        return error;
    domus_stack *pooled = domi_stack_pool(stack);
    if (pooled == NULL)
        return -ENOMEM; /* a new pooled stack is freed when the handler returns */
    domi_promise *promise = domi_promise_new(stack->manager, pooled, kind);
    if (promise == NULL)
        return -ENOMEM;
    *ret_promise = promise;
    return 0;
}

static void stack_unlink(domi_manager *manager, domi_house *house, domus_stack *stack)
{
    if (!stack->parked)
        return;
    stack->parked = false;
    if (stack->next != NULL)
        stack->next->previous = stack->previous;
    if (stack->previous != NULL)
        stack->previous->next = stack->next;
    else
        house->stacks = stack->next;
    if (--house->stacks_count < manager->conversations_max)
        house->marks &= (uint16_t)~DOMI_MARK_SATURATED;
}

static void stack_free(domi_manager *manager, domus_stack *stack)
{
    /* Relaxed: a walker only compares these values. */
    atomic_store_explicit(&stack->house, NULL, memory_order_relaxed);
    atomic_store_explicit(&stack->parent, NULL, memory_order_relaxed);
    domi_pool_free(manager, &stack->node);
}

void domi_stack_free_if_done(domi_manager *manager, domus_stack *stack)
{
    if (!stack->ended || stack->queued || stack->first.queued || stack->first.noted)
        return;
    if (DOMI_LIKELY(stack->away == 0)) {
        stack_free(manager, stack);
    } else if (stack->away == DOMI_STACK_COUNTED) {
        uint64_t key = stack->counted_at;
        stack_free(manager, stack);
        manager->conversation_ended(manager, key);
    }
}

void domi_stack_free_abandoned(domi_manager *home, domi_promise *promise)
{
    domus_stack *stack = domi_promise_stack(promise);
    /* A pooled promise that is not on home's wheel does not keep its stack, which may be gone. */
    bool held = promise->node.slab == DOMI_SLAB_STACK_PROMISE || promise->timed;

    domi_promise_release(home, promise);
    if (held)
        domi_stack_free_if_done(home, stack);
}

/* Throw away answers that were never shown to a handler: their messages were not handled, so they
 * are dead letters. */
static void answers_discard(domi_manager *manager, domus_stack *stack)
{
    for (domi_promise *promise = stack->answers; promise != NULL;) {
        domi_promise *next = domi_promise_next_answer(promise);

        if (promise->message != NULL)
            domi_mailbox_drop(manager, domi_stack_house(stack), &promise->message->node,
                              -ECANCELED);
        domi_promise_release(manager, promise);
        promise = next;
    }
    stack->answers = stack->answers_last = NULL;
}

/* Take back everything that a pooled stack holds, and free the stack as soon as no node of it is
 * queued. */
static void end_pooled(domi_manager *manager, domi_house *house, domus_stack *stack)
{
    while (stack->waiting != NULL)
        domi_promise_abandon(manager, stack->waiting);
    answers_discard(manager, stack);
    stack_unlink(manager, house, stack);
    atomic_store_explicit(&stack->serial, domi_stack_serial(stack) + 1, memory_order_relaxed);
    stack->wait = DOMI_WAIT_NONE;
    stack->ended = true;
    domi_stack_free_if_done(manager, stack);
}

/* --- park ----------------------------------------------------------------------------------- */

static void lower_barrier(domi_house *house)
{
    house->marks &= (uint16_t)~DOMI_MARK_BARRIER;
}

/* The stack that raised the barrier is the first in the list, so that an ask that meets the barrier
 * finds it at once. */
static void link_parked(domi_manager *manager, domi_house *house, domus_stack *stack)
{
    domus_stack *head = house->stacks;

    if (head != NULL && head->barrier) {
        stack->previous = head;
        stack->next = head->next;
        head->next = stack;
    } else {
        stack->previous = NULL;
        stack->next = head;
        house->stacks = stack;
    }
    if (stack->next != NULL)
        stack->next->previous = stack;
    stack->parked = true;
    if (++house->stacks_count >= manager->conversations_max)
        house->marks |= DOMI_MARK_SATURATED;
}

/* Copy the fields of the run's own stack to the pooled one, and link that at the house. */
static void park_stack(domus_stack *stack)
{
    domi_manager *manager = stack->manager;
    domi_house *house = domi_stack_house(stack);
    domus_stack *pooled = stack->pooled;

    if (pooled != stack) {
        pooled->ask = stack->ask;
        pooled->answered = stack->answered;
        pooled->sender = stack->sender;
        pooled->barrier = stack->barrier;
        pooled->barrier_fresh = stack->barrier_fresh;
    }
    pooled->message = NULL;
    if (DOMI_LIKELY(pooled->parked && !pooled->barrier_fresh && !domi_stack_is_satisfied(pooled)))
        return;
    if (pooled->barrier_fresh && pooled->parked)
        /* the stack is linked again below, at the head of the list */
        stack_unlink(manager, house, pooled);
    if (!pooled->parked)
        link_parked(manager, house, pooled);
    if (pooled->barrier_fresh) {
        pooled->barrier_fresh = false;
        domi_circle_fail_waiting(manager, house, pooled);
    }
    if (domi_stack_is_satisfied(pooled) && !pooled->queued) {
        pooled->queued = true;
        pooled->node.kind = DOMI_EXCEPTION;
        domi_list_push(&house->tails[DOMI_EXCEPTION], &pooled->node);
    }
}

/* True if the failure was one of a channel and not of the actor. */
static bool is_of_channel(domi_manager *manager, const domi_house *house, const domus_stack *pooled,
                          int error)
{
    return pooled != NULL && house->behaviour->kind == DOMUS_CHANNELS &&
           manager->conversation_failed != NULL &&
           manager->conversation_failed(manager, pooled, error);
}

/* End the conversation with `result`. If it still has to answer an ask, the asker hears of the end;
 * otherwise a failure goes to the parent. */
static void end_stack(domus_stack *stack, int result)
{
    domi_manager *manager = stack->manager;
    domi_house *house = domi_stack_house(stack);
    domus_stack *pooled = stack->pooled;

    if (stack->ask != NULL) {
        /* A conversation that was cancelled by a stop fails with -ESTALE, because its asker has
         * cancelled nothing. */
        if (result == -ECANCELED && (house->marks & DOMI_MARK_STOPPING) != 0)
            result = -ESTALE;
        domi_ask_fail(manager, stack->ask, result < 0 ? result : -ENOMSG);
        stack->ask = NULL;
    } else if (result < 0 && !(pooled != NULL && pooled->cancelled)) {
        if (!is_of_channel(manager, house, pooled, result))
            domi_family_handle_failure(manager, house, result, false);
    }
    if (stack->barrier)
        lower_barrier(house);
    if (pooled != NULL)
        end_pooled(manager, house, pooled);
}

void domi_stack_end_received(domus_stack *stack, int error)
{
    domi_envelope *message = stack->received;

    stack->received = NULL;
    /* The function that was resumed with this message may still run, after a further receive; it
     * can no longer use the message. */
    if (message != NULL && stack->message == message) {
        stack->message = NULL;
        stack->sender = (domus_address){message->sender, message->sender_lease};
    }
    if (message != NULL && message->node.kind == DOMI_ASK)
        domi_ask_fail(stack->manager, message, error);
    else if (message != NULL)
        domi_envelope_end(stack->manager, message);
}

void domi_stack_park_or_end(domus_stack *stack, int result)
{
    domus_stack *pooled = stack->pooled;

    if (stack->received != NULL)
        domi_stack_end_received(stack, result < 0 ? result : -ENOMSG);
    if (result != DOMUS_PARKED)
        end_stack(stack, result);
    else if (pooled == NULL || pooled->wait == DOMI_WAIT_NONE)
        end_stack(stack, -EINVAL); /* the handler returned DOMUS_PARKED, but waits for nothing */
    else
        park_stack(stack);
}

void domi_stack_set_wait(domus_stack *pooled, domi_wait wait, domi_promise *awaited,
                         domus_resumed *then)
{
    pooled->wait = (uint8_t)wait;
    pooled->awaited = awaited;
    pooled->then = then;
}

/* --- the end ---------------------------------------------------------------------------------- */

void domi_stack_end_kept(domi_manager *manager, domus_stack *kept)
{
    kept->ask = NULL;
    end_pooled(manager, domi_stack_house(kept), kept);
}

void domi_stack_drop_all(domi_manager *manager, domi_house *house)
{
    while (house->stacks != NULL) {
        domus_stack *stack = house->stacks;

        if (stack->ask != NULL)
            domi_ask_fail(manager, stack->ask, -ESTALE);
        stack->ask = NULL;
        end_pooled(manager, house, stack);
    }
    DOMI_CHECK(house->asks == 0);
    lower_barrier(house);
}

/* True if the answer of the promise is already in a mailbox of the house. */
static bool is_answered(const domi_house *house, const domi_promise *promise)
{
    for (uint32_t kind = DOMI_REPLY; kind <= DOMI_EXCEPTION; kind++) {
        domi_node *last = house->tails[kind];
        domi_node *node = last;
        while (node != NULL) {
            node = node->next;
            if (!domi_node_is_embedded(node) &&
                domi_envelope_return((domi_envelope *)(void *)node)->promise == promise)
                return true;
            if (node == last)
                break;
        }
    }
    return false;
}

bool domi_stack_has_work(const domi_house *house)
{
    for (const domus_stack *stack = house->stacks; stack != NULL; stack = stack->next) {
        for (const domi_promise *promise = stack->waiting; promise != NULL;
             promise = promise->next) {
            if (promise->kind == DOMI_PROMISE_BLOCKING && promise->work != NULL &&
                !is_answered(house, promise))
                return true;
        }
    }
    return false;
}
