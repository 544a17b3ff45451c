/* Links: two actors that end together, unless one has a row for it. */
#include "house/family/life.h"
#include "tests/house/kin.h"
#include "tests/support/suite.h"

#include <errno.h>

static domus_watch last;
static int result;
static unsigned taken_back;

static int try_to_link_to(domus_stack *stack, void *address)
{
    result = domus_link_actor(stack, *(domus_address *)address, &last);
    return 0;
}

static int try_to_unlink(domus_stack *stack, void *watch)
{
    result = domus_unwatch(stack, *(domus_watch *)watch);
    taken_back += result == 0;
    return 0;
}

/* Open a world in which actor 1 on home 0 has linked itself to actor 2 on `home`. */
static void open_world_of_linked_actors(uint32_t home, const domus_behaviour *one,
                                        const domus_behaviour *two)
{
    domt_kin_open_world(2);
    (void)domt_kin_spawn_root(1, 0, one);
    (void)domt_kin_spawn_root(2, home, two);
    domt_kin_run_in_handler(1, try_to_link_to, &domt_kin_of[2].address);
    ck_assert_int_eq(result, 0);
}

DOMT_TEST(end_of_either_is_the_end_of_both)
{
    for (uint32_t round = 0; round < 4; round++) {
        uint32_t first = 1 + round % 2;
        open_world_of_linked_actors(round / 2, &domt_kin_deaf, &domt_kin_deaf);
        domt_kin_stop_actor(first);
        ck_assert_uint_eq(domt_kin_count_houses(), 0);
        ck_assert_uint_eq(domt_kin_of[3 - first].stops, 1);
        domt_kin_close_clean_world();
    }
}

DOMT_TEST(linked_actor_with_a_row_gets_the_event_and_lives)
{
    for (uint32_t round = 0; round < 8; round++) {
        uint32_t first = 1 + round % 2;
        uint32_t other = 3 - first;
        int reason = round / 4 == 0 ? 0 : -EPERM;
        open_world_of_linked_actors(round / 2 % 2, &domt_kin_hearing, &domt_kin_hearing);
        if (reason == 0)
            domt_kin_stop_actor(first);
        else
            domt_kin_run_in_handler(first, domt_kin_escalate_with_eperm, NULL);
        ck_assert(!domt_kin_is_alive(first) && domt_kin_is_alive(other));
        ck_assert_uint_eq(domt_kin_of[other].downs, 1);
        ck_assert_int_eq(domt_kin_of[other].down.reason, reason);
        ck_assert_ptr_eq(domt_kin_of[other].down.who.house, domt_kin_of[first].address.house);
        ck_assert_uint_eq(domt_kin_of[other].down.who.lease, domt_kin_of[first].address.lease);
        domt_kin_stop_actor(other);
        domt_kin_close_clean_world();
    }
}

/* One actor of the linked chain 1 - 2 - 3 - 4 fails. Actor 5 watches actor 1, or actor 4 if it is
 * actor 1 that fails, and hears the reason. */
DOMT_TEST(reason_runs_along_a_chain_of_links)
{
    for (uint32_t first = 1; first < 5; first++) {
        domt_kin_open_world(2);
        for (uint32_t i = 1; i < 5; i++)
            (void)domt_kin_spawn_root(i, i % 2, &domt_kin_deaf);
        (void)domt_kin_spawn_root(5, 0, &domt_kin_hearing);
        for (uint32_t i = 1; i < 4; i++)
            domt_kin_run_in_handler(i, try_to_link_to, &domt_kin_of[i + 1].address);
        domt_kin_run_in_handler(5, try_to_link_to, &domt_kin_of[first == 1 ? 4 : 1].address);
        domt_kin_run_in_handler(first, domt_kin_escalate_with_eperm, NULL);
        ck_assert_uint_eq(domt_kin_count_houses(), 1);
        ck_assert_int_eq(domt_kin_of[5].down.reason, -EPERM);
        domt_kin_stop_actor(5);
        domt_kin_close_clean_world();
    }
}

