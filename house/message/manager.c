/* A thread is identified by the address of a variable of its own. */
#include "house/message/manager.h"

#include "base/check.h"

_Thread_local char domi_here;

void domi_manager_set_pressure(domi_manager *manager, uint32_t level)
{
    DOMI_CHECK(domi_manager_is_mine(manager));
    manager->memory.pressure_seen = level;
    manager->memory.busy = level >= DOMUS_MEMORY_CRITICAL;
    manager->mail.lane_max = manager->memory.busy ? 0 : manager->limits.mailbox_max;
}
