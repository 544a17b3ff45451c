/* This file lets a manager whose thread does not run the loop follow the orders of the system:
 * the manager of a detached actor, or of a seat (seat.h). */
#include "runtime/outside/follow_orders.h"

#include "house/dispatch/manage.h"
#include "runtime/system/live_copy.h"

void domi_outside_let_manager_follow_orders(domus_system *system, domi_manager *manager,
                                            uint32_t orders, uint32_t *followed)
{
    if (domi_orders_differ_in_config_change(*followed, orders))
        domi_live_update_config_of_manager(system, manager);
    if (orders >= domi_orders_of_stop(DOMI_STOP_ACTORS) &&
        *followed < domi_orders_of_stop(DOMI_STOP_ACTORS)) {
        manager->ending.closing = true;
        domi_manager_stop_actors(manager);
    }
    *followed = orders;
}
