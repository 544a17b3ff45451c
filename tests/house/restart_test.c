/* house/family/restart.c: what a restart removes and what it leaves, which callbacks run how many
 * times, and how many restarts are too many. */
#include "house/directory/name_table.h"
#include "house/family/family.h"
#include "house/family/life.h"
#include "tests/house/kin.h"
#include "tests/support/suite.h"

#include <domus/name.h>
#include <domus/receive.h>
#include <domus/timer.h>

#include <errno.h>
#include <string.h>

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)

static const domus_supervision escalates = {.otherwise = DOMUS_ESCALATE};
static const domus_supervision restarts = {.otherwise = DOMUS_RESTART};
static domus_behaviour boss;
static domus_behaviour under;

/* Open a world with actor 1 on home 0 and its children 2 (on home 0) and 3 (on home 1), which may
 * have children themselves. */
static void open_boss_with_two_children(const domus_supervision *supervision)
{
    domt_kin_open_world_with_boss(2, supervision);
    (void)domt_kin_spawn_child(1, 2, 0, &domt_kin_hearing);
    (void)domt_kin_spawn_child(1, 3, 1, &domt_kin_hearing);
    (void)domt_kin_read_and_clear_trail();
}

/* --- what runs ------------------------------------------------------------------------------- */

static int set_worth_of_state_to_0(domus_stack *stack, void *unused)
{
    ((domt_kin *)domus_self(stack).house->self)->worth = 0;
    return 0;
}

DOMT_TEST(restart_runs_on_stop_and_on_mount_with_the_state_of_the_spawn)
{
    open_boss_with_two_children(&restarts);
    for (uint32_t child = 2; child < 4; child++) {
        domt_kin_run_in_handler(child, set_worth_of_state_to_0, NULL);
        domt_kin_send_note(child);
        ck_assert_uint_eq(domt_kin_of[child].worth, 0);
        domt_kin_fail_actor(child, -EIO);
        domt_kin_send_note(child);
        ck_assert_uint_eq(domt_kin_of[child].worth, DOMT_WORTH);
        ck_assert_int_eq(domt_kin_of[child].address.house->reason, 0);
    }
    ck_assert_str_eq(domt_kin_read_and_clear_trail(), "n2 s2 m2 n2 n3 s3 m3 n3 ");
    ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, restarts), 2);
    domt_kin_close_world();
}

DOMT_TEST(restart_runs_on_restart_once_with_the_error_and_neither_stop_nor_mount)
{
    domt_kin_open_world(2);
    boss = domt_kin_behaviour_of_boss(&restarts);
    under = domt_kin_behaviour_with_restart(NULL);
    (void)domt_kin_spawn_root(1, 0, &boss);
    for (uint32_t child = 2; child < 4; child++) {
        (void)domt_kin_spawn_child(1, child, child - 2, &under);
        domt_kin_run_in_handler(child, set_worth_of_state_to_0, NULL);
        domt_kin_fail_actor(child, -EPERM);
        ck_assert_int_eq(domt_kin_of[child].cause, -EPERM);
        domt_kin_send_note(child);
        ck_assert_uint_eq(domt_kin_of[child].worth, DOMT_WORTH);
    }
    ck_assert_str_eq(domt_kin_read_and_clear_trail(), "m1 m2 r2 n2 m3 r3 n3 ");
    domt_kin_close_world();
}

DOMT_TEST(mount_that_fails_is_tried_again_without_on_stop)
{
    for (uint32_t home = 0; home < 2; home++) {
        open_boss_with_two_children(&restarts);
        domt_kin_let_mounts_fail(4, 2, -EIO);
        under = domt_kin_behaviour_with_restart(NULL);
        (void)domt_kin_spawn_child(1, 4, home, &under);
        /* no mount of actor 4 had succeeded, so on_restart is not called */
        ck_assert_str_eq(domt_kin_read_and_clear_trail(), "m4 ");
        ck_assert_uint_eq(domt_kin_of[4].bad_mounts, 2);
        domt_kin_send_note(4);
        ck_assert_uint_eq(domt_kin_of[4].worth, DOMT_WORTH);
        domt_kin_stop_actor(4);
        ck_assert_uint_eq(domt_kin_of[4].stops, 1);
        domt_kin_close_world();
    }
}

/* An on_restart that fails has given the state up, so on_stop is not called: the next mount begins
 * as a spawn does. */
