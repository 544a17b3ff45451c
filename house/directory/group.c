/* The registry of groups, and the verbs of actors for groups: join, leave, publish.
 *
 * The registry is a hash table with chains. A group is added at the head of a chain and never
 * removed, so a reader walks the chain without a lock. */
#include "house/directory/group.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/siphash.h"
#include "house/conversation/stack.h"
#include "house/directory/remote.h"
#include "house/family/family.h"
#include "house/family/life.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "house/message/pooled.h"
#include "house/message/shared.h"

#include <errno.h>
#include <string.h>

#define BUCKETS_MAX 65536u /* most buckets of the table of groups */

int domi_groups_init(domi_groups *groups, uint32_t max, uint32_t members_max, uint32_t threads,
                     uint32_t pools, const uint64_t key[2])
{
    uint32_t buckets = 1;

    while (buckets < max && buckets < BUCKETS_MAX)
        buckets *= 2;
    *groups = (domi_groups){
        .key = {key[0], key[1]},
        .buckets_count = buckets,
        .max = max,
        .members_max = members_max,
        .threads = threads,
        .homes = threads + pools,
    };
    domi_spinlock_init(&groups->lock);
    groups->buckets = domi_memory_new(buckets * sizeof *groups->buckets);
    return groups->buckets != NULL ? 0 : -ENOMEM;
}

void domi_groups_fini(domi_groups *groups)
{
    for (uint32_t i = 0; groups->buckets != NULL && i < groups->buckets_count; i++) {
        domi_group *next;
        domi_group *group = atomic_load_explicit(&groups->buckets[i], memory_order_relaxed);

        for (; group != NULL; group = next) {
            next = group->next;
            domi_memory_free(group);
        }
    }
    domi_memory_free(groups->buckets);
    groups->buckets = NULL;
}

domi_group_slot *domi_group_slot_of_home(domi_group *group, const domi_manager *home)
{
    const domi_groups *groups = group->groups;

    if (home->pooled != NULL)
        return &group->slots[groups->threads + home->pooled->number];
    /* The thread of a detached actor gets no shard, because the shard would have to wait while that
     * actor runs. */
    return home->index < groups->threads ? &group->slots[home->index] : NULL;
}

static bool is_group_name_valid(const char *name)
{
    size_t length = strnlen(name, DOMI_NAME_MAX + 1);

    for (size_t i = 0; i < length; i++) {
        if (name[i] <= ' ' || name[i] > '~')
            return false;
    }
    return length != 0 && length <= DOMI_NAME_MAX;
}

static domi_group *find_group_by_name(_Atomic(domi_group *) *bucket, const char *name)
{
    /* acquire: pairs with the release in add_or_find_group(). */
    domi_group *group = atomic_load_explicit(bucket, memory_order_acquire);

    while (group != NULL && strcmp(group->name, name) != 0)
        group = group->next;
    return group;
}

static domi_group *make_group_in_memory(domi_groups *groups, const char *name)
{
    size_t bytes = sizeof(domi_group) + groups->homes * sizeof(domi_group_slot);
    domi_group *group = domi_memory_new_cache_lines(bytes);

    if (group == NULL)
        return NULL;
    /* is_group_name_valid() has checked the length of the group's name */
    memcpy(group->name, name, strlen(name) + 1);
    group->groups = groups;
    return group;
}

/* Add `group` to the table, or hand out the group of the same name that exists already. */
static int add_or_find_group(domi_groups *groups, _Atomic(domi_group *) *bucket, domi_group *group,
                             domi_group **ret_group)
{
    int error = 0;

    domi_spinlock_lock(&groups->lock);
    *ret_group = find_group_by_name(bucket, group->name);
    if (*ret_group == NULL && groups->count >= groups->max) {
        error = -ENOSPC;
    } else if (*ret_group == NULL) {
        groups->count++;
        group->next = atomic_load_explicit(bucket, memory_order_relaxed);
        /* release: a thread that finds the group in the table finds it complete. */
        atomic_store_explicit(bucket, group, memory_order_release);
        *ret_group = group;
    }
    domi_spinlock_unlock(&groups->lock);
    return error;
}

int domi_group_open(domi_manager *manager, const char *name, domi_group **ret_group)
{
    domi_groups *groups = manager->directory.groups;

    if (name == NULL || !is_group_name_valid(name))
        return -EINVAL;
    if (groups == NULL)
        return -ENOSPC;
    uint64_t hash = domi_siphash(groups->key, name, strlen(name));
    _Atomic(domi_group *) *bucket = &groups->buckets[hash & (groups->buckets_count - 1)];
    domi_group *group = find_group_by_name(bucket, name);
    if (group == NULL) {
        domi_group *made = make_group_in_memory(groups, name);
        if (made == NULL)
            return -ENOMEM;
        int error = add_or_find_group(groups, bucket, made, &group);
        if (error != 0 || group != made)
            domi_memory_free(made);
        if (error != 0)
            return error;
    }
    *ret_group = group;
    return 0;
}

