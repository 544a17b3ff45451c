/* house/directory/name_table.c at its limits: a full table, a full table whose names change, names
 * that were chosen to collide, and no memory. */
#include "base/memory.h"
#include "base/random.h"
#include "base/siphash.h"
#include "tests/house/naming.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Every capacity that fills some buckets, then the default one, to the last place. */
DOMT_TEST(names_at_the_capacity_answer_enospc_and_count_it)
{
    static uint32_t slots[DOMI_NAMES_PRESET];
    uint32_t wrong = 0;
    uint32_t slot = 7;

    for (uint32_t capacity = 1; capacity <= DOMI_NAMES_PRESET;
         capacity = capacity < 256 ? capacity + 1 : capacity * 4) {
        open_names(capacity);
        for (uint32_t i = 0; i < capacity; i++)
            wrong += put(i, &slots[i]) != 0;
        ck_assert_uint_eq(domi_names_count(&names), capacity);
        ck_assert_uint_eq(domi_names_refused(&names), 0);
        wrong += put(capacity, &slot) != -ENOSPC;
        wrong += put(0, &slot) != -EALREADY; /* not for lack of room */
        ck_assert_uint_eq(slot, 7);
        ck_assert_uint_eq(domi_names_refused(&names), 1);
        for (uint32_t i = 0; i < capacity; i++)
            wrong += !is_found(i);
        wrong += is_found(capacity);
        wrong += domi_names_remove(&names, slots[capacity / 2], address_of(capacity / 2)) != 0;
        wrong += put(capacity, &slots[0]) != 0 || slots[0] != slots[capacity / 2];
        slot = 7;
        ck_assert_uint_eq(wrong, 0);
        domi_names_fini(&names);
    }
}

/* Which name goes when another one comes. */
enum churn { OLDEST, NEWEST, ANY, HALF, CHURNS };

static uint32_t leaves(enum churn churn, domi_random *random, uint32_t round, uint32_t capacity)
{
    switch (churn) {
    case OLDEST:
        return round % capacity;
    case NEWEST:
        return capacity - 1;
    case ANY:
        return (uint32_t)domi_random_below(random, capacity);
    default: /* one half comes and goes, the other stays for ever */
        return (uint32_t)domi_random_below(random, (capacity + 1) / 2) * 2 % capacity;
    }
}

/* A full table, in which `rounds` names are each replaced; from a `pool` of names that come again
 * and again, so that they meet those which profited by their absence, or (0) always by new ones.
 * Returns what went wrong. */
static uint32_t churn_full(enum churn churn, uint32_t capacity, uint32_t rounds, uint32_t pool)
{
    static uint32_t slots[4096];
    static uint64_t numbers[4096];
    static bool in_use[8192];
    domi_random random;
    uint64_t next = capacity;
    uint32_t wrong = 0;

    domi_random_init(&random, capacity + (uint32_t)churn);
    memset(in_use, 0, sizeof in_use);
    for (uint32_t i = 0; i < capacity; i++) {
        numbers[i] = i;
        in_use[i] = true;
        wrong += put(i, &slots[i]) != 0;
    }
    for (uint32_t round = 0; round < rounds; round++) {
        uint32_t i = leaves(churn, &random, round, capacity);
        wrong += domi_names_remove(&names, slots[i], address_of(numbers[i])) != 0;
        wrong += is_found(numbers[i]);
        if (pool != 0) {
            in_use[numbers[i]] = false;
            do
                next = domi_random_below(&random, pool);
            while (in_use[next]);
            in_use[next] = true;
        }
        numbers[i] = next;
        wrong += put(next++, &slots[i]) != 0;
        wrong += !is_found(numbers[i]);
    }
    for (uint32_t i = 0; i < capacity; i++)
        wrong += domi_names_remove(&names, slots[i], address_of(numbers[i])) != 0;
    return wrong;
}

