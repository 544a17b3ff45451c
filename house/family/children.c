/* Keeps the children of a house in segments. Places 0 to 7 are in the first segment; each later
 * segment k holds 8 << k places and begins at place 8 << k. */
#include "house/family/children.h"

#include "base/check.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>

#define FIRST_BITS 3u /* logarithm to base 2 of DOMI_CHILDREN_FIRST */
static_assert(DOMI_CHILDREN_FIRST == 1u << FIRST_BITS, "a segment is told by a place's top bit");
static_assert(DOMI_CHILDREN_SEGMENTS >= 32 - FIRST_BITS, "a place has 32 bits");

/* Returns the segment of a place in the list of children that is not among the first eight. */
static uint32_t get_segment_of_place(uint32_t place)
{
    return 31u - (uint32_t)__builtin_clz(place) - FIRST_BITS;
}

/* Returns the number of places that lie in the segments before this one. */
static uint32_t get_first_place_of_segment(uint32_t segment)
{
    return DOMI_CHILDREN_FIRST << segment;
}

static domi_house **get_pointer_to_child_at_place(const domi_children *children, uint32_t place)
{
    if (place < DOMI_CHILDREN_FIRST)
        return (domi_house **)&children->first[place];
    uint32_t segment = get_segment_of_place(place);
    return &children->more[segment][place - get_first_place_of_segment(segment)];
}

domi_house *domi_children_get_at_place(const domi_children *children, uint32_t place)
{
    return *get_pointer_to_child_at_place(children, place);
}

void domi_children_free_list(domi_children *children)
{
    if (children == NULL)
        return;
    for (uint32_t i = 0; i < DOMI_CHILDREN_SEGMENTS; i++)
        domi_memory_free(children->more[i]);
    domi_memory_free(children);
}

int domi_children_add(domi_children **children, domi_house *child)
{
    if (*children == NULL)
        *children = domi_memory_new(sizeof **children);
    if (*children == NULL)
        return -ENOMEM;

    uint32_t place = (*children)->count;
    if (place >= DOMI_CHILDREN_FIRST) {
        uint32_t segment = get_segment_of_place(place);
        domi_house ***more = &(*children)->more[segment];
        if (*more == NULL)
            *more = domi_memory_new(get_first_place_of_segment(segment) * sizeof(domi_house *));
        if (*more == NULL)
            return -ENOMEM;
    }
    child->child_index = place;
    *get_pointer_to_child_at_place(*children, place) = child;
    (*children)->count++;
    return 0;
}

/* Free the segment that follows one that has just become empty, if there is one: it has been empty
 * for long. The segment that has just become empty is kept, so that a number of children that goes
 * up and down at its border allocates nothing. */
static void free_spare_segment(domi_children *children)
{
    uint32_t segment =
        children->count < DOMI_CHILDREN_FIRST ? 0 : get_segment_of_place(children->count) + 1;

    domi_memory_free(children->more[segment]);
    children->more[segment] = NULL;
}

void domi_children_remove(domi_children *children, domi_house *child)
{
    domi_house *last = domi_children_get_at_place(children, children->count - 1);

    DOMI_CHECK(domi_children_get_at_place(children, child->child_index) == child);
    *get_pointer_to_child_at_place(children, child->child_index) = last;
    last->child_index = child->child_index;
    children->count--;
    if ((children->count & (children->count - 1)) == 0)
        free_spare_segment(children);
}
