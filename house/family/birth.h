/* The birth of houses: spawn (contract: Birth and death). Home calls these functions, except for
 * the spawns, which any thread may call that has a manager. */
#ifndef DOMI_HOUSE_FAMILY_BIRTH_H
#define DOMI_HOUSE_FAMILY_BIRTH_H

#include "house/message/mailbox.h"

#include <domus/spawn.h>

/* Make an actor on `home`, from the thread of `manager`. `parent` is a house that this thread runs;
 * NULL: the root is the parent. `options` may be NULL; the caller has chosen the home. Returns the
 * errors of domus_spawn_with(). */
int domi_house_spawn_child(domi_manager *manager, domi_house *parent, domi_manager *home,
                           const domus_behaviour *behaviour, const void *state,
                           const domus_spawn_options *options, domus_address *ret_address);

/* The properties of an actor that the directory makes: a routee or a life of a grain. */
typedef struct domi_birth {
    /* the place where a routee records its load (router.h); NULL: the actor is no such routee */
    _Atomic uint32_t *load;
    /* the grain of which the actor is a life; NULL: it is no life of a grain */
    struct domi_grain *grain;
    /* Fill the state of a grain's life, which is all zeros. Nothing can fail after this call: if it
     * returns 0, the actor is born. Returns 0; a negative errno, and then no actor is made. NULL:
     * the state stays zeros. */
    int (*fill)(struct domi_grain *grain, void *self);
    bool ends_on_failure; /* whether a failure ends the actor, which has no parent */
} domi_birth;

/* Make an actor as domi_house_spawn_child() does, one that the directory makes. If `birth` is NULL,
 * the actor is an ordinary one. An actor with `fill` has neither a parent nor a name. */
int domi_house_spawn_for_directory(domi_manager *manager, domi_house *parent, domi_manager *home,
                                   const domus_behaviour *behaviour, const void *state,
                                   const domus_spawn_options *options, const domi_birth *birth,
                                   domus_address *ret_address);

/* Make an actor as domi_house_spawn_child() does, without parent and options. */
static inline int domi_house_spawn_without_parent(domi_manager *manager, domi_manager *home,
                                                  const domus_behaviour *behaviour,
                                                  const void *state, domus_address *ret_address)
{
    return domi_house_spawn_child(manager, NULL, home, behaviour, state, NULL, ret_address);
}

/* Make the house of a channel: a child of `owner`, which this thread runs, on the same home. It has
 * `behaviour`; if that is NULL, it has the behaviour and the state that the behaviour of `owner`
 * says (domus/channel.h). A drain does not refuse it, because connections that had come before are
 * served. With `waits` it is mounted, and gets its mail, only after
 * domi_house_end_mount_wait_for_channel(), or when it has to stop. Returns 0; -ESHUTDOWN if the
 * owner ends, restarts or is not mounted; -ENOMEM. */
int domi_house_spawn_channel(domi_manager *manager, domi_house *owner,
                             const domus_behaviour *behaviour, bool waits, domi_house **ret_house);

/* False if this thread or `parent` (NULL: the root) spawns no more actors, because it ends or
 * restarts. */
bool domi_house_may_spawn(const domi_manager *manager, const domi_house *parent);

/* Make the house of a connection that is still to be made: a child of `owner`, which this thread
 * runs, on the home of `owner`. It behaves as `now` says until domi_house_become_channel(), and has
 * room for the state of `channel`; with `shares` it will have the state of `owner`. The house keeps
 * `owned` for io. Returns the errors of domi_house_spawn_child(). */
int domi_house_spawn_connecting_actor(domi_manager *manager, domi_house *owner,
                                      const domus_behaviour *now, const domus_behaviour *channel,
                                      bool shares, void *owned, domus_address *ret_address);

/* Make `house` the house of a channel, with the behaviour `channel`, because its connection is
 * there. The caller then calls its on_mount, if the house is mounted already
 * (domi_house_call_on_mount_in_run()). Home only. */
void domi_house_become_channel(domi_manager *manager, domi_house *house,
                               const domus_behaviour *channel);

/* Count an actor, which is mounted or in its on_mount, under another behaviour from now on. The
 * thread that runs it calls this. */
void domi_house_count_under_behaviour(domi_manager *manager, domi_house *house,
                                      const domus_behaviour *behaviour);

/* Count an actor under its behaviour from now on, instead of under the behaviour with the number
 * `before`. */
void domi_house_count_behaviour_change(domi_manager *manager, const domi_house *house,
                                       uint32_t before);

/* Queue a house for mounting: its mount node has come through the inbox, or it was spawned on its
 * own home. */
void domi_house_queue_for_mount(domi_manager *manager, domi_house *house);

/* Set the state of a house to what it was at its spawn: to a copy of `state`; to zeros if `state`
 * is NULL. */
void domi_house_set_state_as_at_spawn(domi_house *house, const void *state);

/* Free the state of a house that ends, if it was allocated beside the slot. */
void domi_house_free_state(domi_house *house);

#endif
