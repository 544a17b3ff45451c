/* base/random.c and base/siphash.c: random numbers and hashes that are the same for the same seed
 * and key. */
#include "base/random.h"
#include "base/siphash.h"
#include "tests/support/suite.h"

/* base/random.c: the random source gives the same numbers for the same seed, within bounds, and
 * evenly. */

DOMT_TEST(random_matches_the_published_generators)
{
    domi_random random = {{1, 2, 3, 4}};
    domi_random seeded;

    /* The first numbers of xoshiro256** from the state 1, 2, 3, 4, as published. */
    ck_assert_uint_eq(domi_random_next_bits(&random), 11520);
    ck_assert_uint_eq(domi_random_next_bits(&random), 0);
    ck_assert_uint_eq(domi_random_next_bits(&random), 1509978240);
    ck_assert_uint_eq(domi_random_next_bits(&random), UINT64_C(1215971899390074240));

    /* The first numbers of splitmix64 from the seed 0, as published. */
    domi_random_init(&seeded, 0);
    ck_assert_uint_eq(seeded.state[0], UINT64_C(0xE220A8397B1DCDAF));
    ck_assert_uint_eq(seeded.state[1], UINT64_C(0x6E789E6AA1B965F4));
    ck_assert_uint_eq(seeded.state[2], UINT64_C(0x06C45D188009454F));
    ck_assert_uint_eq(seeded.state[3], UINT64_C(0xF88BB8A8724C81EC));
}

DOMT_TEST(random_with_same_seed_repeats_its_numbers)
{
    for (uint64_t seed = 0; seed < 100; seed++) {
        domi_random first, second;

        domi_random_init(&first, seed);
        domi_random_init(&second, seed);
        for (int i = 0; i < 100; i++)
            ck_assert_uint_eq(domi_random_next_bits(&first), domi_random_next_bits(&second));
        ck_assert_uint_eq(domi_random_below(&first, 1000), domi_random_below(&second, 1000));
    }
}

DOMT_TEST(neighbouring_seeds_give_unrelated_numbers)
{
    int bits_apart = 0;

    for (uint64_t seed = 0; seed < 100; seed++) {
        domi_random first, second;

        domi_random_init(&first, seed);
        domi_random_init(&second, seed + 1);
        bits_apart +=
            __builtin_popcountll(domi_random_next_bits(&first) ^ domi_random_next_bits(&second));
    }
    /* Half of 6,400 bits are expected to differ between two seeds; the standard deviation is
     * 40. */
    ck_assert_int_ge(bits_apart, 2900);
    ck_assert_int_le(bits_apart, 3500);
}

DOMT_TEST(random_below_stays_below_its_bound)
{
    static const uint64_t bounds[] = {1,          2,          3,          64,        1000,
                                      UINT32_MAX, 1ULL << 63, 3ULL << 62, UINT64_MAX};
    domi_random random;

    domi_random_init(&random, 7);
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
        for (int draw = 0; draw < 2000; draw++)
            ck_assert_uint_lt(domi_random_below(&random, bounds[i]), bounds[i]);
}

DOMT_TEST(random_below_gives_each_number_its_share)
{
    enum { faces = 10, draws = 100000 };
    int seen[faces] = {0};
    domi_random random;

    domi_random_init(&random, 11);
    for (int i = 0; i < draws; i++)
        seen[domi_random_below(&random, faces)]++;
    /* Each face of the die is expected 10,000 times; the standard deviation is 95. */
    for (int i = 0; i < faces; i++) {
        ck_assert_int_ge(seen[i], 9500);
        ck_assert_int_le(seen[i], 10500);
    }
}

/* If a draw below 3 * 2^62 were a 64-bit number modulo that bound, the lowest third would get two
 * quarters of all 2^64 numbers. */
DOMT_TEST(random_below_has_no_modulo_bias)
{
    enum { draws = 30000 };
    domi_random random;
    int lowest_third = 0;

    domi_random_init(&random, 13);
    for (int i = 0; i < draws; i++)
        lowest_third += domi_random_below(&random, 3ULL << 62) < 1ULL << 62;
    ck_assert_int_ge(lowest_third, 9500);
    ck_assert_int_le(lowest_third, 10500);
}

DOMT_TEST(each_random_bit_is_set_half_the_time)
{
    enum { draws = 10000 };
    int set[64] = {0};
    domi_random random;

    domi_random_init(&random, 17);
    for (int i = 0; i < draws; i++) {
        uint64_t drawn = domi_random_next_bits(&random);
        for (int bit = 0; bit < 64; bit++)
            set[bit] += (int)(drawn >> bit & 1);
    }
    for (int bit = 0; bit < 64; bit++) {
        ck_assert_int_ge(set[bit], 4700);
        ck_assert_int_le(set[bit], 5300);
    }
}

/* --- siphash ---------------------------------------------------------------------------------- */

/* base/siphash.c: hashes agree with the published vectors. */

static const uint64_t key[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};

/* The published vectors of SipHash: the bytes 0, 1, 2, ... under the key 0, 1, ..., 15. */
DOMT_TEST(siphash_gives_the_published_hashes)
{
    static const struct {
        size_t length;
        uint64_t hash;
    } vectors[] = {
        {0, UINT64_C(0x726fdb47dd0e0e31)},  {1, UINT64_C(0x74f839c593dc67fd)},
        {7, UINT64_C(0xab0200f58b01d137)},  {8, UINT64_C(0x93f5f5799a932462)},
        {15, UINT64_C(0xa129ca6149be45e5)}, {63, UINT64_C(0x958a324ceb064572)},
    };
    unsigned char bytes[64];

    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
        ck_assert_uint_eq(domi_siphash(key, bytes, vectors[i].length), vectors[i].hash);
}

DOMT_SUITE(20)