DOMT_TEST(on_restart_that_fails_is_a_failure_again)
{
    for (uint32_t home = 0; home < 2; home++) {
        open_boss_with_two_children(&restarts);
        under = domt_kin_behaviour_with_restart(NULL);
        (void)domt_kin_spawn_child(1, 4, home, &under);
        domt_kin_let_mounts_fail(4, 1, -EBADF);
        domt_kin_fail_actor(4, -EIO);
        ck_assert_int_eq(domt_kin_of[4].cause, -EIO);
        ck_assert_str_eq(domt_kin_read_and_clear_trail(), "m4 m4 ");
        ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, failures), 2);
        ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, restarts), 2);
        /* on_restart has ended the first life of actor 4, so its mount has no on_stop */
        domt_kin_of[4].mounts--;
        domt_kin_close_world();
    }
}

/* --- what goes ------------------------------------------------------------------------------- */

DOMT_TEST(restart_takes_conversations_timers_watches_and_children)
{
    domt_kin_open_world_with_boss(2, &restarts);
    (void)domt_kin_spawn_root(9, 1, &domt_kin_hearing);
    for (uint32_t child = 2; child < 4; child++) {
        (void)domt_kin_spawn_child(1, child, child - 2, &domt_kin_hearing);
        (void)domt_kin_spawn_child(child, child + 2, 0, &domt_kin_hearing);
        (void)domt_kin_spawn_child(child, child + 4, 1, &domt_kin_hearing);
        domt_kin_run_in_handler(child, domt_kin_ask_address_for_ever, &domt_kin_of[9].address);
        domt_kin_run_in_handler(child, domt_kin_sleep_for_a_day, NULL);
        domt_kin_run_in_handler(child, domt_kin_arm_ticks_of_1_ms, NULL);
        domt_kin_run_in_handler(child, domt_kin_watch_given_address, &domt_kin_of[9].address);
        domt_kin_run_in_handler(child + 2, domt_kin_ask_address_for_ever, &domt_kin_of[9].address);
        domt_kin_fail_actor(child, -EIO);
        ck_assert_int_eq(domt_kin_of[child].answer, -ECANCELED);
        ck_assert(!domt_kin_is_alive(child + 2) && !domt_kin_is_alive(child + 4));
        ck_assert(domt_kin_is_alive(child));
    }
    ck_assert_uint_eq(domt_kin_count_houses(), 4);
    ck_assert_uint_eq(domt_count_all_objects_in_use(&domt_kin_world), 0);
    domt_pass_time(&domt_kin_world, 3 * MS);
    domt_kin_stop_actor(9);
    ck_assert_uint_eq(domt_kin_of[2].ticks + domt_kin_of[3].ticks, 0);
    ck_assert_uint_eq(domt_kin_of[2].downs + domt_kin_of[3].downs, 0);
    domt_kin_close_world();
}

/* A conversation that the restart cancels may begin new work, and on_stop may, too: all that work
 * belongs to the old life and is removed. */
DOMT_TEST(restart_takes_what_its_cancelled_conversations_begin)
{
    for (uint32_t child = 2; child < 4; child++) {
        open_boss_with_two_children(&restarts);
        domt_kin_of[child].resuming = domt_kin_arm_ticks_of_1_ms;
        domt_kin_run_in_handler(child, domt_kin_sleep_for_a_day, NULL);
        domt_kin_fail_actor(child, -EIO);
        ck_assert_int_eq(domt_kin_of[child].answer, -ECANCELED);
        domt_kin_of[child].stopping = domt_kin_arm_ticks_of_1_ms;
        domt_kin_fail_actor(child, -EIO);
        domt_kin_of[child].stopping = NULL;
        ck_assert_uint_eq(domt_kin_of[child].mounts, 3);
        domt_pass_time(&domt_kin_world, 3 * MS);
        ck_assert_uint_eq(domt_kin_of[child].ticks, 0);
        domt_kin_close_world();
    }
}

static int born;

static int try_to_spawn_kin_8(domus_stack *stack, void *unused)
{
    born = domt_kin_spawn_in_handler(stack, 8, &domt_kin_hearing, NULL);
    return 0;
}

