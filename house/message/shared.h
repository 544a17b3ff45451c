/* Shared payloads: one payload for many notices.
 *
 * There are three objects:
 * - The shared payload. It counts its deliveries, one for each thread.
 * - A delivery, the one message by which the members on a thread get the payload. It counts the
 *   notices that were made of it there, and lives until these are freed. So the count that each
 *   notice changes lies in a cache line of its own thread.
 * - A notice, a small envelope that points to both. Its slab reads DOMI_SLAB_SHARED, so that
 *   freeing it takes the slow way. This costs other messages nothing. */
#ifndef DOMI_HOUSE_MESSAGE_SHARED_H
#define DOMI_HOUSE_MESSAGE_SHARED_H

#include "house/message/manager.h"

typedef struct domi_shared {
    domi_node node;         /* link of the shared payload in a list of objects to be freed */
    const domus_type *type; /* the type of the shared payload */
    /* number of deliveries of the payload that have not ended, plus one for their maker */
    _Atomic uint32_t deliveries;
    uint32_t reserved; /* unused; keeps the next field aligned */
    /* the bytes of the payload, which all receivers read */
    DOMI_KEEP_PLACE(16) unsigned char payload[];
} domi_shared;

static_assert(offsetof(domi_shared, payload) % 16 == 0, "as aligned as any payload");

/* A delivery: the payload of the envelope in which it travels. */
typedef struct domi_delivery {
    domi_shared *shared; /* the shared payload; the delivery holds one count of it */
    /* number of the delivery's notices that are not freed, plus one for their maker */
    _Atomic uint32_t left;
    uint32_t reserved; /* unused; keeps the next field aligned */
} domi_delivery;

static_assert(sizeof(domi_delivery) <= sizeof(((domi_envelope *)NULL)->payload), "fits");

/* The types of a delivery from this node, and of one that comes from another node
 * (directory/group.h). */
extern const domus_type domi_delivery_type;
extern const domus_type domi_far_delivery_type;

static inline domi_delivery *domi_delivery_of_envelope(domi_envelope *envelope)
{
    return (domi_delivery *)(void *)envelope->payload;
}

/* Make a shared payload with a copy of `payload`. The caller holds one count, as the maker of its
 * deliveries. If this returns NULL, domi_message_error_of_failed_new() says why. */
domi_shared *domi_shared_new_payload(domi_manager *manager, const domus_type *type,
                                     const void *payload);

/* Give back the count of a shared payload that its maker or a delivery holds. The last count frees
 * the payload, and releases what it owns. Any thread. */
void domi_shared_payload_drop_reference(domi_manager *manager, domi_shared *shared);

/* Make one more delivery of a shared payload, a notice from `sender` that the caller has to put.
 * Returns NULL if there is no memory. */
domi_envelope *domi_delivery_new(domi_manager *manager, domi_shared *shared, domus_address sender);

/* Give back `count` of the counts of a delivery. The last count ends the delivery. Any thread. */
void domi_delivery_drop_references(domi_manager *manager, domi_envelope *delivery, uint32_t count);

/* Make one of a delivery's notices. The caller has counted the notice in the delivery already.
 * Returns NULL if there is no memory. */
domi_envelope *domi_shared_notice_new(domi_manager *manager, domi_envelope *delivery);

/* True if the notice, which was made of a delivery, comes from another node. */
bool domi_shared_notice_is_from_other_node(const domi_envelope *notice);

/* Free a notice that was made from a delivery, and give back its count of the delivery. */
void domi_shared_notice_free(domi_manager *manager, domi_envelope *notice);

#endif
