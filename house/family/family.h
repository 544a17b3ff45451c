/* How a parent and its children hear of each other: ends, failures, and what the parent decides.
 *
 * A child and its parent talk by the node that is embedded in the child's house (house.h). The node
 * is in use while the NODE bit of the child's life word is set. It travels to the parent as an
 * event when the child has failed or is gone, and it comes back as a directive or as FREE. So
 * neither a failure nor a directive can fail for lack of memory, and a slot is freed only when the
 * parent has struck the child from its list. */
#ifndef DOMI_HOUSE_FAMILY_FAMILY_H
#define DOMI_HOUSE_FAMILY_FAMILY_H

#include "house/family/children.h"
#include "house/message/family.h"
#include "house/message/manager.h"

#include <domus/supervise.h>

/* Values of node.owner in a child's node on its way to the parent: DOMI_CHILD_GONE, or the
 * errno, as a positive number, that the child failed with. The parent must not look into the
 * child for the errno, because the child goes on with events meanwhile, and one of them may end
 * it with another one. */
#define DOMI_CHILD_GONE 0

/* Free the family and what it holds, but not the children themselves. */
void domi_family_free(domi_house *house);

/* Add `child` to the children of `parent`. Returns 0; -ENOMEM. Called by the thread that
 * runs the parent. */
int domi_family_add_child(domi_house *parent, domi_house *child);

/* Ask all children to stop; if the actor restarts or stops hastily, they stop hastily, too. */
void domi_family_stop_children(domi_manager *manager, domi_house *house);

/* A stop of the actor that is under way has become a hasty one: so it is for its children. */
void domi_family_hasten_children(domi_manager *manager, domi_house *house);

/* A child has ended, so strike it from its parent's list. Returns true if that was done; then the
 * caller frees the slot. Returns false if the parent lives on another thread or is lent; then the
 * slot is freed when the parent has heard of the end. */
bool domi_family_remove_ended(domi_manager *manager, domi_house *child);

/* The house has failed with `error`: tell its parent, or let the root decide. `fatal` is true
 * if on_mount or on_restart has failed, or if the actor escalates; then the actor must not
 * simply resume. */
void domi_family_handle_failure(domi_manager *manager, domi_house *house, int error, bool fatal);

/* Handle the event of a child's node, in a run of the parent. */
void domi_family_handle_event(domi_manager *manager, domi_house *parent, domi_node *node);

/* Throw a child's node away with its parent's mailbox, because the system ends. */
void domi_family_drop_node(domi_manager *manager, domi_node *node);

/* Send the parent's decision to the child, by the child's node, which is reserved for this (its
 * NODE bit is set). */
void domi_family_send_directive(domi_manager *manager, domi_house *child,
                                domus_directive directive);

/* Take a child out of its parent's list. Called by the thread that runs the parent. */
void domi_family_remove_child(domi_house *child);

static inline uint32_t domi_house_count_children(const domi_house *house)
{
    return house->family != NULL ? domi_children_count(house->family->children) : 0;
}

static inline domi_house *domi_node_house(domi_node *node)
{
    return (domi_house *)(void *)((char *)node - offsetof(domi_house, node));
}

#endif
