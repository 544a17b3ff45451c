/* The children of a house: as many pointers as it takes, in segments that double, so that a list of
 * millions grows without being moved. A child knows its place; the order is none that counts.
 *
 * Owner: whoever runs the parent. */
#ifndef DOMI_HOUSE_FAMILY_CHILDREN_H
#define DOMI_HOUSE_FAMILY_CHILDREN_H

#include "house/message/house.h"

#define DOMI_CHILDREN_FIRST    8u /* the first segment, and the second; a power of two */
#define DOMI_CHILDREN_SEGMENTS 30u

typedef struct domi_children {
    uint32_t count;
    domi_house *first[DOMI_CHILDREN_FIRST];
    domi_house **more[DOMI_CHILDREN_SEGMENTS]; /* 8, 16, 32 ... */
} domi_children;

/* Free the list, not the houses. NULL is an empty one, here and below. */
void domi_children_free(domi_children *children);

/* `child` gets the last place, in *children, which is made if need be. Returns 0; -ENOMEM. */
int domi_children_add(domi_children **children, domi_house *child);

/* `child`, which is in it, leaves, and the last one gets its place. When a segment becomes empty,
 * the one behind it is given back. */
void domi_children_remove(domi_children *children, domi_house *child);

/* The child at `place`, below the count. */
domi_house *domi_children_at(const domi_children *children, uint32_t place);

static inline uint32_t domi_children_count(const domi_children *children)
{
    return children != NULL ? children->count : 0;
}

#endif
