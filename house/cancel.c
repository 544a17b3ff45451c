/* What runs along a chain of asks: a cancel, towards those who were asked, and the question whether
 * an ask would wait for itself, towards those who asked. */
#include "house/ask.h"
#include "house/mailbox.h"
#include "house/pool.h"
#include "house/receive.h"

#include <errno.h>
#include <string.h>

const domus_type domi_cancel_type = {.name = "cancel", .size = sizeof(domi_return)};

#define CHAIN_MAX 1024 /* asks in one chain that are looked at */

/* Tell who works on an ask that nobody waits for it any more. Without memory he is not told. */
static void cancel_ask(domi_manager *manager, const domi_promise *promise)
{
    domi_envelope *envelope = domi_envelope_new(manager, sizeof(domi_envelope));
    const domi_return what = {.promise = (domi_promise *)(uintptr_t)promise,
                              .serial = domi_promise_serial(promise)};

    if (envelope == NULL)
        return;
    envelope->type = &domi_cancel_type;
    envelope->sender = NULL;
    memcpy(envelope->payload, &what, sizeof what);
    if (domi_mailbox_put(manager, promise->target, &envelope->node, DOMI_EVENT) != 0)
        domi_pool_free(manager, &envelope->node);
}

void domi_stack_cancel(domi_manager *manager, domus_stack *stack, int error)
{
    domi_counter_add(&manager->counters.cancels, 1);
    if (stack->wait == DOMI_WAIT_KEPT) {
        domi_ask_fail(manager, stack->ask, error);
        domi_stack_kept_end(manager, stack);
        return;
    }
    stack->cancelled = true;
    for (domi_promise *promise = stack->waiting; promise != NULL; promise = promise->next) {
        if (promise->kind == DOMI_PROMISE_ASK && promise->target.house != NULL)
            cancel_ask(manager, promise);
        if (promise->kind == DOMI_PROMISE_BLOCKING && !manager->withdraw(manager, promise))
            continue; /* it runs: its end is waited for, because it uses what it was given */
        if (!promise->queued)
            domi_promise_fail(manager, promise, -ECANCELED);
    }
}

void domi_stack_cancel_all(domi_manager *manager, domi_house *house)
{
    domus_stack *next;

    for (domus_stack *stack = house->stacks; stack != NULL; stack = next) {
        next = stack->next;
        if (!stack->cancelled)
            domi_stack_cancel(manager, stack, -ESTALE);
    }
}

bool domi_stack_in_chain(const domi_return *back, const domus_stack *holder)
{
    domi_promise *promise = back->promise;
    uint32_t serial = back->serial;

    /* Everyone in the chain is parked on the next one, so what is read here stands still; where it
     * does not, because somebody has given up, a serial differs, and nobody waits any more.
     * acquire: pairs with set_parent(). */
    for (int i = 0; i < CHAIN_MAX && promise != NULL; i++) {
        const domus_stack *stack = domi_promise_stack(promise);
        if (stack == NULL || domi_promise_serial(promise) != serial)
            return false;
        if (stack == holder)
            return true;
        domi_promise *parent = atomic_load_explicit(
            (_Atomic(domi_promise *) *)(uintptr_t)&stack->parent, memory_order_acquire);
        uint32_t parent_serial = atomic_load_explicit(
            (_Atomic uint32_t *)(uintptr_t)&stack->parent_serial, memory_order_relaxed);
        if (domi_promise_serial(promise) != serial)
            return false;
        promise = parent;
        serial = parent_serial;
    }
    return false;
}

static bool is_of(const domi_envelope *ask, const domi_return *what)
{
    const domi_return *back = domi_envelope_return((domi_envelope *)(uintptr_t)ask);

    return back->promise == what->promise && back->serial == what->serial;
}

void domi_ask_cancelled(domi_manager *manager, domi_house *house, const domi_return *what)
{
    for (domus_stack *stack = house->stacks; stack != NULL; stack = stack->next) {
        if (stack->ask != NULL && is_of(stack->ask, what)) {
            if (!stack->cancelled)
                domi_stack_cancel(manager, stack, -ECANCELED);
            return;
        }
    }
    domi_node *node = house->tails[DOMI_ASK];
    for (uint32_t i = house->mail; node != NULL && i != 0; i--) {
        domi_envelope *ask = (domi_envelope *)(void *)node->next;
        if (is_of(ask, what)) {
            domi_list_take_next(&house->tails[DOMI_ASK], node);
            house->mail--;
            domi_receive_reset(house);
            domi_counter_add(&manager->counters.cancels, 1);
            domi_mailbox_dead(manager, &ask->node, -ECANCELED);
            return;
        }
        node = node->next;
    }
}
