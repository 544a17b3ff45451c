/* Kinds: one row of functions for each kind of object that lies in a mailbox or in a list by its
 * embedded node (node.slab).
 *
 * Timers, watches, members, promises, stacks and houses belong to storeys above this one, and only
 * their own files know how their nodes are handled. So `domi_kinds` is declared here and filled by
 * a higher storey, in one place (dispatch/kinds.c). It is one of the two ways by which a lower
 * storey calls a higher one; doors.h is the other. An object of a new kind needs a row of this
 * table.
 *
 * No entry is NULL. If a node of a kind never comes to a place, the entry is a function that fails
 * a check. Messages pay nothing for the table: their rows only fail, because a message is handled
 * and dropped by direct calls. */
#ifndef DOMI_HOUSE_MESSAGE_KIND_H
#define DOMI_HOUSE_MESSAGE_KIND_H

#include "house/message/manager.h"

typedef struct domi_kind {
    /* Handle a node that has come to `house` and is for the house itself, not for a mailbox
     * (node.kind is DOMI_MOUNT or a later one). Called by home, when it sorts the inbox, or at the
     * put if the sender is home. */
    void (*handle_arrival)(domi_manager *manager, domi_house *house, domi_node *node);

    /* Begin to handle an event that a run of `house` has taken from the event mailbox. Returns true
     * if the event has to go to a row of the behaviour, or becomes a dead letter; false if it needs
     * nothing more. end_event() follows in both cases, and gives the node back to its object.
     * Called by the runner. */
    bool (*begin_event)(domi_manager *manager, domi_house *house, domi_node *node);
    void (*end_event)(domi_manager *manager, domi_house *house, domi_node *node);

    /* Give an object its embedded node back unhandled, because the node is dropped with the mailbox
     * in which it lies, or came too late for its house. Called by the runner of the house, or by
     * home when it sorts the inbox. */
    void (*drop)(domi_manager *manager, domi_node *node);

    /* Carry out the note that a thief has left for an object (notes.h), because the house of its
     * node has come back. Called by home. */
    void (*carry_out_note)(domi_manager *home, domi_node *node);

    /* Cancel an object that is attached to a house (link.h), because the house stops or restarts.
     * Called by the runner. */
    void (*cancel)(domi_manager *manager, domi_node *node);
} domi_kind;

extern const domi_kind domi_kinds[DOMI_SLAB_KINDS];

/* Returns the row of the kind of `node`. */
static inline const domi_kind *domi_kind_of_node(const domi_node *node)
{
    return &domi_kinds[node->slab];
}

#endif
