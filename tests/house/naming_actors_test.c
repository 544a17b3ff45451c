/* house/directory/name.c: an actor takes a name at its spawn or later, is found by it from
 * everywhere, and gives it back at its end. */
#include "base/memory.h"
#include "house/directory/name_table.h"
#include "house/family/life.h"
#include "tests/house/kin.h"
#include "tests/support/suite.h"

#include <domus/name.h>

#include <errno.h>
#include <string.h>

#define NAMES_MAX 8u

static domi_names names;
static int result;
static domus_address found;

/* Open a world with actor 1 on home 0 and actor 2 on home 1, both without a name. */
static void open_world_with_names(void)
{
    static const uint64_t key[2] = {7, 8};

    domt_kin_open_world(2);
    ck_assert_int_eq(domi_names_init(&names, NAMES_MAX, key), 0);
    for (uint32_t i = 0; i < 3; i++)
        domt_kin_world.managers[i]->directory.names = &names;
    (void)domt_kin_spawn_root(1, 0, &domt_kin_hearing);
    (void)domt_kin_spawn_root(2, 1, &domt_kin_hearing);
}

static void close_world_with_names(void)
{
    domt_kin_close_world();
    ck_assert_uint_eq(domi_names_count(&names), 0);
    domi_names_fini(&names);
}

static int try_to_find_name(domus_stack *stack, void *name)
{
    found = (domus_address){NULL, 0};
    result = domus_name_find(stack, name, &found);
    return 0;
}

static int try_to_register_name(domus_stack *stack, void *name)
{
    result = domus_name_register(stack, name);
    return 0;
}

static int try_to_release_name(domus_stack *stack, void *unused)
{
    result = domus_name_release(stack);
    return 0;
}

static char text[128];

static int result_of_name_verb_by_actor(uint32_t number, int (*function)(domus_stack *, void *),
                                        const char *name)
{
    ck_assert_uint_lt(strlen(name), sizeof text);
    memcpy(text, name, strlen(name) + 1);
    result = 1;
    domt_kin_run_in_handler(number, function, text);
    return result;
}

static bool is_actor_found_by_name(const char *name, uint32_t number)
{
    bool same = true;

    for (uint32_t by = 1; by < 3; by++) { /* ask an actor on each of the two homes for the name */
        if (!domt_kin_is_alive(by))
            continue;
        same = same && result_of_name_verb_by_actor(by, try_to_find_name, name) == 0 &&
               found.house == domt_kin_of[number].address.house &&
               found.lease == domt_kin_of[number].address.lease;
    }
    return same;
}

static int spawn_actor_with_name(uint32_t parent, uint32_t number, uint32_t home, const char *name)
{
    const domus_spawn_options options = {
        .placement = DOMUS_ON_THREAD, .thread = home, .name = name};

    return domt_kin_let_parent_spawn(parent, number, &domt_kin_hearing, &options);
}

DOMT_TEST(name_is_found_on_every_home_until_the_end_of_its_actor)
{
    for (uint32_t home = 0; home < 2; home++) {
        open_world_with_names();
        ck_assert_int_eq(result_of_name_verb_by_actor(1, try_to_find_name, "counter"), -ENOENT);
        ck_assert_int_eq(spawn_actor_with_name(1, 3, home, "counter"), 0);
        ck_assert(is_actor_found_by_name("counter", 3));
        domt_kin_stop_actor(3);
        ck_assert_int_eq(result_of_name_verb_by_actor(2, try_to_find_name, "counter"), -ENOENT);
        /* the name that was free is taken again */
        ck_assert_int_eq(spawn_actor_with_name(2, 4, home, "counter"), 0);
        ck_assert(is_actor_found_by_name("counter", 4));
        close_world_with_names();
    }
}

DOMT_TEST(name_that_is_taken_spawns_nothing)
{
    open_world_with_names();
    ck_assert_int_eq(spawn_actor_with_name(1, 3, 1, "counter"), 0);
    for (uint32_t home = 0; home < 2; home++) {
        ck_assert_int_eq(spawn_actor_with_name(1, 4, home, "counter"), -EEXIST);
        ck_assert_int_eq(spawn_actor_with_name(2, 4, home, "counter"), -EEXIST);
        ck_assert_int_eq(spawn_actor_with_name(1, 4, home, ""), -EINVAL);
        ck_assert_int_eq(spawn_actor_with_name(1, 4, home, "with space"), -EINVAL);
        ck_assert_int_eq(
            spawn_actor_with_name(
                1, 4, home, "0123456789012345678901234567890123456789012345678901234567890123"),
            -EINVAL);
    }
    ck_assert_uint_eq(domt_kin_count_houses(), 3);
    ck_assert_uint_eq(domi_names_count(&names), 1);
    ck_assert_uint_eq(domt_kin_of[4].mounts, 0);
    domt_kin_stop_actor(1); /* the parent has one child: no child is left of the refused spawn */
    ck_assert_uint_eq(domt_kin_count_houses(), 1);
    close_world_with_names();
}