DOMT_TEST(restart_ends_although_a_cancelled_conversation_spawns)
{
    for (uint32_t child = 2; child < 4; child++) {
        open_boss_with_two_children(&restarts);
        domt_kin_of[child].resuming = try_to_spawn_kin_8;
        domt_kin_run_in_handler(child, domt_kin_sleep_for_a_day, NULL);
        domt_kin_fail_actor(child, -EIO);
        ck_assert_int_eq(born, -ESHUTDOWN);
        ck_assert_uint_eq(domt_kin_of[child].mounts, 2);
        domt_kin_send_note(child);
        ck_assert_uint_eq(domt_kin_of[child].notes, 1);
        /* a spawn in on_stop fails, too, because the old life ends */
        domt_kin_of[child].stopping = try_to_spawn_kin_8;
        domt_kin_fail_actor(child, -EIO);
        domt_kin_of[child].stopping = NULL;
        ck_assert_int_eq(born, -ESHUTDOWN);
        domt_kin_of[child].mounting = try_to_spawn_kin_8; /* a spawn in on_mount succeeds */
        domt_kin_fail_actor(child, -EIO);
        ck_assert_int_eq(born, 0);
        ck_assert_uint_eq(domt_kin_count_houses(), 4);
        domt_kin_close_world();
    }
}

/* --- what stays ------------------------------------------------------------------------------ */

DOMT_TEST(mail_that_waits_is_handled_in_order_by_the_next_life)
{
    for (uint32_t child = 2; child < 4; child++) {
        open_boss_with_two_children(&restarts);
        domt_kin_send_notice(child, &domt_kin_note, 0);
        domt_kin_send_notice(child, &domt_kin_fail, -EIO);
        for (int i = 0; i < 200; i++)
            domt_kin_send_note(child);
        ck_assert_uint_eq(domt_kin_of[child].notes, 201);
        const char *expected = child == 2 ? "n2 s2 m2 n2 n2 " : "n3 s3 m3 n3 n3 ";
        ck_assert_int_eq(strncmp(domt_kin_read_and_clear_trail(), expected, strlen(expected)), 0);
        domt_kin_close_world();
    }
}

static int register_under_name_child(domus_stack *stack, void *unused)
{
    return domus_name_register(stack, "child");
}

static int become_behaviour_deaf(domus_stack *stack, void *unused)
{
    return domus_become(stack, &domt_kin_deaf);
}

DOMT_TEST(address_and_name_stay_and_a_become_is_undone)
{
    static const uint64_t key[2] = {1, 2};
    static domi_names names;

    for (uint32_t child = 2; child < 4; child++) {
        domus_address address = {0};
        open_boss_with_two_children(&restarts);
        ck_assert_int_eq(domi_names_init(&names, 8, key), 0);
        for (uint32_t i = 0; i < 3; i++)
            domt_kin_world.managers[i]->directory.names = &names;
        domt_kin_run_in_handler(child, register_under_name_child, NULL);
        domt_kin_run_in_handler(child, become_behaviour_deaf, NULL);
        ck_assert_ptr_eq(domt_kin_of[child].address.house->behaviour, &domt_kin_deaf);
        domt_kin_fail_actor(child, -EIO);
        ck_assert_ptr_eq(domt_kin_of[child].address.house->behaviour, &domt_kin_hearing);
        ck_assert_int_eq(domi_names_find_address(&names, "child", &address), 0);
        ck_assert_ptr_eq(address.house, domt_kin_of[child].address.house);
        ck_assert(domt_kin_is_alive(child));
        domt_kin_close_world();
        ck_assert_uint_eq(domi_names_count(&names), 0);
        domi_names_fini(&names);
    }
}

/* --- in the midst of it ---------------------------------------------------------------------- */

/* Begin a restart of the child, which waits because a child of its own on the other home has not
 * ended yet. */
static void begin_restart_with_grandchild(uint32_t child)
{
    open_boss_with_two_children(&restarts);
    (void)domt_kin_spawn_child(child, 4, 3 - child, &domt_kin_hearing);
    domt_kin_send_notice(child, &domt_kin_fail, -EIO);
    uint32_t home = child - 2;
    for (int i = 0; i < 2 && (domt_kin_of[child].address.house->marks & DOMI_MARK_RESTART) == 0;
         i++) {
        domt_kin_run_iteration_of_home(home);
        if (home == 1)
            domt_kin_run_iteration_of_home(0);
        (void)domi_manager_take_arrivals(domt_kin_world.managers[home]);
    }
    ck_assert_uint_ne(domt_kin_of[child].address.house->marks & DOMI_MARK_RESTART, 0);
    ck_assert(domt_kin_is_alive(child));
}

