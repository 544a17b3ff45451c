/* The slow half of releasing a message, for types that have a `release`. */
#include "house/message/owned.h"

void domi_envelope_release_owned(domi_envelope *message)
{
    if (message->node.slab == DOMI_SLAB_SHARED || domi_envelope_is_taken(message))
        return;
    message->type->release(domi_envelope_payload(message));
}
