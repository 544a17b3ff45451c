/* In this file houses are born, mounted, stopped and freed.
 *
 * The embedded node carries MOUNT and STOP through the inbox. It is in use while the NODE bit
 * of `life` is set. The spawner sets the bit together with the lease, a thread that stops the
 * actor sets it by the compare-exchange that sets STOP, and home clears it when it has taken
 * the node. A slot is not freed before that, so the node is never linked for one life and
 * needed for the next. */
#include "house/family/life.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/conversation/dead.h"
#include "house/conversation/turn.h"
#include "house/family/family.h"
#include "house/family/passivation.h"
#include "house/family/slots.h"
#include "house/family/watch.h"
#include "house/message/doors.h"
#include "house/message/link.h"

#include <errno.h>
#include <string.h>

/* Callbacks have no message. These types stand for them when a thread says what it handles. */
static const domus_type mount_type = {.name = "on_mount"};
static const domus_type stop_type = {.name = "on_stop"};

/* Returns the offset of the actor's state in the room of its house. The state of a channels actor
 * stands behind the fields `channels`, which io uses. */
static uint32_t state_offset(const domus_behaviour *behaviour)
{
    return behaviour->kind == DOMUS_CHANNELS ? (uint32_t)sizeof(((domi_house *)NULL)->channels) : 0;
}

void domi_house_state_set(domi_house *house, const void *state)
{
    uint32_t bytes = house->behaviour->state_size;

    if (state != NULL)
        memcpy(house->self, state, bytes);
    else
        memset(house->self, 0, bytes);
}

static int state_init(domi_house *house, const domus_behaviour *behaviour, const void *state)
{
    uint32_t offset = state_offset(behaviour);

    house->self = house->room + offset;
    if (behaviour->state_size >
        domi_slots_state_bytes(domi_house_slot(house) & DOMI_SLOT_CLASS) - offset) {
        house->self = domi_memory_new(behaviour->state_size);
        if (house->self == NULL)
            return -ENOMEM;
    }
    if (offset != 0)
        memset(&house->channels, 0, sizeof house->channels);
    house->behaviour = behaviour;
    domi_house_state_set(house, state);
    return 0;
}

static void state_fini(domi_house *house)
{
    if (house->self != house->room + state_offset(house->behaviour))
        domi_memory_free(house->self);
    house->self = NULL;
}

static bool is_whole(const domus_behaviour *behaviour)
{
    if (behaviour == NULL || behaviour->state_size > DOMI_HOUSE_STATE_MAX ||
        behaviour->mount_frame_size > DOMUS_FRAME_MAX ||
        (behaviour->kind != DOMUS_STATE && behaviour->kind != DOMUS_CHANNELS))
        return false;
    const domus_on *on = behaviour->on;
    for (; on != NULL && on->type != NULL; on++) {
        if (on->frame_size > DOMUS_FRAME_MAX || on->handle == NULL)
            return false;
    }
    return on == NULL || on->frame_size <= DOMUS_FRAME_MAX;
}

bool domi_behaviour_is_whole(const domus_behaviour *behaviour)
{
    return is_whole(behaviour);
}

/* Make a family at the spawn, for the few houses that need one from the start. */
static int family_init(domi_manager *manager, domi_house *house, const domi_house *parent,
                       const void *state, const domus_spawn_options *options,
                       _Atomic uint32_t *load)
{
    uint32_t bytes = house->behaviour->state_size;
    bool restartable =
        parent != NULL && parent->behaviour->supervision != NULL && state != NULL && bytes != 0;
    uint64_t idle_ns = options != NULL ? options->passivate_after_ns : 0;

    if (!restartable && idle_ns == 0 && load == NULL)
        return 0;
    domi_family *family = domi_family_of(house);
    if (family == NULL)
        return -ENOMEM;
    if (restartable) {
        family->initial = domi_memory_new(bytes);
        if (family->initial == NULL)
            return -ENOMEM;
        memcpy(family->initial, state, bytes);
    }
    family->idle_max_ns = idle_ns;
    family->last_ns = manager->now_ns;
    if (idle_ns != 0)
        house->marks |= DOMI_MARK_PASSIVATES;
    family->load = load;
    if (load != NULL)
        house->marks |= DOMI_MARK_ROUTEE;
    return 0;
}

