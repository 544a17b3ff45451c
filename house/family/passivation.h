/* Passivation: an actor that was spawned with an idle time is stopped when it had no message for
 * that long. Only the thread that runs the house calls these functions. */
#ifndef DOMI_HOUSE_FAMILY_PASSIVATION_H
#define DOMI_HOUSE_FAMILY_PASSIVATION_H

#include "house/message/manager.h"

/* Check whether the idle time of an actor is over: stop the actor, or arm the timer for the next
 * check. */
void domi_house_check_idle_time(domi_manager *manager, domi_house *house);

/* The type of the event that ends a period of the timer for the idle time. */
extern const domus_type domi_idle_type;

#endif
