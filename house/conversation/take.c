/* Implements domus_take() and domus_take_answer(): a handler takes over what the payload of a
 * message owns (domus/actor.h). */
#include "house/conversation/take.h"

#include "base/check.h"
#include "house/conversation/stack.h"
#include "house/conversation/timer.h"
#include "house/message/owned.h"

#include <errno.h>

/* Take over what the payload of a timer owns; -EPERM for a periodic timer, which needs the payload
 * for its next event. */
static int take_payload_of_timer(domi_timer *timer)
{
    if (timer->period_ns != 0)
        return -EPERM;
    if (timer->taken)
        return -EALREADY;
    timer->taken = true;
    return 0;
}

int domi_envelope_take_payload(domi_envelope *message)
{
    if (message->type == NULL) /* an exception has no type and owns nothing */
        return -EINVAL;
    if (message->node.slab == DOMI_SLAB_TIMER)
        return take_payload_of_timer((domi_timer *)(void *)message);
    if (domi_node_is_embedded(&message->node))
        return -EPERM;
    if (domi_envelope_is_payload_taken(message))
        return -EALREADY;
    message->node.lease = DOMI_LEASE_TAKEN;
    return 0;
}

/* --- the answers of a wait for all --------------------------------------------------------- */

static bool is_payload_of_answer_shared(const domi_promise *promise)
{
    return promise->message != NULL && promise->message->node.slab == DOMI_SLAB_SHARED;
}

/* Take over what all shown answers own, or nothing if one of the answers has a shared payload. */
static int take_payloads_of_all_answers(domi_promise *shown)
{
    int result = -EINVAL;

    for (domi_promise *promise = shown; promise != NULL;
         promise = domi_promise_of_next_answer(promise)) {
        if (is_payload_of_answer_shared(promise))
            return -EPERM;
    }
    for (domi_promise *promise = shown; promise != NULL;
         promise = domi_promise_of_next_answer(promise)) {
        int error =
            promise->message != NULL ? domi_envelope_take_payload(promise->message) : -EINVAL;
        if (error == 0 || (error == -EALREADY && result != 0))
            result = error;
    }
    return result;
}

/* --- the message that a handler is shown ---------------------------------------------------- */

/* Returns the message that the handler was shown last; NULL: none, or it has left the handler. */
static domi_envelope *get_shown_message(const domus_stack *stack)
{
    return stack->received != NULL ? stack->received : stack->message;
}

/* Copy the slices of a message of a channel's peer, because the new owner may give them to another
 * thread and they show bytes of the receive buffer. Returns 0; -ENOMEM. */
static int copy_slices_of_peers_message(const domus_stack *stack, domi_envelope *message)
{
    domi_house *house = domi_stack_get_house(stack);

    if (DOMI_LIKELY(!domi_house_is_channel(house)) || domi_node_is_embedded(&message->node) ||
        message->node.slab == DOMI_SLAB_TIMER || message->sender != house)
        return 0;
    int error = stack->manager->io_hooks.release_message(stack->manager, house, message, false);
    /* the handler of a closed connection has no message to copy */
    return error != -ENOTCONN ? error : 0;
}

int domus_take(domus_stack *stack)
{
    domi_envelope *message = get_shown_message(stack);

    if (message == NULL)
        return take_payloads_of_all_answers(stack->manager->shown.first);
    int error = copy_slices_of_peers_message(stack, message);
    return error != 0 ? error : domi_envelope_take_payload(message);
}

/* Find the promise that has `answer` among `promise` and the promises behind it, up to but not
 * including `end`. */
static domi_promise *find_promise_of_answer(domi_promise *promise, const domi_promise *end,
                                            const domus_answer *answer)
{
    while (promise != end && &promise->answer != answer)
        promise = domi_promise_of_next_answer(promise);
    return promise != end ? promise : NULL;
}

/* Find the promise of a shown answer. A function that takes one answer after the other finds each
 * at once, because the search begins where the last one ended. */
static domi_promise *find_promise_of_shown_answer(domi_manager *manager, const domus_answer *answer)
{
    domi_promise *from = manager->shown.last != NULL ? manager->shown.last : manager->shown.first;
    domi_promise *found = find_promise_of_answer(from, NULL, answer);

    if (found == NULL)
        found = find_promise_of_answer(manager->shown.first, from, answer);
    if (found != NULL)
        manager->shown.last = found;
    return found;
}

int domus_take_answer(domus_stack *stack, const domus_answer *answer)
{
    /* the function was shown one answer, so `message` holds that; `received` would be a later
     * message */
    if (stack->manager->shown.first == NULL)
        return stack->message != NULL ? domi_envelope_take_payload(stack->message) : -EINVAL;
    const domi_promise *promise = find_promise_of_shown_answer(stack->manager, answer);
    if (promise == NULL || promise->message == NULL)
        return -EINVAL;
    return domi_envelope_take_payload(promise->message);
}
