/* Makes houses into actors: a slot is taken and filled, and the life word publishes it.
 *
 * The embedded node carries MOUNT through the inbox if the actor is born on another home, or if the
 * inbox of the slot still has late mail. The spawner sets the NODE bit of `life` together with the
 * lease, and home clears it when it has taken the node. */
#include "house/family/birth.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/family/behaviour.h"
#include "house/family/family.h"
#include "house/family/slots.h"
#include "house/message/doors.h"
#include "house/message/order.h"
#include "house/message/pooled.h"
#include "house/message/types.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- the state -------------------------------------------------------------------------------- */

/* Returns the offset of the actor's state in the room of its house. The state of a channels actor
 * lies behind the fields `channels`, which io uses. */
static uint32_t get_offset_of_state_in_house(const domus_behaviour *behaviour)
{
    return behaviour->kind == DOMUS_CHANNELS ? (uint32_t)sizeof(((domi_house *)NULL)->channels) : 0;
}

void domi_house_set_state_as_at_spawn(domi_house *house, const void *state)
{
    uint32_t bytes = house->behaviour->state_size;

    if (state != NULL)
        memcpy(house->self, state, bytes);
    else
        memset(house->self, 0, bytes);
}

/* Returns the number of a behaviour (tally.h), and gives it one if it has none. */
static uint32_t get_or_give_behaviour_number(const domi_manager *manager,
                                             const domus_behaviour *behaviour)
{
    domi_behaviours *behaviours = manager->directory.behaviours;

    if (behaviours == NULL)
        return 0;
    uint32_t number = domi_behaviours_find_number(behaviours, behaviour);
    if (DOMI_LIKELY(number != 0))
        return number;
    uint32_t state_bytes = get_offset_of_state_in_house(behaviour) +
                           (behaviour->shares_state ? 0 : behaviour->state_size);
    return domi_behaviours_add_number(behaviours, behaviour,
                                      domi_slots_bytes_for_state(state_bytes));
}

void domi_house_count_behaviour_change(domi_manager *manager, const domi_house *house,
                                       uint32_t before)
{
    if (DOMI_LIKELY(house->tally == before))
        return;
    domi_counter_add(&manager->tallies[before].ended, 1);
    domi_counter_add(&manager->tallies[house->tally].begun, 1);
}

/* True if the manager runs the house only as a thief. Then the home of the house counts its change
 * of behaviour, when it has the house back: so the numbers of each thread are right, because an
 * actor begins and ends at home. */
static bool does_manager_run_house_as_thief(const domi_manager *manager, const domi_house *house)
{
    return house->home != manager && !domi_house_is_pooled(house);
}

void domi_house_count_under_behaviour(domi_manager *manager, domi_house *house,
                                      const domus_behaviour *behaviour)
{
    uint32_t before = house->tally;

    house->tally = (uint8_t)get_or_give_behaviour_number(manager, behaviour);
    /* while its on_mount runs, an actor is not counted yet */
    if (house->state != DOMI_MOUNTING && !does_manager_run_house_as_thief(manager, house))
        domi_house_count_behaviour_change(manager, house, before);
}

static int init_state_of_actor(domi_manager *manager, domi_house *house,
                               const domus_behaviour *behaviour, const void *state)
{
    uint32_t offset = get_offset_of_state_in_house(behaviour);

    house->self = house->room + offset;
    if (behaviour->state_size >
        domi_slots_state_bytes_of_class(domi_house_slot_bits(house) & DOMI_SLOT_CLASS) - offset) {
        house->self = domi_memory_new(behaviour->state_size);
        if (house->self == NULL)
            return -ENOMEM;
    }
    if (offset != 0)
        memset(&house->channels, 0, sizeof house->channels);
    house->behaviour = behaviour;
    house->tally = (uint8_t)get_or_give_behaviour_number(manager, behaviour);
    domi_house_set_state_as_at_spawn(house, state);
    return 0;
}

void domi_house_free_state(domi_house *house)
{
    if (house->self != house->room + get_offset_of_state_in_house(house->behaviour) &&
        !domi_house_shares_state(house))
        domi_memory_free(house->self);
    house->self = NULL;
}

/* --- the house -------------------------------------------------------------------------------- */

/* Write into the family of a new actor what the directory makes of it: a routee or a life of a
 * grain. */
static int record_if_routee_or_life_of_grain(domi_house *house, const domi_birth *birth)
{
    domi_family *family = house->family;

    family->load = birth->load;
    if (birth->load != NULL)
        house->marks |= DOMI_MARK_ROUTEE;
    family->grain = birth->grain;
    family->ends_on_failure = birth->ends_on_failure;
    return birth->fill != NULL ? birth->fill(birth->grain, house->self) : 0;
}

