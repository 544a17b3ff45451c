/* Shared payloads: one payload for many notices.
 *
 * Three objects. The payload itself, counted by the threads that have a delivery of it. A delivery:
 * the one message by which a thread's members get it, kept and counted by the notices that are made
 * of it there; so the count that every member takes one from is its thread's own line. And the
 * notices, small envelopes that point to both: their slab reads DOMI_SLAB_SHARED, which sends them
 * the slow way when they are freed, and costs other messages nothing. */
#ifndef DOMI_HOUSE_MESSAGE_SHARED_H
#define DOMI_HOUSE_MESSAGE_SHARED_H

#include "house/message/manager.h"

typedef struct domi_shared {
    domi_node node;
    const domus_type *type;
    _Atomic uint32_t deliveries; /* that are not over, and one while they are made */
    uint32_t reserved;
    unsigned char payload[];
} domi_shared;

static_assert(offsetof(domi_shared, payload) % 16 == 0, "as aligned as any payload");

/* The payload of a delivery's envelope. */
typedef struct domi_delivery {
    domi_shared *shared;
    _Atomic uint32_t left; /* notices that were not freed, and one while they are made */
    uint32_t reserved;
} domi_delivery;

static_assert(sizeof(domi_delivery) <= sizeof(((domi_envelope *)NULL)->payload), "fits");

/* The type of a delivery. */
extern const domus_type domi_delivery_type;

static inline domi_delivery *domi_delivery_of(domi_envelope *envelope)
{
    return (domi_delivery *)(void *)envelope->payload;
}

/* A copy of `payload` to share; NULL: domi_message_error() says why. */
domi_shared *domi_shared_new(domi_manager *manager, const domus_type *type, const void *payload);

/* The maker, or a delivery, is done with it: the last one releases what it owns and frees it. */
void domi_shared_end(domi_manager *manager, domi_shared *shared);

/* One more delivery of it, as a notice from `sender`, to be put; NULL without memory. */
domi_envelope *domi_delivery_new(domi_manager *manager, domi_shared *shared, domus_address sender);

/* `count` of what the delivery counts are done with. Any thread. */
void domi_delivery_end(domi_manager *manager, domi_envelope *delivery, uint32_t count);

/* A notice made of a delivery, which counts it already; NULL without memory. */
domi_envelope *domi_shared_notice(domi_manager *manager, domi_envelope *delivery);

/* Such a notice is freed: give its share back, and free it as the small envelope that it is. */
void domi_shared_notice_free(domi_manager *manager, domi_envelope *notice);

#endif
