/* See the header.
 *
 * The embedded node carries MOUNT and STOP through the inbox. It is in use while the NODE bit of
 * `life` is set: the spawner sets it with the lease, a stopper by the compare-exchange that sets
 * STOP, home clears it when it has taken the node. A slot is not freed before, so the node is
 * never linked for one life and needed for the next. */
#include "house/life.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/mailbox.h"
#include "house/slots.h"
#include "house/stack.h"
#include "house/timer.h"

#include <errno.h>
#include <string.h>

static uint64_t life_of(const domi_house *house)
{
    return atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)&house->life, memory_order_relaxed);
}

static int state_init(domi_house *house, const domus_behaviour *behaviour, const void *state)
{
    uint32_t bytes = behaviour->state_size;

    house->self = house->room;
    if (bytes > domi_slots_room(house->size_class)) {
        house->self = domi_memory_new(bytes);
        if (house->self == NULL)
            return -ENOMEM;
    }
    if (state != NULL)
        memcpy(house->self, state, bytes);
    else
        memset(house->self, 0, bytes);
    return 0;
}

static bool is_whole(const domus_behaviour *behaviour)
{
    if (behaviour == NULL || behaviour->state_size > DOMI_HOUSE_STATE_MAX ||
        (behaviour->kind != DOMUS_STATE && behaviour->kind != DOMUS_CHANNELS))
        return false;
    for (const domus_on *on = behaviour->on; on != NULL && on->type != NULL; on++) {
        if (on->frame_size > DOMUS_FRAME_MAX || on->handle == NULL)
            return false;
    }
    return true;
}

/* A slot comes back with all that was counted or linked in it gone (house_free checks that). */
int domi_house_spawn(domi_manager *manager, domi_manager *home, const domus_behaviour *behaviour,
                     const void *state, domus_address *ret_address)
{
    if (!is_whole(behaviour))
        return -EINVAL;
    if (manager->stopping)
        return -ESHUTDOWN;

    domi_house *house = domi_slots_take(manager, home, behaviour->state_size);
    if (house == NULL)
        return -ENOMEM;
    int error = state_init(house, behaviour, state);
    if (error != 0) {
        domi_slots_keep(manager, house);
        return error;
    }
    house->behaviour = behaviour;

    uint32_t lease = DOMI_LIFE_LEASE(life_of(house));
    *ret_address = (domus_address){house, lease};
    /* release: who gets the address by another way than the inbox sees a whole house. */
    if (home == manager && atomic_load_explicit(&house->inbox, memory_order_relaxed) == 0) {
        atomic_store_explicit(&house->life, (uint64_t)lease << 32, memory_order_release);
        domi_house_mounting(manager, house);
        return 0;
    }
    atomic_store_explicit(&house->life, (uint64_t)lease << 32 | DOMI_LIFE_NODE,
                          memory_order_release);
    house->node.kind = DOMI_MOUNT;
    house->node.lease = lease;
    error = domi_mailbox_put_slow(manager, house, &house->node);
    DOMI_CHECK(error == 0);
    return 0;
}

void domi_house_mounting(domi_manager *manager, domi_house *house)
{
    domi_house_move(house, DOMI_MOUNTING);
    domi_fifo_put(&manager->mounting, house);
    manager->houses++;
}

/* The next life's lease; 0 when they are used up. */
static uint32_t next_lease(const domi_house *house)
{
    return DOMI_LIFE_LEASE(life_of(house)) + 1;
}

static void house_free(domi_manager *manager, domi_house *house)
{
    /* From here on nothing is put here, not even by what is dropped below. */
    atomic_fetch_or_explicit(&house->life, DOMI_LIFE_CLOSED, memory_order_relaxed);
    domi_timer_cancel_all(manager, house);
    domi_mailbox_empty(manager, house, true);
    domi_stack_drop_all(manager, house);
    DOMI_CHECK(house->timers == NULL && house->stacks_count == 0 && house->channels == NULL);
    if (house->self != house->room)
        domi_memory_free(house->self);
    house->self = NULL;
    house->marks = 0; /* here, not at the next birth: home reads it when late mail is sorted */

    uint32_t lease = next_lease(house);
    domi_house_move(house, DOMI_CREATED);
    /* A late stop may still try its compare-exchange; it finds another lease and fails. What is
     * late in the inbox carries the old lease; home turns it into dead letters when it sorts. */
    atomic_store_explicit(&house->life, (uint64_t)lease << 32 | DOMI_LIFE_CLOSED,
                          memory_order_release);
    manager->houses--;
    /* A lease is never reused: without one the slot is retired (M10). At the end of the system the
     * house may be in a queue still, by mail from an on_stop, and `next` has one use only. */
    if (lease != 0 && !manager->stopping)
        domi_slots_put(manager, house);
}

