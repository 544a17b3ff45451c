/* house/family/slots.c: a thread takes slots from home 64 at a time, home gives them back, and
 * retired slots stay. house/family/children.c: children know their places in the list and can leave
 * from any place, and segments are freed. */
#include "base/memory.h"
#include "house/family/children.h"
#include "house/family/life.h"
#include "house/family/slots.h"
#include "tests/house/steps.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdlib.h>

static domt_world world;

static uint32_t count_cached_slots(uint32_t manager, uint32_t home, uint32_t size_class)
{
    return world.managers[manager]->births.slots_of[home].count[size_class];
}

static uint32_t count_houses(const domi_house *house)
{
    uint32_t count = 0;

    for (; house != NULL; house = house->next)
        count++;
    return count;
}

static uint32_t count_free_slots_at_home(const domi_manager *home)
{
    return count_houses(home->births.slots.slabs[0].free);
}

DOMT_TEST(slots_are_taken_from_home_64_at_a_time)
{
    domt_world_open(&world, 2);
    for (uint32_t i = 0; i < 130; i++) {
        domi_house *house = domi_slots_take_free_slot(world.managers[1], world.managers[0], 16);
        ck_assert_ptr_eq(house->home, world.managers[0]);
        ck_assert_uint_eq(house->state, DOMI_CREATED);
        ck_assert_uint_eq(atomic_load(&house->life), UINT64_C(1) << 32 | DOMI_LIFE_CLOSED);
        ck_assert_uint_eq(count_cached_slots(1, 0, 0),
                          DOMI_SLOTS_REFILL - 1 - i % DOMI_SLOTS_REFILL);
    }
    /* slots are cached by the manager that takes them, not by their home */
    ck_assert_uint_eq(count_cached_slots(0, 0, 0), 0);
    domt_world_end(&world);
}

DOMT_TEST(slots_have_room_for_the_state_they_are_taken_for)
{
    static const uint32_t rooms[] = {16, 80, 208, 464, 1040};

    domt_world_open(&world, 1);
    for (uint32_t bytes = 0; bytes <= 1040; bytes += 8) {
        domi_house *house = domi_slots_take_free_slot(world.managers[0], world.managers[0], bytes);
        uint32_t size_class = domi_house_slot_bits(house);
        ck_assert_uint_ge(domi_slots_state_bytes_of_class(size_class), bytes);
        ck_assert(size_class == 0 || domi_slots_state_bytes_of_class(size_class - 1) < bytes);
        ck_assert_uint_eq((uintptr_t)house % 64, 0);
    }
    for (uint32_t i = 0; i < 5; i++)
        ck_assert_uint_eq(domi_slots_state_bytes_of_class(i), rooms[i]);
    domi_house *house = domi_slots_take_free_slot(world.managers[0], world.managers[0], 1041);
    /* this state is too large for the slot and is allocated beside it */
    ck_assert_uint_eq(domi_house_slot_bits(house), 0);
    domt_world_end(&world);
}

DOMT_TEST(home_keeps_some_free_slots_and_gives_the_rest_back)
{
    enum { COUNT = 1000 };
    static domi_house *houses[COUNT];

    domt_world_open(&world, 2);
    for (int i = 0; i < COUNT; i++)
        houses[i] = domi_slots_take_free_slot(world.managers[1], world.managers[0], 16);
    for (int i = 0; i < COUNT; i++)
        domi_slots_free_slot(world.managers[0], houses[i]);
    ck_assert_uint_le(count_cached_slots(0, 0, 0), DOMI_SLOTS_KEEP);
    ck_assert_uint_eq(count_cached_slots(0, 0, 0) + count_free_slots_at_home(world.managers[0]),
                      COUNT);
    ck_assert_uint_eq(count_free_slots_at_home(world.managers[0]) % DOMI_SLOTS_REFILL, 0);
    domt_world_end(&world);
}

