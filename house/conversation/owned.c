/* Taking what payloads own; see the header and domus/actor.h. */
#include "house/conversation/owned.h"

#include "base/check.h"
#include "house/conversation/stack.h"
#include "house/conversation/timer.h"

#include <errno.h>

void domi_envelope_release_owned(domi_envelope *message)
{
    if (message->node.slab == DOMI_SLAB_SHARED || domi_envelope_is_taken(message))
        return;
    message->type->release(domi_envelope_payload(message));
}

/* What a periodic timer owns is there again for its next tick. */
static int take_of_timer(domi_timer *timer)
{
    if (timer->period_ns != 0)
        return -EPERM;
    if (timer->taken)
        return -EALREADY;
    timer->taken = true;
    return 0;
}

int domi_envelope_take(domi_envelope *message)
{
    if (message->type == NULL) /* an exception */
        return -EINVAL;
    if (message->node.slab == DOMI_SLAB_TIMER)
        return take_of_timer((domi_timer *)(void *)message);
    if (domi_node_is_embedded(&message->node))
        return -EPERM;
    if (domi_envelope_is_taken(message))
        return -EALREADY;
    message->node.lease = DOMI_LEASE_TAKEN;
    return 0;
}

/* --- the answers of a step that waited for all --------------------------------------------------
 */

static bool is_shared(const domi_promise *promise)
{
    return promise->message != NULL && promise->message->node.slab == DOMI_SLAB_SHARED;
}

/* All or nothing. */
static int take_all(domi_promise *shown)
{
    int result = -EINVAL;

    for (domi_promise *promise = shown; promise != NULL;
         promise = domi_promise_next_answer(promise)) {
        if (is_shared(promise))
            return -EPERM;
    }
    for (domi_promise *promise = shown; promise != NULL;
         promise = domi_promise_next_answer(promise)) {
        int error = promise->message != NULL ? domi_envelope_take(promise->message) : -EINVAL;
        if (error == 0 || (error == -EALREADY && result != 0))
            result = error;
    }
    return result;
}

/* --- what a handler has ------------------------------------------------------------------------
 */

/* What it was shown last; NULL: nothing, or it is gone. */
static domi_envelope *shown_message(const domus_stack *stack)
{
    return stack->received != NULL ? stack->received : stack->message;
}

int domus_take(domus_stack *stack)
{
    domi_envelope *message = shown_message(stack);

    return message != NULL ? domi_envelope_take(message) : take_all(stack->manager->shown);
}

/* Among `promise` and what comes behind it, up to but not including `end`. */
static domi_promise *find(domi_promise *promise, const domi_promise *end,
                          const domus_answer *answer)
{
    while (promise != end && &promise->answer != answer)
        promise = domi_promise_next_answer(promise);
    return promise != end ? promise : NULL;
}

/* A step that takes one answer after the other has each found at once: the walk begins where the
 * last one ended. */
static domi_promise *find_shown(domi_manager *manager, const domus_answer *answer)
{
    domi_promise *from = manager->shown_last != NULL ? manager->shown_last : manager->shown;
    domi_promise *found = find(from, NULL, answer);

    if (found == NULL)
        found = find(manager->shown, from, answer);
    if (found != NULL)
        manager->shown_last = found;
    return found;
}

int domus_take_answer(domus_stack *stack, const domus_answer *answer)
{
    if (stack->manager->shown == NULL) /* one was shown; what was received since is another one */
        return stack->message != NULL ? domi_envelope_take(stack->message) : -EINVAL;
    const domi_promise *promise = find_shown(stack->manager, answer);
    if (promise == NULL || promise->message == NULL)
        return -EINVAL;
    return domi_envelope_take(promise->message);
}
