/* The children of a house: a list of pointers to houses. The pointers are kept in segments, each as
 * large as all before it together, so that a list of millions of children grows without being
 * moved. A child knows its place in the list. The order of the children means nothing.
 *
 * Thread-safety: only the thread that runs the parent. */
#ifndef DOMI_HOUSE_FAMILY_CHILDREN_H
#define DOMI_HOUSE_FAMILY_CHILDREN_H

#include "house/message/house.h"

/* number of children in the first segment of the list, and in the second; a power of two */
#define DOMI_CHILDREN_FIRST 8u
/* most segments that may follow the first, each twice as long as the one before */
#define DOMI_CHILDREN_SEGMENTS 30u

typedef struct domi_children {
    uint32_t count; /* number of children in the list */
    /* the first segment of the list of children, which needs no allocation */
    domi_house *first[DOMI_CHILDREN_FIRST];
    /* the later segments: segment k has DOMI_CHILDREN_FIRST << k places; NULL: not allocated */
    domi_house **more[DOMI_CHILDREN_SEGMENTS];
} domi_children;

/* Free the list of children, but not the houses in it. For this function and those below NULL is an
 * empty list. */
void domi_children_free_list(domi_children *children);

/* Add `child` at the end of the list of children *children, which is made if it is NULL. Returns 0;
 * -ENOMEM. */
int domi_children_add(domi_children **children, domi_house *child);

/* Remove `child` from the list of children, in which it is; the last child moves to its place. When
 * a segment becomes empty, the segment behind it is freed. */
void domi_children_remove(domi_children *children, domi_house *child);

/* Returns the child at `place` in the list of children, which is less than their count. */
domi_house *domi_children_get_at_place(const domi_children *children, uint32_t place);

static inline uint32_t domi_children_count(const domi_children *children)
{
    return children != NULL ? children->count : 0;
}

#endif
