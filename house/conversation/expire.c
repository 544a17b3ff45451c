/* Time-outs of promises, on home's wheel `deadlines`. Home lets promises fail whose time is over,
 * and carries out what thieves noted for the wheel (notes.h). Only home runs these functions, while
 * no thief has the house. */
#include "house/conversation/notes.h"
#include "house/conversation/stack.h"

#include <errno.h>

/* Free a promise that was given up while its house was lent. */
static void free_abandoned(domi_manager *home, domi_promise *promise)
{
    domus_stack *stack = domi_promise_stack(promise);
    /* A pooled promise that is not on home's wheel does not keep its stack, which may be gone. */
    bool held = promise->node.slab == DOMI_SLAB_STACK_PROMISE || promise->timed;

    domi_promise_release(home, promise);
    if (held)
        domi_stack_free_if_done(home, stack);
}

void domi_promise_carry_out_note(domi_manager *home, domi_promise *promise)
{
    promise->noted = false;
    if (promise->state == DOMI_PROMISE_WAITING)
        domi_promise_put_on_wheel(home, promise, promise->wheel.expires_ns);
    else if (promise->state == DOMI_PROMISE_DEAD) /* a DONE one keeps its answer until that is shown
                                                   */
        free_abandoned(home, promise);
}

static domi_promise *promise_of(domi_wheel_node *node)
{
    return (domi_promise *)(void *)((char *)node - offsetof(domi_promise, wheel));
}

domi_house *domi_promise_house(domi_wheel_node *node)
{
    return domi_stack_house(domi_promise_stack(promise_of(node)));
}

void domi_promise_postpone(domi_manager *manager, domi_wheel_node *node)
{
    domi_wheel_arm(&manager->timing.deadlines, node, (manager->now_ns + DOMI_WHEEL_TICK_NS) | 1);
}

bool domi_promise_is_late(const domi_promise *promise)
{
    return promise->timed && (promise->wheel.expires_ns & 1) != 0;
}

void domi_promise_expire(domi_manager *manager, domi_wheel_node *node)
{
    domi_promise *promise = promise_of(node);

    if (domi_is_away(domi_promise_house(node))) {
        domi_promise_postpone(manager, node);
        return;
    }
    promise->timed = false;
    if (promise->state == DOMI_PROMISE_FAILED) /* the promise's failure is queued already */
        return;
    if (promise->state == DOMI_PROMISE_WAITING) {
        domi_promise_fail(manager, promise, promise->kind == DOMI_PROMISE_SLEEP ? 0 : -ETIMEDOUT);
        return;
    }
    /* a thief finished or abandoned the promise */
    domus_stack *stack = domi_promise_stack(promise);
    stack->away--;
    domi_stack_free_if_done(manager, stack);
}
