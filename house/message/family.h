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

    uint64_t window_start_ns; /* start of the period in which the actor's `restarts` are counted */
    uint32_t restarts;        /* number of restarts of children since `window_start_ns` */

    /* place of the actor's name in the table of names; DOMI_NAMELESS: the actor has no name */
    uint32_t name_slot;
    /* the behaviour with which the actor was spawned; NULL: it is the one that the actor has now */
    const domus_behaviour *born_as;
    /* copy of the actor's state at its spawn, if its parent may restart it; NULL: that state was
     * all zeros */
    void *initial;

    /* receives of the actor's conversations that wait, the oldest first */
    struct domi_promise *receives;
    /* the last ask and the last notice that the waiting receives have looked at */
    domi_node *seen[2];
    domi_node *stash[2]; /* the actor's stashed asks, and its stashed notices */
    uint32_t stashed;    /* number of messages in both stashes of the actor */

    struct domi_watch *watches; /* the watches that the actor has made */

    struct domi_member *memberships; /* the actor's memberships in groups; written by home only */
    /* routers that the actor has made for routees that it has spawned */
    struct domi_router *routers;
    /* the place where a routee records its load for its router; NULL: the actor is no such
     * routee */
    _Atomic uint32_t *load;

    /* idle time after which the actor stops, in nanoseconds; 0: it never stops for this */
    uint64_t idle_max_ns;
    uint64_t last_ns; /* time at which the actor last handled a message */
    /* whether the actor has paused its idle time, so that it is not stopped for it */
    bool idle_paused;
    bool idle_looked; /* whether the actor's last run handled the event of the idle timer */
    bool is_hasty;    /* whether the actor's children were told to stop hastily (DOMI_LIFE_HASTE) */

    struct domi_order
        *order; /* the actor's mail, sorted (order.h); NULL: the actor never had an order */
    /* the grain of which the actor is a life (directory/grain.h); NULL: it is of none */
    struct domi_grain *grain;
    bool ends_on_failure; /* whether a failure ends the actor, which has no parent */
    /* whether a grain's life was not made, because a conversation that its on_mount began has
     * failed */
    bool is_unmade;
} domi_family;

#define DOMI_NAMELESS UINT32_MAX /* value of `name_slot` in an actor without a name */

/* Returns the family of a house, and makes it if there is none yet; NULL if there is no memory. */
domi_family *domi_family_get_or_make(domi_house *house);

#endif
