/* How promises are made, fail and end. Their time-outs are on home's wheel `deadlines`, so a thief
 * has to leave notes for it (notes.h). */
#include "house/conversation/promise.h"

#include "base/check.h"
#include "house/conversation/notes.h"
#include "house/conversation/receive.h"
#include "house/conversation/stack.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"

#include <errno.h>

domi_promise *domi_promise_new(domi_manager *manager, domus_stack *stack, domi_promise_kind kind)
{
    domi_promise *promise = &stack->first;

    if (promise->state != DOMI_PROMISE_FREE) {
        promise = domi_pool_take(manager, DOMI_SLAB_PROMISE);
        if (promise == NULL)
            return NULL;
        domi_wheel_node_init(&promise->wheel);
        promise->queued = promise->noted = promise->timed = promise->uncounted = false;
        /* release: a walker that reads the new stack also sees that the promise's earlier wait is
         * over (cancel.c). */
        atomic_store_explicit(&promise->stack, stack, memory_order_release);
    }
    promise->state = DOMI_PROMISE_WAITING;
    promise->kind = (uint8_t)kind;
    promise->answer = (domus_answer){0};
    promise->wait.since_ns = manager->now_ns;
    promise->previous = NULL;
    promise->next = stack->waiting;
    if (promise->next != NULL)
        promise->next->previous = promise;
    stack->waiting = promise;
    stack->pending++;
    domi_stack_house(stack)->asks++;
    return promise;
}

static domi_house *house_of(const domi_promise *promise)
{
    return domi_stack_house(domi_promise_stack(promise));
}

void domi_promise_stop_counting(domi_promise *promise)
{
    house_of(promise)->asks--;
    promise->uncounted = true;
}

static void put_on_wheel(domi_manager *home, domi_promise *promise, uint64_t deadline_ns)
{
    domi_wheel_arm(&home->deadlines, &promise->wheel, deadline_ns);
    promise->timed = true;
}

static void take_off_wheel(domi_manager *home, domi_promise *promise)
{
    domi_wheel_cancel(&home->deadlines, &promise->wheel);
    promise->timed = false;
}

void domi_promise_arm(domi_manager *manager, domi_promise *promise, uint64_t deadline_ns)
{
    if (!domi_is_lent(manager, house_of(promise))) {
        put_on_wheel(manager, promise, deadline_ns);
        return;
    }
    promise->wheel.expires_ns = deadline_ns;
    promise->noted = true;
    domi_note_add(manager, &promise->node);
}

void domi_promise_carry_out_note(domi_manager *home, domi_promise *promise)
{
    promise->noted = false;
    if (promise->state == DOMI_PROMISE_WAITING)
        put_on_wheel(home, promise, promise->wheel.expires_ns);
    else if (promise->state != DOMI_PROMISE_DONE) /* a DONE promise keeps its answer until that is
                                                     shown */
        domi_stack_free_abandoned(home, promise);
}

void domi_promise_fail(domi_manager *manager, domi_promise *promise, int error)
{
    domi_house *house = house_of(promise);

    DOMI_CHECK(promise->state == DOMI_PROMISE_WAITING && !promise->queued);
    if (promise->noted)
        domi_note_remove(manager, promise);
    if (promise->kind == DOMI_PROMISE_RECEIVE)
        domi_receive_remove(house, promise);
    domi_promise_set_error(promise, error);
    promise->queued = true;
    promise->node.kind = DOMI_EXCEPTION;
    domi_mailbox_append(manager, house, &promise->node, DOMI_EXCEPTION);
}

void domi_promise_expire(domi_manager *manager, domi_wheel_node *node)
{
    domi_promise *promise = (domi_promise *)(void *)((char *)node - offsetof(domi_promise, wheel));

    if (domi_is_away(house_of(promise))) {
        domi_wheel_arm(&manager->deadlines, node, manager->now_ns + DOMI_WHEEL_TICK_NS);
        return;
    }
    promise->timed = false;
    if (promise->state != DOMI_PROMISE_WAITING) { /* it was finished or abandoned by a thief */
        domus_stack *stack = domi_promise_stack(promise);
        stack->away--;
        domi_stack_free_if_done(manager, stack);
        return;
    }
    if (promise->queued) /* its failure is queued already */
        return;
    domi_promise_fail(manager, promise, promise->kind == DOMI_PROMISE_SLEEP ? 0 : -ETIMEDOUT);
}

/* The part of unlink_promise() for a promise that is on the wheel or is no ask. */
static void unlink_rare(domi_manager *manager, domus_stack *stack, domi_promise *promise)
{
    if (promise->timed && domi_is_lent(manager, domi_stack_house(stack)))
        stack->away++; /* home's wheel will look at this stack when the time-out fires */
    else if (promise->timed)
        take_off_wheel(manager, promise);
    if (promise->uncounted)
        domi_stack_house(stack)->asks++; /* because unlink_promise() subtracts every promise */
    promise->uncounted = false;
}

DOMI_INLINE void unlink_promise(domi_manager *manager, domi_promise *promise)
{
    domus_stack *stack = domi_promise_stack(promise);

    DOMI_CHECK(promise->state == DOMI_PROMISE_WAITING);
    DOMI_CHECK_SLOW(promise->uncounted == (promise->kind != DOMI_PROMISE_ASK));
    /* Relaxed: another thread that reads the serial only asks whether the promise is still the one
     * it knew. */
    atomic_store_explicit(&promise->serial, domi_promise_serial(promise) + 1, memory_order_relaxed);
    if (DOMI_UNLIKELY(promise->timed || promise->uncounted))
        unlink_rare(manager, stack, promise);
    if (promise->next != NULL)
        promise->next->previous = promise->previous;
    if (promise->previous != NULL)
        promise->previous->next = promise->next;
    else
        stack->waiting = promise->next;
    stack->pending--;
    domi_stack_house(stack)->asks--;
}

void domi_promise_finish(domi_manager *manager, domi_promise *promise, domi_envelope *message)
{
    unlink_promise(manager, promise);
    promise->state = DOMI_PROMISE_DONE;
    promise->message = message;
}

void domi_promise_close(domi_manager *manager, domi_promise *promise)
{
    unlink_promise(manager, promise);
    if (DOMI_LIKELY(promise->node.slab == DOMI_SLAB_STACK_PROMISE && !promise->noted &&
                    !promise->timed))
        promise->state = DOMI_PROMISE_FREE;
    else
        domi_promise_release(manager, promise);
}

void domi_promise_abandon(domi_manager *manager, domi_promise *promise)
{
    if (promise->kind == DOMI_PROMISE_RECEIVE && !promise->queued)
        domi_receive_remove(domi_stack_house(domi_promise_stack(promise)), promise);
    unlink_promise(manager, promise);
    domi_promise_release(manager, promise);
}

void domi_promise_release(domi_manager *manager, domi_promise *promise)
{
    if (promise->queued || promise->noted) {
        promise->state = DOMI_PROMISE_DEAD;
        return;
    }
    /* home has to take it off its wheel */
    if (promise->timed && domi_is_lent(manager, house_of(promise))) {
        promise->state = DOMI_PROMISE_DEAD;
        promise->noted = true;
        domi_note_add(manager, &promise->node);
        return;
    }
    if (promise->timed) { /* a thief finished it, and its house is at home again */
        take_off_wheel(manager, promise);
        domi_promise_stack(promise)->away--;
    }
    if (promise->node.slab == DOMI_SLAB_STACK_PROMISE)
        promise->state = DOMI_PROMISE_FREE;
    else
        domi_pool_free(manager, &promise->node);
}
