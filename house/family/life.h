/* The life of houses: mount, restart, stop and end (contract: Birth and death; birth.h has the
 * spawn). Only home calls these functions. */
#ifndef DOMI_HOUSE_FAMILY_LIFE_H
#define DOMI_HOUSE_FAMILY_LIFE_H

#include "house/family/birth.h"
#include "house/message/stop.h"

/* Call on_mount of a new actor, and publish WAITING after it has returned. */
void domi_house_mount_actor(domi_manager *manager, domi_house *house);

/* Record that the on_mount or on_restart of an actor has failed. Until a restart succeeds, the
 * actor is not mounted and none of its functions is called. Called by home, in a turn of the house
 * or in its mount. */
void domi_house_record_failed_mount(domi_manager *manager, domi_house *house, int error);

/* Free the slot of a dead house when its parent knows of the end: the parent lives on this thread,
 * or the house's node has come back from the parent's thread. */
void domi_house_free_dead_slot(domi_manager *manager, domi_house *house);

/* Handle the house's own node, which has come home: mount the actor, begin its stop, or carry out
 * its parent's directive. Home only. */
void domi_house_handle_own_node(domi_manager *manager, domi_house *house, domi_node *node);

/* Begin a restart: cancel the work of the actor and stop its children (restart.c). */
void domi_house_begin_restart(domi_manager *manager, domi_house *house);

/* Continue a restart of an actor after a run of its house: if no conversation and no child is left,
 * and nobody has asked for a stop meanwhile, the actor begins anew. */
void domi_house_try_to_end_restart(domi_manager *manager, domi_house *house);

/* Call on_mount or on_stop of an actor, if its behaviour has that function.
 * domi_house_call_on_mount() returns the result of on_mount. */
int domi_house_call_on_mount(domi_manager *manager, domi_house *house);
/* Call on_mount of an actor as domi_house_call_on_mount() does, within a run of the house. */
int domi_house_call_on_mount_in_run(domi_manager *manager, domi_house *house);
void domi_house_call_on_stop(domi_manager *manager, domi_house *house);

/* Begin the stop of an actor, because the runner saw STOP: from here on the house takes no asks and
 * notices, its conversations are cancelled, its children are stopped, and its channels begin to
 * close. */
void domi_house_begin_stop(domi_manager *manager, domi_house *house);

/* Try to end the stop of an actor, after each run of the stopping house: if nothing is left to wait
 * for, call on_stop and free the house. Returns true if the house is gone. */
bool domi_house_try_to_end_stop(domi_manager *manager, domi_house *house);

/* End an actor when its system has ended: call on_stop if the actor was mounted, and free the house
 * whatever it waits for. */
void domi_house_end_with_system(domi_manager *manager, domi_house *house);

#endif
