/* house/directory/name_table.c, used by one thread: a name that was put is found until it is
 * removed; and the table at its limits. */
#include "base/memory.h"
#include "base/random.h"
#include "base/siphash.h"
#include "house/directory/name_table.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NAME_BYTES (DOMI_NAME_MAX + 1)

static const uint64_t key[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
static domi_names names;

/* Returns an address that belongs to no house; the table of names never reads a house. */
static domus_address address_of_number(uint64_t number)
{
    return (domus_address){(struct domi_house *)(uintptr_t)((number + 1) * 64),
                           (uint32_t)number * 2654435761u + 1};
}

static bool is_same_address(domus_address a, domus_address b)
{
    return a.house == b.house && a.lease == b.lease;
}

static const char *name_of_number(uint64_t number, char *ret_text)
{
    snprintf(ret_text, NAME_BYTES, "user/%llu", (unsigned long long)number);
    return ret_text;
}

static bool is_name_of_number_found(uint64_t number)
{
    char text[NAME_BYTES];
    domus_address address;

    return domi_names_find_address(&names, name_of_number(number, text), &address) == 0 &&
           is_same_address(address, address_of_number(number));
}

static int put_name_of_number(uint64_t number, uint32_t *ret_slot)
{
    char text[NAME_BYTES];

    return domi_names_register_address(&names, name_of_number(number, text),
                                       address_of_number(number), ret_slot);
}

static void open_names(uint32_t capacity)
{
    ck_assert_int_eq(domi_names_init(&names, capacity, key), 0);
}

DOMT_TEST(names_put_is_found_until_removed)
{
    domus_address address = address_of_number(99);
    uint32_t slot = 7;

    open_names(100);
    ck_assert_int_eq(domi_names_find_address(&names, "printer", &address), -ENOENT);
    ck_assert(is_same_address(address, address_of_number(99)));
    ck_assert_int_eq(domi_names_register_address(&names, "printer", address_of_number(1), &slot),
                     0);
    ck_assert_uint_lt(slot, 100);
    ck_assert_int_eq(domi_names_find_address(&names, "printer", &address), 0);
    ck_assert(is_same_address(address, address_of_number(1)));
    ck_assert_int_eq(domi_names_find_address(&names, "printe", &address), -ENOENT);
    ck_assert_int_eq(domi_names_find_address(&names, "printers", &address), -ENOENT);
    ck_assert_uint_eq(domi_names_count(&names), 1);
    ck_assert_int_eq(domi_names_remove_name(&names, slot, address_of_number(1)), 0);
    ck_assert_int_eq(domi_names_find_address(&names, "printer", &address), -ENOENT);
    ck_assert_uint_eq(domi_names_count(&names), 0);
    domi_names_fini(&names);
    domi_names_fini(&names);
}

/* Names differ in one byte only, at each place, for each length; all prefixes of 63 of them are
 * names, too. */
DOMT_TEST(names_differ_by_any_byte_and_by_length)
{
    char text[NAME_BYTES + 1];
    uint32_t wrong = 0;
    uint32_t slot;

    open_names(DOMI_NAMES_PRESET);
    for (uint32_t length = 1; length <= DOMI_NAME_MAX; length++) {
        /* change the byte at each place of the name; at the last place, the end, nothing changes */
        for (uint32_t at = 0; at <= length; at++) {
            memset(text, '~', length);
            text[at] = at < length ? '!' : '\0';
            text[length] = '\0';
            wrong += domi_names_register_address(&names, text, address_of_number(length * 100 + at),
                                                 &slot) != 0;
        }
    }
    for (uint32_t length = 1; length <= DOMI_NAME_MAX; length++) {
        for (uint32_t at = 0; at <= length; at++) {
            domus_address address = {NULL, 0};
            memset(text, '~', length);
            text[at] = at < length ? '!' : '\0';
            text[length] = '\0';
            wrong += domi_names_find_address(&names, text, &address) != 0;
            wrong += !is_same_address(address, address_of_number(length * 100 + at));
        }
    }
    ck_assert_uint_eq(wrong, 0);
    domi_names_fini(&names);
}

DOMT_TEST(names_are_1_to_63_bytes_of_printable_ascii_without_space)
{
    static const char *const wrong[] = {"", " ", "a b", "a\n", "\x7f", "\x1f", "caf\xc3\xa9"};
    char text[NAME_BYTES + 1];
    domus_address address;
    uint32_t slot = 7;

    open_names(4);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_int_eq(domi_names_register_address(&names, wrong[i], address_of_number(1), &slot),
                         -EINVAL);
        ck_assert_int_eq(domi_names_find_address(&names, wrong[i], &address), -EINVAL);
    }
    memset(text, 'x', sizeof text);
    text[NAME_BYTES] = '\0';
    ck_assert_int_eq(domi_names_register_address(&names, text, address_of_number(1), &slot),
                     -EINVAL);
    ck_assert_int_eq(domi_names_find_address(&names, text, &address), -EINVAL);
    ck_assert_uint_eq(slot, 7);
    ck_assert_uint_eq(domi_names_count(&names), 0);
    text[DOMI_NAME_MAX] = '\0';
    ck_assert_int_eq(domi_names_register_address(&names, text, address_of_number(1), &slot), 0);
    ck_assert_int_eq(domi_names_register_address(&names, "!~", address_of_number(1), &slot), 0);
    ck_assert_int_eq(domi_names_find_address(&names, text, &address), 0);
    domi_names_fini(&names);
}

