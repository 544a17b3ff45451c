/* Hashes of kv: keys that differ in little share buckets, and shards, no more than chance brings
 * about, whatever the seed is. */
#include "tests/support/suite.h"

#include "examples/kv/store.h"
#include "examples/kv/wide.h"

#include <stdio.h>

#define SEEDS 20000u
#define KEYS  64u
#define MOST  14u /* chance brings so many together once in 10^9 seeds */

struct kind {
    const char *of; /* the key, with the place of its number */
    unsigned shift; /* the first bit of the hash that is used */
};

static uint32_t count_most(const struct kind *kind)
{
    uint32_t counts[KEYS] = {0}, most = 0;
    char key[64];

    for (uint32_t i = 0; i < KEYS; i++) {
        int size = snprintf(key, sizeof key, kind->of, (int)i);
        uint32_t *count = &counts[kv_hash(key, (uint32_t)size) >> kind->shift & (KEYS - 1)];
        (*count)++;
        most = *count > most ? *count : most;
    }
    return most;
}

DOMT_TEST(keys_that_differ_in_little_share_few_buckets)
{
    /* the lowest bits choose the bucket, and the highest the shard */
    static const struct kind kinds[] = {{"f%d", 0},
                                        {"f%d", 58},
                                        {"%d:key", 0},
                                        {"%d:key", 58},
                                        {"a key of many bytes %d", 0},
                                        {"a key of many bytes %d", 58},
                                        {"%d is first in this key", 0},
                                        {"%d is first in this key", 58}};

    for (uint32_t seed = 0; seed < SEEDS / (sizeof kinds / sizeof kinds[0]); seed++) {
        kv_hash_seed();
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
            ck_assert_uint_lt(count_most(&kinds[i]), MOST);
    }
}

DOMT_TEST(halves_are_multiplied_as_the_whole_is)
{
    static const uint64_t numbers[] = {0,
                                       1,
                                       UINT32_MAX,
                                       UINT64_C(1) << 32,
                                       UINT64_C(0xffffffff00000001),
                                       UINT64_C(0xe7037ed1a0b428db),
                                       INT64_MAX,
                                       UINT64_MAX};
    static const size_t count = sizeof numbers / sizeof numbers[0];

    /* (2^64 - 1)^2 is 2^128 - 2^65 + 1, and (2^64 - 1) * 2^32 is 2^96 - 2^32. */
    ck_assert_uint_eq(kv_high_by_halves(UINT64_MAX, UINT64_MAX), UINT64_MAX - 1);
    ck_assert_uint_eq(kv_high_by_halves(UINT64_MAX, UINT64_C(1) << 32), UINT32_MAX);
    ck_assert_uint_eq(kv_fold_product(UINT64_MAX, UINT64_MAX), UINT64_MAX);
    for (size_t i = 0; i < count * count; i++) {
        uint64_t a = numbers[i / count], b = numbers[i % count];
        ck_assert_uint_eq(kv_fold_product(a, b), a * b ^ kv_high_by_halves(a, b));
    }
}

DOMT_SUITE(60)
