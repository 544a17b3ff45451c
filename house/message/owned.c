/* The slow half of releasing a message, for types that have a `release`. */
#include "house/message/owned.h"

void domi_envelope_release_payload_slow(domi_envelope *message)
{
    if (message->node.slab == DOMI_SLAB_SHARED || domi_envelope_is_payload_taken(message))
        return;
    message->type->release(domi_envelope_get_payload(message));
}
