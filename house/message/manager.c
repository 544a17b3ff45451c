/* Identifies threads, each by the address of a thread-local variable; wakes other threads, or
 * records that they have to be woken. */
#include "house/message/manager.h"

#include "base/check.h"
#include "base/probe.h"

_Thread_local char domi_here;

void domi_manager_open_or_close_home_lane(domi_manager *manager)
{
    manager->mail.lane_max =
        manager->memory.busy || manager->mail.lent ? 0 : manager->limits.mailbox_max;
}

void domi_manager_set_runs_lent_house(domi_manager *manager, bool lent)
{
    if (manager->belts.to == NULL)
        return;
    manager->mail.lent = lent;
    domi_manager_open_or_close_home_lane(manager);
}

void domi_manager_set_memory_level(domi_manager *manager, uint32_t level)
{
    DOMI_CHECK(domi_manager_is_owned_by_caller(manager));
    manager->memory.pressure_seen = level;
    manager->memory.busy = level >= DOMUS_MEMORY_CRITICAL;
    domi_manager_open_or_close_home_lane(manager);
}

void domi_manager_wake_owner(domi_manager *self, domi_manager *target)
{
    if (!domi_park_try_notify(&target->park))
        return;
    domi_counter_add(&self->counters.wakeups_sent, 1);
    DOMI_PROBE_2(wake, self->index, target);
    if (target->hooks.wake != NULL)
        target->hooks.wake(target);
}

/* Record that the owner of a manager sleeps and has to be woken later. Returns false if there is no
 * room for one more. */
static bool record_sleeper_to_wake_later(domi_manager *self, uint32_t index)
{
    domi_sleepers *sleepers = &self->sleepers;

    if (sleepers->count == 0)
        sleepers->since_ns = self->hooks.read_clock(self);
    for (uint32_t i = 0; i < sleepers->count; i++) {
        if (sleepers->indices[i] == index)
            return true;
    }
    if (sleepers->count == DOMI_SLEEPERS_MAX)
        return false;
    sleepers->indices[sleepers->count++] = (uint16_t)index;
    return true;
}

void domi_manager_wake_sleeper_now_or_later(domi_manager *self, domi_manager *target)
{
    if (self->now_ns < self->sleepers.until_ns && domi_park_may_waking_be_put_off(&target->park) &&
        record_sleeper_to_wake_later(self, target->index))
        return;
    domi_manager_wake_owner(self, target);
}
