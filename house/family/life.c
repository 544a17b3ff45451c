/* Mounts, stops and frees houses; birth.c makes them.
 *
 * The embedded node carries MOUNT and STOP through the inbox. It is in use while the NODE bit of
 * `life` is set. The spawner sets the bit together with the lease, a thread that stops the actor
 * sets it by the compare-exchange that sets STOP, and home clears it when it has taken the node. A
 * slot is not freed before that, so the node is never linked for one life and needed for the
 * next. */
#include "house/family/life.h"

#include "base/check.h"
#include "house/conversation/dead.h"
#include "house/conversation/turn.h"
#include "house/family/family.h"
#include "house/family/passivation.h"
#include "house/family/slots.h"
#include "house/family/watch.h"
#include "house/message/doors.h"
#include "house/message/link.h"
#include "house/message/mailbox.h"
#include "house/message/pooled.h"
#include "house/message/types.h"

#include <errno.h>
#include <string.h>

/* The type that a thread reports while it runs on_stop, which has no message. */
static const domus_type stop_type = {.name = "on_stop"};

/* Returns the lease that the slot's next life gets; 0 if the leases are used up. */
static uint32_t get_next_lease_of_slot(const domi_house *house)
{
    return DOMI_LIFE_LEASE(domi_house_life_word(house)) + 1;
}

static void free_house(domi_manager *manager, domi_house *house)
{
    /* The house's own watches are cancelled before it is closed: a thread that finds this watcher
     * closed ends a leg of its watch, and must not find the watch in the watcher's list. */
    domi_watch_take_back_all_of_house(manager, house);
    /* From here on no thread puts anything into this house, not even the functions below, which
     * drop its mail. */
    atomic_fetch_or_explicit(&house->life, DOMI_LIFE_CLOSED, memory_order_relaxed);
    domi_doors.leave_directory(manager, house);
    domi_watch_tell_all_of_end(manager, house);
    domi_link_cancel_attached_objects(manager, house);
    if (house->behaviour->kind == DOMUS_CHANNELS)
        manager->io_hooks.return_mail(manager, house);
    domi_mailbox_drop_mail_of_house(manager, house, true);
    domi_stack_free_all_of_house(manager, house);
    DOMI_CHECK(house->attached == NULL && domi_house_count_parked_conversations(house) == 0);
    domi_family_free(house);
    domi_house_free_state(house);
    house->marks = 0; /* a free slot must have no marks, because init_house() only adds marks */
    /* A timer of a pooled actor that ends may have been postponed, and was cancelled since, so the
     * slot's bit for that is cleared. */
    domi_house_set_slot_bits(house, domi_house_slot_bits(house) & DOMI_SLOT_CLASS);

    uint32_t lease = get_next_lease_of_slot(house);
    domi_house_change_state(house, DOMI_CREATED);
    /* A stop that comes late may still try its compare-exchange; it finds another lease and fails.
     * Mail that comes late into the inbox carries the old lease, and home makes it dead letters
     * when it sorts the inbox. */
    atomic_store_explicit(&house->life, (uint64_t)lease << 32 | DOMI_LIFE_CLOSED,
                          memory_order_release);
    domi_counter_add(&manager->births.houses, UINT64_MAX);
    if (!domi_family_remove_ended_child(manager, house)) {
        /* the slot of a child is freed when its parent knows of the end */
        house->marks = DOMI_MARK_DEAD;
        return;
    }
    domi_house_free_dead_slot(manager, house);
}

void domi_house_free_dead_slot(domi_manager *manager, domi_house *house)
{
    uint32_t lease = DOMI_LIFE_LEASE(domi_house_life_word(house));

    house->marks = 0;
    /* A lease is never used twice: if none is left, the slot is retired (M10). When the system
     * ends, mail from an on_stop may have linked the house into a queue by its `next`, which a list
     * of free slots needs, too. */
    if (lease != 0 && !manager->ending.has_stopped)
        domi_slots_free_slot(manager, house);
}

DOMI_NO_CANARY int domi_house_call_on_mount_in_run(domi_manager *manager, domi_house *house)
{
    const domus_behaviour *behaviour = house->behaviour;
    domus_stack stack;
    domus_stack *used = &stack;

    if (behaviour->on_mount == NULL || domi_house_shares_state(house))
        return 0;
    domi_stack_begin_without_message(&stack, manager, house);
    if (behaviour->mount_frame_size != 0)
        used = domi_stack_new(manager, house, behaviour->mount_frame_size);
    if (used == NULL)
        return -ENOMEM;
    domi_turn_begin(used, &domi_mount_type);
    int result = behaviour->on_mount(used, house->self);
    if (used->pooled != NULL)
        used->pooled->begun_by = &domi_mount_type;
    return domi_turn_end_of_callback(used, result);
}

int domi_house_call_on_mount(domi_manager *manager, domi_house *house)
{
    if (house->behaviour->on_mount == NULL)
        return 0;
    domi_run_begin(manager, house);
    int result = domi_house_call_on_mount_in_run(manager, house);
    domi_run_end(manager);
    return result;
}

void domi_house_record_failed_mount(domi_manager *manager, domi_house *house, int error)
{
    house->marks |= DOMI_MARK_UNMOUNTED;
    /* The parent decides on a restart or a stop, and each of them cancels the timers. Until then a
     * periodic timer would only wake the house. Watches stay, because a link has to stop its other
     * end. */
    domi_link_cancel_attached_objects(manager, house);
    if (house->behaviour->kind == DOMUS_CHANNELS &&
        manager->io_hooks.channel_failed(manager, house, error))
        domi_house_stop_after_run(house);
    else
        domi_family_report_failure_or_decide(manager, house, error, true);
}

