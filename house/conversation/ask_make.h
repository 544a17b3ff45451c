/* Makes asks: an envelope and a promise for each. The caller chooses the function that puts the
 * ask. All functions of this file are inlined, so that an ask without a time-out or a tag does not
 * pay for these, and the promise comes back in a register. The thread that runs the house of the
 * stack calls them. */
#ifndef DOMI_HOUSE_CONVERSATION_ASK_MAKE_H
#define DOMI_HOUSE_CONVERSATION_ASK_MAKE_H

#include "base/check.h"
#include "house/conversation/stack.h"
#include "house/message/pool.h"
#include "house/message/sign.h"

#include <errno.h>

/* Returns the deadline of an ask that a conversation makes now: its own time-out, or the deadline
 * of the ask that this conversation handles, whichever comes first; 0: no deadline. */
static inline uint64_t domi_ask_deadline_of_new_ask(const domus_stack *stack, uint64_t timeout_ns)
{
    uint64_t inherited_ns = domi_stack_deadline_ns(stack);
    uint64_t own_ns = 0;

    if (timeout_ns != 0) {
        own_ns = stack->manager->now_ns + timeout_ns;
        own_ns = domi_deadline_round_up_for_marks(own_ns < timeout_ns ? UINT64_MAX : own_ns);
    }
    if (own_ns == 0 || (inherited_ns != 0 && inherited_ns < own_ns))
        return inherited_ns;
    return own_ns;
}

/* The function that puts an ask, as its maker has chosen; `node` is the ask, `context` comes from
 * the maker. Returns 0; a negative errno, and then the node still belongs to the caller. The
 * compiler inlines it with its call. */
typedef int domi_ask_put(domi_manager *manager, domus_address to, domi_node *node, void *context);

/* Make an ask for `to` and put it by `put`; `to` may be nobody if `put` finds the actor itself.
 * Returns 0, also if the put was refused, because the promise then fails; else a negative errno as
 * domus_ask() does. */
DOMI_INLINE int domi_ask_make_and_put(domus_stack *stack, domus_address to, const domus_type *type,
                                      const void *payload, uint64_t timeout_ns, uint64_t tag,
                                      domi_ask_put *put, void *context, domi_promise **ret_promise)
{
    domi_manager *manager = stack->manager;
    domi_house *house = domi_stack_get_house(stack);
    domi_promise *promise;

    if (DOMI_UNLIKELY(type->size > DOMUS_PAYLOAD_MAX))
        return -EMSGSIZE;
    domi_envelope *envelope = domi_message_new(manager, DOMI_ASK_HEAD + type->size);
    if (DOMI_UNLIKELY(envelope == NULL))
        return domi_message_error_of_failed_new(manager);
    int error = domi_stack_add_promise(stack, DOMI_PROMISE_ASK, &promise);
    if (DOMI_UNLIKELY(error != 0)) {
        domi_pool_free_object(manager, &envelope->node);
        return error;
    }

    uint64_t deadline_ns = domi_ask_deadline_of_new_ask(stack, timeout_ns);
    promise->answer.tag = tag;
    promise->wait.asked = type;
    promise->target = to;
    domi_envelope_set_type_and_sender(envelope, type, house);
    *domi_envelope_get_return_of_ask(envelope) = (domi_return){
        .promise = promise,
        .serial = domi_promise_serial(promise),
        .until = deadline_ns,
    };
    domi_payload_copy((char *)envelope + DOMI_ASK_HEAD, payload, type->size);
    if (deadline_ns != 0)
        domi_promise_arm_deadline(manager, promise, deadline_ns);

    error = put(manager, to, &envelope->node, context);
    if (DOMI_UNLIKELY(error != 0)) {
        if (type->release != NULL)
            type->release((char *)envelope + DOMI_ASK_HEAD);
        domi_pool_free_object(manager, &envelope->node);
        domi_promise_fail(manager, promise, error);
    }
    *ret_promise = promise;
    return 0;
}

#endif
