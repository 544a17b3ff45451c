/* Makes and frees the objects of shared.h: shared payloads, deliveries and notices. Their counts
 * are atomic; all their other fields are constant once they were put. */
#include "house/message/shared.h"

#include "house/message/pool.h"
#include "house/message/sign.h"

const domus_type domi_delivery_type = {.name = "delivery", .size = sizeof(domi_delivery)};
const domus_type domi_far_delivery_type = {.name = "delivery from afar",
                                           .size = sizeof(domi_delivery)};

domi_shared *domi_shared_new_payload(domi_manager *manager, const domus_type *type,
                                     const void *payload)
{
    domi_shared *shared = (void *)domi_message_new(manager, sizeof *shared + type->size);

    if (shared == NULL)
        return NULL;
    shared->type = type;
    atomic_store_explicit(&shared->deliveries, 1, memory_order_relaxed);
    domi_payload_copy(shared->payload, payload, type->size);
    return shared;
}

void domi_shared_payload_drop_reference(domi_manager *manager, domi_shared *shared)
{
    /* acq_rel: all accesses of other threads to the payload happen before the last thread frees
     * it. */
    if (atomic_fetch_sub_explicit(&shared->deliveries, 1, memory_order_acq_rel) != 1)
        return;
    if (shared->type->release != NULL)
        shared->type->release(shared->payload);
    domi_pool_free_object(manager, &shared->node);
}

domi_envelope *domi_delivery_new(domi_manager *manager, domi_shared *shared, domus_address sender)
{
    domi_envelope *envelope = domi_envelope_new(manager, sizeof(domi_envelope));

    if (envelope == NULL)
        return NULL;
    envelope->type = &domi_delivery_type;
    envelope->sender = sender.house;
    envelope->sender_lease = sender.lease;
    domi_delivery *delivery = domi_delivery_of_envelope(envelope);
    delivery->shared = shared;
    atomic_store_explicit(&delivery->left, 1, memory_order_relaxed);
    /* Relaxed: the maker of the delivery holds a count, so the shared payload cannot be freed
     * meanwhile. */
    atomic_fetch_add_explicit(&shared->deliveries, 1, memory_order_relaxed);
    return envelope;
}

void domi_delivery_drop_references(domi_manager *manager, domi_envelope *envelope, uint32_t count)
{
    domi_delivery *delivery = domi_delivery_of_envelope(envelope);

    /* acq_rel: the comment in domi_shared_payload_drop_reference() says why. */
    if (atomic_fetch_sub_explicit(&delivery->left, count, memory_order_acq_rel) != count)
        return;
    domi_shared_payload_drop_reference(manager, delivery->shared);
    domi_pool_free_object(manager, &envelope->node);
}

/* The contents of the envelope of a notice with a shared payload. domi_envelope_get_payload() reads
 * the first field. */
typedef struct share {
    void *payload;           /* the shared payload, which lies in `delivery->shared` */
    domi_envelope *delivery; /* the delivery of which this notice was made */
} share;

domi_envelope *domi_shared_notice_new(domi_manager *manager, domi_envelope *delivery)
{
    domi_shared *shared = domi_delivery_of_envelope(delivery)->shared;
    domi_envelope *notice = domi_pool_take_object(manager, DOMI_SLAB_64);

    if (notice == NULL)
        return NULL;
    notice->node.slab = DOMI_SLAB_SHARED;
    notice->type = shared->type;
    notice->sender = delivery->sender;
    notice->sender_lease = delivery->sender_lease;
    *(share *)(void *)notice->payload = (share){shared->payload, delivery};
    return notice;
}

bool domi_shared_notice_is_from_other_node(const domi_envelope *notice)
{
    return ((const share *)(const void *)notice->payload)->delivery->type ==
           &domi_far_delivery_type;
}

void domi_shared_notice_free(domi_manager *manager, domi_envelope *notice)
{
    domi_envelope *delivery = ((share *)(void *)notice->payload)->delivery;

    notice->node.slab = DOMI_SLAB_64;
    domi_pool_free_object(manager, &notice->node);
    domi_delivery_drop_references(manager, delivery, 1);
}