DOMT_TEST(stop_in_the_midst_of_a_restart_ends_it)
{
    for (uint32_t round = 0; round < 2 * 3 * 2; round++) {
        uint32_t child = 2 + round % 2;
        begin_restart_with_grandchild(child);
        /* the actor to be stopped: the one that restarts, or its parent */
        uint32_t ended = round / 6 == 0 ? child : 1;
        domt_kin_stop_actor_by_manager(domt_kin_world.managers[round / 2 % 3], ended);
        ck_assert(!domt_kin_is_alive(child) && !domt_kin_is_alive(4));
        ck_assert_uint_eq(domt_kin_of[child].mounts, 1);
        ck_assert_uint_eq(domt_kin_of[child].stops, 1);
        domt_kin_close_clean_world();
    }
}

static int arm_failing_timer(domus_stack *stack, void *unused)
{
    const int error = -EIO;

    return domus_after(stack, MS, &domt_kin_fail, &error, NULL);
}

/* A failure and a stop both need the one node of the child. The stop has that node in the inbox
 * when an event's handler fails. */
DOMT_TEST(failure_leaves_a_stop_that_is_under_way_alone)
{
    for (uint32_t from = 0; from < 3; from++) {
        domt_kin_open_world(2);
        domi_manager *there = domt_kin_world.managers[1];
        boss = domt_kin_behaviour_of_boss(&restarts);
        (void)domt_kin_spawn_root(1, 0, &boss);
        (void)domt_kin_spawn_child(1, 2, 1, &domt_kin_hearing);
        domt_kin_run_in_handler(2, arm_failing_timer, NULL);
        domt_advance_time_without_runs(&domt_kin_world, 3 * MS);
        ck_assert_uint_eq(domi_manager_fire_timers(there), 1);
        ck_assert_int_eq(
            domi_house_ask_to_stop(domt_kin_world.managers[from], domt_kin_of[2].address), 0);
        (void)domt_run_state_queue(there);
        ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, failures), 1);
        domt_settle_world(&domt_kin_world);
        ck_assert(!domt_kin_is_alive(2));
        ck_assert_uint_eq(domt_kin_of[2].mounts, 1);
        domt_kin_stop_actor(1);
        domt_kin_close_world();
    }
}

static int run_one_iteration_of_home_0(domus_stack *stack, void *unused)
{
    domt_kin_run_iteration_of_home(0);
    return 0;
}

/* The parent restarts all its children while child 3 runs on_stop, and another actor watches child
 * 3 at the same time. */
DOMT_TEST(all_for_one_leaves_a_child_in_its_last_moment_alone)
{
    static const domus_supervision all = {.all_for_one = true, .otherwise = DOMUS_RESTART};

    open_boss_with_two_children(&all);
    (void)domt_kin_spawn_root(9, 0, &domt_kin_hearing);
    domt_kin_send_notice(2, &domt_kin_fail, -EIO);
    domt_kin_run_houses_of_home(0);
    domt_kin_send_function_to_run(domt_outside_manager(&domt_kin_world), 9,
                                  domt_kin_watch_given_address, &domt_kin_of[3].address);
    domt_kin_of[3].stopping = run_one_iteration_of_home_0;
    ck_assert_int_eq(domi_house_ask_to_stop(domt_kin_world.managers[1], domt_kin_of[3].address), 0);
    domt_kin_run_iteration_of_home(1);
    domt_settle_world(&domt_kin_world);
    ck_assert_uint_eq(domt_kin_of[3].mounts, 1);
    ck_assert_uint_eq(domt_kin_of[2].mounts, 2);
    ck_assert_uint_eq(domt_kin_of[9].downs, 1);
    ck_assert_uint_eq(domt_kin_count_houses(), 3);
    domt_kin_stop_actor(1);
    domt_kin_close_clean_world();
}

/* The failure of the child is on its way when the parent begins to restart. It is no second failure
 * of the parent, whatever rules the parent has. */