DOMT_TEST(name_is_copied)
{
    char name[] = "counter";

    open_world_with_names();
    ck_assert_int_eq(spawn_actor_with_name(1, 3, 1, name), 0);
    memset(name, 'x', sizeof name - 1);
    ck_assert(is_actor_found_by_name("counter", 3));
    close_world_with_names();
}

DOMT_TEST(actor_takes_one_name_and_gives_it_back)
{
    open_world_with_names();
    ck_assert_int_eq(result_of_name_verb_by_actor(1, try_to_release_name, ""), -ENOENT);
    ck_assert_int_eq(result_of_name_verb_by_actor(1, try_to_register_name, "one"), 0);
    ck_assert_int_eq(result_of_name_verb_by_actor(1, try_to_register_name, "two"), -EALREADY);
    ck_assert_int_eq(result_of_name_verb_by_actor(2, try_to_register_name, "one"), -EEXIST);
    ck_assert_int_eq(result_of_name_verb_by_actor(2, try_to_register_name, "a b"), -EINVAL);
    ck_assert(is_actor_found_by_name("one", 1));
    ck_assert_int_eq(result_of_name_verb_by_actor(1, try_to_release_name, ""), 0);
    ck_assert_int_eq(result_of_name_verb_by_actor(1, try_to_release_name, ""), -ENOENT);
    ck_assert_int_eq(result_of_name_verb_by_actor(1, try_to_find_name, "one"), -ENOENT);
    ck_assert_int_eq(result_of_name_verb_by_actor(2, try_to_register_name, "one"), 0);
    ck_assert_int_eq(result_of_name_verb_by_actor(1, try_to_register_name, "two"), 0);
    ck_assert(is_actor_found_by_name("one", 2) && is_actor_found_by_name("two", 1));
    ck_assert_int_eq(result_of_name_verb_by_actor(1, try_to_find_name, ""), -EINVAL);
    close_world_with_names();
}

DOMT_TEST(named_at_birth_may_give_its_name_back)
{
    open_world_with_names();
    ck_assert_int_eq(spawn_actor_with_name(1, 3, 1, "counter"), 0);
    ck_assert_int_eq(result_of_name_verb_by_actor(3, try_to_register_name, "other"), -EALREADY);
    ck_assert_int_eq(result_of_name_verb_by_actor(3, try_to_release_name, ""), 0);
    ck_assert_int_eq(result_of_name_verb_by_actor(3, try_to_register_name, "other"), 0);
    ck_assert_int_eq(spawn_actor_with_name(1, 4, 0, "counter"), 0);
    ck_assert(is_actor_found_by_name("other", 3) && is_actor_found_by_name("counter", 4));
    close_world_with_names();
}

DOMT_TEST(full_registry_refuses_until_a_name_comes_back)
{
    char name[] = "name0";

    open_world_with_names();
    for (uint32_t i = 0; i < NAMES_MAX; i++, name[4]++)
        ck_assert_int_eq(spawn_actor_with_name(1, 3 + i, i % 2, name), 0);
    ck_assert_int_eq(spawn_actor_with_name(1, 20, 0, "more"), -ENOSPC);
    ck_assert_int_eq(result_of_name_verb_by_actor(2, try_to_register_name, "more"), -ENOSPC);
    ck_assert_uint_eq(domt_kin_count_houses(), 2 + NAMES_MAX);
    domt_kin_stop_actor(4);
    ck_assert_int_eq(spawn_actor_with_name(1, 20, 0, "more"), 0);
    close_world_with_names();
}

DOMT_TEST(mount_that_fails_gives_the_name_back)
{
    open_world_with_names();
    domt_kin_let_mounts_fail(3, 1, -EIO);
    ck_assert_int_eq(spawn_actor_with_name(1, 3, 1, "counter"), 0);
    ck_assert_int_eq(result_of_name_verb_by_actor(1, try_to_find_name, "counter"), -ENOENT);
    ck_assert_uint_eq(domi_names_count(&names), 0);
    close_world_with_names();
}

static int find_counter_in_callback(domus_stack *stack, void *self)
{
    result = domus_name_find(stack, "counter", &found);
    return 0;
}