DOMT_TEST(names_do_not_wear_out)
{
    static const uint32_t capacities[] = {1, 2, 16, 17, 32, 64, 256, 4096};
    uint32_t wrong = 0;

    for (size_t c = 0; c < sizeof capacities / sizeof capacities[0]; c++) {
        uint32_t capacity = capacities[c];
        open_names(capacity);
        for (enum churn churn = OLDEST; churn < CHURNS; churn++) {
            wrong += churn_full(churn, capacity, 3000 + capacity * 4, 0);
            wrong += churn_full(churn, capacity, 3000 + capacity * 4, capacity * 2);
        }
        ck_assert_uint_eq(wrong, 0);
        ck_assert_uint_eq(domi_names_refused(&names), 0);
        ck_assert_uint_eq(domi_names_count(&names), 0);

        /* Nothing is left that a find would have to step over. */
        const unsigned char *buckets = (const unsigned char *)names.buckets;
        size_t bytes = (size_t)names.buckets_count * 64;
        ck_assert(buckets[0] == 0 && memcmp(buckets, buckets + 1, bytes - 1) == 0);
        domi_names_fini(&names);
    }
}

/* Names chosen to fall into one bucket under a known key fill it; under another key they do not. */
DOMT_TEST(names_cannot_be_aimed_without_the_key)
{
    enum { AIMED = 100 };
    static uint64_t aimed[AIMED];
    static const uint64_t other_key[2] = {1, 2};
    char text[NAME_BYTES];
    uint32_t refused = 0;
    uint32_t slot;
    uint32_t found = 0;

    open_names(256); /* 32 buckets */
    for (uint64_t n = 0; found < AIMED; n++) {
        uint64_t hash = domi_siphash(key, name_of(n, text), strlen(text));
        if (hash % 32 == 0 && hash >> 59 == 0)
            aimed[found++] = n;
    }
    for (uint32_t i = 0; i < AIMED; i++)
        refused += put(aimed[i], &slot) == -ENOSPC;
    ck_assert_uint_eq(refused, AIMED - 32); /* two buckets of 16 */
    ck_assert_uint_eq(domi_names_refused(&names), refused);
    ck_assert(is_found(aimed[31]));
    domi_names_fini(&names);

    ck_assert_int_eq(domi_names_init(&names, 256, other_key), 0);
    for (uint32_t i = 0; i < AIMED; i++)
        ck_assert_int_eq(put(aimed[i], &slot), 0);
    domi_names_fini(&names);
}

DOMT_TEST(names_touch_no_memory_before_it_is_needed)
{
    static unsigned char pages[1024];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint32_t resident = 0;
    uint32_t slot;

    open_names(DOMI_NAMES_MAX);
    for (size_t at = 0; at < names.mapped_bytes; at += sizeof pages * page) {
        size_t bytes = names.mapped_bytes - at;
        if (bytes > sizeof pages * page)
            bytes = sizeof pages * page;
        ck_assert_int_eq(mincore((char *)names.buckets + at, bytes, pages), 0);
        for (size_t i = 0; i < (bytes + page - 1) / page; i++)
            resident += pages[i] & 1;
    }
    ck_assert_uint_eq(resident, 0);
    ck_assert_int_eq(put(1, &slot), 0);
    ck_assert(is_found(1));
    domi_names_fini(&names);
}

DOMT_TEST(names_that_cannot_be_made_say_so)
{
    ck_assert_int_eq(domi_names_init(&names, 0, key), -EINVAL);
    ck_assert_int_eq(domi_names_init(&names, DOMI_NAMES_MAX + 1, key), -EINVAL);
    domi_memory_fail_after(0, 0);
    ck_assert_int_eq(domi_names_init(&names, 16, key), -ENOMEM);
    domi_memory_fail_after(-1, 0);
    domi_names_fini(&names);
    open_names(16);
    domi_names_fini(&names);
}

DOMT_SUITE(60)
