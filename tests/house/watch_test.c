/* house/family/watch.c: the end of a watched actor comes to its watcher as one event, whatever
 * happens in between. */
#include "house/family/family.h"
#include "house/family/life.h"
#include "tests/house/kin.h"
#include "tests/support/suite.h"

#include <errno.h>

#define MS UINT64_C(1000000)

/* The results of the verbs that the watcher has called. */
static domus_watch watched;
static int results[2];
static unsigned taken_back;

static int try_to_watch(domus_stack *stack, void *address)
{
    results[0] = domus_watch_actor(stack, *(domus_address *)address, &watched);
    return 0;
}

static int try_to_unwatch(domus_stack *stack, void *watch_)
{
    results[1] = domus_unwatch(stack, *(domus_watch *)watch_);
    taken_back += results[1] == 0;
    return 0;
}

static int watch_without_a_handle(domus_stack *stack, void *address)
{
    results[0] = domus_watch_actor(stack, *(domus_address *)address, NULL);
    return 0;
}

/* Open a world of two actors: actor 1 on home 0, which watches, and actor 2 on `home`. */
static void open_world_of_two_actors(uint32_t home)
{
    domt_kin_open_world(2);
    (void)domt_kin_spawn_root(1, 0, &domt_kin_hearing);
    (void)domt_kin_spawn_root(2, home, &domt_kin_hearing);
}

static void close_and_check_watches(void)
{
    ck_assert_uint_eq(domt_count_objects_in_use(&domt_kin_world, DOMI_SLAB_WATCH),
                      domt_kin_is_alive(1) && domt_kin_of[1].address.house->family != NULL &&
                              domt_kin_of[1].address.house->family->watches != NULL
                          ? 1
                          : 0);
    domt_kin_close_world();
}

static void expect_down_events_of_actor(unsigned downs, uint32_t who, int reason)
{
    ck_assert_uint_eq(domt_kin_of[1].downs, downs);
    ck_assert_int_eq(domt_kin_of[1].down.reason, reason);
    ck_assert_ptr_eq(domt_kin_of[1].down.who.house, domt_kin_of[who].address.house);
    ck_assert_uint_eq(domt_kin_of[1].down.who.lease, domt_kin_of[who].address.lease);
}

/* --- events ---------------------------------------------------------------------------------- */

DOMT_TEST(end_of_the_watched_is_heard_once_with_its_reason)
{
    for (uint32_t home = 0; home < 2; home++) {
        open_world_of_two_actors(home);
        domt_kin_run_in_handler(1, try_to_watch, &domt_kin_of[2].address);
        ck_assert_int_eq(results[0], 0);
        domt_kin_fail_actor(2,
                            -EIO); /* a failed handler does not end the actor, so no event comes */
        ck_assert_uint_eq(domt_kin_of[1].downs, 0);
        domt_kin_stop_actor(2);
        expect_down_events_of_actor(1, 2, 0);
        domt_kin_run_in_handler(1, try_to_unwatch, &watched);
        ck_assert_int_eq(results[1], -ENOENT);
        domt_settle_world(&domt_kin_world);
        close_and_check_watches();
    }
}

DOMT_TEST(reason_of_an_end_is_the_error_of_the_failure)
{
    static const domus_supervision stops = {.otherwise = DOMUS_STOP};
    static domus_behaviour boss;

    for (uint32_t home = 0; home < 2; home++) {
        boss = domt_kin_behaviour_of_boss(&stops);
        open_world_of_two_actors(home);
        domt_kin_run_in_handler(1, watch_without_a_handle, &domt_kin_of[2].address);
        domt_kin_run_in_handler(2, domt_kin_escalate_with_eperm, NULL);
        expect_down_events_of_actor(1, 2, -EPERM);
        (void)domt_kin_spawn_root(3, 0, &boss);
        (void)domt_kin_spawn_child(3, 4, home, &domt_kin_hearing);
        domt_kin_run_in_handler(1, try_to_watch, &domt_kin_of[4].address);
        domt_kin_fail_actor(4, -EIO);
        expect_down_events_of_actor(2, 4, -EIO);
        close_and_check_watches();
    }
}

