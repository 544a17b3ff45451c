/* The tables of kinds and of doors: no entry of them is forgotten. */
#include "house/message/doors.h"
#include "house/message/kind.h"
#include "tests/support/suite.h"

#include <string.h>

typedef void entry(void);

/* Each slot of a row is a pointer to a function, so a row is read as an array of them. */
static bool is_filled(const void *row, size_t slot)
{
    entry *at = NULL;

    memcpy(&at, (const char *)row + slot * sizeof at, sizeof at);
    return at != NULL;
}

#define SLOTS(type) (sizeof(type) / sizeof(entry *))

DOMT_TEST(each_kind_has_each_slot)
{
    for (uint32_t slab = 0; slab < DOMI_SLAB_KINDS; slab++) {
        for (size_t slot = 0; slot < SLOTS(domi_kind); slot++) {
            ck_assert_msg(is_filled(&domi_kinds[slab], slot),
                          "house/dispatch/kinds.c: slot %zu of kind %u is empty", slot, slab);
        }
    }
}

DOMT_TEST(each_door_leads_somewhere)
{
    for (size_t slot = 0; slot < SLOTS(struct domi_doors); slot++) {
        ck_assert_msg(is_filled(&domi_doors, slot), "house/dispatch/kinds.c: door %zu is empty",
                      slot);
    }
}

DOMT_TEST(the_test_sees_an_empty_slot)
{
    domi_kind row = domi_kinds[DOMI_SLAB_WATCH];

    row.cancel = NULL;
    ck_assert(!is_filled(&row, SLOTS(domi_kind) - 1));
}

DOMT_SUITE(20)
