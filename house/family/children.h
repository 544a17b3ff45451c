/* The children of a house: a list of pointers to houses. The pointers are kept in segments, each as
 * large as all before it together, so that a list of millions of children grows without being
 * moved. A child knows its place in the list. The order of the children means nothing.
 *
 * Thread-safety: only the thread that runs the parent. */
#ifndef DOMI_HOUSE_FAMILY_CHILDREN_H
#define DOMI_HOUSE_FAMILY_CHILDREN_H

#include "house/message/house.h"

/* number of pointers in the first segment and in the second; a power of two */
#define DOMI_CHILDREN_FIRST    8u
#define DOMI_CHILDREN_SEGMENTS 30u /* segments that may follow the first, each twice as long */

typedef struct domi_children {
    uint32_t count;                         /* number of children */
    domi_house *first[DOMI_CHILDREN_FIRST]; /* the first segment, which needs no allocation */
    /* the later segments: segment k has DOMI_CHILDREN_FIRST << k places; NULL: not allocated */
    domi_house **more[DOMI_CHILDREN_SEGMENTS];
} domi_children;

/* Free the list, but not the houses in it. For this function and those below NULL is an empty
 * list. */
void domi_children_free(domi_children *children);

/* Add `child` at the end of *children; the list is made if it is NULL. Returns 0; -ENOMEM. */
int domi_children_add(domi_children **children, domi_house *child);

/* Remove `child`, which is in the list; the last child moves to its place. When a segment becomes
 * empty, the segment behind it is freed. */
void domi_children_remove(domi_children *children, domi_house *child);

/* Returns the child at `place`, which is less than the count. */
domi_house *domi_children_get(const domi_children *children, uint32_t place);

static inline uint32_t domi_children_count(const domi_children *children)
{
    return children != NULL ? children->count : 0;
}

#endif
