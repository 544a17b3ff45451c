/* Family: what few actors need, beside the house and allocated with the first need of it.
 *
 * Its children and what was decided of their failures, the receives that wait and the mail put
 * aside, the behaviour and state it was born with, its name, its idle time. Owner: whoever runs the
 * house, except the children's list, which is home's.
 *
 * A child and its parent talk by the child's own embedded node (house.h), which is in use while the
 * NODE bit of the child's life word is set: FAILED and GONE go to the parent as events, a directive
 * or FREE comes back. So neither direction can fail for want of memory, and a slot is freed only
 * when its parent has struck the child from its list. */
#ifndef DOMI_HOUSE_FAMILY_FAMILY_H
#define DOMI_HOUSE_FAMILY_FAMILY_H

#include "house/family/children.h"
#include "house/message/manager.h"

#include <domus/supervise.h>

typedef struct domi_family {
    domi_children *children; /* NULL before the first */

    uint64_t window_start_ns; /* restarts since then: */
    uint32_t restarts;

    uint32_t name_slot;             /* in the registry; DOMI_NAMELESS */
    const domus_behaviour *born_as; /* NULL: as it is */
    void *initial;                  /* its state at the spawn, when it may be restarted */

    struct domi_promise *receives; /* that wait, the oldest first */
    domi_node *seen[2];            /* asks, notices: the last that the receives have looked at */
    domi_node *stash[2];
    uint32_t stashed;

    struct domi_watch *watches; /* what it watches */

    struct domi_member *memberships; /* of groups; home's */
    struct domi_router *routers;     /* that stand for actors it spawned */
    _Atomic uint32_t *load;          /* where a routee tells its router's senders; or NULL */

    uint64_t idle_max_ns; /* passivate after so long without a message; 0: never */
    uint64_t last_ns;     /* when it last handled one */
    bool idle_paused;
    bool idle_looked; /* the last run handled the look at the idle time */
} domi_family;

#define DOMI_NAMELESS UINT32_MAX

/* What a child's node says in node.owner: this, or the errno that it failed with. The parent does
 * not look into the child for it: it goes on with events meanwhile, which may end it otherwise. */
#define DOMI_CHILD_GONE 0

/* The family of a house, made if need be; NULL without memory. */
domi_family *domi_family_of(domi_house *house);

/* Free it with what it holds, but the children. */
void domi_family_free(domi_house *house);

/* `parent` has one more child. Returns 0; -ENOMEM. The runner of the parent. */
int domi_family_adopt(domi_house *parent, domi_house *child);

/* Stop all children. Returns how many are left. */
uint32_t domi_family_stop(domi_manager *manager, domi_house *house);

/* A child's slot is done with: strike it from its parent's list. True: now, and the caller frees
 * the slot; false: the parent lives elsewhere, and the slot is freed when it has heard of it. */
bool domi_family_leave(domi_manager *manager, domi_house *child);

/* The house has failed with `error`: tell its parent, or let the root decide. `fatal`: its on_mount
 * did, or it escalates, so going on is no choice. */
void domi_family_failed(domi_manager *manager, domi_house *house, int error, bool fatal);

/* A child's node on the parent's turn. */
void domi_family_event(domi_manager *manager, domi_house *parent, domi_node *node);

/* The parent's directive has come to the child's home. */
void domi_family_directed(domi_manager *manager, domi_house *house, domus_directive directive);

/* A child's node goes with its parent's mailbox: the system ends. */
void domi_family_dropped(domi_manager *manager, domi_node *node);

/* The parent has decided: by the child's node, which is in use for it. */
void domi_family_direct(domi_manager *manager, domi_house *child, domus_directive directive);

/* A child is in its parent's list no more. The parent's runner. */
void domi_family_strike(domi_house *child);

static inline uint32_t domi_house_children(const domi_house *house)
{
    return house->family != NULL ? domi_children_count(house->family->children) : 0;
}

static inline domi_house *domi_node_house(domi_node *node)
{
    return (domi_house *)(void *)((char *)node - offsetof(domi_house, node));
}

#endif