DOMT_TEST(free_slots_are_counted_until_they_are_taken_again)
{
    enum { COUNT = 1000 };
    static domi_house *houses[COUNT];

    domt_world_open(&world, 1);
    domi_manager *home = world.managers[0];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++)
            houses[i] = domi_slots_take_free_slot(home, home, 16);
        ck_assert_uint_eq(domi_counter_read(&home->births.slots.free_bytes),
                          192 * count_free_slots_at_home(home));
        for (int i = 0; i < COUNT; i++)
            domi_slots_free_slot(home, houses[i]);
        ck_assert_uint_gt(count_free_slots_at_home(home), 0);
        ck_assert_uint_eq(domi_counter_read(&home->births.slots.free_bytes),
                          192 * count_free_slots_at_home(home));
    }
    domt_world_end(&world);
}

DOMT_TEST(slots_do_not_grow_when_one_thread_spawns_and_another_home_frees)
{
    enum { ROUNDS = 100, COUNT = 300 };
    static domus_address addresses[COUNT];
    uint64_t mapped = 0;

    domt_world_open(&world, 2);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++)
            addresses[i] = domt_spawn(world.managers[1], world.managers[0], &domt_agent, NULL);
        domt_settle_world(&world);
        for (int i = 0; i < COUNT; i++)
            domt_stop_actor_and_settle(&world, world.managers[1], addresses[i]);
        if (round == 2)
            mapped = domt_world_mapped_bytes(&world);
    }
    ck_assert_uint_eq(domt_world_mapped_bytes(&world), mapped);
    ck_assert_uint_eq(DOMT_SUM(&world, stops), ROUNDS * COUNT);
    domt_world_end(&world);
}

static void count_visited_house(void *house, void *number)
{
    ++*(unsigned *)number;
}

DOMT_TEST(slots_walk_visits_used_and_free_ones_of_all_sizes)
{
    unsigned visited = 0;

    domt_world_open(&world, 1);
    for (uint32_t i = 0; i < 5; i++)
        (void)domi_slots_take_free_slot(world.managers[0], world.managers[0],
                                        domi_slots_state_bytes_of_class(i));
    domi_slots_visit_all(world.managers[0], count_visited_house, &visited);
    ck_assert_uint_eq(visited, 5 * DOMI_SLOTS_REFILL);
    domt_world_end(&world);
}

DOMT_TEST(spawn_without_memory_fails_and_recovers)
{
    static const domus_behaviour large = {.name = "large", .state_size = 5000};
    domus_address address = {NULL, 0};

    domt_world_open(&world, 1);
    domi_manager *home = world.managers[0];
    domi_memory_fail_allocation_after(0, 0); /* the allocation of a chunk of slots fails */
    ck_assert_int_eq(domi_house_spawn_without_parent(home, home, &large, NULL, &address), -ENOMEM);
    domi_memory_fail_allocation_after(1, 0); /* the allocation of the state beside the slot fails */
    ck_assert_int_eq(domi_house_spawn_without_parent(home, home, &large, NULL, &address), -ENOMEM);
    ck_assert_ptr_null(address.house);
    /* the slot of the failed spawn is in the cache again */
    ck_assert_uint_eq(count_cached_slots(0, 0, 0), DOMI_SLOTS_REFILL);
    ck_assert_uint_eq(count_houses(home->births.slots_of[0].free[0]), DOMI_SLOTS_REFILL);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_int_eq(domi_house_spawn_without_parent(home, home, &large, NULL, &address), 0);
    domt_settle_world(&world);
    ck_assert_uint_eq(home->births.houses, 1);
    domt_world_end(&world);
}

/* --- children --------------------------------------------------------------------------------- */

enum { MANY = 3000 };

static domi_house *houses;

static void allocate_houses(void)
{
    houses = aligned_alloc(64, MANY * sizeof *houses);
    ck_assert_ptr_nonnull(houses);
}

/* Returns how many children do not know their own place in the list. */
static unsigned count_children_at_wrong_places(const domi_children *children)
{
    unsigned wrong = 0;

    for (uint32_t i = 0; i < domi_children_count(children); i++)
        wrong += domi_children_get_at_place(children, i)->child_index != i;
    return wrong;
}

