/* How threads that are not of the loop follow the orders of the system. */
#ifndef DOMI_RUNTIME_OUTSIDE_FOLLOW_ORDERS_H
#define DOMI_RUNTIME_OUTSIDE_FOLLOW_ORDERS_H

#include "runtime/system/system.h"

/* Let a manager follow `orders`: take the newest configuration, stop its actors. `followed` are the
 * orders that it has followed before, and become these. The thread that uses the manager. */
void domi_outside_follow(domus_system *system, domi_manager *manager, uint32_t orders,
                         uint32_t *followed);

#endif