DOMT_TEST(restart_of_the_watched_is_not_heard)
{
    static const domus_supervision restarts = {.otherwise = DOMUS_RESTART};
    static domus_behaviour boss;

    for (uint32_t home = 0; home < 2; home++) {
        boss = domt_kin_behaviour_of_boss(&restarts);
        domt_kin_open_world(2);
        (void)domt_kin_spawn_root(1, 0, &domt_kin_hearing);
        (void)domt_kin_spawn_root(3, 0, &boss);
        (void)domt_kin_spawn_child(3, 2, home, &domt_kin_hearing);
        domt_kin_run_in_handler(1, try_to_watch, &domt_kin_of[2].address);
        domt_kin_fail_actor(2, -EIO);
        ck_assert_uint_eq(domt_kin_of[2].mounts, 2);
        ck_assert_uint_eq(domt_kin_of[1].downs, 0);
        domt_kin_stop_actor(2);
        expect_down_events_of_actor(1, 2, 0);
        close_and_check_watches();
    }
}

DOMT_TEST(reason_of_a_mount_that_failed_is_its_error)
{
    for (uint32_t home = 0; home < 2; home++) {
        open_world_of_two_actors(home);
        domt_kin_let_mounts_fail(3, 1, -EBADF);
        domt_kin_of[3].address =
            domt_spawn(domt_outside_manager(&domt_kin_world), domt_kin_world.managers[home],
                       &domt_kin_hearing, &(domt_kin){3, DOMT_WORTH});
        domt_kin_send_function_to_run(domt_outside_manager(&domt_kin_world), 1, try_to_watch,
                                      &domt_kin_of[3].address);
        domt_kin_run_houses_of_home(0); /* the watch begins before the mount of the watched actor */
        domt_settle_world(&domt_kin_world);
        expect_down_events_of_actor(1, 3, -EBADF);
        close_and_check_watches();
    }
}

DOMT_TEST(stale_address_is_answered_at_once)
{
    for (uint32_t home = 0; home < 2; home++) {
        open_world_of_two_actors(home);
        domt_kin_stop_actor(2);
        domt_kin_run_in_handler(1, try_to_watch, &domt_kin_of[2].address);
        ck_assert_int_eq(results[0], 0);
        expect_down_events_of_actor(1, 2, -ESTALE);
        domi_manager *there = domt_kin_world.managers[home];
        domus_address next =
            domt_spawn(there, there, &domt_kin_hearing, &(domt_kin){3, DOMT_WORTH});
        ck_assert_ptr_eq(next.house, domt_kin_of[2].address.house);
        domt_kin_run_in_handler(1, try_to_watch, &domt_kin_of[2].address);
        expect_down_events_of_actor(2, 2, -ESTALE);
        domus_address nobody = {NULL, 0};
        domt_kin_run_in_handler(1, try_to_watch, &nobody);
        ck_assert_int_eq(results[0], -EINVAL);
        ck_assert_uint_eq(domt_kin_of[1].downs, 2);
        close_and_check_watches();
    }
}

static int run_one_iteration_of_home_0(domus_stack *stack, void *unused)
{
    domt_kin_run_iteration_of_home(0);
    return 0;
}

DOMT_TEST(watch_in_the_last_moment_is_answered)
{
    open_world_of_two_actors(1);
    /* actor 1 begins to watch while actor 2 runs its on_stop */
    domt_kin_of[2].stopping = run_one_iteration_of_home_0;
    domt_kin_send_function_to_run(domt_outside_manager(&domt_kin_world), 1, try_to_watch,
                                  &domt_kin_of[2].address);
    ck_assert_int_eq(domi_house_ask_to_stop(domt_kin_world.managers[1], domt_kin_of[2].address), 0);
    domt_kin_run_iteration_of_home(1);
    ck_assert_int_eq(results[0], 0);
    domt_settle_world(&domt_kin_world);
    expect_down_events_of_actor(1, 2, -ESTALE);
    close_and_check_watches();
}

DOMT_TEST(many_may_watch_one_and_one_may_watch_twice)
{
    domt_kin_open_world(2);
    for (uint32_t i = 1; i < 10; i++)
        (void)domt_kin_spawn_root(i, i % 2, &domt_kin_hearing);
    for (uint32_t i = 2; i < 10; i++) {
        domt_kin_run_in_handler(i, try_to_watch, &domt_kin_of[1].address);
        domt_kin_run_in_handler(i, try_to_watch, &domt_kin_of[1].address);
    }
    domt_kin_stop_actor(1);
    for (uint32_t i = 2; i < 10; i++)
        ck_assert_uint_eq(domt_kin_of[i].downs, 2);
    domt_kin_close_clean_world();
}

