/* A thread is identified by the address of a variable of its own. */
#include "house/message/manager.h"

#include "base/check.h"

_Thread_local char domi_here;

void domi_manager_set_pressure(domi_manager *manager, uint32_t level)
{
    DOMI_CHECK(domi_manager_is_mine(manager));
    manager->pressure_seen = level;
    manager->busy = level >= DOMUS_MEMORY_CRITICAL;
    manager->lane_max = manager->busy ? 0 : manager->mailbox_max;
}
