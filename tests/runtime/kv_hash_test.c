/* Hashes of kv: keys that differ in little share buckets, and shards, no more than chance brings
 * about, whatever the seed is. */
#include "tests/support/suite.h"

#include "examples/kv/store.h"

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

START_TEST(keys_that_differ_in_little_share_few_buckets)
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
END_TEST

DOMT_MAIN("kv hash", 60, keys_that_differ_in_little_share_few_buckets)