DOMT_TEST(names_taken_by_another_stay_his)
{
    domus_address next_life = address_of_number(1);
    uint32_t slot = 7;
    uint32_t his;

    next_life.lease++;
    open_names(4);
    ck_assert_int_eq(put_name_of_number(1, &his), 0);
    ck_assert_int_eq(domi_names_register_address(&names, "user/1", address_of_number(2), &slot),
                     -EEXIST);
    ck_assert_int_eq(domi_names_register_address(&names, "user/1", next_life, &slot), -EEXIST);
    ck_assert_int_eq(domi_names_register_address(&names, "user/1", address_of_number(1), &slot),
                     -EALREADY);
    ck_assert_uint_eq(slot, 7);
    ck_assert(is_name_of_number_found(1));
    ck_assert_uint_eq(domi_names_count(&names), 1);
    ck_assert_uint_eq(domi_names_count_refused(&names), 0);
    domi_names_fini(&names);
}

DOMT_TEST(names_are_removed_by_their_address_only)
{
    domus_address next_life = address_of_number(1);
    domus_address neighbour = address_of_number(1);
    uint32_t slot;
    uint32_t again;

    next_life.lease++;
    neighbour.house = address_of_number(2).house;
    open_names(4);
    ck_assert_int_eq(put_name_of_number(1, &slot), 0);
    ck_assert_int_eq(domi_names_remove_name(&names, slot, address_of_number(2)), -ENOENT);
    ck_assert_int_eq(domi_names_remove_name(&names, slot, next_life), -ENOENT);
    ck_assert_int_eq(domi_names_remove_name(&names, slot, neighbour), -ENOENT);
    ck_assert_int_eq(domi_names_remove_name(&names, slot + 1, address_of_number(1)), -ENOENT);
    ck_assert(is_name_of_number_found(1));
    ck_assert_int_eq(domi_names_remove_name(&names, slot, address_of_number(1)), 0);
    ck_assert_int_eq(domi_names_remove_name(&names, slot, address_of_number(1)), -ENOENT);
    ck_assert_int_eq(put_name_of_number(2, &again), 0);
    /* the slot has another name now, so the first name's address cannot remove it */
    ck_assert_uint_eq(again, slot);
    ck_assert_int_eq(domi_names_remove_name(&names, slot, address_of_number(1)), -ENOENT);
    ck_assert(is_name_of_number_found(2));
    domi_names_fini(&names);
}

DOMT_TEST(names_of_one_address_may_be_several)
{
    domus_address address;
    uint32_t slots[2];

    open_names(4);
    ck_assert_int_eq(domi_names_register_address(&names, "a", address_of_number(1), &slots[0]), 0);
    ck_assert_int_eq(domi_names_register_address(&names, "b", address_of_number(1), &slots[1]), 0);
    ck_assert_int_eq(domi_names_remove_name(&names, slots[0], address_of_number(1)), 0);
    ck_assert_int_eq(domi_names_find_address(&names, "a", &address), -ENOENT);
    ck_assert_int_eq(domi_names_find_address(&names, "b", &address), 0);
    domi_names_fini(&names);
}

/* Puts, removes and finds at random are compared with a plain array that has the address of each
 * name. */
