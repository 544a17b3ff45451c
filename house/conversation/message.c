/* Messages as objects: the verbs of domus/message.h. A domus_message is an envelope with
 * its kind set. */
#include "base/check.h"
#include "house/conversation/stack.h"
#include "house/message/mailbox.h"
#include "house/message/owned.h"
#include "house/message/sign.h"

#include <domus/message.h>

#include <errno.h>
#include <string.h>

struct domus_message {
    domi_envelope envelope;
};

int domus_message_new(domus_stack *stack, const domus_type *type, domus_message **ret_message)
{
    if (type->size > DOMUS_PAYLOAD_MAX)
        return -EMSGSIZE;
    domi_envelope *envelope = domi_message_new(stack->manager, DOMI_ENVELOPE_HEAD + type->size);
    if (envelope == NULL)
        return domi_message_error_of_failed_new(stack->manager);
    envelope->node.kind = DOMI_NOTICE;
    envelope->node.lease = DOMI_LEASE_OWNED;
    envelope->type = type;
    /* zeros are safe for the type's `release` if the payload is never written */
    if (type->release != NULL)
        memset(envelope->payload, 0, type->size);
    *ret_message = (domus_message *)(void *)envelope;
    return 0;
}

int domus_message_take(domus_stack *stack, domus_message **ret_message)
{
    domi_envelope *message = stack->received != NULL ? stack->received : stack->message;

    if (message == NULL || message->node.kind != DOMI_NOTICE)
        return -EINVAL;
    if (domi_envelope_is_payload_taken(message))
        return -EALREADY;
    domi_house *house = domi_stack_get_house(stack);
    if (message->sender == house) {
        int error = stack->manager->io_hooks.release_message(stack->manager, house, message, true);
        if (error != 0)
            return error;
    }
    stack->received = NULL;
    /* the message is the shown one only in a plain handler; a receive that returns to its caller
     * (detached.h) leaves `stack->message` as it was */
    if (stack->message == message) {
        stack->message = NULL;
        stack->sender = (domus_address){message->sender, message->sender_lease};
    }
    *ret_message = (domus_message *)(void *)message;
    return 0;
}

const domus_type *domus_message_type(const domus_message *message)
{
    return message->envelope.type;
}

void *domus_message_payload(domus_message *message)
{
    return domi_envelope_get_payload(&message->envelope);
}

int domus_message_send(domus_stack *stack, domus_address to, domus_message *message)
{
    domi_envelope *envelope = &message->envelope;
    uint32_t lease = envelope->node.lease;

    domi_envelope_set_type_and_sender(envelope, envelope->type, domi_stack_get_house(stack));
    int error = domi_mailbox_put(stack->manager, to, &envelope->node, DOMI_NOTICE);
    if (error != 0)
        /* the refused message gets its lease back: `to` may be the address of zeros, and a lease of
         * 0 would mark the message as taken */
        envelope->node.lease = lease;
    return error;
}

void domus_message_free(domus_stack *stack, domus_message *message)
{
    if (message != NULL)
        domi_envelope_release_and_free(stack->manager, &message->envelope);
}