/* Fill a new house, except for its parent, its name and its lease. */
static int house_init(domi_manager *manager, domi_house *house, const domi_house *parent,
                      const domus_behaviour *behaviour, const void *state,
                      const domus_spawn_options *options, _Atomic uint32_t *load)
{
    int error = state_init(house, behaviour, state);
    if (error != 0)
        return error;
    house->reason = 0;
    house->parent = NULL;
    atomic_store_explicit(&house->mail_max, options != NULL ? (uint16_t)options->mailbox_max : 0,
                          memory_order_relaxed);
    if (options != NULL && options->pinned)
        house->marks |= DOMI_MARK_PINNED;
    error = family_init(manager, house, parent, state, options, load);
    if (error != 0) {
        domi_family_free(house);
        state_fini(house);
        house->marks = 0;
    }
    return error;
}

static void undo_house(domi_manager *manager, domi_house *house)
{
    if (house->parent != NULL)
        domi_family_remove_child(house);
    domi_family_free(house);
    state_fini(house);
    house->marks = 0;
    domi_slots_untake(manager, house);
}

/* Set the life word of a complete house: from here on other threads may know its address. */
static void publish_life(domi_manager *manager, domi_house *house, domus_address address)
{
    uint64_t life = (uint64_t)address.lease << 32;

    if (domi_house_mail_max(house) != 0)
        life |= DOMI_LIFE_BOUNDED;
    /* release: a thread that gets the address in another way than through the inbox also sees a
     * complete house. */
    if (house->home == manager && atomic_load_explicit(&house->inbox, memory_order_relaxed) == 0) {
        atomic_store_explicit(&house->life, life, memory_order_release);
        domi_house_queue_mount(manager, house);
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
    return domi_house_spawn_routee(manager, parent, home, behaviour, state, options, NULL,
                                   ret_address);
}

/* Make an actor in a free slot. All counts and lists of the slot are empty, because house_free()
 * checks that. */
static int spawn(domi_manager *manager, domi_house *parent, domi_manager *home,
                 const domus_behaviour *behaviour, const void *state,
                 const domus_spawn_options *options, _Atomic uint32_t *load,
                 domus_address *ret_address)
{
    DOMI_CHECK(domi_manager_is_mine(manager));
    if (!is_whole(behaviour) || (options != NULL && options->mailbox_max > UINT16_MAX))
        return -EINVAL;
    if (manager->ending.closing || manager->ending.has_stopped ||
        (parent != NULL && (parent->marks & (DOMI_MARK_STOPPING | DOMI_MARK_RESTART)) != 0))
        return -ESHUTDOWN;

    domi_house *house =
        domi_slots_take(manager, home, behaviour->state_size + state_offset(behaviour));
    if (house == NULL)
        return -ENOMEM;
    int error = house_init(manager, house, parent, behaviour, state, options, load);
    if (error != 0) {
        domi_slots_untake(manager, house);
        return error;
    }
    domus_address address = {house, DOMI_LIFE_LEASE(domi_house_life(house))};
    if (parent != NULL)
        error = domi_family_add_child(parent, house);
    if (error == 0 && options != NULL && options->name != NULL)
        error = domi_doors.put_name(manager, house, options->name, address);
    if (error != 0) {
        undo_house(manager, house);
        return error;
    }
    *ret_address = address;
    publish_life(manager, house, address);
    return 0;
}

int domi_house_spawn_routee(domi_manager *manager, domi_house *parent, domi_manager *home,
                            const domus_behaviour *behaviour, const void *state,
                            const domus_spawn_options *options, _Atomic uint32_t *load,
                            domus_address *ret_address)
{
    if (manager->hooks.begin_spawn != NULL && !manager->hooks.begin_spawn(manager))
        return -ESHUTDOWN;
    int result = spawn(manager, parent, home, behaviour, state, options, load, ret_address);
    if (manager->hooks.end_spawn != NULL)
        manager->hooks.end_spawn(manager);
    return result;
}

void domi_house_queue_mount(domi_manager *manager, domi_house *house)
{
    domi_house_move(house, DOMI_MOUNTING);
    domi_fifo_put(&manager->schedule.mounting, house);
    domi_counter_add(&manager->births.houses, 1);
}

/* Returns the lease of the next life; 0 if the leases are used up. */
static uint32_t next_lease(const domi_house *house)
{
    return DOMI_LIFE_LEASE(domi_house_life(house)) + 1;
}

static void house_free(domi_manager *manager, domi_house *house)
{
    /* Before the house is closed: a thread that finds this watcher closed ends a leg of its watch,
     * and must not find the watch in the watcher's list. */
    domi_watch_cancel_all(manager, house);
    /* From here on nothing is put into this house, not even by the functions below that drop its
     * mail. */
    atomic_fetch_or_explicit(&house->life, DOMI_LIFE_CLOSED, memory_order_relaxed);
    domi_doors.leave_directory(manager, house);
    domi_watch_fire_all(manager, house);
    domi_link_cancel_all(manager, house);
    domi_mailbox_empty(manager, house, true);
    domi_stack_drop_all(manager, house);
    DOMI_CHECK(house->attached == NULL && house->stacks_count == 0);
    domi_family_free(house);
    state_fini(house);
    house->marks = 0; /* a free slot has no marks: house_init() only adds some */

    uint32_t lease = next_lease(house);
    domi_house_move(house, DOMI_CREATED);
    /* A late stop may still try its compare-exchange; it finds another lease and fails. Late mail
     * in the inbox carries the old lease, and home turns it into dead letters when it sorts. */
    atomic_store_explicit(&house->life, (uint64_t)lease << 32 | DOMI_LIFE_CLOSED,
                          memory_order_release);
    domi_counter_add(&manager->births.houses, UINT64_MAX);
    if (!domi_family_remove_ended(manager, house)) {
        house->marks = DOMI_MARK_DEAD; /* the slot is freed when its parent has heard of the end */
        return;
    }
    domi_house_free_returned(manager, house);
}

void domi_house_free_returned(domi_manager *manager, domi_house *house)
{
    uint32_t lease = DOMI_LIFE_LEASE(domi_house_life(house));

    house->marks = 0;
    /* A lease is never used twice: if none is left, the slot is retired (M10). When the system
     * ends, mail from an on_stop may have put the house into a queue by its `next`, which a free
     * list would need, too. */
    if (lease != 0 && !manager->ending.has_stopped)
        domi_slots_put(manager, house);
}

DOMI_NO_CANARY int domi_house_run_mount(domi_manager *manager, domi_house *house)
{
    const domus_behaviour *behaviour = house->behaviour;
    domus_stack stack;
    domus_stack *used = &stack;

    if (behaviour->on_mount == NULL)
        return 0;
    domi_stack_begin(&stack, manager, house);
    if (behaviour->mount_frame_size != 0)
        used = domi_stack_new(manager, house, behaviour->mount_frame_size);
    if (used == NULL)
        return -ENOMEM;
    domi_run_begin(manager, house);
    domi_turn_begin(used, &mount_type);
    int result = domi_turn_end_untold(used, behaviour->on_mount(used, house->self));
    domi_run_end(manager);
    return result;
}

void domi_house_fail_mount(domi_manager *manager, domi_house *house, int error)
{
    house->marks |= DOMI_MARK_UNMOUNTED;
    /* The parent decides on a restart or a stop, and both take the timers back. Until then a
     * periodic timer would only wake the house. Watches stay, because a link has to stop its other
     * end. */
    domi_link_cancel_all(manager, house);
    domi_family_handle_failure(manager, house, error, true);
}

void domi_house_mount(domi_manager *manager, domi_house *house)
{
    int result = 0;

    if ((domi_house_life(house) & DOMI_LIFE_STOP) != 0)
        /* the actor never began, so neither on_mount nor on_stop is called */
        house->marks |= DOMI_MARK_UNMOUNTED;
    else
        result = domi_house_run_mount(manager, house);
    domi_counter_add(&manager->counters.spawns, 1);
    if (result < 0)
        domi_house_fail_mount(manager, house, result);
    if ((house->marks & (DOMI_MARK_PASSIVATES | DOMI_MARK_UNMOUNTED)) == DOMI_MARK_PASSIVATES)
        domi_house_look_at_idle_time(manager, house);
    domi_house_move(house, DOMI_WAITING);
    if ((domi_house_life(house) & DOMI_LIFE_STOP) != 0 || domi_house_is_runnable(house))
        domi_house_make_ready(manager, house);
}

void domi_house_stop_begin(domi_manager *manager, domi_house *house)
{
    house->marks |= DOMI_MARK_STOPPING;
    domi_mailbox_empty(manager, house, false);
    domi_stack_cancel_all(manager, house);
    domi_link_cancel_all(manager, house);
    domi_watch_cancel_all(manager, house);
    (void)domi_family_stop_children(manager, house);
    if (house->behaviour->kind == DOMUS_CHANNELS)
        (void)manager->io_hooks.stop_channels(manager, house);
}

DOMI_NO_CANARY void domi_house_run_stop(domi_manager *manager, domi_house *house)
{
    const domus_behaviour *behaviour = house->behaviour;

    if (behaviour->on_stop == NULL || (house->marks & DOMI_MARK_UNMOUNTED) != 0)
        return;
    domus_stack stack;
    domi_stack_begin(&stack, manager, house);
    domi_run_begin(manager, house);
    domi_turn_begin(&stack, &stop_type);
    behaviour->on_stop(&stack, house->self);
    domi_turn_end(&stack, 0);
    domi_run_end(manager);
}

bool domi_house_stop_end(domi_manager *manager, domi_house *house)
{
    bool channels = house->behaviour->kind == DOMUS_CHANNELS &&
                    manager->io_hooks.stop_channels(manager, house) != 0;

    bool children = domi_house_count_children(house) != 0;

    if (channels || children || house->stacks != NULL ||
        (domi_house_life(house) & DOMI_LIFE_NODE) != 0)
        return false;
    /* A slot is freed only if its inbox was just emptied. If there is more in it, that is sorted
     * first, and the house comes back here. */
    if (atomic_load_explicit(&house->inbox, memory_order_relaxed) != 0)
        return false;
    domi_house_run_stop(manager, house);
    domi_counter_add(&manager->counters.stops, 1);
    house_free(manager, house);
    return true;
}

void domi_house_end_left(domi_manager *manager, domi_house *house)
{
    bool mounted = house->state != DOMI_CREATED && house->state != DOMI_MOUNTING;

    if ((domi_house_life(house) & DOMI_LIFE_CLOSED) != 0)
        return;
    if (!manager->ending.work_over && domi_stack_has_work(house))
        return; /* work was abandoned and still uses the house: leave it as it is, and the system's
                   memory, too */
    if (house->state == DOMI_CREATED)
        domi_house_queue_mount(manager, house);
    if (house->behaviour->kind == DOMUS_CHANNELS &&
        manager->io_hooks.stop_channels(manager, house) != 0)
        house->channels.set = NULL; /* the kernel still uses them, so they are leaked */
    if (mounted) {
        /* so that its on_stop cannot begin anything, as in every stop */
        house->marks |= DOMI_MARK_STOPPING;
        domi_house_run_stop(manager, house);
        domi_counter_add(&manager->counters.stops, 1);
        /* its thread has ended, so its state may be any, and the table of moves is not used */
        house->state = DOMI_RUNNING;
    }
    house_free(manager, house);
}
