/* Ends asks that leave in parts (owed.h). The start of such an ask is a plain ask (ask.c). */
#include "house/conversation/owed.h"

#include "house/message/mailbox.h"
#include "house/message/owned.h"
#include "house/message/sign.h"

#include <errno.h>

int domi_ask_check_under_way(const domus_stack *stack, domi_asking asking)
{
    const domus_stack *pooled = stack->pooled;
    int error = domi_stack_check_may_wait(stack);

    if (error != 0 || pooled == NULL)
        return error != 0 ? error : -ENOENT;
    for (const domi_promise *at = pooled->waiting; at != NULL; at = at->next) {
        if (at == asking.promise && domi_promise_serial(at) == asking.serial)
            return 0;
    }
    /* an answer that has come, and was not shown to a handler yet, counts too: it has made the
     * promise's serial greater by 1 */
    for (const domi_promise *at = pooled->answers; at != NULL;
         at = domi_promise_of_next_answer(at)) {
        if (at == asking.promise && domi_promise_serial(at) == asking.serial + 1)
            return 0;
    }
    return -ENOENT;
}

int domi_ask_put_last_part_and_wait(domus_stack *stack, domi_asking asking, domus_address to,
                                    const domus_type *type, const void *payload,
                                    domus_resumed *then)
{
    domi_manager *manager = stack->manager;
    domi_envelope *envelope = domi_message_new(manager, DOMI_ASK_HEAD + type->size);

    if (envelope == NULL)
        return domi_message_error_of_failed_new(manager);
    domi_envelope_set_type_and_sender(envelope, type, domi_stack_get_house(stack));
    /* The last part names the promise with a serial that is over, so if this part fails on its way,
     * that counts as a late answer; the answer to the whole ask says how the ask ended. */
    *domi_envelope_get_return_of_ask(envelope) =
        (domi_return){.promise = asking.promise, .serial = asking.serial - 1};
    domi_payload_copy((char *)envelope + DOMI_ASK_HEAD, payload, type->size);
    if (domi_mailbox_put_despite_bound(manager, to, &envelope->node, DOMI_ASK) != 0) {
        envelope->node.lease = DOMI_LEASE_OWNED;
        domi_envelope_release_and_free(manager, envelope);
    }
    domi_stack_set_wait(stack->pooled, DOMI_WAIT_ONE, asking.promise, then);
    return DOMUS_PARKED;
}