static uint32_t count_segments_of_children(const domi_children *children)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < DOMI_CHILDREN_SEGMENTS; i++)
        count += children->more[i] != NULL;
    return count;
}

DOMT_TEST(empty_list_has_no_children)
{
    ck_assert_uint_eq(domi_children_count(NULL), 0);
    domi_children_free_list(NULL);
}

DOMT_TEST(children_know_their_places_when_any_child_leaves)
{
    /* distances by which the test steps through the list, each of which comes to every child */
    static const uint32_t steps[] = {1, 7, 1499, MANY - 1};
    unsigned wrong = 0;

    allocate_houses();
    for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++) {
        domi_children *children = NULL;
        for (uint32_t i = 0; i < MANY; i++) {
            wrong += domi_children_add(&children, &houses[i]) != 0;
            wrong += domi_children_get_at_place(children, i) != &houses[i];
        }
        uint32_t at = 0;
        for (uint32_t i = 0; i < MANY; i++, at = (at + steps[s]) % MANY) {
            domi_children_remove(children, &houses[at]);
            if (i % 64 == 0 || children->count < 40)
                wrong += count_children_at_wrong_places(children);
        }
        wrong += children->count != 0;
        domi_children_free_list(children);
    }
    ck_assert_uint_eq(wrong, 0);
    free(houses);
}

/* One empty segment is kept, so that a child more or less at the border of a segment allocates
 * nothing. */
DOMT_TEST(children_that_have_left_leave_no_memory_behind)
{
    domi_children *children = NULL;

    allocate_houses();
    for (uint32_t i = 0; i < 1024; i++)
        ck_assert_int_eq(domi_children_add(&children, &houses[i]), 0);
    /* the list itself has room for 8 children; seven segments hold 8, 16, 32 ... 512 more */
    ck_assert_uint_eq(count_segments_of_children(children), 7);
    while (children->count > 512)
        domi_children_remove(children, domi_children_get_at_place(children, 0));
    ck_assert_uint_eq(count_segments_of_children(children), 7);
    while (children->count > 256)
        domi_children_remove(children, domi_children_get_at_place(children, 0));
    ck_assert_uint_eq(count_segments_of_children(children), 6);
    while (children->count > 0)
        domi_children_remove(children, domi_children_get_at_place(children, 0));
    ck_assert_uint_eq(count_segments_of_children(children), 0);
    domi_children_free_list(children);
    free(houses);
}

DOMT_TEST(a_child_more_or_less_at_a_border_allocates_nothing)
{
    domi_children *children = NULL;

    allocate_houses();
    for (uint32_t i = 0; i < 65; i++)
        ck_assert_int_eq(domi_children_add(&children, &houses[i]), 0);
    domi_memory_fail_allocation_after(0, 1);
    for (int i = 0; i < 100; i++) {
        domi_children_remove(children, &houses[64]);
        ck_assert_int_eq(domi_children_add(&children, &houses[64]), 0);
    }
    domi_memory_fail_allocation_after(-1, 0);
    domi_children_free_list(children);
    free(houses);
}

DOMT_TEST(without_memory_nobody_is_added_and_nobody_lost)
{
    domi_children *children = NULL;
    uint32_t refused = 0;

    allocate_houses();
    for (uint32_t i = 0; i < 100; i++) {
        domi_memory_fail_allocation_after(0, 0);
        int error = domi_children_add(&children, &houses[i]);
        domi_memory_fail_allocation_after(-1, 0);
        if (error == 0)
            continue;
        ck_assert_int_eq(error, -ENOMEM);
        ck_assert_uint_eq(domi_children_count(children), i);
        ck_assert_int_eq(domi_children_add(&children, &houses[i]), 0);
        refused++;
    }
    /* the allocations that failed: the list, and segments of 8, 16, 32 and 64 */
    ck_assert_uint_eq(refused, 5);
    ck_assert_uint_eq(count_children_at_wrong_places(children), 0);
    domi_children_free_list(children);
    free(houses);
}

DOMT_SUITE(60)
