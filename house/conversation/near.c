/* The short forms of domus_ask() and domus_reply(): for a small message by the home lane, in a
 * conversation without anything unusual. They need no function call, so all conditions that may
 * need one are checked before anything is changed. ask.c and answer.c explain the single steps. */
#include "house/conversation/asks.h"

#include "base/check.h"
#include "house/conversation/stack.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "house/message/sign.h"

/* True if an ask of this conversation may take the short form: it waits in a pooled stack already,
 * may wait for one more promise, has no ask to answer, and its first promise is free. */
DOMI_INLINE bool may_ask_take_fast_path(const domus_stack *stack)
{
    return stack->pooled == stack && stack->ask == NULL &&
           stack->first.state == DOMI_PROMISE_FREE && !stack->cancelled &&
           (domi_stack_get_house(stack)->marks & (DOMI_MARK_STOPPING | DOMI_MARK_RESTART)) == 0;
}

/* True if a payload of `size` bytes fits into an envelope of 128 bytes and is copied without a
 * function call. */
DOMI_INLINE bool is_payload_copied_without_call(uint32_t size)
{
    /* false for a payload of 0 bytes, too, because such an ask has an envelope of only 64 bytes */
    return size - 1 < DOMI_PAYLOAD_FEW;
}

int domus_ask(domus_stack *stack, domus_address to, const domus_type *type, const void *payload,
              domus_resumed *then)
{
    domi_manager *manager = stack->manager;

    if (DOMI_UNLIKELY(!may_ask_take_fast_path(stack) ||
                      !is_payload_copied_without_call(type->size) ||
                      !domi_mailbox_is_home_lane_open(manager, to, DOMI_ASK) ||
                      (to.house->marks & DOMI_MARKS_HOLD) != 0 ||
                      !domi_pool_has_free_envelope_in_slab(manager, DOMI_SLAB_128)))
        return domi_ask_by_slow_path(stack, to, type, payload, then);

    domi_envelope *envelope = domi_pool_take_object(manager, DOMI_SLAB_128);
    domi_promise *promise = &stack->first;
    domi_promise_begin_wait_for_answer(manager, stack, type, to);
    envelope->node.lease = to.lease;
    envelope->node.kind = DOMI_ASK;
    domi_envelope_set_type_and_sender(envelope, type, domi_stack_get_house(stack));
    domi_return *back = domi_envelope_get_return_of_ask(envelope);
    back->promise = promise;
    back->serial = domi_promise_serial(promise);
    back->note = 0;
    back->until = 0;
    domi_payload_copy_few_bytes((char *)envelope + DOMI_ASK_HEAD, payload, type->size);
    domi_mailbox_append_unheld_node(manager, to.house, &envelope->node, DOMI_ASK);
    domi_stack_set_wait(stack, DOMI_WAIT_ONE, promise, then);
    return DOMUS_PARKED;
}

/* True if a reply of `type` may take the short form: the ask came from another actor, owns nothing,
 * and the reply fits into its envelope. */
DOMI_INLINE bool may_reply_take_fast_path(const domus_stack *stack, const domi_envelope *ask,
                                          const domus_type *type)
{
    return ask->node.slab == DOMI_SLAB_128 && type->size <= DOMI_PAYLOAD_FEW &&
           ask->type->release == NULL && ask->sender != domi_stack_get_house(stack);
}

int domus_reply(domus_stack *stack, const domus_type *type, const void *payload)
{
    domi_manager *manager = stack->manager;
    domi_envelope *ask = stack->ask;

    if (DOMI_UNLIKELY(ask == NULL || stack->received != NULL ||
                      !may_reply_take_fast_path(stack, ask, type)))
        return domi_reply_by_slow_path(stack, type, payload);
    domus_address asker = {ask->sender, ask->sender_lease};
    if (DOMI_UNLIKELY(!domi_mailbox_is_home_lane_open(manager, asker, DOMI_REPLY)))
        return domi_reply_by_slow_path(stack, type, payload);

    domi_stack_let_ask_leave(stack, ask);
    ask->node.lease = asker.lease;
    ask->node.kind = DOMI_REPLY;
    /* The reply may be made from the ask's own payload, so the copied bytes and their new place may
     * overlap. */
    domi_payload_copy_few_bytes((char *)ask + DOMI_ASK_HEAD, payload, type->size);
    domi_envelope_set_type_and_sender(ask, type, domi_stack_get_house(stack));
    domi_mailbox_append_unheld_node(manager, asker.house, &ask->node, DOMI_REPLY);
    return 0;
}
