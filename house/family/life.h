/* Birth and death of houses (contract: Birth and death). Home only, except spawn and stop. */
#ifndef DOMI_HOUSE_FAMILY_LIFE_H
#define DOMI_HOUSE_FAMILY_LIFE_H

#include "house/message/mailbox.h"

#include <domus/spawn.h>

/* Bytes of private state at most. */
#define DOMI_HOUSE_STATE_MAX (1024u * 1024)

/* Make an actor on `home`, from the thread of `manager`: a child of `parent`, which that thread
 * runs, or NULL: of the root. `options` may be NULL; its placement was decided. Errors as of
 * domus_spawn_with(). */
int domi_house_spawn_child(domi_manager *manager, domi_house *parent, domi_manager *home,
                           const domus_behaviour *behaviour, const void *state,
                           const domus_spawn_options *options, domus_address *ret_address);

/* The same, and it notes in `load` how much waits for it (router.h); NULL: nowhere. */
int domi_house_spawn_routee(domi_manager *manager, domi_house *parent, domi_manager *home,
                            const domus_behaviour *behaviour, const void *state,
                            const domus_spawn_options *options, _Atomic uint32_t *load,
                            domus_address *ret_address);

/* The same, of the root and without options. */
static inline int domi_house_spawn(domi_manager *manager, domi_manager *home,
                                   const domus_behaviour *behaviour, const void *state,
                                   domus_address *ret_address)
{
    return domi_house_spawn_child(manager, NULL, home, behaviour, state, NULL, ret_address);
}

/* Ask an actor to stop, from the thread of `manager`. Returns 0; -ESTALE. */
int domi_house_stop(domi_manager *manager, domus_address address);

/* Its mount node was taken from the inbox, or it was spawned at home: queue it for mounting. */
void domi_house_mounting(domi_manager *manager, domi_house *house);

/* Run on_mount and publish WAITING. */
void domi_house_mount(domi_manager *manager, domi_house *house);

/* Its on_mount or on_restart has failed: until a restart succeeds, the actor is not mounted and
 * none of its functions is called. Home, on the house's own turn. */
void domi_house_mount_failed(domi_manager *manager, domi_house *house, int error);

/* Something has changed beside its mail (a stop, a directive, a child gone): if it waits, it runs,
 * and settles it. CREATED and MOUNTING: the mount looks. READY and later: the runner does; of one
 * that is exposed home, when it is back. */
static inline void domi_house_rouse(domi_manager *manager, domi_house *house)
{
    if (!domi_house_is_exposed(house) && house->state == DOMI_WAITING)
        domi_house_ready(manager, house);
}

/* As a notice behind what waits: stop when it is handled. */
extern const domus_type domi_last_type;

/* The slot of a dead house came back from its parent's thread. */
void domi_house_released(domi_manager *manager, domi_house *house);

/* Begin to begin anew: cancel what it does, stop its children (restart.c). */
void domi_house_restart_begin(domi_manager *manager, domi_house *house);

/* It has run: when nothing is left to wait for, it begins anew. */
void domi_house_restart_end(domi_manager *manager, domi_house *house);

/* Its idle time is over, or not (restart.c). */
void domi_house_idle(domi_manager *manager, domi_house *house);
extern const domus_type domi_idle_type;

/* Nothing in it is beyond the limits. */
bool domi_behaviour_is_whole(const domus_behaviour *behaviour);

/* Its state as at the spawn: a copy of `state`, or zeroes. */
void domi_house_state_set(domi_house *house, const void *state);

/* on_mount and on_stop, if there is one. */
int domi_house_run_mount(domi_manager *manager, domi_house *house);
void domi_house_run_stop(domi_manager *manager, domi_house *house);

/* The runner saw STOP: no asks and notices from here on; cancel what it does, stop its children,
 * begin to close channels. */
void domi_house_stop_begin(domi_manager *manager, domi_house *house);

/* A stopping house has run: when nothing is left to wait for, on_stop and free. True if it is
 * gone. */
bool domi_house_stop_end(domi_manager *manager, domi_house *house);

/* The system has ended: on_stop if it was mounted, whatever it waits for, and free. */
void domi_house_end(domi_manager *manager, domi_house *house);

#endif
