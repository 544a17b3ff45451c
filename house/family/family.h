/* The messages between a parent and its children: ends, failures, and the parent's decisions.
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

/* Value of node.owner in a child's node on its way to the parent: DOMI_CHILD_GONE, or the errno of
 * the child's failure as a positive number. The parent must not read the errno in the child,
 * because the child goes on with events meanwhile, and one of them may end it with another
 * errno. */
#define DOMI_CHILD_GONE 0

/* Free the family of a house and all that it holds, except for the child actors themselves. */
void domi_family_free(domi_house *house);

/* Add `child` to the children of `parent`. Returns 0; -ENOMEM. Called by the thread that
 * runs the parent. */
int domi_family_add_child(domi_house *parent, domi_house *child);

/* Ask all children of an actor to stop; if the actor restarts or stops hastily, they stop hastily,
 * too. */
void domi_family_stop_children(domi_manager *manager, domi_house *house);

/* Ask all children of an actor to stop hastily, because a stop of the actor that is under way has
 * become a hasty one. */
void domi_family_stop_children_hastily(domi_manager *manager, domi_house *house);

/* Remove a child that has ended from its parent's list. Returns true if that was done; then the
 * caller frees the slot. Returns false if the parent lives on another thread or is lent; then the
 * slot is freed when the parent knows of the end. */
bool domi_family_remove_ended_child(domi_manager *manager, domi_house *child);

/* Report a failure of the house with `error` to its parent; without a parent decide at once.
 * `fatal` is true if on_mount or on_restart has failed, or if the actor escalates; then the actor
 * must not simply resume. */
void domi_family_report_failure_or_decide(domi_manager *manager, domi_house *house, int error,
                                          bool fatal);

/* Handle the event by which a child's node tells of its failure or end, in a run of the parent. */
void domi_family_handle_event_of_child(domi_manager *manager, domi_house *parent, domi_node *node);

/* Drop the node of a child with its parent's mailbox, because the system ends. */
void domi_family_drop_node_of_child(domi_manager *manager, domi_node *node);

/* Send the parent's decision to the child, by the child's node, which is reserved for this (its
 * NODE bit is set). */
void domi_family_send_directive(domi_manager *manager, domi_house *child,
                                domus_directive directive);

/* Remove a child from its parent's list. Called by the thread that runs the parent. */
void domi_family_remove_child(domi_house *child);

static inline uint32_t domi_house_count_children(const domi_house *house)
{
    return house->family != NULL ? domi_children_count(house->family->children) : 0;
}

static inline domi_house *domi_node_get_house(domi_node *node)
{
    return (domi_house *)(void *)((char *)node - offsetof(domi_house, node));
}

#endif