int domus_group_open(domus_stack *stack, const char *name, domus_group *ret_group)
{
    return domi_group_open(stack->manager, name, &ret_group->group);
}

/* --- join, leave, publish -------------------------------------------------------------------- */

/* Make the shard of a group on a home, at the first join there. If members of this home are lent,
 * two threads may do this at once; the second shard is stopped again. */
static int make_shard_of_group(domi_manager *manager, domi_group *group, domi_group_slot *slot,
                               domi_manager *home, domus_address *ret_address)
{
    const domus_spawn_options options = {.pinned = home->pooled == NULL};
    domus_address address;
    int error = domi_house_spawn_child(manager, NULL, home, &domi_shard_behaviour, NULL, &options,
                                       &address);

    if (error != 0)
        return error;
    domi_spinlock_lock(&group->groups->lock);
    *ret_address = domi_group_shard_of_slot(slot);
    if (ret_address->house == NULL) {
        slot->lease = address.lease;
        /* release: a thread that finds the shard finds the shard's lease, too. */
        atomic_store_explicit(&slot->shard, address.house, memory_order_release);
        *ret_address = address;
    }
    domi_spinlock_unlock(&group->groups->lock);
    if (ret_address->house != address.house)
        (void)domi_house_ask_to_stop(manager, address);
    return 0;
}

/* Count a new member of a group, before its node is put. If it is the first member and the group
 * has an outlet, the gateway is told. */
static int count_new_member_of_group(domi_manager *manager, domi_group *group,
                                     domi_group_slot *slot)
{
    /* seq_cst, followed by a seq_cst load of the outlet: domi_group_add_outlet() stores the outlet
     * first and loads the count then, so at least one of the two threads reports the first member.
     * For the number alone relaxed would do: the message by which a publisher learns of the join
     * brings the count. */
    uint32_t before = atomic_fetch_add_explicit(&group->members, 1, memory_order_seq_cst);

    if (before >= group->groups->members_max) {
        atomic_fetch_sub_explicit(&group->members, 1, memory_order_relaxed);
        return -ENOSPC;
    }
    atomic_fetch_add_explicit(&slot->members, 1, memory_order_relaxed);
    /* seq_cst: the comment on the count above says why. The load also acquires the fields of the
     * outlet. */
    domi_remote *outlet = atomic_load_explicit(&group->outlet, memory_order_seq_cst);
    if (before == 0 && outlet != NULL)
        domi_remote_tell_gateway_of_first_member(manager, outlet);
    return 0;
}

static domi_member *make_membership(domi_manager *manager, domi_group *group, domi_house *house,
                                    domus_address to, bool leaves)
{
    domi_member *member = domi_pool_take_object(manager, DOMI_SLAB_MEMBER);

    if (member == NULL)
        return NULL;
    member->node.kind = DOMI_MEMBER;
    member->node.lease = to.lease;
    member->group = group;
    member->house = house;
    member->lease = domi_house_get_address(house).lease;
    member->leaves = leaves;
    member->is_outlet = false;
    return member;
}

int domus_group_join(domus_stack *stack, domus_group handle)
{
    domi_manager *manager = stack->manager;
    domi_house *house = domi_stack_get_house(stack);
    domi_group *group = handle.group;

    if (group == NULL)
        return -EINVAL;
    domi_group_slot *slot = domi_group_slot_of_home(group, house->home);
    if (slot == NULL)
        return -EOPNOTSUPP;
    domus_address to = domi_group_shard_of_slot(slot);
    int error = domi_family_get_or_make(house) == NULL ? -ENOMEM : 0;
    if (error == 0 && to.house == NULL)
        error = make_shard_of_group(manager, group, slot, house->home, &to);
    domi_member *member = NULL;
    if (error == 0) {
        member = make_membership(manager, group, house, to, false);
        error = member == NULL ? -ENOMEM : count_new_member_of_group(manager, group, slot);
    }
    if (error != 0) {
        if (member != NULL)
            domi_pool_free_object(manager, &member->node);
        return error;
    }
    if (domi_mailbox_put_slow(manager, to.house, &member->node) == 0)
        return 0;
    domi_group_drop_late_node_of_member(manager, &member->node);
    /* a system ends its shards last, so a shard that refuses means that the system stops */
    return -ESHUTDOWN;
}

int domus_group_leave(domus_stack *stack, domus_group handle)
{
    domi_manager *manager = stack->manager;
    domi_house *house = domi_stack_get_house(stack);

    if (handle.group == NULL)
        return -EINVAL;
    const domi_group_slot *slot = domi_group_slot_of_home(handle.group, house->home);
    if (slot == NULL)
        return 0;
    domus_address to = domi_group_shard_of_slot(slot);
    if (to.house == NULL || house->family == NULL)
        return 0;
    domi_member *member = make_membership(manager, handle.group, house, to, true);
    if (member == NULL)
        return -ENOMEM;
    if (domi_mailbox_put_slow(manager, to.house, &member->node) != 0)
        /* the shard has ended and has no membership any more */
        domi_group_drop_late_node_of_member(manager, &member->node);
    return 0;
}

