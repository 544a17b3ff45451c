/* Functions that write the payload, the type and the sender of a message before it is put. */
#ifndef DOMI_HOUSE_MESSAGE_SIGN_H
#define DOMI_HOUSE_MESSAGE_SIGN_H

#include "base/check.h"
#include "house/message/house.h"

#include <string.h>

#define DOMI_PAYLOAD_FEW 24u /* most bytes that domi_payload_copy_few_bytes() copies */

/* Copy a payload of at most 24 bytes without a function call. The two places may overlap, because
 * everything is read before anything is written. */
DOMI_INLINE void domi_payload_copy_few_bytes(void *to_, const void *from_, uint32_t size)
{
    unsigned char *to = to_;
    const unsigned char *from = from_;
    uint64_t first, last, middle;
    uint32_t first_half, last_half;

    if (size == 8) { /* most payloads have 8 bytes or no bytes */
        memcpy(to, from, 8);
    } else if (size == 0) {
        return;
    } else if (size > 8) { /* the first and the last 8 bytes of the payload, which may overlap */
        memcpy(&first, from, 8);
        memcpy(&last, from + size - 8, 8);
        memcpy(&middle, from + (size > 16 ? 8 : 0), 8);
        memcpy(to + (size > 16 ? 8 : 0), &middle, 8);
        memcpy(to, &first, 8);
        memcpy(to + size - 8, &last, 8);
    } else if (size >= 4) {
        memcpy(&first_half, from, 4);
        memcpy(&last_half, from + size - 4, 4);
        memcpy(to, &first_half, 4);
        memcpy(to + size - 4, &last_half, 4);
    } else {
        unsigned char begin = from[0], half = from[size / 2], end = from[size - 1];
        to[size / 2] = half;
        to[0] = begin;
        to[size - 1] = end;
    }
}

/* Copy a payload. Most payloads have 8 or 16 bytes, and a copy of a constant size is one or two
 * moves, so these sizes have branches of their own. */
static inline void domi_payload_copy(void *to, const void *from, uint32_t size)
{
    if (size == 8)
        memcpy(to, from, 8);
    else if (size == 16)
        memcpy(to, from, 16);
    else if (size != 0)
        memcpy(to, from, size);
}

/* Copy a payload as domi_payload_copy() does, where the two places may overlap. */
static inline void domi_payload_copy_overlapping(void *to, const void *from, uint32_t size)
{
    if (size == 8)
        memmove(to, from, 8);
    else if (size == 16)
        memmove(to, from, 16);
    else if (size != 0)
        memmove(to, from, size);
}

/* Write the type and the sender of a message into its envelope. */
static inline void domi_envelope_set_type_and_sender(domi_envelope *envelope,
                                                     const domus_type *type,
                                                     const domi_house *sender)
{
    domus_address self = domi_house_get_address(sender);

    envelope->type = type;
    envelope->sender = self.house;
    envelope->sender_lease = self.lease;
}

#endif
