/* Makes promises for requests of a channel's peer, and ends the conversations of a channel when its
 * peer is gone. */
#include "house/conversation/asks.h"

#include "house/message/sign.h"

#include <errno.h>

void domi_ask_make_request_of_peer(domi_envelope *ask, const domus_type *type,
                                   const domi_house *house, uint32_t number, uint64_t deadline_ns)
{
    domi_envelope_set_type_and_sender(ask, type, house);
    *domi_envelope_get_return_of_ask(ask) =
        (domi_return){.serial = number, .until = domi_deadline_round_up_for_marks(deadline_ns)};
}

int domi_ask_make_promise_for_peer_request(domi_manager *manager, domi_house *house,
                                           domi_envelope *ask, domus_stack **holder)
{
    domi_return *back = domi_envelope_get_return_of_ask(ask);

    if (back->promise != NULL)
        return 0;
    if (*holder == NULL) {
        *holder = domi_stack_new(manager, house, 0);
        if (*holder == NULL)
            return -ENOMEM;
        (*holder)->wait = DOMI_WAIT_PEER;
    }
    domi_promise *promise = domi_promise_new(manager, *holder, DOMI_PROMISE_PEER);
    if (promise == NULL)
        return -ENOMEM;
    domi_promise_take_out_of_ask_count(promise);
    promise->answer.tag = back->serial;
    promise->wait.asked = ask->type;
    promise->target = (domus_address){NULL, 0};
    ask->error = (int32_t)back->serial;
    back->promise = promise;
    back->serial = domi_promise_serial(promise);
    back->note = DOMI_NOTE_OF_PEER;
    uint64_t deadline_ns = domi_envelope_deadline_ns(ask);
    if (deadline_ns != 0)
        domi_promise_arm_deadline(manager, promise, deadline_ns);
    return 0;
}

int domi_ask_find_request_of_peer(domi_envelope *ask, domus_address *ret_channel,
                                  uint32_t *ret_number)
{
    const domi_return *back = domi_envelope_get_return_of_ask(ask);

    if (back->promise != NULL && back->note != DOMI_NOTE_OF_PEER)
        return -EINVAL;
    *ret_channel = (domus_address){ask->sender, ask->sender_lease};
    *ret_number = back->promise != NULL ? (uint32_t)ask->error : back->serial;
    return 0;
}

bool domi_stack_cancel_when_peer_is_gone(domi_manager *manager, domi_house *house)
{
    domus_stack *next;
    bool any = false;

    for (domus_stack *stack = house->stacks; stack != NULL; stack = next) {
        next = stack->next;
        any = any || stack->outlives;
        if (!stack->outlives && !stack->cancelled)
            domi_stack_cancel_conversation(manager, stack, -ESTALE);
    }
    return any;
}

/* True if the conversation was begun by something that the channel's peer has sent. */
static bool was_conversation_begun_by_peer(const domi_house *house, const domus_stack *stack)
{
    return (stack->away & DOMI_STACK_COUNTED) != 0 ||
           (stack->ask != NULL && domi_ask_is_of_peer(stack->ask, house));
}

/* Returns a conversation of `house` that keeps a request of the channel's peer, does not work for
 * it (domus_keep_working()) and does not outlive the connection; NULL: there is none. */
static domus_stack *find_kept_request_of_peer(const domi_house *house)
{
    for (domus_stack *stack = house->stacks; stack != NULL; stack = stack->next) {
        if (stack->wait == DOMI_WAIT_KEPT && !stack->outlives && !stack->works &&
            was_conversation_begun_by_peer(house, stack))
            return stack;
    }
    return NULL;
}

void domi_stack_cancel_kept_requests_of_peer(domi_manager *manager, domi_house *house,
                                             domus_stack *holder)
{
    domus_stack *kept;

    if (holder != NULL)
        domi_stack_cancel_kept_asks(manager, holder);
    for (domus_stack *stack = house->stacks; stack != NULL; stack = stack->next) {
        if (stack->wait != DOMI_WAIT_KEPT && !stack->outlives &&
            was_conversation_begun_by_peer(house, stack))
            domi_stack_cancel_kept_asks(manager, stack);
    }
    /* The answer to one kept request may end the channel, and with it the other kept requests, so
     * the search begins anew after each cancel. */
    while ((kept = find_kept_request_of_peer(house)) != NULL)
        domi_stack_cancel_conversation(manager, kept, -ECANCELED);
}