DOMT_TEST(actor_that_watches_itself_ends_as_others_do)
{
    open_world_of_two_actors(0);
    domt_kin_run_in_handler(1, try_to_watch, &domt_kin_of[1].address);
    ck_assert_int_eq(results[0], 0);
    domt_kin_run_in_handler(1, watch_without_a_handle, &domt_kin_of[1].address);
    domt_kin_run_in_handler(1, try_to_unwatch, &watched);
    ck_assert_int_eq(results[1], 0);
    domt_kin_stop_actor(1);
    ck_assert_uint_eq(domt_kin_of[1].downs, 0);
    domt_kin_close_clean_world();
}

DOMT_TEST(event_without_a_row_is_a_dead_letter)
{
    domt_kin_open_world(2);
    (void)domt_kin_spawn_root(1, 0, &domt_kin_deaf);
    (void)domt_kin_spawn_root(2, 1, &domt_kin_hearing);
    domt_kin_run_in_handler(1, try_to_watch, &domt_kin_of[2].address);
    domt_kin_stop_actor(2);
    ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, dead_letters), 1);
    ck_assert(domt_kin_is_alive(1));
    close_and_check_watches();
}

DOMT_TEST(watched_outlives_its_watcher)
{
    for (uint32_t home = 0; home < 2; home++) {
        open_world_of_two_actors(home);
        for (int i = 0; i < 100; i++)
            domt_kin_run_in_handler(1, try_to_watch, &domt_kin_of[2].address);
        ck_assert_uint_eq(domt_count_objects_in_use(&domt_kin_world, DOMI_SLAB_WATCH), 100);
        domt_kin_stop_actor(1);
        ck_assert_uint_eq(domt_count_all_objects_in_use(&domt_kin_world), 0);
        ck_assert_ptr_null(domt_kin_of[2].address.house->attached);
        domt_kin_stop_actor(2);
        domt_kin_close_world();
    }
}

/* --- taken back ------------------------------------------------------------------------------ */

DOMT_TEST(unwatched_is_not_heard_of)
{
    for (uint32_t home = 0; home < 2; home++) {
        open_world_of_two_actors(home);
        domt_kin_run_in_handler(1, try_to_watch, &domt_kin_of[2].address);
        domt_kin_run_in_handler(1, try_to_unwatch, &watched);
        ck_assert_int_eq(results[1], 0);
        domt_kin_run_in_handler(1, try_to_unwatch, &watched);
        ck_assert_int_eq(results[1], -ENOENT);
        ck_assert_uint_eq(domt_count_objects_in_use(&domt_kin_world, DOMI_SLAB_WATCH), 0);
        domt_kin_stop_actor(2);
        ck_assert_uint_eq(domt_kin_of[1].downs, 0);
        close_and_check_watches();
    }
}

DOMT_TEST(watch_is_removed_only_by_its_maker)
{
    open_world_of_two_actors(1);
    (void)domt_kin_spawn_root(3, 0, &domt_kin_hearing);
    domt_kin_run_in_handler(1, try_to_watch, &domt_kin_of[2].address);
    domt_kin_run_in_handler(3, try_to_unwatch, &watched);
    ck_assert_int_eq(results[1], -ENOENT);
    domus_watch nothing = {NULL, 0};
    domt_kin_run_in_handler(1, try_to_unwatch, &nothing);
    ck_assert_int_eq(results[1], -ENOENT);
    domt_kin_stop_actor(2);
    expect_down_events_of_actor(1, 2, 0);
    /* The memory of a removed watch is used for another one, and the old handle is stale. */
    domus_watch old = watched;
    (void)domt_kin_spawn_root(2, 1, &domt_kin_hearing);
    domt_kin_run_in_handler(1, try_to_watch, &domt_kin_of[2].address);
    ck_assert_ptr_eq(watched.watch, old.watch);
    domt_kin_run_in_handler(1, try_to_unwatch, &old);
    ck_assert_int_eq(results[1], -ENOENT);
    domt_kin_stop_actor(2);
    expect_down_events_of_actor(2, 2, 0);
    close_and_check_watches();
}

/* Begin the watch, its removal, and the ends of both actors in a given order, with a number of
 * turns between them that changes what is under way. */
