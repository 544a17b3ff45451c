/* A shard (group.h) delivers publications to its members, and keeps the list of them. The thread of
 * the shard does all of this; in a pool any runner does, under a lock. */
#include "house/directory/group.h"

#include "base/prefetch.h"
#include "house/conversation/stack.h"
#include "house/family/family.h"
#include "house/family/life.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "house/message/pooled.h"
#include "house/message/shared.h"

#include <domus/conversation.h>

#include <errno.h>

/* Number of members that get a publication in one step. Each step takes a place of the shard's run,
 * so a group of any size leaves time for other houses. */
#define STEP_MEMBERS 64u

/* The state of a shard of a group. */
typedef struct shard {
    domi_member *first; /* the first member in the shard's list; NULL: there is none */
    domi_member *last;  /* the last member in the shard's list; NULL: there is none */
    /* the member that gets the present publication next; NULL: all members have it */
    domi_member *cursor;
    domi_envelope *delivery; /* the delivery of the publication that is under way; NULL: none is */
    uint32_t count;          /* number of members of this shard */
} shard;

static int on_publication_deliver_to_members(domus_stack *stack, void *self, const void *payload);

const domus_behaviour domi_shard_behaviour = {
    .name = "group",
    .kind = DOMUS_STATE,
    .state_size = sizeof(shard),
    .on = (const domus_on[]){{&domi_delivery_type, on_publication_deliver_to_members, 0},
                             {&domi_far_delivery_type, on_publication_deliver_to_members, 0},
                             {NULL, NULL, 0}},
};

/* --- the lock of a pool ----------------------------------------------------------------------- */

static void lock_memberships_of_pool(const domi_house *house)
{
    if (domi_house_is_pooled(house))
        domi_spinlock_lock(&house->home->pooled->members_lock);
}

static void unlock_memberships_of_pool(const domi_house *house)
{
    if (domi_house_is_pooled(house))
        domi_spinlock_unlock(&house->home->pooled->members_lock);
}

/* --- publish, on the shard's side ------------------------------------------------------------ */

/* Put a notice of the delivery to one member of a group. Returns true if the member took it. */
static bool put_notice_to_member(domi_manager *manager, const domi_member *member,
                                 domi_envelope *delivery)
{
    domi_envelope *notice = domi_shared_notice_new(manager, delivery);

    if (notice == NULL) {
        domi_counter_add(&manager->counters.refusals, 1);
        return false;
    }
    const domus_address to = {member->house, member->lease};
    if (domi_mailbox_put(manager, to, &notice->node, DOMI_NOTICE) == 0)
        return true; /* the member took the notice; if it refuses, the put has counted that */
    /* this slab lets the pool free only the notice; the caller gives its share of the delivery
     * back */
    notice->node.slab = DOMI_SLAB_64;
    domi_pool_free_object(manager, &notice->node);
    return false;
}

/* Deliver the publication that is under way to the next STEP_MEMBERS members. Under the lock. */
static void deliver_to_next_members_under_lock(domi_manager *manager, shard *self)
{
    domi_envelope *delivery = self->delivery;
    uint32_t shares = self->count < STEP_MEMBERS ? self->count : STEP_MEMBERS;
    uint32_t left = shares;

    if (shares == 0)
        return;
    /* All shares of the delivery are added at once, before the first notice is put. Relaxed: the
     * share of the shard itself keeps the delivery from being freed. */
    atomic_fetch_add_explicit(&domi_delivery_of_envelope(delivery)->left, shares,
                              memory_order_relaxed);
    uint32_t unused = 0;
    for (; self->cursor != NULL && left != 0; left--) {
        const domi_member *member = self->cursor;
        domi_member *next = (domi_member *)(void *)member->node.next;

        if (next != NULL) {
            domi_prefetch_write(next->house);
            domi_prefetch_write(&next->house->state);
        }
        unused += !put_notice_to_member(manager, member, delivery);
        self->cursor = next;
    }
    if (left + unused != 0)
        domi_delivery_drop_references(manager, delivery, left + unused);
}

/* Deliver the publication as deliver_to_next_members_under_lock() does, with the lock of the
 * members. Returns true if there are more members. */
static bool lock_and_deliver_to_next_members(domus_stack *stack, shard *self)
{
    const domi_house *house = domi_stack_get_house(stack);

    lock_memberships_of_pool(house);
    deliver_to_next_members_under_lock(stack->manager, self);
    bool more = self->cursor != NULL;
    unlock_memberships_of_pool(house);
    return more;
}

/* End the delivery of the publication that is under way. The user's function may release the
 * payload here, so this is done without the lock. */
static void end_delivery_of_publication(domi_manager *manager, const domi_house *house)
{
    shard *self = house->self;
    domi_envelope *delivery = self->delivery;

    lock_memberships_of_pool(house);
    self->delivery = NULL;
    self->cursor = NULL;
    unlock_memberships_of_pool(house);
    domi_delivery_drop_references(manager, delivery, 1);
}

/* Deliver the publication to the next members of the shard, and wait for the next step if some are
 * left. */
static int continue_delivery_of_publication(domus_stack *stack, void *self_,
                                            const domus_answer *answer)
{
    shard *self = self_;

    (void)answer;
    if (lock_and_deliver_to_next_members(stack, self)) {
        /* A wait that has no promise resumes the shard in the next place of a run. */
        if (domus_wait_all(stack, continue_delivery_of_publication) == DOMUS_PARKED)
            return DOMUS_PARKED;
        /* the shard stops, or there is no memory to wait, so all members get the publication now */
        while (lock_and_deliver_to_next_members(stack, self))
            ;
    }
    end_delivery_of_publication(stack->manager, domi_stack_get_house(stack));
    return 0;
}