/* Link the outlet of a group at a shard; the group has recorded the outlet already. */
static int link_outlet_at_shard(domi_manager *manager, domi_group *group, domi_manager *home,
                                domus_address outlet)
{
    domi_group_slot *slot = domi_group_slot_of_home(group, home);

    DOMI_CHECK(slot != NULL); /* a gateway lives on a thread of the loop, and each has a slot */
    domus_address to = domi_group_shard_of_slot(slot);
    int error = to.house == NULL ? make_shard_of_group(manager, group, slot, home, &to) : 0;
    if (error != 0)
        return error;
    domi_member *member = make_membership(manager, group, outlet.house, to, false);
    if (member == NULL)
        return -ENOMEM;
    member->is_outlet = true;
    member->lease = outlet.lease;
    /* Relaxed: the comment in count_new_member_of_group() says why. */
    atomic_fetch_add_explicit(&slot->members, 1, memory_order_relaxed);
    if (domi_mailbox_put_slow(manager, to.house, &member->node) == 0)
        return 0;
    domi_group_drop_late_node_of_member(manager, &member->node);
    return -ESHUTDOWN;
}

int domi_group_add_outlet(domi_manager *manager, domi_group *group, domi_manager *home,
                          domus_address outlet)
{
    domi_remote *remote = domi_remote_of_face(outlet.house);
    domi_remote *none = NULL;

    /* Relaxed: the comment in put_message_to_gateway() of remote_put.c says why. */
    atomic_store_explicit(&remote->is_outlet, true, memory_order_relaxed);
    /* seq_cst: the comment in count_new_member_of_group() says why. It also releases: a thread that
     * finds the outlet finds its name. */
    if (!atomic_compare_exchange_strong_explicit(&group->outlet, &none, remote,
                                                 memory_order_seq_cst, memory_order_relaxed))
        return -EALREADY;
    int error = link_outlet_at_shard(manager, group, home, outlet);
    if (error == 0 && atomic_load_explicit(&group->members, memory_order_seq_cst) != 0)
        domi_remote_tell_gateway_of_first_member(manager, remote);
    if (error != 0)
        atomic_store_explicit(&group->outlet, NULL,
                              /* the group has no outlet after a failure, so the caller may try
                               * again */
                              memory_order_relaxed);
    return error;
}

uint32_t domus_group_members(domus_group handle)
{
    return handle.group != NULL ? atomic_load_explicit(&handle.group->members, memory_order_relaxed)
                                : 0;
}

/* Send the publication to a group's shard on one home. Returns 0, also if there is no shard yet. */
static int put_publication_to_shard(domi_manager *manager, domus_address sender,
                                    const domi_group_slot *slot, domi_shared *shared)
{
    domus_address to = domi_group_shard_of_slot(slot);

    if (to.house == NULL)
        /* the shard is still being made, so no publisher can have learnt of a member there */
        return 0;
    domi_envelope *delivery = domi_delivery_new(manager, shared, sender);
    if (delivery == NULL)
        return -ENOMEM;
    int error = domi_mailbox_put(manager, to, &delivery->node, DOMI_NOTICE);
    if (error == 0)
        return 0;
    domi_delivery_drop_references(manager, delivery, 1);
    return error == -ESTALE ? -ESHUTDOWN : error;
}

int domi_group_publish(domi_manager *manager, domus_address sender, domi_group *group,
                       const domus_type *type, const void *payload)
{
    int error = group == NULL ? -EINVAL : type->size > DOMUS_PAYLOAD_MAX ? -EMSGSIZE : 0;
    domi_shared *shared = error == 0 ? domi_shared_new_payload(manager, type, payload) : NULL;

    if (shared == NULL) {
        if (type->release != NULL)
            type->release((void *)(uintptr_t)payload);
        return error != 0 ? error : domi_message_error_of_failed_new(manager);
    }
    for (uint32_t i = 0; i < group->groups->homes; i++) {
        const domi_group_slot *slot = &group->slots[i];
        /* Relaxed: the comment in count_new_member_of_group() says why. */
        if (atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&slot->members,
                                 memory_order_relaxed) == 0)
            continue;
        int result = put_publication_to_shard(manager, sender, slot, shared);
        if (error == 0)
            error = result;
    }
    domi_shared_payload_drop_reference(manager, shared);
    return error;
}

int domus_publish(domus_stack *stack, domus_group group, const domus_type *type,
                  const void *payload)
{
    return domi_group_publish(stack->manager, domi_house_get_address(domi_stack_get_house(stack)),
                              group.group, type, payload);
}