DOMT_TEST(child_that_fails_while_its_parent_restarts_is_stopped)
{
    domt_kin_open_world(2);
    domi_manager *here = domt_kin_world.managers[0];
    boss = domt_kin_behaviour_of_boss(&restarts);
    under = domt_kin_behaviour_of_boss(&escalates);
    (void)domt_kin_spawn_root(1, 0, &boss);
    (void)domt_kin_spawn_child(1, 2, 0, &under);
    (void)domt_kin_spawn_child(2, 3, 1, &domt_kin_hearing);
    domt_kin_send_notice(2, &domt_kin_fail, -EIO);
    domt_kin_send_notice(3, &domt_kin_fail, -EIO);
    (void)domi_manager_take_arrivals(here);
    (void)domt_run_state_queue(here);  /* home 0 runs actor 2, which fails */
    domt_kin_run_iteration_of_home(1); /* home 1 runs actor 3, which fails, too */
    (void)domt_run_state_queue(here);  /* home 0 runs actor 1, which decides about actor 2 */
    (void)domi_manager_take_arrivals(here);
    ck_assert_uint_ne(domt_kin_of[2].address.house->marks & DOMI_MARK_RESTART, 0);
    domt_settle_world(&domt_kin_world);
    ck_assert_uint_eq(domt_kin_of[2].mounts, 2);
    ck_assert_uint_eq(domt_kin_of[3].mounts, 1);
    ck_assert_uint_eq(domt_kin_count_houses(), 2);
    ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, escalations), 0);
    domt_kin_close_world();
}

/* --- intensity ------------------------------------------------------------------------------- */

DOMT_TEST(more_than_three_restarts_in_five_seconds_escalate)
{
    open_boss_with_two_children(&restarts);
    domt_kin_fail_actor(2, -EIO);
    domt_advance_time_without_runs(&domt_kin_world, 5 * SECOND);
    domt_kin_fail_actor(2, -EIO);
    domt_kin_fail_actor(
        3, -EIO); /* restarts of all children count together, so this failure escalates */
    ck_assert_uint_eq(domt_kin_count_houses(), 3);
    domt_advance_time_without_runs(&domt_kin_world,
                                   5 * SECOND + 1); /* all earlier restarts are forgotten */
    for (int i = 0; i < 3; i++)
        domt_kin_fail_actor(2, -EIO);
    ck_assert_uint_eq(domt_kin_count_houses(), 3);
    ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, restarts), 6);
    domt_kin_fail_actor(3, -EIO);
    ck_assert_uint_eq(domt_kin_count_houses(), 0);
    ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, restarts), 6);
    domt_kin_close_world();
}

DOMT_TEST(intensity_and_period_may_be_set)
{
    static const domus_supervision one = {
        .intensity = 1, .period_ns = MS, .otherwise = DOMUS_RESTART};

    open_boss_with_two_children(&one);
    for (uint32_t i = 0; i < 100; i++) {
        domt_kin_fail_actor(2 + i % 2, -EIO);
        domt_advance_time_without_runs(&domt_kin_world, MS + 1);
    }
    ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, restarts), 100);
    domt_kin_fail_actor(2, -EIO);
    domt_kin_fail_actor(2, -EIO);
    ck_assert_uint_eq(domt_kin_count_houses(), 0);
    domt_kin_close_world();
}

DOMT_TEST(mount_that_always_fails_is_given_up)
{
    static const domus_supervision nine = {.intensity = 9, .otherwise = DOMUS_RESTART};

    for (uint32_t home = 0; home < 2; home++) {
        domt_kin_open_world(2);
        boss = domt_kin_behaviour_of_boss(&nine);
        under = domt_kin_behaviour_of_boss(&restarts);
        (void)domt_kin_spawn_root(1, 0, &boss);
        (void)domt_kin_spawn_child(1, 2, 1 - home, &under);
        domt_kin_let_mounts_fail(3, 1000, -EIO);
        (void)domt_kin_spawn_child(2, 3, home, &domt_kin_hearing);
        ck_assert_uint_eq(domt_kin_of[3].bad_mounts, 4);
        ck_assert_uint_eq(domt_kin_of[3].stops, 0);
        /* child 3 was given up: its parent, actor 2, has restarted */
        ck_assert_uint_eq(domt_kin_of[2].mounts, 2);
        ck_assert(!domt_kin_is_alive(3) && domt_kin_is_alive(2));
        domt_kin_of[3].fails = 2;
        /* a restarted parent counts the restarts of its children anew */
        (void)domt_kin_spawn_child(2, 3, home, &domt_kin_hearing);
        ck_assert_uint_eq(domt_kin_of[2].mounts, 2);
        ck_assert(domt_kin_is_alive(3));
        domt_kin_close_world();
    }
}

DOMT_SUITE(30)
