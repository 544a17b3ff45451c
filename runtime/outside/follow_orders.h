/* The orders of the system (runtime/system/orders.h), for threads that do not run the loop. */
#ifndef DOMI_RUNTIME_OUTSIDE_FOLLOW_ORDERS_H
#define DOMI_RUNTIME_OUTSIDE_FOLLOW_ORDERS_H

#include "runtime/system/system.h"

/* Let a manager follow the system's orders `orders`: it uses the newest configuration, and stops
 * its actors if that is ordered. `followed` holds the orders that were followed before, and is set
 * to `orders`. Called by the thread that uses the manager. */
void domi_outside_let_manager_follow_orders(domus_system *system, domi_manager *manager,
                                            uint32_t orders, uint32_t *followed);

#endif
