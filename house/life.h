/* Birth and death of houses (DESIGN 4). Home only, except spawn and stop. */
#ifndef DOMI_HOUSE_LIFE_H
#define DOMI_HOUSE_LIFE_H

#include "house/manager.h"

/* Bytes of private state at most. */
#define DOMI_HOUSE_STATE_MAX (1024u * 1024)

/* Make an actor on `home`, from the thread of `manager`. Errors as of domus_spawn(). */
int domi_house_spawn(domi_manager *manager, domi_manager *home, const domus_behaviour *behaviour,
                     const void *state, domus_address *ret_address);

/* Ask an actor to stop, from the thread of `manager`. Returns 0; -ESTALE. */
int domi_house_stop(domi_manager *manager, domus_address address);

/* Its mount node was taken from the inbox, or it was spawned at home: queue it for mounting. */
void domi_house_mounting(domi_manager *manager, domi_house *house);

/* Run on_mount and publish WAITING. */
void domi_house_mount(domi_manager *manager, domi_house *house);

/* Its stop node was taken from the inbox. */
void domi_house_stop_seen(domi_manager *manager, domi_house *house);

/* The runner saw STOP: no asks and notices from here on; begin to close channels. */
void domi_house_stop_begin(domi_manager *manager, domi_house *house);

/* A stopping house has run: when nothing is left to wait for, on_stop and free. True if it is
 * gone. */
bool domi_house_stop_end(domi_manager *manager, domi_house *house);

/* The system has ended: on_stop if it was mounted, whatever it waits for, and free. */
void domi_house_end(domi_manager *manager, domi_house *house);

#endif
