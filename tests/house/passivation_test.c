/* Passivation: an actor that has had no message during its idle time is stopped, and never
 * earlier. */
#include "house/family/family.h"
#include "house/family/life.h"
#include "tests/house/kin.h"
#include "tests/support/suite.h"

#include <domus/timer.h>

#include <errno.h>

#define MS UINT64_C(1000000)

/* Open a world in which actor 1 on home 0 is stopped after an idle time of so many ms. */
static void open_actor_with_idle_time(uint64_t ms)
{
    const domus_spawn_options options = {.passivate_after_ns = ms * MS};

    domt_kin_open_world(2);
    domt_kin_spawn_root_with_options(1, 0, &options);
    domt_settle_world(&domt_kin_world);
}

static void pass_ms(uint64_t ms)
{
    domt_pass_time(&domt_kin_world, ms * MS);
}

static void close_after_one_passivation(void)
{
    ck_assert(!domt_kin_is_alive(1));
    ck_assert_uint_eq(domt_kin_of[1].stops, 1);
    ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, passivations), 1);
    ck_assert_uint_eq(domt_kin_world.managers[0]->timing.timers, 0);
    domt_kin_close_clean_world();
}

DOMT_TEST(idle_actor_is_stopped_in_time_and_not_before)
{
    open_actor_with_idle_time(10);
    pass_ms(9);
    ck_assert(domt_kin_is_alive(1));
    pass_ms(3);
    close_after_one_passivation();
}

DOMT_TEST(message_begins_the_idle_time_anew)
{
    open_actor_with_idle_time(10);
    for (int i = 0; i < 20; i++) {
        pass_ms(9);
        domt_kin_send_note(1);
        ck_assert(domt_kin_is_alive(1));
    }
    pass_ms(9);
    ck_assert(domt_kin_is_alive(1));
    pass_ms(3);
    close_after_one_passivation();
}

DOMT_TEST(many_messages_cost_one_timer)
{
    open_actor_with_idle_time(10);
    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < 1000; j++)
            domt_kin_send_notice(1, &domt_kin_note, 0);
        pass_ms(5);
        ck_assert_uint_eq(domt_kin_world.managers[0]->timing.timers, 1);
    }
    /* The timer of an actor's idle time fires once in an idle time, not once for each message. */
    ck_assert_uint_le(DOMT_SUM(&domt_kin_world, timers_fired), 4);
    pass_ms(20);
    close_after_one_passivation();
}

DOMT_TEST(message_and_end_of_the_idle_time_may_meet)
{
    open_actor_with_idle_time(10);
    pass_ms(9);
    /* the message and the end of the idle time come in the same turn: the actor goes on */
    domt_advance_time_without_runs(&domt_kin_world, 2 * MS);
    domt_kin_send_note(1);
    ck_assert_uint_eq(domt_kin_of[1].notes, 1);
    pass_ms(30);
    close_after_one_passivation();
}

static int pause_passivation(domus_stack *stack, void *ret_result)
{
    *(int *)ret_result = domus_passivation_pause(stack);
    return 0;
}

static int resume_passivation(domus_stack *stack, void *ret_result)
{
    *(int *)ret_result = domus_passivation_resume(stack);
    return 0;
}

DOMT_TEST(paused_actor_stays_and_resuming_begins_the_idle_time_anew)
{
    int result = 1;

    open_actor_with_idle_time(10);
    domt_kin_run_in_handler(1, pause_passivation, &result);
    ck_assert_int_eq(result, 0);
    pass_ms(95);
    ck_assert(domt_kin_is_alive(1));
    domt_kin_run_in_handler(1, resume_passivation, &result);
    ck_assert_int_eq(result, 0);
    pass_ms(9);
    ck_assert(domt_kin_is_alive(1));
    pass_ms(3);
    close_after_one_passivation();
}

DOMT_TEST(pause_and_resume_are_for_actors_that_passivate)
{
    int result = 1;

    domt_kin_open_world(2);
    (void)domt_kin_spawn_root(1, 0, &domt_kin_hearing);
    domt_kin_run_in_handler(1, pause_passivation, &result);
    ck_assert_int_eq(result, -EINVAL);
    domt_kin_run_in_handler(1, resume_passivation, &result);
    ck_assert_int_eq(result, -EINVAL);
    pass_ms(100);
    ck_assert(domt_kin_is_alive(1));
    domt_kin_close_world();
}

static int arm_ticks_of_5_ms(domus_stack *stack, void *unused)
{
    return domus_every(stack, 5 * MS, &domt_kin_tick, NULL, NULL);
}

