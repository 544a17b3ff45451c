/* Extra runs at the end of a phase 2, for which channels actors ask by domus_later().
 *
 * Each such actor has one event in `schedule.laters`, which the call of domus_later() allocates.
 * When the ready actors of a phase 2 have run, these events are put, and the actors run again; then
 * the sends of the iteration are queued. A call of domus_later() in one of these runs counts for
 * the next phase 2. Owner thread. */
#ifndef DOMI_HOUSE_DISPATCH_LATER_H
#define DOMI_HOUSE_DISPATCH_LATER_H

#include "house/message/manager.h"

/* Put the events of all actors that have called domus_later() so far. */
void domi_laters_put_events(domi_manager *manager);

/* Free the events of domus_later() that are left when the thread has ended. */
void domi_laters_free_events(domi_manager *manager);

#endif