void domi_house_mount(domi_manager *manager, domi_house *house)
{
    int result = 0;

    if ((life_of(house) & DOMI_LIFE_STOP) != 0) {
        house->marks |= DOMI_MARK_NO_STOP; /* it never began: neither on_mount nor on_stop */
    } else if (house->behaviour->on_mount != NULL) {
        domus_stack stack = {.manager = manager};
        atomic_init(&stack.house, house);
        result = house->behaviour->on_mount(&stack, house->self);
        domi_stack_return(&stack, result);
    }
    if (result < 0) {
        house->marks |= DOMI_MARK_NO_STOP;
        atomic_fetch_or_explicit(&house->life, DOMI_LIFE_STOP, memory_order_relaxed);
    }
    domi_counter_add(&manager->counters.spawns, 1);
    domi_house_move(house, DOMI_WAITING);
    if ((life_of(house) & DOMI_LIFE_STOP) != 0 || domi_house_runnable(house))
        domi_house_ready(manager, house);
}

int domi_house_stop(domi_manager *manager, domus_address address)
{
    domi_house *house = address.house;
    if (house == NULL)
        return -ESTALE;

    uint64_t life = life_of(house);
    uint64_t next;
    do {
        if (DOMI_LIFE_LEASE(life) != address.lease || (life & DOMI_LIFE_CLOSED) != 0)
            return -ESTALE;
        if ((life & DOMI_LIFE_STOP) != 0)
            return 0;
        next = life | DOMI_LIFE_STOP;
        if (house->home != manager)
            next |= DOMI_LIFE_NODE;
        /* One word holds lease and bits: a stale stop cannot hit the slot's next actor (M9).
         * acquire: pairs with home's release of the node in sort_one(). */
    } while (!atomic_compare_exchange_weak_explicit(&house->life, &life, next, memory_order_acquire,
                                                    memory_order_relaxed));
    if (house->home == manager) {
        domi_house_stop_seen(manager, house);
    } else if ((life & DOMI_LIFE_NODE) == 0) {
        house->node.kind = DOMI_STOP;
        house->node.lease = address.lease;
        int error = domi_mailbox_put_slow(manager, house, &house->node);
        /* The NODE bit keeps the house, but not through the end of its thread. */
        DOMI_CHECK(error == 0 || manager->stopping);
        return error;
    } /* else its mount node is under way, and home looks at STOP when it mounts */
    return 0;
}

void domi_house_stop_seen(domi_manager *manager, domi_house *house)
{
    /* CREATED and MOUNTING: mount sees it. READY and later: the runner does. */
    if (house->state == DOMI_WAITING)
        domi_house_ready(manager, house);
}

void domi_house_stop_begin(domi_manager *manager, domi_house *house)
{
    house->marks |= DOMI_MARK_STOPPING;
    domi_mailbox_empty(manager, house, false);
    if (manager->stop_channels != NULL && house->behaviour->kind == DOMUS_CHANNELS)
        (void)manager->stop_channels(manager, house);
}

static void run_on_stop(domi_manager *manager, domi_house *house)
{
    const domus_behaviour *behaviour = house->behaviour;

    if (behaviour->on_stop == NULL || (house->marks & DOMI_MARK_NO_STOP) != 0)
        return;
    domus_stack stack = {.manager = manager};
    atomic_init(&stack.house, house);
    behaviour->on_stop(&stack, house->self);
    domi_stack_return(&stack, 0);
}

bool domi_house_stop_end(domi_manager *manager, domi_house *house)
{
    bool channels = manager->stop_channels != NULL && house->behaviour->kind == DOMUS_CHANNELS &&
                    manager->stop_channels(manager, house) != 0;

    if (channels || house->stacks != NULL || (life_of(house) & DOMI_LIFE_NODE) != 0)
        return false;
    /* A slot is freed only when its inbox was just taken: sort first, which comes back here. */
    if (atomic_load_explicit(&house->inbox, memory_order_relaxed) != 0)
        return false;
    run_on_stop(manager, house);
    domi_counter_add(&manager->counters.stops, 1);
    house_free(manager, house);
    return true;
}

void domi_house_end(domi_manager *manager, domi_house *house)
{
    bool mounted = house->state != DOMI_CREATED && house->state != DOMI_MOUNTING;

    if ((life_of(house) & DOMI_LIFE_CLOSED) != 0)
        return;
    if (house->state == DOMI_CREATED)
        domi_house_mounting(manager, house);
    if (manager->stop_channels != NULL && house->behaviour->kind == DOMUS_CHANNELS &&
        manager->stop_channels(manager, house) != 0)
        house->channels = NULL; /* the kernel still has them: leaked rather than freed under it */
    if (mounted) {
        run_on_stop(manager, house);
        domi_counter_add(&manager->counters.stops, 1);
        house->state = DOMI_RUNNING; /* wherever it was: its thread has ended */
    }
    house_free(manager, house);
}