DOMT_TEST(names_agree_with_a_plain_array)
{
    enum { NAMES = 60, CAPACITY = 40, ROUNDS = 300000, NONE = 0 };
    uint64_t holder[NAMES] = {NONE}; /* for each name the number of its address */
    uint32_t slots[NAMES] = {0};
    uint32_t count = 0;
    uint32_t wrong = 0;
    domi_random random;
    char text[NAME_BYTES];

    domi_random_init(&random, 5);
    open_names(CAPACITY);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t n = (uint32_t)domi_random_below(&random, NAMES);
        uint64_t who = 1 + domi_random_below(&random, 3);
        uint32_t slot = UINT32_MAX;
        domus_address found = {NULL, 0};
        int result;
        name_of_number(n, text);
        switch (domi_random_below(&random, 4)) {
        case 0:
        case 1:
            result = domi_names_register_address(&names, text, address_of_number(who), &slot);
            if (holder[n] != NONE) {
                wrong += result != (holder[n] == who ? -EALREADY : -EEXIST);
            } else if (count == CAPACITY) {
                wrong += result != -ENOSPC;
            } else {
                wrong += result != 0 || slot >= CAPACITY;
                holder[n] = who;
                slots[n] = slot;
                count++;
            }
            break;
        case 2:
            if (holder[n] == NONE)
                break;
            result = domi_names_remove_name(&names, slots[n], address_of_number(who));
            wrong += result != (holder[n] == who ? 0 : -ENOENT);
            count -= result == 0;
            holder[n] = result == 0 ? NONE : holder[n];
            break;
        default:
            result = domi_names_find_address(&names, text, &found);
            wrong += result != (holder[n] == NONE ? -ENOENT : 0);
            wrong += holder[n] != NONE && !is_same_address(found, address_of_number(holder[n]));
            break;
        }
        wrong += domi_names_count(&names) != count;
    }
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_gt(domi_names_count_refused(&names), 0);
    domi_names_fini(&names);
}

static uint32_t visits[1000];
static uint32_t strangers;

static void count_wrong_visit(const char *text, domus_address address, void *context)
{
    unsigned long long number = strtoull(text + 5, NULL, 10);
    char expected[NAME_BYTES];

    if (number >= 1000 || strcmp(text, name_of_number(number, expected)) != 0 ||
        !is_same_address(address, address_of_number(number)))
        strangers++;
    else
        visits[number]++;
    ++*(uint32_t *)context;
}

DOMT_TEST(names_walk_visits_each_once)
{
    uint32_t slots[1000];
    uint32_t visited = 0;
    uint32_t wrong = 0;

    open_names(1000);
    domi_names_visit_all(&names, count_wrong_visit, &visited);
    ck_assert_uint_eq(visited, 0);
    for (uint32_t i = 0; i < 1000; i++)
        wrong += put_name_of_number(i, &slots[i]) != 0;
    for (uint32_t i = 0; i < 1000; i += 3)
        wrong += domi_names_remove_name(&names, slots[i], address_of_number(i)) != 0;
    domi_names_visit_all(&names, count_wrong_visit, &visited);
    for (uint32_t i = 0; i < 1000; i++)
        wrong += visits[i] != (i % 3 == 0 ? 0 : 1);
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_eq(strangers, 0);
    ck_assert_uint_eq(visited, 666);
    domi_names_fini(&names);
}

/* --- limits ----------------------------------------------------------------------------------- */

/* Tables of every capacity that fills some buckets, then of the default one, are used to the last
 * place. */
DOMT_TEST(names_at_the_capacity_answer_enospc_and_count_it)
{
    static uint32_t slots[DOMI_NAMES_PRESET];
    uint32_t wrong = 0;
    uint32_t slot = 7;

    for (uint32_t capacity = 1; capacity <= DOMI_NAMES_PRESET;
         capacity = capacity < 256 ? capacity + 1 : capacity * 4) {
        open_names(capacity);
        for (uint32_t i = 0; i < capacity; i++)
            wrong += put_name_of_number(i, &slots[i]) != 0;
        ck_assert_uint_eq(domi_names_count(&names), capacity);
        ck_assert_uint_eq(domi_names_count_refused(&names), 0);
        wrong += put_name_of_number(capacity, &slot) != -ENOSPC;
        /* refused because this name is there, not for lack of room */
        wrong += put_name_of_number(0, &slot) != -EALREADY;
        ck_assert_uint_eq(slot, 7);
        ck_assert_uint_eq(domi_names_count_refused(&names), 1);
        for (uint32_t i = 0; i < capacity; i++)
            wrong += !is_name_of_number_found(i);
        wrong += is_name_of_number_found(capacity);
        wrong += domi_names_remove_name(&names, slots[capacity / 2],
                                        address_of_number(capacity / 2)) != 0;
        wrong += put_name_of_number(capacity, &slots[0]) != 0 || slots[0] != slots[capacity / 2];
        slot = 7;
        ck_assert_uint_eq(wrong, 0);
        domi_names_fini(&names);
    }
}

/* Which of the names is removed when another one comes: the oldest, the newest, any, or one of a
 * half. */
enum churn { OLDEST, NEWEST, ANY, HALF, CHURNS };

static uint32_t choose_name_to_remove(enum churn churn, domi_random *random, uint32_t round,
                                      uint32_t capacity)
{
    switch (churn) {
    case OLDEST:
        return round % capacity;
    case NEWEST:
        return capacity - 1;
    case ANY:
        return (uint32_t)domi_random_below(random, capacity);
    default: /* names of one half are replaced, the others stay for ever */
        return (uint32_t)domi_random_below(random, (capacity + 1) / 2) * 2 % capacity;
    }
}

