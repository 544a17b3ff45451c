/* house/directory/name_table.c, by one thread: a name that was put is found until it is removed. */
#include "base/random.h"
#include "tests/house/naming.h"

#include <errno.h>
#include <string.h>

DOMT_TEST(names_put_is_found_until_removed)
{
    domus_address address = address_of(99);
    uint32_t slot = 7;

    open_names(100);
    ck_assert_int_eq(domi_names_find(&names, "printer", &address), -ENOENT);
    ck_assert(same(address, address_of(99)));
    ck_assert_int_eq(domi_names_put(&names, "printer", address_of(1), &slot), 0);
    ck_assert_uint_lt(slot, 100);
    ck_assert_int_eq(domi_names_find(&names, "printer", &address), 0);
    ck_assert(same(address, address_of(1)));
    ck_assert_int_eq(domi_names_find(&names, "printe", &address), -ENOENT);
    ck_assert_int_eq(domi_names_find(&names, "printers", &address), -ENOENT);
    ck_assert_uint_eq(domi_names_count(&names), 1);
    ck_assert_int_eq(domi_names_remove(&names, slot, address_of(1)), 0);
    ck_assert_int_eq(domi_names_find(&names, "printer", &address), -ENOENT);
    ck_assert_uint_eq(domi_names_count(&names), 0);
    domi_names_fini(&names);
    domi_names_fini(&names);
}

/* Names that differ in one byte only, at each place, of each length; in 63 of them
 * is each prefix. */
