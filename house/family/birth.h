/* The birth of houses: spawn (contract: Birth and death). Home calls these functions, except for
 * the spawns, which any thread may call that has a manager. */
#ifndef DOMI_HOUSE_FAMILY_BIRTH_H
#define DOMI_HOUSE_FAMILY_BIRTH_H

#include "house/message/mailbox.h"

#include <domus/spawn.h>

/* Make an actor on `home`, from the thread of `manager`. `parent` is a house that this thread runs,
 * or NULL: then the root is the parent. `options` may be NULL; the caller has decided the
 * placement. Errors as of domus_spawn_with(). */
int domi_house_spawn_child(domi_manager *manager, domi_house *parent, domi_manager *home,
                           const domus_behaviour *behaviour, const void *state,
                           const domus_spawn_options *options, domus_address *ret_address);

/* The wishes of the directory for an actor, from its birth on. */
typedef struct domi_birth {
    _Atomic uint32_t
        *load; /* of a routee: where it notes its load (router.h); NULL: it notes none */
    struct domi_grain *grain; /* the grain of which it is a life; NULL: none */
    /* Fill the state of a life of that grain, which is zeros. Nothing can fail behind this: if it
     * returns 0, the actor is born. Returns 0; a negative errno, and then there is no actor. NULL:
     * nothing is to be filled. */
    int (*fill)(struct domi_grain *grain, void *self);
    bool ends_on_failure; /* the actor has no parent, and a failure ends it */
} domi_birth;

/* Do the same as domi_house_spawn_child(), for an actor of the directory. If `birth` is NULL, the
 * actor is an ordinary one. An actor with `fill` has neither a parent nor a name. */
int domi_house_spawn_born(domi_manager *manager, domi_house *parent, domi_manager *home,
                          const domus_behaviour *behaviour, const void *state,
                          const domus_spawn_options *options, const domi_birth *birth,
                          domus_address *ret_address);

/* Do the same as domi_house_spawn_child(), without parent and options. */
static inline int domi_house_spawn(domi_manager *manager, domi_manager *home,
                                   const domus_behaviour *behaviour, const void *state,
                                   domus_address *ret_address)
{
    return domi_house_spawn_child(manager, NULL, home, behaviour, state, NULL, ret_address);
}

/* Make the house of a channel: a child of `owner`, which this thread runs, on the same home. It
 * has `behaviour`; if that is NULL, it has the behaviour and the state that the behaviour of
 * `owner` says (domus/channel.h). A drain does not refuse it, because connections that had come
 * before are served. If it `waits`, it is mounted, and gets its mail, only after
 * domi_house_end_wait(), or when it has to stop. Returns 0; -ESHUTDOWN if the owner ends, restarts
 * or is not mounted; -ENOMEM. */
int domi_house_spawn_channel(domi_manager *manager, domi_house *owner,
                             const domus_behaviour *behaviour, bool waits, domi_house **ret_house);

/* False if nothing is spawned any more by this thread, or by `parent` (NULL: the root), because one
 * of them ends or restarts. */
bool domi_house_may_spawn(const domi_manager *manager, const domi_house *parent);

/* Make the house of a connection that is still to be made: a child of `owner`, which this thread
 * runs, on the home of `owner`. It behaves as `now` says until domi_house_become_channel(), and has
 * room for the state of `channel`; with `shares` it will have the state of `owner`. Io finds
 * `owned` in the house. Errors as domi_house_spawn_child(). */
int domi_house_spawn_connecting(domi_manager *manager, domi_house *owner,
                                const domus_behaviour *now, const domus_behaviour *channel,
                                bool shares, void *owned, domus_address *ret_address);

/* The connection is there: `house` is that of a channel from now on, and behaves as
 * `channel`. Its on_mount is still to be called, if it is mounted already
 * (domi_house_mount_in_run()). Home only. */
void domi_house_become_channel(domi_manager *manager, domi_house *house,
                               const domus_behaviour *channel);

/* Count the actor, which is mounted or in its on_mount, as one of another behaviour from now on.
 * Whoever runs it. */
void domi_house_count_as(domi_manager *manager, domi_house *house,
                         const domus_behaviour *behaviour);

/* Count the actor as one of its behaviour, if it was one of the number `before` up to now. */
void domi_house_count_change(domi_manager *manager, const domi_house *house, uint32_t before);

/* Queue a house for mounting: its mount node was taken from the inbox, or it was spawned on
 * its own home. */
void domi_house_queue_mount(domi_manager *manager, domi_house *house);

/* Set the state of a house as at its spawn: to a copy of `state`, or to zeros if that is NULL. */
void domi_house_state_set(domi_house *house, const void *state);

/* Free the state of a house that ends. */
void domi_house_state_fini(domi_house *house);

#endif