DOMT_TEST(link_to_an_actor_that_has_ended_acts_as_if_it_ended_now)
{
    for (uint32_t round = 0; round < 4; round++) {
        domt_kin_open_world(2);
        (void)domt_kin_spawn_root(1, 0, round / 2 == 0 ? &domt_kin_hearing : &domt_kin_deaf);
        (void)domt_kin_spawn_root(2, round % 2, &domt_kin_hearing);
        domt_kin_stop_actor(2);
        domt_kin_run_in_handler(1, try_to_link_to, &domt_kin_of[2].address);
        ck_assert_int_eq(result, 0);
        ck_assert(domt_kin_is_alive(1) == (round / 2 == 0));
        ck_assert_uint_eq(domt_kin_of[1].downs, round / 2 == 0);
        ck_assert_int_eq(domt_kin_of[1].down.reason, round / 2 == 0 ? -ESTALE : 0);
        if (domt_kin_is_alive(1))
            domt_kin_stop_actor(1);
        domt_kin_close_clean_world();
    }
}

DOMT_TEST(link_to_oneself_or_nobody_is_refused)
{
    domus_address nobody = {NULL, 0};

    domt_kin_open_world(1);
    (void)domt_kin_spawn_root(1, 0, &domt_kin_deaf);
    domt_kin_run_in_handler(1, try_to_link_to, &domt_kin_of[1].address);
    ck_assert_int_eq(result, -EINVAL);
    domt_kin_run_in_handler(1, try_to_link_to, &nobody);
    ck_assert_int_eq(result, -EINVAL);
    domt_kin_stop_actor(1);
    domt_kin_close_clean_world();
}

DOMT_TEST(unlinked_live_on_both)
{
    for (uint32_t round = 0; round < 4; round++) {
        uint32_t first = 1 + round % 2;
        open_world_of_linked_actors(round / 2, &domt_kin_deaf, &domt_kin_deaf);
        /* actor 2 may not remove the link that actor 1 has made */
        domt_kin_run_in_handler(2, try_to_unlink, &last);
        ck_assert_int_eq(result, -ENOENT);
        domt_kin_run_in_handler(1, try_to_unlink, &last);
        ck_assert_int_eq(result, 0);
        domt_kin_run_in_handler(1, try_to_unlink, &last);
        ck_assert_int_eq(result, -ENOENT);
        ck_assert_uint_eq(domt_count_all_objects_in_use(&domt_kin_world), 0);
        domt_kin_stop_actor(first);
        ck_assert(domt_kin_is_alive(3 - first));
        domt_kin_stop_actor(3 - first);
        domt_kin_close_clean_world();
    }
}

DOMT_TEST(both_may_make_the_link_and_both_may_end_at_once)
{
    for (uint32_t round = 0; round < 2 * 2 * 3 * 3; round++) {
        const domus_behaviour *one = round % 2 == 0 ? &domt_kin_deaf : &domt_kin_hearing;
        open_world_of_linked_actors(round / 2 % 2, one, &domt_kin_deaf);
        domt_kin_run_in_handler(2, try_to_link_to, &domt_kin_of[1].address);
        for (uint32_t i = 1; i < 3; i++)
            ck_assert_int_eq(domi_house_ask_to_stop(domt_kin_world.managers[round / 4 % 3],
                                                    domt_kin_of[i].address),
                             0);
        for (uint32_t i = round / 12; i > 0; i--)
            domt_kin_run_iteration_of_home(i % 2);
        domt_settle_world(&domt_kin_world);
        ck_assert_uint_eq(domt_kin_count_houses(), 0);
        domt_kin_close_clean_world();
    }
}

DOMT_TEST(end_of_an_actor_linked_both_ways_is_heard_twice)
{
    for (uint32_t first = 1; first < 3; first++) {
        open_world_of_linked_actors(1, &domt_kin_hearing, &domt_kin_hearing);
        domt_kin_run_in_handler(2, try_to_link_to, &domt_kin_of[1].address);
        domt_kin_stop_actor(first);
        ck_assert_uint_eq(domt_kin_of[3 - first].downs, 2);
        domt_kin_stop_actor(3 - first);
        domt_kin_close_clean_world();
    }
}