DOMT_TEST(names_differ_by_any_byte_and_by_length)
{
    char text[NAME_BYTES + 1];
    uint32_t wrong = 0;
    uint32_t slot;

    open_names(DOMI_NAMES_PRESET);
    for (uint32_t length = 1; length <= DOMI_NAME_MAX; length++) {
        for (uint32_t at = 0; at <= length; at++) { /* at the length: none differs */
            memset(text, '~', length);
            text[at] = at < length ? '!' : '\0';
            text[length] = '\0';
            wrong += domi_names_put(&names, text, address_of(length * 100 + at), &slot) != 0;
        }
    }
    for (uint32_t length = 1; length <= DOMI_NAME_MAX; length++) {
        for (uint32_t at = 0; at <= length; at++) {
            domus_address address = {NULL, 0};
            memset(text, '~', length);
            text[at] = at < length ? '!' : '\0';
            text[length] = '\0';
            wrong += domi_names_find(&names, text, &address) != 0;
            wrong += !same(address, address_of(length * 100 + at));
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
        ck_assert_int_eq(domi_names_put(&names, wrong[i], address_of(1), &slot), -EINVAL);
        ck_assert_int_eq(domi_names_find(&names, wrong[i], &address), -EINVAL);
    }
    memset(text, 'x', sizeof text);
    text[NAME_BYTES] = '\0';
    ck_assert_int_eq(domi_names_put(&names, text, address_of(1), &slot), -EINVAL);
    ck_assert_int_eq(domi_names_find(&names, text, &address), -EINVAL);
    ck_assert_uint_eq(slot, 7);
    ck_assert_uint_eq(domi_names_count(&names), 0);
    text[DOMI_NAME_MAX] = '\0';
    ck_assert_int_eq(domi_names_put(&names, text, address_of(1), &slot), 0);
    ck_assert_int_eq(domi_names_put(&names, "!~", address_of(1), &slot), 0);
    ck_assert_int_eq(domi_names_find(&names, text, &address), 0);
    domi_names_fini(&names);
}

DOMT_TEST(names_taken_by_another_stay_his)
{
    domus_address next_life = address_of(1);
    uint32_t slot = 7;
    uint32_t his;

    next_life.lease++;
    open_names(4);
    ck_assert_int_eq(put(1, &his), 0);
    ck_assert_int_eq(domi_names_put(&names, "user/1", address_of(2), &slot), -EEXIST);
    ck_assert_int_eq(domi_names_put(&names, "user/1", next_life, &slot), -EEXIST);
    ck_assert_int_eq(domi_names_put(&names, "user/1", address_of(1), &slot), -EALREADY);
    ck_assert_uint_eq(slot, 7);
    ck_assert(is_found(1));
    ck_assert_uint_eq(domi_names_count(&names), 1);
    ck_assert_uint_eq(domi_names_refused(&names), 0);
    domi_names_fini(&names);
}

DOMT_TEST(names_are_removed_by_their_address_only)
{
    domus_address next_life = address_of(1);
    domus_address neighbour = address_of(1);
    uint32_t slot;
    uint32_t again;

    next_life.lease++;
    neighbour.house = address_of(2).house;
    open_names(4);
    ck_assert_int_eq(put(1, &slot), 0);
    ck_assert_int_eq(domi_names_remove(&names, slot, address_of(2)), -ENOENT);
    ck_assert_int_eq(domi_names_remove(&names, slot, next_life), -ENOENT);
    ck_assert_int_eq(domi_names_remove(&names, slot, neighbour), -ENOENT);
    ck_assert_int_eq(domi_names_remove(&names, slot + 1, address_of(1)), -ENOENT);
    ck_assert(is_found(1));
    ck_assert_int_eq(domi_names_remove(&names, slot, address_of(1)), 0);
    ck_assert_int_eq(domi_names_remove(&names, slot, address_of(1)), -ENOENT);
    ck_assert_int_eq(put(2, &again), 0);
    ck_assert_uint_eq(again, slot); /* a slot is used again, and is not the first one's any more */
    ck_assert_int_eq(domi_names_remove(&names, slot, address_of(1)), -ENOENT);
    ck_assert(is_found(2));
    domi_names_fini(&names);
}

DOMT_TEST(names_of_one_address_may_be_several)
{
    domus_address address;
    uint32_t slots[2];

    open_names(4);
    ck_assert_int_eq(domi_names_put(&names, "a", address_of(1), &slots[0]), 0);
    ck_assert_int_eq(domi_names_put(&names, "b", address_of(1), &slots[1]), 0);
    ck_assert_int_eq(domi_names_remove(&names, slots[0], address_of(1)), 0);
    ck_assert_int_eq(domi_names_find(&names, "a", &address), -ENOENT);
    ck_assert_int_eq(domi_names_find(&names, "b", &address), 0);
    domi_names_fini(&names);
}

/* Random puts, removes and finds, held against an array that says who has which name. */
DOMT_TEST(names_do_what_a_plain_array_does)
{
    enum { NAMES = 60, CAPACITY = 40, ROUNDS = 300000, NONE = 0 };
    uint64_t holder[NAMES] = {NONE}; /* which address has each name, by its number */
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
        name_of(n, text);
        switch (domi_random_below(&random, 4)) {
        case 0:
        case 1:
            result = domi_names_put(&names, text, address_of(who), &slot);
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
            result = domi_names_remove(&names, slots[n], address_of(who));
            wrong += result != (holder[n] == who ? 0 : -ENOENT);
            count -= result == 0;
            holder[n] = result == 0 ? NONE : holder[n];
            break;
        default:
            result = domi_names_find(&names, text, &found);
            wrong += result != (holder[n] == NONE ? -ENOENT : 0);
            wrong += holder[n] != NONE && !same(found, address_of(holder[n]));
            break;
        }
        wrong += domi_names_count(&names) != count;
    }
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_gt(domi_names_refused(&names), 0);
    domi_names_fini(&names);
}

static uint32_t visits[1000];
static uint32_t strangers;

static void visit(const char *text, domus_address address, void *context)
{
    unsigned long long number = strtoull(text + 5, NULL, 10);
    char expected[NAME_BYTES];

    if (number >= 1000 || strcmp(text, name_of(number, expected)) != 0 ||
        !same(address, address_of(number)))
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
    domi_names_walk(&names, visit, &visited);
    ck_assert_uint_eq(visited, 0);
    for (uint32_t i = 0; i < 1000; i++)
        wrong += put(i, &slots[i]) != 0;
    for (uint32_t i = 0; i < 1000; i += 3)
        wrong += domi_names_remove(&names, slots[i], address_of(i)) != 0;
    domi_names_walk(&names, visit, &visited);
    for (uint32_t i = 0; i < 1000; i++)
        wrong += visits[i] != (i % 3 == 0 ? 0 : 1);
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_eq(strangers, 0);
    ck_assert_uint_eq(visited, 666);
    domi_names_fini(&names);
}

DOMT_SUITE(60)
