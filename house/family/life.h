/* The life of houses: spawn, mount, restart, stop and end (contract: Birth and death). Only home
 * calls these functions, except for spawn and stop. */
#ifndef DOMI_HOUSE_FAMILY_LIFE_H
#define DOMI_HOUSE_FAMILY_LIFE_H

#include "house/message/mailbox.h"
#include "house/message/stop.h"

#include <domus/spawn.h>

/* Bytes of private state that an actor may have. */
#define DOMI_HOUSE_STATE_MAX (1024u * 1024)

/* Make an actor on `home`, from the thread of `manager`. `parent` is a house that this thread runs,
 * or NULL: then the root is the parent. `options` may be NULL; the caller has decided the
 * placement. Errors as of domus_spawn_with(). */
int domi_house_spawn_child(domi_manager *manager, domi_house *parent, domi_manager *home,
                           const domus_behaviour *behaviour, const void *state,
                           const domus_spawn_options *options, domus_address *ret_address);

/* As domi_house_spawn_child(), for a routee: the routee notes its load (waiting mail and
 * conversations, router.h) in `load`. If `load` is NULL, it notes nothing. */
int domi_house_spawn_routee(domi_manager *manager, domi_house *parent, domi_manager *home,
                            const domus_behaviour *behaviour, const void *state,
                            const domus_spawn_options *options, _Atomic uint32_t *load,
                            domus_address *ret_address);

/* As domi_house_spawn_child(), without parent and options. */
static inline int domi_house_spawn(domi_manager *manager, domi_manager *home,
                                   const domus_behaviour *behaviour, const void *state,
                                   domus_address *ret_address)
{
    return domi_house_spawn_child(manager, NULL, home, behaviour, state, NULL, ret_address);
}

/* Queue a house for mounting: its mount node was taken from the inbox, or it was spawned on its own
 * home. */
void domi_house_queue_mount(domi_manager *manager, domi_house *house);

/* Call on_mount, and publish WAITING after it has returned. */
void domi_house_mount(domi_manager *manager, domi_house *house);

/* The on_mount or on_restart of a house has failed. Until a restart succeeds, the actor is not
 * mounted and none of its functions is called. Called by home, in a turn of the house or in its
 * mount. */
void domi_house_fail_mount(domi_manager *manager, domi_house *house, int error);

/* Free the slot of a dead house of whose end its parent knows: there is none on another thread, or
 * the house's node is back from there. */
void domi_house_free_returned(domi_manager *manager, domi_house *house);

/* The house's own node has come home: mount the actor, begin its stop, or carry out its parent's
 * directive. Home only. */
void domi_house_handle_arrival(domi_manager *manager, domi_house *house, domi_node *node);

/* Begin a restart: cancel what the actor does and stop its children (restart.c). */
void domi_house_restart_begin(domi_manager *manager, domi_house *house);

/* Called after each run of a house that restarts. If no conversation and no child is left, and
 * nobody has asked for a stop meanwhile, the actor begins anew. */
void domi_house_restart_end(domi_manager *manager, domi_house *house);

/* True if the behaviour is complete and within all limits. */
bool domi_behaviour_is_whole(const domus_behaviour *behaviour);

/* Set the state of a house as at its spawn: to a copy of `state`, or to zeros if that is NULL. */
void domi_house_state_set(domi_house *house, const void *state);

/* Call on_mount or on_stop, if the behaviour has one. domi_house_run_mount() returns what on_mount
 * returned. */
int domi_house_run_mount(domi_manager *manager, domi_house *house);
void domi_house_run_stop(domi_manager *manager, domi_house *house);

/* Begin a stop, because the runner saw STOP: from here on the house takes no asks and notices, its
 * conversations are cancelled, its children stopped, and its channels begin to close. */
void domi_house_stop_begin(domi_manager *manager, domi_house *house);

/* Try to end a stop, after each run of a stopping house: if nothing is left to wait for, call
 * on_stop and free the house. Returns true if the house is gone. */
bool domi_house_stop_end(domi_manager *manager, domi_house *house);

/* The system has ended: call on_stop if the actor was mounted, and free the house whatever it waits
 * for. */
void domi_house_end_left(domi_manager *manager, domi_house *house);

#endif