DOMT_TEST(events_count_as_messages)
{
    open_actor_with_idle_time(10);
    domt_kin_run_in_handler(1, arm_ticks_of_5_ms, NULL);
    pass_ms(100);
    ck_assert(domt_kin_is_alive(1));
    ck_assert_uint_ge(domt_kin_of[1].ticks, 19);
    domt_kin_stop_actor(1);
    ck_assert_uint_eq(domt_kin_world.managers[0]->timing.timers, 0);
    domt_kin_close_world();
}

DOMT_TEST(passivation_stops_children_and_cancels_conversations)
{
    open_actor_with_idle_time(10);
    (void)domt_kin_spawn_child(1, 2, 0, &domt_kin_hearing);
    (void)domt_kin_spawn_child(1, 3, 1, &domt_kin_hearing);
    domt_kin_run_in_handler(1, domt_kin_sleep_for_a_day, NULL);
    domt_kin_run_in_handler(1, domt_kin_ask_address_for_ever, &domt_kin_of[3].address);
    pass_ms(12);
    ck_assert_int_eq(domt_kin_of[1].answer, -ECANCELED);
    ck_assert_uint_eq(domt_kin_count_houses(), 0);
    close_after_one_passivation();
}

DOMT_TEST(stop_meets_passivation)
{
    for (uint32_t from = 0; from < 3; from++) {
        open_actor_with_idle_time(10);
        pass_ms(9);
        domt_advance_time_without_runs(&domt_kin_world, 2 * MS);
        domt_kin_stop_actor_by_manager(domt_kin_world.managers[from], 1);
        ck_assert(!domt_kin_is_alive(1));
        ck_assert_uint_eq(domt_kin_of[1].stops, 1);
        ck_assert_uint_eq(domt_kin_world.managers[0]->timing.timers, 0);
        domt_kin_close_world();
    }
}

static const domus_supervision restarts = {.otherwise = DOMUS_RESTART};
static domus_behaviour boss;

DOMT_TEST(passivation_goes_on_after_a_restart_and_a_mount_that_failed)
{
    const domus_spawn_options options = {.passivate_after_ns = 10 * MS};

    for (unsigned fails = 0; fails < 3; fails++) {
        boss = domt_kin_behaviour_of_boss(&restarts);
        domt_kin_open_world(2);
        (void)domt_kin_spawn_root(2, 0, &boss);
        domt_kin_let_mounts_fail(1, fails, -EIO);
        ck_assert_int_eq(domt_kin_let_parent_spawn(2, 1, &domt_kin_hearing, &options), 0);
        ck_assert_uint_eq(domt_kin_of[1].mounts, 1);
        pass_ms(8);
        if (fails == 0)
            domt_kin_fail_actor(1, -EIO);
        ck_assert_uint_eq(domt_kin_world.managers[0]->timing.timers, 1);
        pass_ms(30);
        ck_assert(!domt_kin_is_alive(1));
        ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, passivations), 1);
        ck_assert_uint_eq(domt_kin_world.managers[0]->timing.timers, 0);
        domt_kin_close_world();
    }
}

DOMT_TEST(restarted_actor_is_not_idle_at_once)
{
    const domus_spawn_options options = {.passivate_after_ns = 10 * MS};

    boss = domt_kin_behaviour_of_boss(&restarts);
    domt_kin_open_world(1);
    (void)domt_kin_spawn_root(2, 0, &boss);
    ck_assert_int_eq(domt_kin_let_parent_spawn(2, 1, &domt_kin_hearing, &options), 0);
    for (int i = 0; i < 3; i++) {
        pass_ms(9);
        domt_kin_fail_actor(1, -EIO);
    }
    pass_ms(9);
    ck_assert(domt_kin_is_alive(1));
    pass_ms(3);
    ck_assert(!domt_kin_is_alive(1));
    domt_kin_close_world();
}

DOMT_TEST(pause_ends_with_the_life_that_asked_for_it)
{
    int result = 1;

    boss = domt_kin_behaviour_of_boss(&restarts);
    domt_kin_open_world(1);
    const domus_spawn_options options = {.passivate_after_ns = 10 * MS};
    (void)domt_kin_spawn_root(2, 0, &boss);
    ck_assert_int_eq(domt_kin_let_parent_spawn(2, 1, &domt_kin_hearing, &options), 0);
    domt_kin_run_in_handler(1, pause_passivation, &result);
    pass_ms(50);
    ck_assert(domt_kin_is_alive(1));
    domt_kin_fail_actor(1, -EIO);
    pass_ms(30);
    ck_assert(!domt_kin_is_alive(1));
    domt_kin_close_world();
}

DOMT_SUITE(30)
