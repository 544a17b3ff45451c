/* Family: the data that only few actors need. It is allocated beside the house, when an actor first
 * needs any of it.
 *
 * A family holds the actor's children and the parent's rules for their failures, the receives that
 * wait, stashed mail, the behaviour and the state that the actor was born with, its name, and its
 * idle time. Each storey has its fields here; this storey uses only `seen` and the stash. Owner:
 * the thread that runs the house, except for `memberships`, which belong to home. */
#ifndef DOMI_HOUSE_MESSAGE_FAMILY_H
#define DOMI_HOUSE_MESSAGE_FAMILY_H

#include "house/message/house.h"

typedef struct domi_family {
    struct domi_children *children; /* children of the actor; NULL before the first child */

    uint64_t window_start_ns; /* start of the period in which `restarts` are counted */
    uint32_t restarts;        /* number of restarts of children since `window_start_ns` */

    /* slot of the actor's name in the registry; DOMI_NAMELESS: it has no name */
    uint32_t name_slot;
    /* the behaviour with which the actor was spawned; NULL: the one that it has now */
    const domus_behaviour *born_as;
    /* copy of the actor's state at the spawn, if its parent may restart it; NULL: zeros */
    void *initial;

    struct domi_promise *receives; /* receives that wait, the oldest first */
    domi_node *seen[2];  /* the last ask and the last notice that the receives have looked at */
    domi_node *stash[2]; /* stashed asks, and stashed notices */
    uint32_t stashed;    /* number of messages in both stashes */

    struct domi_watch *watches; /* the watches that the actor has made */

    struct domi_member *memberships; /* memberships in groups; written by home only */
    /* routers that the actor has made, for routees that it has spawned */
    struct domi_router *routers;
    /* the place where a routee records its load for its router; NULL: nowhere */
    _Atomic uint32_t *load;

    /* idle time after which the actor stops, in nanoseconds; 0: it never stops for this */
    uint64_t idle_max_ns;
    uint64_t last_ns; /* time at which the actor last handled a message */
    bool idle_paused; /* the actor has paused its idle time, so it is not stopped for it */
    bool idle_looked; /* the last run handled the event of the idle timer */
    bool is_hasty;    /* the children were told to stop hastily */

    struct domi_order
        *order; /* mail that is sorted (order.h); NULL: the actor never had an order */
    /* the grain of which the actor is a life (directory/grain.h); NULL: none */
    struct domi_grain *grain;
    bool ends_on_failure; /* a failure ends the actor, which has no parent */
    /* a conversation that on_mount of a grain's life has begun has failed, so the life was not
     * made */
    bool is_unmade;
} domi_family;

#define DOMI_NAMELESS UINT32_MAX /* value of `name_slot` in an actor without a name */

/* Returns the family of a house, and makes it if there is none yet; NULL if there is no memory. */
domi_family *domi_family_of(domi_house *house);

#endif