/* Make a family at the spawn, for the few houses that need one from the start. `restartable` says
 * that a copy of the actor's first state is kept for restarts. */
__attribute__((noinline)) static int make_family_at_spawn(domi_manager *manager, domi_house *house,
                                                          const void *state, uint64_t idle_ns,
                                                          const domi_birth *birth, bool restartable)
{
    uint32_t bytes = house->behaviour->state_size;
    domi_family *family = domi_family_get_or_make(house);

    if (family == NULL)
        return -ENOMEM;
    if (restartable) {
        family->initial = domi_memory_new(bytes);
        if (family->initial == NULL)
            return -ENOMEM;
        memcpy(family->initial, state, bytes);
    }
    if (house->behaviour->order != NULL) {
        if (domi_order_make_for_house(house) != 0)
            return -ENOMEM;
        house->marks |= DOMI_MARK_ORDERED;
    }
    family->idle_max_ns = idle_ns;
    family->last_ns = manager->now_ns;
    if (idle_ns != 0)
        house->marks |= DOMI_MARK_PASSIVATES;
    return birth != NULL ? record_if_routee_or_life_of_grain(house, birth) : 0;
}

static int init_family_if_needed(domi_manager *manager, domi_house *house, const domi_house *parent,
                                 const void *state, const domus_spawn_options *options,
                                 const domi_birth *birth)
{
    bool restartable = parent != NULL && parent->behaviour->supervision != NULL && state != NULL &&
                       house->behaviour->state_size != 0;
    uint64_t idle_ns = options != NULL ? options->passivate_after_ns : 0;

    if (!restartable && idle_ns == 0 && birth == NULL && house->behaviour->order == NULL)
        return 0;
    return make_family_at_spawn(manager, house, state, idle_ns, birth, restartable);
}

/* Fill a new house, except for its parent, its name and its lease. */
static int init_house(domi_manager *manager, domi_house *house, const domi_house *parent,
                      const domus_behaviour *behaviour, const void *state,
                      const domus_spawn_options *options, const domi_birth *birth)
{
    int error = init_state_of_actor(manager, house, behaviour, state);
    if (error != 0)
        return error;
    house->reason = 0;
    domi_house_set_parent(house, NULL);
    atomic_store_explicit(&house->mail_max, options != NULL ? (uint16_t)options->mailbox_max : 0,
                          memory_order_relaxed);
    if (options != NULL && options->pinned)
        house->marks |= DOMI_MARK_PINNED;
    error = init_family_if_needed(manager, house, parent, state, options, birth);
    if (error != 0) {
        domi_family_free(house);
        domi_house_free_state(house);
        house->marks = 0;
    }
    return error;
}

/* Undo the making of a house that was not published yet, and free its slot. */
static void free_house_that_was_not_published(domi_manager *manager, domi_house *house)
{
    if (house->parent != NULL)
        domi_family_remove_child(house);
    domi_family_free(house);
    domi_house_free_state(house);
    house->marks = 0;
    domi_slots_put_unused_slot_back(manager, house);
}

/* Make a house MOUNTING, without putting it into the queue of houses to be mounted. */
static void begin_mounting_without_queue(domi_manager *manager, domi_house *house)
{
    domi_house_change_state(house, DOMI_MOUNTING);
    domi_counter_add(&manager->births.houses, 1);
}

void domi_house_queue_for_mount(domi_manager *manager, domi_house *house)
{
    begin_mounting_without_queue(manager, house);
    domi_fifo_put(&manager->schedule.mounting, house);
}

/* Set the life word of a complete house: from then on other threads may know its address. */
static void publish_life_word(domi_manager *manager, domi_house *house, domus_address address)
{
    uint64_t life = (uint64_t)address.lease << 32;

    if (domi_house_own_mail_bound(house) != 0)
        life |= DOMI_LIFE_BOUNDED;
    /* release: a thread that gets the address by another way than the inbox sees a complete house,
     * too. */
    if (house->home == manager && atomic_load_explicit(&house->inbox, memory_order_relaxed) == 0) {
        atomic_store_explicit(&house->life, life, memory_order_release);
        domi_house_queue_for_mount(manager, house);
        return;
    }
    atomic_store_explicit(&house->life, life | DOMI_LIFE_NODE, memory_order_release);
    house->node.kind = DOMI_MOUNT;
    house->node.lease = address.lease;
    int error = domi_mailbox_put_slow(manager, house, &house->node);
    DOMI_CHECK(error == 0);
}

