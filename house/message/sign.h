/* Each message gets its payload, its type and its sender by these functions before it is put. */
#ifndef DOMI_HOUSE_MESSAGE_SIGN_H
#define DOMI_HOUSE_MESSAGE_SIGN_H

#include "house/message/house.h"

#include <string.h>

/* Copy a payload. Most have 8 or 16 bytes, and a copy of a constant size is one or two moves, so
 * these sizes have branches of their own. */
static inline void domi_payload_copy(void *to, const void *from, uint32_t size)
{
    if (size == 8)
        memcpy(to, from, 8);
    else if (size == 16)
        memcpy(to, from, 16);
    else if (size != 0)
        memcpy(to, from, size);
}

/* As domi_payload_copy(), for payloads that may overlap. */
static inline void domi_payload_move(void *to, const void *from, uint32_t size)
{
    if (size == 8)
        memmove(to, from, 8);
    else if (size == 16)
        memmove(to, from, 16);
    else if (size != 0)
        memmove(to, from, size);
}

/* Write the type of a message and its sender. */
static inline void domi_envelope_sign(domi_envelope *envelope, const domus_type *type,
                                      const domi_house *sender)
{
    domus_address self = domi_house_address(sender);

    envelope->type = type;
    envelope->sender = self.house;
    envelope->sender_lease = self.lease;
}

#endif