DOMT_TEST(reason_of_a_link_outlives_a_failure_that_is_forgiven)
{
    static const domus_supervision resumes = {.otherwise = DOMUS_RESUME};
    static domus_behaviour boss;

    boss = domt_kin_behaviour_of_boss(&resumes);
    domt_kin_open_world(2);
    (void)domt_kin_spawn_root(3, 0, &boss);
    (void)domt_kin_spawn_root(1, 1, &domt_kin_deaf);
    (void)domt_kin_spawn_child(3, 2, 1, &domt_kin_deaf);
    domt_kin_run_in_handler(1, try_to_link_to, &domt_kin_of[2].address);
    (void)domt_kin_spawn_root(4, 0, &domt_kin_hearing);
    domt_kin_run_in_handler(4, try_to_link_to, &domt_kin_of[2].address);
    domt_kin_send_notice(2, &domt_kin_fail, -EIO);
    domt_kin_run_iteration_of_home(
        1); /* actor 2 waits for its parent's decision when the link reaches it */
    domt_kin_send_function_to_run(domt_outside_manager(&domt_kin_world), 1,
                                  domt_kin_escalate_with_eperm, NULL);
    domt_kin_run_iteration_of_home(1);
    domt_kin_run_iteration_of_home(1);
    domt_settle_world(&domt_kin_world);
    ck_assert(!domt_kin_is_alive(2));
    ck_assert_int_eq(domt_kin_of[4].down.reason, -EPERM);
    domt_kin_stop_actor(3);
    domt_kin_stop_actor(4);
    domt_kin_close_clean_world();
}

DOMT_TEST(restart_of_the_linking_actor_removes_the_link_for_both)
{
    static const domus_supervision restarts = {.otherwise = DOMUS_RESTART};
    static domus_behaviour boss;

    for (uint32_t first = 1; first < 3; first++) {
        boss = domt_kin_behaviour_of_boss(&restarts);
        domt_kin_open_world(2);
        (void)domt_kin_spawn_root(3, 0, &boss);
        (void)domt_kin_spawn_child(3, 1, 1, &domt_kin_deaf);
        (void)domt_kin_spawn_root(2, 0, &domt_kin_deaf);
        domt_kin_run_in_handler(1, try_to_link_to, &domt_kin_of[2].address);
        domt_kin_fail_actor(1, -EIO);
        ck_assert_uint_eq(domt_count_all_objects_in_use(&domt_kin_world), 0);
        ck_assert_uint_eq(domt_kin_count_houses(), 3);
        domt_kin_stop_actor(first);
        ck_assert(domt_kin_is_alive(3 - first));
        domt_kin_stop_actor(3);
        if (first == 1)
            domt_kin_stop_actor(2);
        domt_kin_close_clean_world();
    }
}

/* Let the link, its removal and the ends of both actors happen in every order, with a number of
 * turns between them. */
static void run_race_of_link_and_ends(uint32_t home, uint32_t order, uint32_t turns)
{
    domt_kin_open_world(2);
    (void)domt_kin_spawn_root(1, 0, &domt_kin_deaf);
    (void)domt_kin_spawn_root(2, home, &domt_kin_deaf);
    domi_manager *outside = domt_outside_manager(&domt_kin_world);
    taken_back = 0;
    last = (domus_watch){NULL, 0};
    domt_kin_send_function_to_run(outside, 1, try_to_link_to, &domt_kin_of[2].address);
    for (uint32_t step = 0; step < 3; step++, turns /= 4, order /= 3) {
        for (uint32_t i = turns % 4; i > 0; i--)
            domt_kin_run_iteration_of_home(i % 2);
        if (order % 3 == 0 && domt_kin_is_alive(1))
            (void)domt_send_notice(outside, domt_kin_of[1].address, &domt_call_type,
                                   &(domt_call){try_to_unlink, &last});
        else if (order % 3 == 1)
            (void)domi_house_ask_to_stop(domt_kin_world.managers[1], domt_kin_of[2].address);
        else if (order % 3 == 2)
            (void)domi_house_ask_to_stop(outside, domt_kin_of[1].address);
    }
    domt_settle_world(&domt_kin_world);
    bool linked = last.watch != NULL && taken_back == 0;
    if (linked)
        ck_assert(domt_kin_is_alive(1) == domt_kin_is_alive(2));
    for (uint32_t i = 1; i < 3; i++) {
        if (domt_kin_is_alive(i))
            domt_kin_stop_actor(i);
    }
    domt_kin_close_clean_world();
}

DOMT_TEST(every_order_of_link_unlink_and_ends_leaves_nothing)
{
    for (uint32_t home = 0; home < 2; home++) {
        for (uint32_t order = 0; order < 27; order++) {
            for (uint32_t turns = 0; turns < 64; turns++)
                run_race_of_link_and_ends(home, order, turns);
        }
    }
}

DOMT_SUITE(30)
