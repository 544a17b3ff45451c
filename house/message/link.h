/* Links of an object that is attached to a house: a timer, a watch on the house, a memory watch, or
 * a watch on a descriptor.
 *
 * The links stand at the same offset in each of these objects, behind the node with which the
 * object begins. So the list of a house holds objects of all kinds, and the node tells the kind of
 * each. The runner of the house owns the list. */
#ifndef DOMI_HOUSE_MESSAGE_LINK_H
#define DOMI_HOUSE_MESSAGE_LINK_H

#include "house/message/house.h"

typedef struct domi_link {
    struct domi_link *next; /* the next object attached to the same house; NULL: none */
    /* the object before this one in the list of the same house; NULL: this is the first */
    struct domi_link *previous;
} domi_link;

/* offset of the domi_link in each object that can be attached to a house */
#define DOMI_LINK_OFFSET 112
/* Alignment to put before a field that is a domi_link, so that it stands at DOMI_LINK_OFFSET. */
#define DOMI_AT_LINK DOMI_KEEP_PLACE(16)

static inline void domi_link_attach_to_house(domi_house *house, domi_link *link)
{
    link->previous = NULL;
    link->next = house->attached;
    if (link->next != NULL)
        link->next->previous = link;
    house->attached = link;
}

static inline void domi_link_detach_from_house(domi_house *house, domi_link *link)
{
    if (link->next != NULL)
        link->next->previous = link->previous;
    if (link->previous != NULL)
        link->previous->next = link->next;
    else
        house->attached = link->next;
}

static inline domi_node *domi_link_get_node(domi_link *link)
{
    return (domi_node *)(void *)((char *)link - DOMI_LINK_OFFSET);
}

/* Cancel all objects that the house has attached to itself, because it stops or restarts: its
 * timers, its memory watch, and its watches on descriptors. The watches of others on the house
 * stay. */
void domi_link_cancel_attached_objects(struct domi_manager *manager, domi_house *house);

#endif
