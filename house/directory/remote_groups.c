/* The verbs of gateways for groups (domus/remote.h). A publication from another node goes to all
 * members but the outlet, because its deliveries say where it came from. It has a loop of its own
 * here, so that domus_publish() needs no branch for it. */
#include "house/directory/group.h"
#include "house/directory/remote.h"

#include "house/conversation/stack.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "house/message/remote.h"
#include "house/message/shared.h"

#include <errno.h>

int domus_remote_join(domus_stack *stack, domus_group group, domus_address outlet)
{
    domi_manager *manager = stack->manager;
    domi_manager *home = domi_stack_get_house(stack)->home;

    if (group.group == NULL || !domus_address_is_remote(outlet))
        return -EINVAL;
    /* the home is a pool, or the thread of a detached actor, which has no gateway */
    if (home->index >= manager->threads)
        home = manager->managers[0];
    return domi_group_add_outlet(manager, group.group, home, outlet);
}

/* Send the publication of another node to a group's shard on one home. */
static int publish_foreign_to_shard(domi_manager *manager, domus_address from,
                                    const domi_group_slot *slot, domi_shared *shared)
{
    domus_address to = domi_group_shard_of_slot(slot);

    if (to.house == NULL)
        /* the shard is still being made, so no publisher can have learnt of a member there */
        return 0;
    domi_envelope *delivery = domi_delivery_new(manager, shared, from);
    if (delivery == NULL)
        return -ENOMEM;
    delivery->type = &domi_far_delivery_type;
    int error = domi_mailbox_put(manager, to, &delivery->node, DOMI_NOTICE);
    if (error == 0)
        return 0;
    domi_delivery_drop_references(manager, delivery, 1);
    return error == -ESTALE ? -ESHUTDOWN : error;
}

static int publish_foreign_to_all_shards(domi_manager *manager, domus_address from,
                                         domi_group *group, domi_shared *shared)
{
    int error = 0;

    for (uint32_t i = 0; i < group->groups->homes; i++) {
        const domi_group_slot *slot = &group->slots[i];
        /* Relaxed: the comment in count_new_member_of_group() of group.c says why. */
        if (atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&slot->members,
                                 memory_order_relaxed) == 0)
            continue;
        int result = publish_foreign_to_shard(manager, from, slot, shared);
        if (error == 0)
            error = result;
    }
    return error;
}

int domus_remote_publish(domus_stack *stack, domus_address from, domus_group group,
                         const domus_type *type, const void *payload)
{
    domi_manager *manager = stack->manager;
    domi_shared *shared = NULL;
    int error = 0;

    if (manager->gateway != domi_stack_get_house(stack))
        error = -EPERM;
    else if (group.group == NULL || (from.house != NULL && !domi_house_is_remote(from.house)))
        error = -EINVAL;
    else if (type->size > DOMUS_PAYLOAD_MAX)
        error = -EMSGSIZE;
    if (error == 0)
        shared = domi_shared_new_payload(manager, type, payload);
    if (shared == NULL) {
        if (type->release != NULL)
            type->release((void *)(uintptr_t)payload);
        return error != 0 ? error : domi_message_error_of_failed_new(manager);
    }
    error = publish_foreign_to_all_shards(manager, from, group.group, shared);
    domi_shared_payload_drop_reference(manager, shared);
    return error;
}
