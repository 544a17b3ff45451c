/* Runs at the end of a phase 2 that channels actors have asked for (domus_later()).
 *
 * Each such actor has one event in `schedule.laters`, which is paid for by the call. When the
 * ready actors of a phase 2 have run, these events are put, and the actors run again; then the
 * sends of the iteration are queued. A call in one of these runs counts for the next phase 2.
 * Owner thread. */
#ifndef DOMI_HOUSE_DISPATCH_LATER_H
#define DOMI_HOUSE_DISPATCH_LATER_H

#include "house/message/manager.h"

/* Put the events of all actors that have asked for one so far. */
void domi_laters_put(domi_manager *manager);

/* Free the events that are left, because the thread has ended. */
void domi_laters_drop(domi_manager *manager);

#endif