static int on_publication_deliver_to_members(domus_stack *stack, void *self_, const void *payload)
{
    shard *self = self_;

    (void)payload;
    lock_memberships_of_pool(domi_stack_get_house(stack));
    self->delivery = stack->message;
    self->cursor = self->first;
    bool is_long = self->count > STEP_MEMBERS;
    unlock_memberships_of_pool(domi_stack_get_house(stack));
    /* the shard keeps the envelope of the publication until the last member is done with it */
    stack->message = NULL;
    if (is_long)
        /* the next publication waits until all members have got this one */
        (void)domus_barrier(stack);
    return continue_delivery_of_publication(stack, self, NULL);
}

/* --- members --------------------------------------------------------------------------------- */

static shard *get_shard_of_member(const domi_member *member)
{
    const domi_group_slot *slot = domi_group_slot_of_home(member->group, member->house->home);

    return atomic_load_explicit(&slot->shard, memory_order_relaxed)->self;
}

/* Subtract a member from the counts of its group, and free its record: the actor did not become a
 * member, or is one no more. An outlet is a member until the system ends. */
static void remove_member_from_counts(domi_manager *manager, domi_member *member)
{
    domi_group *group = member->group;

    if (!member->is_outlet) {
        domi_group_slot *slot = domi_group_slot_of_home(group, member->house->home);
        /* Relaxed: a publisher that still reads the old count of members only sends a message in
         * vain. */
        atomic_fetch_sub_explicit(&slot->members, 1, memory_order_relaxed);
        atomic_fetch_sub_explicit(&group->members, 1, memory_order_relaxed);
    }
    domi_pool_free_object(manager, &member->node);
}

/* Link a new member of a group into the list of its house. */
static void link_member_to_house(domi_member *member)
{
    domi_family *family = member->house->family;

    member->previous_of_house = NULL;
    member->next_of_house = family->memberships;
    if (member->next_of_house != NULL)
        member->next_of_house->previous_of_house = member;
    family->memberships = member;
}

static void unlink_member_from_house(domi_member *member)
{
    if (member->next_of_house != NULL)
        member->next_of_house->previous_of_house = member->previous_of_house;
    if (member->previous_of_house != NULL)
        member->previous_of_house->next_of_house = member->next_of_house;
    else
        member->house->family->memberships = member->next_of_house;
}

/* Link a new member of a group into the shard's list, and also into the list of its house, unless
 * it is an outlet. */
static void link_member_to_shard(shard *self, domi_member *member)
{
    member->node.next = NULL;
    member->previous = self->last;
    if (self->last != NULL)
        self->last->node.next = &member->node;
    else
        self->first = member;
    self->last = member;
    self->count++;
    if (!member->is_outlet)
        link_member_to_house(member);
}

static void unlink_member_from_shard(shard *self, domi_member *member)
{
    domi_member *next = (domi_member *)(void *)member->node.next;

    if (self->cursor == member)
        self->cursor = next;
    if (next != NULL)
        next->previous = member->previous;
    else
        self->last = member->previous;
    if (member->previous != NULL)
        member->previous->node.next = member->node.next;
    else
        self->first = next;
    self->count--;
    if (!member->is_outlet)
        unlink_member_from_house(member);
}

static domi_member *find_membership(const domi_member *like)
{
    domi_member *member = like->house->family->memberships;

    while (member != NULL && member->group != like->group)
        member = member->next_of_house;
    return member;
}

/* True if the actor that joins has not ended while its node was on the way. The answer is exact,
 * because houses end at home; a house of a pool that ends comes to
 * domi_group_remove_house_from_groups() later. */
static bool is_member_alive(const domi_member *member)
{
    uint64_t life = domi_house_life_word(member->house);

    return DOMI_LIFE_LEASE(life) == member->lease && (life & DOMI_LIFE_CLOSED) == 0;
}

void domi_group_let_member_join_or_leave(domi_manager *manager, domi_house *house, domi_node *node)
{
    domi_member *member = (domi_member *)(void *)node;

    lock_memberships_of_pool(house);
    if (member->is_outlet) {
        link_member_to_shard(house->self, member);
        unlock_memberships_of_pool(house);
        return;
    }
    domi_member *present = is_member_alive(member) ? find_membership(member) : NULL;
    if (member->leaves) {
        domi_pool_free_object(manager, node);
        if (present != NULL) {
            unlink_member_from_shard(house->self, present);
            remove_member_from_counts(manager, present);
        }
    } else if (present != NULL || !is_member_alive(member)) {
        remove_member_from_counts(manager, member);
    } else {
        link_member_to_shard(house->self, member);
    }
    unlock_memberships_of_pool(house);
}

void domi_group_drop_late_node_of_member(domi_manager *manager, domi_node *node)
{
    domi_member *member = (domi_member *)(void *)node;

    if (member->leaves)
        domi_pool_free_object(manager, node);
    else
        remove_member_from_counts(manager, member);
}

void domi_group_remove_house_from_groups(domi_manager *manager, domi_house *house)
{
    bool is_shard = house->behaviour == &domi_shard_behaviour;

    if (is_shard && ((shard *)house->self)->delivery != NULL)
        end_delivery_of_publication(manager, house);
    lock_memberships_of_pool(house);
    if (is_shard) {
        shard *self = house->self;

        while (self->first != NULL) {
            domi_member *member = self->first;
            unlink_member_from_shard(self, member);
            remove_member_from_counts(manager, member);
        }
    }
    while (house->family != NULL && house->family->memberships != NULL) {
        domi_member *member = house->family->memberships;
        unlink_member_from_shard(get_shard_of_member(member), member);
        remove_member_from_counts(manager, member);
    }
    unlock_memberships_of_pool(house);
}