int domi_house_spawn_child(domi_manager *manager, domi_house *parent, domi_manager *home,
                           const domus_behaviour *behaviour, const void *state,
                           const domus_spawn_options *options, domus_address *ret_address)
{
    return domi_house_spawn_for_directory(manager, parent, home, behaviour, state, options, NULL,
                                          ret_address);
}

bool domi_house_may_spawn(const domi_manager *manager, const domi_house *parent)
{
    return !manager->ending.closing && !manager->ending.has_stopped &&
           (parent == NULL || (parent->marks & (DOMI_MARK_STOPPING | DOMI_MARK_RESTART)) == 0);
}

/* Log the reason why a behaviour is refused, because its errno has many causes. */
static void log_refused_behaviour(domi_manager *manager, const domus_behaviour *behaviour)
{
    const char *name = domi_behaviour_name(behaviour);
    char text[DOMUS_LOG_TEXT_MAX + 1];

    if (manager->hooks.say == NULL)
        return;
    snprintf(text, sizeof text, "no actor is made of behaviour %s: %s", name,
             domi_behaviour_find_fault(behaviour));
    manager->hooks.say(manager, DOMUS_LOG_WARNING, text);
}

/* Make an actor in a free slot. All counts and lists of the slot are empty, because free_house()
 * checks that. */
static int make_actor_in_free_slot(domi_manager *manager, domi_house *parent, domi_manager *home,
                                   const domus_behaviour *behaviour, const void *state,
                                   const domus_spawn_options *options, const domi_birth *birth,
                                   domus_address *ret_address)
{
    DOMI_CHECK(domi_manager_is_owned_by_caller(manager));
    if (options != NULL && options->mailbox_max > UINT16_MAX)
        return -EINVAL;
    int error = domi_behaviour_check(behaviour);
    if (error != 0) {
        log_refused_behaviour(manager, behaviour);
        return error;
    }
    if (!domi_house_may_spawn(manager, parent))
        return -ESHUTDOWN;

    domi_house *house = domi_slots_take_free_slot(
        manager, home, behaviour->state_size + get_offset_of_state_in_house(behaviour));
    if (house == NULL)
        return -ENOMEM;
    error = init_house(manager, house, parent, behaviour, state, options, birth);
    if (error != 0) {
        domi_slots_put_unused_slot_back(manager, house);
        return error;
    }
    domus_address address = {house, DOMI_LIFE_LEASE(domi_house_life_word(house))};
    if (parent != NULL)
        error = domi_family_add_child(parent, house);
    if (error == 0 && options != NULL && options->name != NULL)
        error = domi_doors.put_name(manager, house, options->name, address);
    if (error != 0) {
        free_house_that_was_not_published(manager, house);
        return error;
    }
    *ret_address = address;
    publish_life_word(manager, house, address);
    return 0;
}

int domi_house_spawn_for_directory(domi_manager *manager, domi_house *parent, domi_manager *home,
                                   const domus_behaviour *behaviour, const void *state,
                                   const domus_spawn_options *options, const domi_birth *birth,
                                   domus_address *ret_address)
{
    if (manager->hooks.begin_spawn != NULL && !manager->hooks.begin_spawn(manager))
        return -ESHUTDOWN;
    int result = make_actor_in_free_slot(manager, parent, home, behaviour, state, options, birth,
                                         ret_address);
    if (manager->hooks.end_spawn != NULL)
        manager->hooks.end_spawn(manager);
    return result;
}

/* --- the house of a channel ------------------------------------------------------------------- */

/* True if the actor may not have a new channel, because it ends, restarts or is not mounted. */
static bool does_owner_end_or_restart(const domi_house *owner)
{
    return (owner->marks & (DOMI_MARK_STOPPING | DOMI_MARK_RESTART | DOMI_MARK_UNMOUNTED)) != 0;
}

/* Give the house of a channel its state: a state of its own, or that of its owner. */
static int init_channel_state(domi_manager *manager, domi_house *house, const domi_house *owner,
                              const domus_behaviour *behaviour, bool shares)
{
    int error = 0;

    if (shares) {
        house->behaviour = behaviour;
        house->tally = (uint8_t)get_or_give_behaviour_number(manager, behaviour);
        house->self = owner->self;
        memset(&house->channels, 0, sizeof house->channels);
    } else {
        error = init_state_of_actor(manager, house, behaviour, NULL);
    }
    house->channels.owns = DOMI_OWNS_CHANNEL;
    house->channels.shares_state = shares;
    return error;
}