/* Replace names in a full table for `rounds` rounds. New names come from a `pool` of names that
 * return again and again, or are always new ones (0). Returns the number of errors. */
static uint32_t errors_of_churn_in_full_table(enum churn churn, uint32_t capacity, uint32_t rounds,
                                              uint32_t pool)
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
        wrong += put_name_of_number(i, &slots[i]) != 0;
    }
    for (uint32_t round = 0; round < rounds; round++) {
        uint32_t i = choose_name_to_remove(churn, &random, round, capacity);
        wrong += domi_names_remove_name(&names, slots[i], address_of_number(numbers[i])) != 0;
        wrong += is_name_of_number_found(numbers[i]);
        if (pool != 0) {
            in_use[numbers[i]] = false;
            do
                next = domi_random_below(&random, pool);
            while (in_use[next]);
            in_use[next] = true;
        }
        numbers[i] = next;
        wrong += put_name_of_number(next++, &slots[i]) != 0;
        wrong += !is_name_of_number_found(numbers[i]);
    }
    for (uint32_t i = 0; i < capacity; i++)
        wrong += domi_names_remove_name(&names, slots[i], address_of_number(numbers[i])) != 0;
    return wrong;
}

DOMT_TEST(full_table_of_names_survives_any_churn)
{
    static const uint32_t capacities[] = {1, 2, 16, 17, 32, 64, 256, 4096};
    uint32_t wrong = 0;

    for (size_t c = 0; c < sizeof capacities / sizeof capacities[0]; c++) {
        uint32_t capacity = capacities[c];
        open_names(capacity);
        for (enum churn churn = OLDEST; churn < CHURNS; churn++) {
            wrong += errors_of_churn_in_full_table(churn, capacity, 3000 + capacity * 4, 0);
            wrong +=
                errors_of_churn_in_full_table(churn, capacity, 3000 + capacity * 4, capacity * 2);
        }
        ck_assert_uint_eq(wrong, 0);
        ck_assert_uint_eq(domi_names_count_refused(&names), 0);
        ck_assert_uint_eq(domi_names_count(&names), 0);

        /* No removed name has left a place that a find has to skip. */
        const unsigned char *buckets = (const unsigned char *)names.buckets;
        size_t bytes = (size_t)names.buckets_count * 64;
        ck_assert(buckets[0] == 0 && memcmp(buckets, buckets + 1, bytes - 1) == 0);
        domi_names_fini(&names);
    }
}

/* Names that all fall into one bucket under a known key fill that bucket; under another key they
 * spread. */
DOMT_TEST(names_cannot_fill_one_bucket_without_the_key)
{
    enum { AIMED = 100 };
    static uint64_t aimed[AIMED];
    static const uint64_t other_key[2] = {1, 2};
    char text[NAME_BYTES];
    uint32_t refused = 0;
    uint32_t slot;
    uint32_t found = 0;

    open_names(256); /* 256 names need 32 buckets */
    for (uint64_t n = 0; found < AIMED; n++) {
        uint64_t hash = domi_siphash(key, name_of_number(n, text), strlen(text));
        if (hash % 32 == 0 && hash >> 59 == 0)
            aimed[found++] = n;
    }
    for (uint32_t i = 0; i < AIMED; i++)
        refused += put_name_of_number(aimed[i], &slot) == -ENOSPC;
    ck_assert_uint_eq(refused, AIMED - 32); /* a name may lie in two buckets of 16 places */
    ck_assert_uint_eq(domi_names_count_refused(&names), refused);
    ck_assert(is_name_of_number_found(aimed[31]));
    domi_names_fini(&names);

    ck_assert_int_eq(domi_names_init(&names, 256, other_key), 0);
    for (uint32_t i = 0; i < AIMED; i++)
        ck_assert_int_eq(put_name_of_number(aimed[i], &slot), 0);
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
    ck_assert_int_eq(put_name_of_number(1, &slot), 0);
    ck_assert(is_name_of_number_found(1));
    domi_names_fini(&names);
}

DOMT_TEST(names_that_cannot_be_made_say_so)
{
    ck_assert_int_eq(domi_names_init(&names, 0, key), -EINVAL);
    ck_assert_int_eq(domi_names_init(&names, DOMI_NAMES_MAX + 1, key), -EINVAL);
    domi_memory_fail_allocation_after(0, 0);
    ck_assert_int_eq(domi_names_init(&names, 16, key), -ENOMEM);
    domi_memory_fail_allocation_after(-1, 0);
    domi_names_fini(&names);
    open_names(16);
    domi_names_fini(&names);
}

DOMT_SUITE(60)