/* Open the channel of an actor that was mounted. To do it in the actor's first run would be too
 * late, because that takes messages before it looks at the channel. */
static void open_channel_of_mounted_actor(domi_manager *manager, domi_house *house)
{
    domi_run_begin(manager, house);
    manager->io_hooks.open_channel(manager, house);
    domi_run_end(manager);
}

void domi_house_mount_actor(domi_manager *manager, domi_house *house)
{
    int result = 0;

    if ((domi_house_life_word(house) & DOMI_LIFE_STOP) != 0)
        /* a stop has come before the actor began, so neither on_mount nor on_stop is called */
        house->marks |= DOMI_MARK_UNMOUNTED;
    else
        result = domi_house_call_on_mount(manager, house);
    domi_counter_add(&manager->counters.spawns, 1);
    domi_counter_add(&manager->tallies[house->tally].begun, 1);
    if (result < 0)
        domi_house_record_failed_mount(manager, house, result);
    if (domi_house_may_run_channels(house))
        open_channel_of_mounted_actor(manager, house);
    if ((house->marks & (DOMI_MARK_PASSIVATES | DOMI_MARK_UNMOUNTED)) == DOMI_MARK_PASSIVATES)
        domi_house_check_idle_time(manager, house);
    domi_house_change_state(house, DOMI_WAITING);
    if ((domi_house_life_word(house) & DOMI_LIFE_STOP) != 0 || domi_house_is_runnable(house))
        domi_house_make_ready(manager, house);
}

void domi_house_begin_stop(domi_manager *manager, domi_house *house)
{
    house->marks |= DOMI_MARK_STOPPING;
    if (house->behaviour->kind == DOMUS_CHANNELS)
        manager->io_hooks.return_mail(manager, house);
    domi_mailbox_drop_mail_of_house(manager, house, false);
    domi_stack_cancel_all_parked_of_house(manager, house);
    domi_link_cancel_attached_objects(manager, house);
    domi_watch_take_back_all_of_house(manager, house);
    domi_family_stop_children(manager, house);
    if (house->behaviour->kind == DOMUS_CHANNELS)
        (void)manager->io_hooks.stop_channels(manager, house);
}

DOMI_NO_CANARY void domi_house_call_on_stop(domi_manager *manager, domi_house *house)
{
    const domus_behaviour *behaviour = house->behaviour;

    if (behaviour->on_stop == NULL || (house->marks & DOMI_MARK_UNMOUNTED) != 0 ||
        domi_house_shares_state(house))
        return;
    domus_stack stack;
    domi_stack_begin_without_message(&stack, manager, house);
    domi_run_begin(manager, house);
    domi_turn_begin(&stack, &stop_type);
    behaviour->on_stop(&stack, house->self);
    domi_turn_end(&stack, 0);
    domi_run_end(manager);
}

/* True if the house's own node is under way. If not, nobody can use it any more: only a hasty stop
 * could still take it, and does nothing once HASTE is set. */
static bool is_own_node_under_way(domi_house *house)
{
    uint64_t life = domi_house_life_word(house);

    if (house->parent != NULL && (life & DOMI_LIFE_HASTE) == 0)
        /* Relaxed: HASTE and NODE are bits of one word, and a caller that sees HASTE does
         * nothing. */
        life = atomic_fetch_or_explicit(&house->life, DOMI_LIFE_HASTE, memory_order_relaxed);
    return (life & DOMI_LIFE_NODE) != 0;
}

bool domi_house_try_to_end_stop(domi_manager *manager, domi_house *house)
{
    bool channels = house->behaviour->kind == DOMUS_CHANNELS &&
                    manager->io_hooks.stop_channels(manager, house) != 0;

    bool children = domi_house_count_children(house) != 0;

    domi_family_stop_children_hastily(manager, house);
    if (channels || children || house->stacks != NULL || is_own_node_under_way(house))
        return false;
    /* A slot is freed only if its inbox was just emptied. If mail has come since, it is sorted
     * first, and the house comes back to this function. The mark that a pool's runner leaves in the
     * inbox is no mail. */
    uint64_t inbox = atomic_load_explicit(&house->inbox, memory_order_relaxed);
    if (inbox != 0 && !(inbox == DOMI_INBOX_BUSY && domi_house_is_pooled(house)))
        return false;
    domi_house_call_on_stop(manager, house);
    domi_counter_add(&manager->counters.stops, 1);
    domi_counter_add(&manager->tallies[house->tally].ended, 1);
    free_house(manager, house);
    return true;
}

void domi_house_end_with_system(domi_manager *manager, domi_house *house)
{
    bool mounted = house->state != DOMI_CREATED && house->state != DOMI_MOUNTING;

    if ((domi_house_life_word(house) & DOMI_LIFE_CLOSED) != 0)
        return;
    if (!manager->ending.work_over && domi_stack_has_blocking_work(house))
        /* abandoned blocking work still uses the house, so the house is left as it is, and so is
         * the memory of the system */
        return;
    if (house->state == DOMI_CREATED)
        domi_house_queue_for_mount(manager, house);
    if (house->behaviour->kind == DOMUS_CHANNELS &&
        manager->io_hooks.stop_channels(manager, house) != 0)
        /* the kernel still uses the memory of the channel or acceptor, so it is leaked */
        house->channels.owned = NULL;
    if (mounted) {
        /* the mark keeps on_stop from beginning anything, as in every stop */
        house->marks |= DOMI_MARK_STOPPING;
        domi_house_call_on_stop(manager, house);
        domi_counter_add(&manager->counters.stops, 1);
        domi_counter_add(&manager->tallies[house->tally].ended, 1);
        /* the house was interrupted in any state, so the table of moves is not used */
        house->state = DOMI_RUNNING;
    }
    free_house(manager, house);
}