int domi_house_spawn_channel(domi_manager *manager, domi_house *owner,
                             const domus_behaviour *behaviour, bool waits, domi_house **ret_house)
{
    const domus_behaviour *of_owner = owner->behaviour;
    bool is_owners = behaviour == NULL && of_owner->channel == NULL;

    if (behaviour == NULL)
        behaviour = is_owners ? of_owner : of_owner->channel;
    bool shares = is_owners || behaviour->shares_state;
    uint32_t bytes = shares ? 0 : behaviour->state_size;

    DOMI_CHECK(domi_manager_is_owned_by_caller(manager) && owner->home == manager);
    if (manager->ending.has_stopped || does_owner_end_or_restart(owner))
        return -ESHUTDOWN;
    domi_house *house = domi_slots_take_free_slot(manager, manager,
                                                  bytes + get_offset_of_state_in_house(behaviour));
    if (house == NULL)
        return -ENOMEM;
    house->reason = 0;
    domi_house_set_parent(house, NULL);
    atomic_store_explicit(&house->mail_max, 0, memory_order_relaxed);
    int error = init_channel_state(manager, house, owner, behaviour, shares);
    if (error != 0) {
        domi_slots_put_unused_slot_back(manager, house);
        return error;
    }
    error = domi_family_add_child(owner, house);
    if (error != 0) {
        free_house_that_was_not_published(manager, house);
        return error;
    }
    *ret_house = house;
    house->channels.waits = waits;
    if (!waits) {
        publish_life_word(manager, house, domi_house_get_address(house));
        return 0;
    }
    begin_mounting_without_queue(manager, house);
    /* release: the comment in publish_life_word() says why. The inbox may hold late mail of an
     * earlier life. */
    atomic_store_explicit(&house->life, (uint64_t)domi_house_get_address(house).lease << 32,
                          memory_order_release);
    return 0;
}

/* --- the house of a connection that is being made --------------------------------------------- */

/* Returns 0 if `owner` may have a channel with this behaviour; else a negative errno. */
static int check_may_own_channel(const domi_house *owner, const domus_behaviour *channel,
                                 bool shares)
{
    int error = domi_behaviour_check(channel);

    if (error != 0)
        return error;
    return channel->kind == DOMUS_CHANNELS && (!shares || owner->behaviour->kind == DOMUS_CHANNELS)
               ? 0
               : -EINVAL;
}

int domi_house_spawn_connecting_actor(domi_manager *manager, domi_house *owner,
                                      const domus_behaviour *now, const domus_behaviour *channel,
                                      bool shares, void *owned, domus_address *ret_address)
{
    uint32_t bytes = shares ? 0 : channel->state_size;

    DOMI_CHECK(domi_manager_is_owned_by_caller(manager) && now->state_size == 0);
    int error = check_may_own_channel(owner, channel, shares);
    if (error != 0)
        return error;
    if (!domi_house_may_spawn(manager, owner) || does_owner_end_or_restart(owner))
        return -ESHUTDOWN;
    domi_house *house = domi_slots_take_free_slot(manager, owner->home,
                                                  bytes + get_offset_of_state_in_house(channel));
    if (house == NULL)
        return -ENOMEM;
    house->reason = 0;
    domi_house_set_parent(house, NULL);
    atomic_store_explicit(&house->mail_max, 0, memory_order_relaxed);
    error = init_channel_state(manager, house, owner, channel, shares);
    if (error != 0) {
        domi_slots_put_unused_slot_back(manager, house);
        return error;
    }
    house->channels.owns = DOMI_OWNS_CONNECT;
    house->channels.owned = owned;
    house->behaviour = now;
    house->tally = (uint8_t)get_or_give_behaviour_number(manager, now);
    error = domi_family_add_child(owner, house);
    if (error != 0) {
        free_house_that_was_not_published(manager, house);
        return error;
    }
    *ret_address = domi_house_get_address(house);
    publish_life_word(manager, house, *ret_address);
    return 0;
}

void domi_house_become_channel(domi_manager *manager, domi_house *house,
                               const domus_behaviour *channel)
{
    DOMI_CHECK(house->channels.owns == DOMI_OWNS_CONNECT);
    house->channels.owns = DOMI_OWNS_CHANNEL;
    house->channels.owned = NULL;
    domi_house_count_under_behaviour(manager, house, channel);
    domi_house_set_behaviour(house, channel);
}
