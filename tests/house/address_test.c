/* domus_address_equals() and domus_address_hash(): what a table of addresses needs. */
#include "tests/house/recorder.h"
#include "tests/support/suite.h"

#include <domus/actor.h>

#include <string.h>

static domt_world world;

DOMT_TEST(addresses_are_equal_by_house_and_lease)
{
    static domt_log logs[2];

    domt_world_open(&world, 2);
    domus_address one = domt_recorder_new(&world, 0, &logs[0]);
    domus_address other = domt_recorder_new(&world, 1, &logs[1]);
    domus_address next = {one.house, one.lease + 1};
    domus_address nobody = {0};

    ck_assert(domus_address_equals(one, one) && domus_address_equals(nobody, (domus_address){0}));
    ck_assert(!domus_address_equals(one, other) && !domus_address_equals(one, next));
    ck_assert(!domus_address_equals(one, nobody));
    ck_assert_uint_eq(domus_address_hash(one), domus_address_hash(one));
    ck_assert_uint_ne(domus_address_hash(one), domus_address_hash(other));
    ck_assert_uint_ne(domus_address_hash(one), domus_address_hash(next));
    domt_world_end(&world);
}

#define HOUSES  1024u
#define LEASES  16u
#define BUCKETS (HOUSES * LEASES)

/* Houses lie at equal distances, and leases count up. With as many
 * buckets as addresses, chance puts some eight into the fullest, and leaves a third empty. */
static void spreads(unsigned shift)
{
    static unsigned char counts[BUCKETS];
    uint32_t empty = 0;

    memset(counts, 0, sizeof counts);
    for (uintptr_t house = 1; house <= HOUSES; house++) {
        for (uint32_t lease = 0; lease < LEASES; lease++) {
            domus_address address = {(struct domi_house *)(house * 512), lease};
            unsigned char *bucket = &counts[(domus_address_hash(address) >> shift) % BUCKETS];
            ck_assert_uint_lt(++*bucket, 16);
        }
    }
    for (uint32_t i = 0; i < BUCKETS; i++)
        empty += counts[i] == 0;
    ck_assert_uint_lt(empty, BUCKETS * 2 / 5);
}

DOMT_TEST(hashes_spread_by_their_low_and_by_their_high_bits)
{
    spreads(0);
    spreads(25);
    spreads(50);
}

DOMT_SUITE(20)
