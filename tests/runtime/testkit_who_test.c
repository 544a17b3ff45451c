/* runtime/testkit/who.c: each actor has one number, by its house and its lease, however many there
 * are, and also when memory runs out. */
#include "runtime/testkit/who.h"

#include "base/memory.h"
#include "tests/support/suite.h"

#define HOUSES 1000u /* the first table has room for 128, so it grows three times */

/* Nobody lives in these. Only the place and the lease of a house count here. */
static domi_house houses[HOUSES];
static domi_who *who;

static uint32_t number_of(uint32_t house)
{
    return domi_who_number(&who, &houses[house]);
}

static void set_lease(uint32_t house, uint32_t lease)
{
    atomic_store(&houses[house].life, (uint64_t)lease << 32);
}

DOMT_TEST(numbers_follow_the_order_of_the_first_run)
{
    for (uint32_t i = HOUSES; i-- > 0;) {
        ck_assert_uint_eq(number_of(i), HOUSES - 1 - i);
        ck_assert_uint_eq(number_of(HOUSES - 1), 0);
    }
    for (uint32_t i = 0; i < HOUSES; i++)
        ck_assert_uint_eq(number_of(i), HOUSES - 1 - i);
    domi_memory_free(who);
}

/* The next actor of a house is another one. */
DOMT_TEST(actors_of_one_house_are_told_apart)
{
    for (int twice = 0; twice < 2; twice++) {
        for (uint32_t lease = 0; lease < 500; lease++) {
            set_lease(7, lease);
            ck_assert_uint_eq(number_of(7), lease);
        }
    }
    domi_memory_free(who);
}

/* An actor without a number gets one as soon as there is memory, and no number is lost. */
DOMT_TEST(without_memory_an_actor_is_unknown)
{
    domi_memory_fail_after(0, 0);
    ck_assert_uint_eq(number_of(0), DOMI_WHO_UNKNOWN);
    domi_memory_fail_after(-1, 0);
    for (uint32_t i = 0; i < 128; i++)
        ck_assert_uint_eq(number_of(i), i);
    domi_memory_fail_after(0, 0);
    ck_assert_uint_eq(number_of(128), DOMI_WHO_UNKNOWN);
    domi_memory_fail_after(-1, 0);
    ck_assert_uint_eq(number_of(128), 128);
    ck_assert_uint_eq(number_of(0), 0);
    domi_memory_free(who);
}

DOMT_SUITE(10)