static void run_race_of_watch_and_ends(uint32_t home, uint32_t order, uint32_t turns)
{
    open_world_of_two_actors(home);
    domi_manager *outside = domt_outside_manager(&domt_kin_world);
    taken_back = 0;
    watched = (domus_watch){NULL, 0};
    domt_kin_send_function_to_run(outside, 1, try_to_watch, &domt_kin_of[2].address);
    for (uint32_t step = 0; step < 3; step++, turns /= 4) {
        for (uint32_t i = turns % 4; i > 0; i--)
            domt_kin_run_iteration_of_home(i % 2);
        uint32_t what = (order / (step == 0 ? 1 : step == 1 ? 3 : 9)) % 3;
        if (what == 0 && domt_kin_is_alive(1) && watched.watch != NULL)
            (void)domt_send_notice(outside, domt_kin_of[1].address, &domt_call_type,
                                   &(domt_call){try_to_unwatch, &watched});
        else if (what == 1)
            (void)domi_house_ask_to_stop(domt_kin_world.managers[1], domt_kin_of[2].address);
        else if (what == 2)
            (void)domi_house_ask_to_stop(outside, domt_kin_of[1].address);
    }
    domt_settle_world(&domt_kin_world);
    ck_assert_uint_le(domt_kin_of[1].downs + taken_back, 1);
    if (!domt_kin_is_alive(2) && domt_kin_is_alive(1) && taken_back == 0)
        ck_assert_uint_eq(domt_kin_of[1].downs, 1);
    if (domt_kin_is_alive(1))
        domt_kin_stop_actor(1);
    if (domt_kin_is_alive(2))
        domt_kin_stop_actor(2);
    domt_kin_close_clean_world();
}

DOMT_TEST(every_order_of_watch_unwatch_and_ends_leaves_nothing)
{
    for (uint32_t home = 0; home < 2; home++) {
        for (uint32_t order = 0; order < 27; order++) {
            for (uint32_t turns = 0; turns < 64; turns++)
                run_race_of_watch_and_ends(home, order, turns);
        }
    }
}

static void run_home_when_woken(domi_manager *home)
{
    (void)domt_iterate_home(home);
}

/* Watch actors 3 and 2, let home 1 work during this on_stop, and let it work once more when it is
 * woken. */
static int watch_actors_3_and_2_in_on_stop(domus_stack *stack, void *self)
{
    domi_manager *there = domt_kin_world.managers[1];

    ck_assert_int_eq(domus_watch_actor(stack, domt_kin_of[3].address, NULL), 0);
    ck_assert_int_eq(domus_watch_actor(stack, domt_kin_of[2].address, NULL), 0);
    (void)domt_iterate_home(there);
    ck_assert_int_eq(
        domi_house_ask_to_stop(domt_outside_manager(&domt_kin_world), domt_kin_of[3].address), 0);
    there->hooks.wake = run_home_when_woken;
    atomic_store(&there->park, DOMI_PARK_SLEEPING);
    return 0;
}

static domus_watch watches[2];

static int watch_actor_2_twice(domus_stack *stack, void *unused)
{
    for (uint32_t i = 0; i < 2; i++)
        ck_assert_int_eq(domus_watch_actor(stack, domt_kin_of[2].address, &watches[i]), 0);
    return 0;
}

DOMT_TEST(watch_is_freed_once_when_both_sides_end_together)
{
    domt_kin_open_world(2);
    (void)domt_kin_spawn_root(1, 0, &domt_kin_hearing);
    (void)domt_kin_spawn_root(2, 1, &domt_kin_hearing);
    (void)domt_kin_spawn_root(3, 1, &domt_kin_hearing);
    domt_kin_of[1].stopping = watch_actors_3_and_2_in_on_stop;
    ck_assert_int_eq(domi_house_ask_to_stop(domt_kin_world.managers[0], domt_kin_of[1].address), 0);
    domt_kin_run_iteration_of_home(0);
    domt_settle_world(&domt_kin_world);
    ck_assert(!domt_kin_is_alive(1));
    ck_assert(!domt_kin_is_alive(3));
    domt_kin_of[1].stopping = NULL;
    (void)domt_kin_spawn_root(1, 0, &domt_kin_hearing);
    domt_kin_run_in_handler(1, watch_actor_2_twice, NULL);
    ck_assert_ptr_ne(watches[0].watch, watches[1].watch);
    domt_kin_close_world();
}

DOMT_SUITE(30)
