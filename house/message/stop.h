/* Asks an actor to stop, from any thread: by a bit in its life word, and by its own node if it
 * lives on another home. family/life.c has the end of the actor. */
#ifndef DOMI_HOUSE_MESSAGE_STOP_H
#define DOMI_HOUSE_MESSAGE_STOP_H

#include "house/message/manager.h"

/* Ask an actor to stop, from the thread of `manager`. Returns 0; -ESTALE if the actor is gone. */
int domi_house_ask_to_stop(domi_manager *manager, domus_address address);

/* Ask an actor to stop for a restart of its parent, which waits for the end of the actor: the actor
 * and all actors below it no longer wait for any peer, even if they are stopping already. Called by
 * the thread that runs the actor's parent. */
int domi_house_ask_to_stop_hastily(domi_manager *manager, domus_address address);

/* Let an actor stop at the end of its present run. Home only. Relaxed: the same thread reads the
 * bit. */
static inline void domi_house_stop_after_run(domi_house *house)
{
    atomic_fetch_or_explicit(&house->life, DOMI_LIFE_STOP, memory_order_relaxed);
}

#endif
