/* Time-outs of promises, on home's wheel `deadlines`. Home lets promises fail when their time is
 * over, and carries out the notes that thieves made for this wheel (notes.h). Only home runs these
 * functions, while no thief has the house. */
#include "house/conversation/notes.h"
#include "house/conversation/stack.h"

#include <errno.h>

/* Free a promise that its stack abandoned while the house was lent. */
static void free_abandoned_promise(domi_manager *home, domi_promise *promise)
{
    domus_stack *stack = domi_promise_get_stack(promise);
    /* A promise from the slab that is not on home's wheel does not keep its stack from being freed,
     * so the stack may be gone already. */
    bool held = promise->node.slab == DOMI_SLAB_STACK_PROMISE || promise->timed;

    domi_promise_release(home, promise);
    if (held)
        domi_stack_free_if_done(home, stack);
}

void domi_promise_carry_out_note_of_thief(domi_manager *home, domi_promise *promise)
{
    promise->noted = false;
    if (promise->state == DOMI_PROMISE_WAITING)
        domi_promise_put_on_wheel(home, promise, promise->wheel.expires_ns);
    /* a DONE promise keeps its answer until a handler is shown it */
    else if (promise->state == DOMI_PROMISE_DEAD)
        free_abandoned_promise(home, promise);
}

static domi_promise *get_promise_of_wheel_node(domi_wheel_node *node)
{
    return (domi_promise *)(void *)((char *)node - offsetof(domi_promise, wheel));
}

domi_house *domi_promise_house_of_wheel_node(domi_wheel_node *node)
{
    return domi_stack_get_house(domi_promise_get_stack(get_promise_of_wheel_node(node)));
}

void domi_promise_postpone_to_next_tick(domi_manager *manager, domi_wheel_node *node)
{
    domi_wheel_arm_node(&manager->timing.deadlines, node,
                        (manager->now_ns + DOMI_WHEEL_TICK_NS) | 1);
}

bool domi_promise_is_postponed(const domi_promise *promise)
{
    return promise->timed && (promise->wheel.expires_ns & 1) != 0;
}

void domi_promise_fail_at_deadline(domi_manager *manager, domi_wheel_node *node)
{
    domi_promise *promise = get_promise_of_wheel_node(node);

    if (domi_house_may_be_with_thief(domi_promise_house_of_wheel_node(node))) {
        domi_promise_postpone_to_next_tick(manager, node);
        return;
    }
    promise->timed = false;
    /* the promise has failed before, and its node is in the exception mailbox already */
    if (promise->state == DOMI_PROMISE_FAILED)
        return;
    if (promise->state == DOMI_PROMISE_WAITING) {
        domi_promise_fail(manager, promise, promise->kind == DOMI_PROMISE_SLEEP ? 0 : -ETIMEDOUT);
        return;
    }
    /* A thief has finished or abandoned the promise, and only the wheel still held it, so the stack
     * may be freed now. */
    domus_stack *stack = domi_promise_get_stack(promise);
    stack->away--;
    domi_stack_free_if_done(manager, stack);
}
