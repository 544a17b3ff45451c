/* house/family/children.c: children know their places in the list and leave from anywhere, segments
 * come and go, and want of memory changes nothing. */
#include "house/family/children.h"

#include "base/memory.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdlib.h>

enum { MANY = 3000 };

static domi_house *houses;

static void begin(void)
{
    houses = aligned_alloc(64, MANY * sizeof *houses);
    ck_assert_ptr_nonnull(houses);
}

/* Each child in it knows its place. */
static unsigned wrong_places(const domi_children *children)
{
    unsigned wrong = 0;

    for (uint32_t i = 0; i < domi_children_count(children); i++)
        wrong += domi_children_get(children, i)->child_index != i;
    return wrong;
}

static uint32_t segments(const domi_children *children)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < DOMI_CHILDREN_SEGMENTS; i++)
        count += children->more[i] != NULL;
    return count;
}

DOMT_TEST(empty_list_has_no_children)
{
    ck_assert_uint_eq(domi_children_count(NULL), 0);
    domi_children_free(NULL);
}

DOMT_TEST(children_know_their_places_whoever_leaves)
{
    static const uint32_t steps[] = {1, 7, 1499, MANY - 1}; /* that walk through all of them */
    unsigned wrong = 0;

    begin();
    for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++) {
        domi_children *children = NULL;
        for (uint32_t i = 0; i < MANY; i++) {
            wrong += domi_children_add(&children, &houses[i]) != 0;
            wrong += domi_children_get(children, i) != &houses[i];
        }
        uint32_t at = 0;
        for (uint32_t i = 0; i < MANY; i++, at = (at + steps[s]) % MANY) {
            domi_children_remove(children, &houses[at]);
            if (i % 64 == 0 || children->count < 40)
                wrong += wrong_places(children);
        }
        wrong += children->count != 0;
        domi_children_free(children);
    }
    ck_assert_uint_eq(wrong, 0);
    free(houses);
}

/* One empty segment is kept, so that one child more or less at its border allocates nothing. */
DOMT_TEST(children_that_have_left_leave_no_memory_behind)
{
    domi_children *children = NULL;

    begin();
    for (uint32_t i = 0; i < 1024; i++)
        ck_assert_int_eq(domi_children_add(&children, &houses[i]), 0);
    ck_assert_uint_eq(segments(children), 7); /* 8 and 8, 16, 32, 64, 128, 256, 512 */
    while (children->count > 512)
        domi_children_remove(children, domi_children_get(children, 0));
    ck_assert_uint_eq(segments(children), 7);
    while (children->count > 256)
        domi_children_remove(children, domi_children_get(children, 0));
    ck_assert_uint_eq(segments(children), 6);
    while (children->count > 0)
        domi_children_remove(children, domi_children_get(children, 0));
    ck_assert_uint_eq(segments(children), 0);
    domi_children_free(children);
    free(houses);
}

DOMT_TEST(a_child_more_or_less_at_a_border_allocates_nothing)
{
    domi_children *children = NULL;

    begin();
    for (uint32_t i = 0; i < 65; i++)
        ck_assert_int_eq(domi_children_add(&children, &houses[i]), 0);
    domi_memory_fail_after(0, 1);
    for (int i = 0; i < 100; i++) {
        domi_children_remove(children, &houses[64]);
        ck_assert_int_eq(domi_children_add(&children, &houses[64]), 0);
    }
    domi_memory_fail_after(-1, 0);
    domi_children_free(children);
    free(houses);
}

DOMT_TEST(without_memory_nobody_is_added_and_nobody_lost)
{
    domi_children *children = NULL;
    uint32_t refused = 0;

    begin();
    for (uint32_t i = 0; i < 100; i++) {
        domi_memory_fail_after(0, 0);
        int error = domi_children_add(&children, &houses[i]);
        domi_memory_fail_after(-1, 0);
        if (error == 0)
            continue;
        ck_assert_int_eq(error, -ENOMEM);
        ck_assert_uint_eq(domi_children_count(children), i);
        ck_assert_int_eq(domi_children_add(&children, &houses[i]), 0);
        refused++;
    }
    ck_assert_uint_eq(refused, 5); /* the list; 8, 16, 32, 64 */
    ck_assert_uint_eq(wrong_places(children), 0);
    domi_children_free(children);
    free(houses);
}

DOMT_SUITE(30)
