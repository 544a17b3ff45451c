/* Finds circles of asks: a walk follows a chain of asks from the asked actor back to the askers,
 * and sees whether an ask would wait for itself. */
#include "house/conversation/asks.h"

#include "house/conversation/stack.h"
#include "house/message/mailbox.h"
#include "house/message/order.h"

#include <errno.h>

#define CHAIN_MAX 1024 /* most asks that one walk over a chain looks at */

/* A walk over a chain of asks reads what other threads write at the same time: the stack of each
 * promise, and that stack's parent and parent serial. The walk believes what it read only if the
 * promise still has the serial that the walk came with. It looks at the serial last, and that is
 * enough on every machine, also where loads and stores pass each other (ARM):
 *
 * 1. The thread that ends a wait changes the serial first. Only then is the stack used for another
 *    wait, and `stack`, `parent` or `parent_serial` get another value, each by a release store,
 *    perhaps by another thread that got the memory through a pool.
 * 2. The walk reads these three by acquire loads. If one of them shows a later value, the change of
 *    the serial happened before, and the look at the serial that follows shows it.
 *
 * A chain that has not changed is read as it is: every conversation in it is parked on the next
 * one. The serial itself is read relaxed, because nothing is read through it. models/walk.pml is a
 * model of this. */
static domus_stack *get_stack_of_promise(const domi_promise *promise)
{
    /* acquire: pairs with the release in domi_promise_new(). */
    return atomic_load_explicit((_Atomic(domus_stack *) *)(uintptr_t)&promise->stack,
                                memory_order_acquire);
}

bool domi_stack_was_ask_made_for(const domi_return *back, const domus_stack *holder)
{
    domi_promise *promise = back->promise;
    uint32_t serial = back->serial;

    for (int i = 0; i < CHAIN_MAX && promise != NULL; i++) {
        const domus_stack *stack = get_stack_of_promise(promise);
        if (stack == NULL || domi_promise_serial(promise) != serial)
            return false;
        if (stack == holder)
            return true;
        /* acquire: these two loads pair with the releases in record_promise_of_asker(). */
        domi_promise *parent = atomic_load_explicit(
            (_Atomic(domi_promise *) *)(uintptr_t)&stack->parent, memory_order_acquire);
        uint32_t parent_serial = atomic_load_explicit(
            (_Atomic uint32_t *)(uintptr_t)&stack->parent_serial, memory_order_acquire);
        if (domi_promise_serial(promise) != serial)
            return false;
        promise = parent;
        serial = parent_serial;
    }
    return false;
}

/* --- behind a barrier ---------------------------------------------------------------------- */

/* Let the ask that follows `before` in the list `tail` fail with -EDEADLK, because it would wait
 * for the conversation that it was made for. The asker itself caused this, so the ask is no dead
 * letter. */
static void fail_ask_that_waits_for_itself(domi_manager *manager, domi_house *house,
                                           domi_node **tail, domi_node *before)
{
    domi_envelope *ask = (domi_envelope *)(void *)before->next;

    domi_list_take_node_behind(tail, before);
    house->mail--;
    domi_mailbox_let_receives_look_again(house);
    domi_counter_add(&manager->counters.circles, 1);
    domi_ask_fail(manager, ask, -EDEADLK);
}

bool domi_circle_fail_ask_if_in_circle(domi_manager *manager, domi_house *house, domi_node *ask)
{
    const domus_stack *holder = house->stacks;

    /* The holder of the barrier is the first parked conversation. Before it parks it is not in the
     * list; domi_circle_fail_waiting_asks() then checks the asks when it parks. */
    if (holder == NULL || !holder->barrier ||
        !domi_stack_was_ask_made_for(domi_envelope_get_return_of_ask((domi_envelope *)(void *)ask),
                                     holder))
        return true;
    domi_node *before = ask;
    while (before->next != ask)
        before = before->next;
    fail_ask_that_waits_for_itself(manager, house, &house->tails[DOMI_ASK], before);
    return false;
}

/* Let all asks in the mailbox list `tail` fail that were made for the conversation `holder`.
 * Returns the number of failed asks. `mixed`, a constant in each call, says that notices are in the
 * list, too. */
DOMI_INLINE uint32_t fail_asks_made_for_holder(domi_manager *manager, domi_house *house,
                                               domi_node **tail, const domus_stack *holder,
                                               bool mixed)
{
    domi_node *before = *tail;
    const domi_node *last = before;
    bool more = before != NULL;
    uint32_t failed = 0;

    while (more) {
        domi_node *node = before->next;

        more = node != last;
        if (!(mixed && node->kind != DOMI_ASK) &&
            domi_stack_was_ask_made_for(
                domi_envelope_get_return_of_ask((domi_envelope *)(void *)node), holder)) {
            fail_ask_that_waits_for_itself(manager, house, tail, before);
            failed++;
        } else {
            before = node;
        }
    }
    return failed;
}

void domi_circle_fail_waiting_asks(domi_manager *manager, domi_house *house,
                                   const domus_stack *holder)
{
    domi_strand *strand;
    uint32_t failed = 0;

    (void)fail_asks_made_for_holder(manager, house, &house->tails[DOMI_ASK], holder, false);
    if (!domi_house_is_ordered(house))
        return;
    for (uint32_t i = 0; (strand = domi_order_get_strand(house, i)) != NULL; i++) {
        uint32_t count = fail_asks_made_for_holder(manager, house, &strand->tail, holder, true);
        strand->count -= count;
        failed += count;
    }
    if (failed != 0)
        domi_order_correct_strands_after_walk(house);
}
