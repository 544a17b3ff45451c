/* This file lets foreign threads enter the outside (visit.h) and leave it. */
#include "runtime/outside/visit.h"

#include "base/memory.h"
#include "house/dispatch/dispatch.h"
#include "house/dispatch/phases.h"
#include "house/message/pool.h"

#include <errno.h>

void domi_outside_handle_arrivals(domus_system *system)
{
    domi_manager *outside = &system->outside;
    domi_queue *ready = &outside->schedule.ready[DOMUS_STATE];

    outside->now_ns = domi_clock_now(&system->clock);
    (void)domi_manager_take_arrivals(outside);
    if (domi_wheel_next_ns(&outside->timing.deadlines) <= outside->now_ns)
        (void)domi_manager_fire_timers(outside);
    for (domi_house *house = domi_queue_take_house(ready); house != NULL;
         house = domi_queue_take_house(ready))
        (void)domi_house_run_and_settle(outside, house);
}

void domi_outside_lock(domus_system *system)
{
    pthread_mutex_lock(&system->outside_mutex);
    domi_manager_become_owner(&system->outside);
}

bool domi_outside_try_lock(domus_system *system)
{
    if (pthread_mutex_trylock(&system->outside_mutex) != 0)
        return false;
    domi_manager_become_owner(&system->outside);
    return true;
}

void domi_outside_unlock(domus_system *system)
{
    pthread_mutex_unlock(&system->outside_mutex);
}

int domi_outside_enter(domus_system *system, domi_stage last, domi_visit *ret_visit)
{
    if (domi_system_is_forked(system))
        /* a child process must not lock the mutex, because a thread of the parent may have held
         * it at the fork */
        return -ECHILD;
    const domus_allocator *before = domi_memory_set_allocator(system->hooks.allocator);
    domi_outside_lock(system);
    if (system->stage < DOMI_STAGE_RUNNING || system->stage > last) {
        domi_outside_unlock(system);
        (void)domi_memory_set_allocator(before);
        return -ESHUTDOWN;
    }
    *ret_visit = (domi_visit){before, domi_memory_set_meter(&system->pressure.meter)};
    domi_manager_reread_memory_level(&system->outside);
    /* Handle answers that have arrived, although their asking threads may have given up.
     * Relaxed: an answer that is not seen now is handled by a later entry. */
    if (atomic_load_explicit(&system->outside.mail.arrivals, memory_order_relaxed) != NULL)
        domi_outside_handle_arrivals(system);
    return 0;
}

/* Enter the outside to send. While memory is short, the sender is refused before it locks the
 * mutex, so that a thread that tries again and again does not hold up others. */
int domi_outside_enter_to_send(domus_system *system, domi_visit *ret_visit)
{
    uint32_t level = atomic_load_explicit(&system->pressure.own_level, memory_order_relaxed);

    if (level == DOMUS_MEMORY_NORMAL || domi_system_is_forked(system))
        return domi_outside_enter(system, DOMI_LAST_TO_SEND, ret_visit);
    atomic_fetch_add_explicit(&system->pressure.outside_refused, 1, memory_order_relaxed);
    return -EBUSY;
}

void domi_outside_leave(domus_system *system, const domi_visit *visit)
{
    domi_pool_push_chains_to_owners(&system->outside);
    (void)domi_memory_set_meter(visit->counted_before);
    domi_outside_unlock(system);
    (void)domi_memory_set_allocator(visit->before);
}