DOMT_TEST(name_stands_through_on_mount_and_on_stop)
{
    open_world_with_names();
    domt_kin_of[3].mounting = find_counter_in_callback;
    ck_assert_int_eq(spawn_actor_with_name(1, 3, 1, "counter"), 0);
    ck_assert_int_eq(result, 0);
    ck_assert_ptr_eq(found.house, domt_kin_of[3].address.house);
    domt_kin_of[3].stopping = find_counter_in_callback;
    result = 1;
    domt_kin_stop_actor(3);
    ck_assert_int_eq(result, 0);
    ck_assert_int_eq(result_of_name_verb_by_actor(1, try_to_find_name, "counter"), -ENOENT);
    close_world_with_names();
}

static int try_to_register_in_on_stop(domus_stack *stack, void *self)
{
    result = domus_name_register(stack, "late");
    return 0;
}

DOMT_TEST(name_taken_at_the_last_moment_is_given_back_too)
{
    open_world_with_names();
    domt_kin_of[1].stopping = try_to_register_in_on_stop;
    domt_kin_stop_actor(1);
    ck_assert_int_eq(result, 0);
    ck_assert_int_eq(result_of_name_verb_by_actor(2, try_to_find_name, "late"), -ENOENT);
    close_world_with_names();
}

DOMT_TEST(watcher_of_the_end_may_take_the_name)
{
    open_world_with_names();
    ck_assert_int_eq(spawn_actor_with_name(1, 3, 1, "counter"), 0);
    domt_kin_run_in_handler(1, domt_kin_watch_given_address, &domt_kin_of[3].address);
    ck_assert_int_eq(domi_house_ask_to_stop(domt_kin_world.managers[1], domt_kin_of[3].address), 0);
    domt_kin_run_iteration_of_home(1); /* the name is free before the watcher gets its event */
    ck_assert_uint_eq(domi_names_count(&names), 0);
    ck_assert_uint_eq(domt_kin_of[1].downs, 0);
    domt_settle_world(&domt_kin_world);
    ck_assert_uint_eq(domt_kin_of[1].downs, 1);
    close_world_with_names();
}

DOMT_TEST(without_a_registry_there_are_no_names)
{
    domt_kin_open_world(2);
    (void)domt_kin_spawn_root(1, 0, &domt_kin_hearing);
    ck_assert_int_eq(result_of_name_verb_by_actor(1, try_to_find_name, "one"), -ENOENT);
    ck_assert_int_eq(result_of_name_verb_by_actor(1, try_to_register_name, "one"), -ENOSPC);
    ck_assert_int_eq(result_of_name_verb_by_actor(1, try_to_release_name, ""), -ENOENT);
    ck_assert_int_eq(spawn_actor_with_name(1, 3, 1, "one"), -ENOSPC);
    ck_assert_uint_eq(domt_kin_count_houses(), 1);
    domt_kin_close_world();
}

static int spawn_named_without_memory(domus_stack *stack, void *failures)
{
    const domus_spawn_options options = {
        .placement = DOMUS_ON_THREAD, .thread = 1, .name = "counter"};

    domi_memory_fail_allocation_after(*(int *)failures, 0);
    result = domt_kin_spawn_in_handler(stack, 3, &domt_kin_hearing, &options);
    domi_memory_fail_allocation_after(-1, 0);
    return 0;
}

DOMT_TEST(named_spawn_without_memory_leaves_no_name)
{
    int failures = 0;

    do {
        open_world_with_names();
        domt_kin_run_in_handler(1, spawn_named_without_memory, &failures);
        ck_assert(result == 0 || result == -ENOMEM);
        ck_assert_uint_eq(domi_names_count(&names), result == 0);
        ck_assert_uint_eq(domt_kin_count_houses(), result == 0 ? 3 : 2);
        domt_kin_stop_actor(1); /* the parent can end: no half-made child is left */
        ck_assert_uint_eq(domt_kin_count_houses(), 1);
        close_world_with_names();
        failures++;
    } while (result != 0);
    ck_assert_int_gt(failures, 2);
}

DOMT_TEST(names_come_and_go_with_ten_thousand_lives)
{
    open_world_with_names();
    for (uint32_t i = 0; i < 10000; i++) {
        ck_assert_int_eq(spawn_actor_with_name(1 + i % 2, 3, i / 2 % 2, "counter"), 0);
        domt_kin_stop_actor(3);
    }
    ck_assert_uint_eq(domi_names_count(&names), 0);
    ck_assert_uint_eq(domt_kin_of[3].stops, 10000);
    close_world_with_names();
}

DOMT_SUITE(30)
