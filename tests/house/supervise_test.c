/* Supervision: the parent decides about a failure by the first rule that fits, and its decision is
 * applied to the right children. */
#include "house/family/life.h"
#include "tests/house/kin.h"
#include "tests/support/suite.h"

#include <errno.h>

#define MS UINT64_C(1000000)

static domus_behaviour boss;
static domus_behaviour under; /* the behaviour of a boss that is the child of another boss */

/* Open a world with actor 1 on home 0, which supervises by `supervision`, and its children 2 (on
 * home 0) and 3 (on home 1). */
static void open_boss_with_two_children(const domus_supervision *supervision)
{
    domt_kin_open_world_with_boss(2, supervision);
    (void)domt_kin_spawn_child(1, 2, 0, &domt_kin_hearing);
    (void)domt_kin_spawn_child(1, 3, 1, &domt_kin_hearing);
    (void)domt_kin_read_and_clear_trail();
}

/* --- rules ----------------------------------------------------------------------------------- */

DOMT_TEST(directive_of_the_first_rule_that_fits_is_followed)
{
    static const domus_rule rules[] = {
        {&domt_kin_deaf, -EIO, DOMUS_STOP},
        {&domt_kin_deaf, 0, DOMUS_RESUME},
        {NULL, -EIO, DOMUS_RESTART},
        {NULL, -EPERM, DOMUS_RESUME},
        {&domt_kin_hearing, -EPERM, DOMUS_STOP},
    };
    static const domus_supervision supervision = {
        .rules = rules, .rules_count = 5, .otherwise = DOMUS_STOP};

    for (uint32_t home = 0; home < 2; home++) {
        open_boss_with_two_children(&supervision);
        uint32_t child = 2 + home;
        domt_kin_fail_actor(child, -EIO);
        ck_assert_uint_eq(domt_kin_of[child].mounts, 2);
        domt_kin_fail_actor(child, -EPERM);
        ck_assert_uint_eq(domt_kin_of[child].mounts, 2);
        ck_assert(domt_kin_is_alive(child));
        domt_kin_fail_actor(child, -EINVAL);
        ck_assert(!domt_kin_is_alive(child));
        (void)domt_kin_spawn_child(1, 4, home, &domt_kin_deaf);
        domt_kin_fail_actor(4, -EINVAL);
        ck_assert(domt_kin_is_alive(4));
        domt_kin_fail_actor(4, -EIO);
        ck_assert(!domt_kin_is_alive(4));
        ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, failures), 5);
        ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, restarts), 1);
        ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, escalations), 0);
        domt_kin_close_world();
    }
}

static int try_all_escalations(domus_stack *stack, void *ret_results)
{
    int *results = ret_results;

    results[0] = domus_escalate(stack, 0);
    results[1] = domus_escalate(stack, 5);
    results[2] = domus_escalate(stack, -EBADF);
    results[3] = domus_escalate(stack, -EIO);
    return 0;
}

DOMT_TEST(without_rules_a_handler_may_fail_but_not_escalate)
{
    /* the actor has no parent, or a parent without rules */
    for (uint32_t parent = 0; parent < 2; parent++) {
        int results[4] = {1, 1, 1, 1};
        domt_kin_open_world(2);
        (void)domt_kin_spawn_root(1, 0, &domt_kin_hearing);
        if (parent == 0)
            (void)domt_kin_spawn_root(2, 1, &domt_kin_hearing);
        else
            (void)domt_kin_spawn_child(1, 2, 1, &domt_kin_hearing);
        domt_kin_fail_actor(2, -EIO);
        domt_kin_send_note(2);
        ck_assert_uint_eq(domt_kin_of[2].notes, 1);
        ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, escalations), 0);
        domt_kin_run_in_handler(2, try_all_escalations, results);
        ck_assert_int_eq(results[0], -EINVAL);
        ck_assert_int_eq(results[1], -EINVAL);
        ck_assert_int_eq(results[2], 0);
        ck_assert(!domt_kin_is_alive(2) && domt_kin_is_alive(1));
        ck_assert_uint_eq(domt_kin_of[2].stops, 1);
        ck_assert_uint_ge(DOMT_SUM(&domt_kin_world, escalations), 1);
        domt_kin_close_world();
    }
}

DOMT_TEST(second_escalation_waits_for_the_first_to_be_decided)
{
    static const domus_supervision restarts = {.otherwise = DOMUS_RESTART};

    for (uint32_t child = 2; child < 4; child++) {
        int results[4] = {1, 1, 1, 1};
        open_boss_with_two_children(&restarts);
        domt_kin_run_in_handler(child, try_all_escalations, results);
        ck_assert_int_eq(results[2], 0);
        ck_assert_int_eq(results[3], -EALREADY);
        ck_assert_uint_eq(domt_kin_of[child].mounts, 2);
        domt_kin_run_in_handler(child, try_all_escalations, results);
        ck_assert_int_eq(results[2], 0);
        ck_assert_uint_eq(domt_kin_of[child].mounts, 3);
        domt_kin_close_world();
    }
}

DOMT_TEST(actor_that_escalates_does_not_just_go_on)
{
    static const domus_supervision resumes = {.otherwise = DOMUS_RESUME};
    int results[4];

    open_boss_with_two_children(&resumes);
    domt_kin_fail_actor(2, -EIO);
    ck_assert(domt_kin_is_alive(2));
    domt_kin_run_in_handler(2, try_all_escalations, results);
    ck_assert(!domt_kin_is_alive(2));
    domt_kin_let_mounts_fail(4, 1, -EIO);
    (void)domt_kin_spawn_child(1, 4, 1, &domt_kin_hearing);
    ck_assert(!domt_kin_is_alive(4));
    domt_kin_close_world();
}

static int return_eio(domus_stack *stack, void *unused)
{
    return -EIO;
}

static int answer;

static int record_error_of_answer(domus_stack *stack, void *self, const domus_answer *heard)
{
    answer = heard->error;
    return 0;
}

static int ask_child_to_fail(domus_stack *stack, void *child)
{
    static const domt_call question = {return_eio, NULL};

    return domus_ask(stack, *(domus_address *)child, &domt_call_type, &question,
                     record_error_of_answer);
}

static int arm_failing_timer(domus_stack *stack, void *unused)
{
    const int error = -EIO;

    return domus_after(stack, MS, &domt_kin_fail, &error, NULL);
}

DOMT_TEST(ask_that_fails_is_no_failure_but_an_event_that_fails_is)
{
    static const domus_supervision stops = {.otherwise = DOMUS_STOP};

    open_boss_with_two_children(&stops);
    domt_kin_run_in_handler(1, ask_child_to_fail, &domt_kin_of[3].address);
    ck_assert_int_eq(answer, -EIO);
    ck_assert(domt_kin_is_alive(3));
    ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, failures), 0);
    domt_kin_run_in_handler(3, arm_failing_timer, NULL);
    domt_pass_time(&domt_kin_world, 2 * MS);
    ck_assert(!domt_kin_is_alive(3));
    ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, failures), 1);
    domt_kin_close_world();
}

/* --- while it is not decided ----------------------------------------------------------------- */

static void let_child_fail_with_mail(uint32_t child)
{
    domt_kin_send_notice(child, &domt_kin_fail, -EIO);
    for (int i = 0; i < 5; i++)
        domt_kin_send_notice(child, &domt_kin_note, 0);
    domt_kin_run_houses_of_home(child - 2);
}

DOMT_TEST(failed_child_handles_no_messages_until_its_parent_has_decided)
{
    static const domus_supervision resumes = {.otherwise = DOMUS_RESUME};

    for (uint32_t child = 2; child < 4; child++) {
        open_boss_with_two_children(&resumes);
        let_child_fail_with_mail(child);
        for (int i = 0; i < 5; i++)
            (void)domi_manager_take_arrivals(domt_kin_world.managers[child - 2]);
        ck_assert_uint_eq(domt_kin_of[child].notes, 0);
        ck_assert_uint_eq(domt_kin_of[child].address.house->state, DOMI_WAITING);
        domt_settle_world(&domt_kin_world);
        ck_assert_uint_eq(domt_kin_of[child].notes, 5);
        ck_assert_int_eq(domt_kin_of[child].address.house->reason, 0);
        domt_kin_close_world();
    }
}

/* A stop by each thread, before and after a failure is under way, meets each decision of the
 * parent; the stop wins. */
DOMT_TEST(stop_races_with_a_failure_and_wins)
{
    static const domus_directive directives[] = {DOMUS_RESUME, DOMUS_RESTART, DOMUS_STOP,
                                                 DOMUS_ESCALATE};

    for (uint32_t round = 0; round < 4 * 3 * 2 * 4; round++) {
        const domus_supervision supervision = {.otherwise = directives[round % 4]};
        domi_manager *from = NULL;
        uint32_t child = 2 + round / 12 % 2;
        open_boss_with_two_children(&supervision);
        domus_address address = domt_kin_of[child].address;
        from = domt_kin_world.managers[round / 4 % 3];
        switch (round / 24) {
        case 0: /* the stop is under way when the child fails */
            domt_kin_send_notice(child, &domt_kin_fail, -EIO);
            ck_assert_int_eq(domi_house_ask_to_stop(from, address), 0);
            break;
        case 1: /* the failure is told, and the parent has not decided yet */
            let_child_fail_with_mail(child);
            ck_assert_int_eq(domi_house_ask_to_stop(from, address), 0);
            break;
        case 2: /* the parent's decision is under way to the child */
            let_child_fail_with_mail(child);
            domt_kin_run_iteration_of_home(0);
            (void)domi_house_ask_to_stop(from, address);
            break;
        default: /* the parent is stopped, and the child, too */
            let_child_fail_with_mail(child);
            ck_assert_int_eq(domi_house_ask_to_stop(from, domt_kin_of[1].address), 0);
            ck_assert_int_eq(domi_house_ask_to_stop(domt_outside_manager(&domt_kin_world), address),
                             0);
            break;
        }
        domt_settle_world(&domt_kin_world);
        ck_assert(!domt_kin_is_alive(child));
        if (round / 24 < 2) /* a child that was stopped does not mount again */
            ck_assert_uint_eq(domt_kin_of[child].mounts, 1);
        ck_assert_uint_eq(domt_kin_of[child].stops, domt_kin_of[child].mounts);
        domt_kin_close_world();
    }
}

DOMT_TEST(parent_that_stops_decides_to_stop)
{
    static const domus_supervision resumes = {.otherwise = DOMUS_RESTART};

    for (uint32_t child = 2; child < 4; child++) {
        open_boss_with_two_children(&resumes);
        let_child_fail_with_mail(child);
        domt_kin_stop_actor(1);
        ck_assert_uint_eq(domt_kin_count_houses(), 0);
        ck_assert_uint_eq(domt_kin_of[child].mounts, 1);
        domt_kin_close_world();
    }
}

/* --- escalation ------------------------------------------------------------------------------ */

DOMT_TEST(escalation_climbs_to_the_parent_that_decides)
{
    static const domus_supervision escalates = {.otherwise = DOMUS_ESCALATE};
    static const domus_rule only_eio[] = {{NULL, -EIO, DOMUS_RESTART}};
    static const domus_supervision top = {
        .rules = only_eio, .rules_count = 1, .otherwise = DOMUS_STOP};

    domt_kin_open_world(2);
    boss = domt_kin_behaviour_of_boss(&top);
    under = domt_kin_behaviour_of_boss(&escalates);
    (void)domt_kin_spawn_root(1, 0, &boss);
    (void)domt_kin_spawn_child(1, 2, 1, &under);
    (void)domt_kin_spawn_child(2, 3, 0, &under);
    (void)domt_kin_spawn_child(3, 4, 1, &domt_kin_hearing);
    (void)domt_kin_read_and_clear_trail();
    domt_kin_fail_actor(
        4, -EIO); /* the failure escalates: actor 2 restarts, and its children are gone */
    ck_assert_str_eq(domt_kin_read_and_clear_trail(), "s4 s3 s2 m2 ");
    ck_assert_uint_eq(domt_kin_count_houses(), 2);
    (void)domt_kin_spawn_child(2, 3, 0, &under);
    domt_kin_fail_actor(3, -EPERM);
    ck_assert_uint_eq(domt_kin_count_houses(), 1);
    ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, escalations), 2 + 1);
    domt_kin_close_world();
}

DOMT_TEST(root_ends_an_actor_that_escalates_to_it)
{
    static const domus_supervision escalates = {.otherwise = DOMUS_ESCALATE};

    open_boss_with_two_children(&escalates);
    domt_kin_fail_actor(3, -EIO);
    ck_assert_uint_eq(domt_kin_count_houses(), 0);
    for (uint32_t i = 1; i < 4; i++)
        ck_assert_uint_eq(domt_kin_of[i].stops, 1);
    domt_kin_close_world();
}

/* --- all for one ----------------------------------------------------------------------------- */

/* Open a world with actor 1 on home 0 and its children 2 ... 7; the even ones are on home 0, the
 * others on home 1. */
static void open_boss_with_six_children(const domus_supervision *supervision)
{
    domt_kin_open_world_with_boss(2, supervision);
    for (uint32_t i = 2; i < 8; i++)
        (void)domt_kin_spawn_child(1, i, i % 2, &domt_kin_hearing);
}

DOMT_TEST(one_for_one_leaves_the_others_alone)
{
    static const domus_supervision restarts = {.otherwise = DOMUS_RESTART};

    open_boss_with_six_children(&restarts);
    domt_kin_fail_actor(3, -EIO);
    domt_kin_fail_actor(4, -EIO);
    for (uint32_t i = 2; i < 8; i++)
        ck_assert_uint_eq(domt_kin_of[i].mounts, i == 3 || i == 4 ? 2 : 1);
    domt_kin_close_world();
}

DOMT_TEST(all_for_one_treats_all_children_alike_over_homes)
{
    static const domus_rule rules[] = {{NULL, -EIO, DOMUS_RESTART}, {NULL, -EPERM, DOMUS_RESUME}};
    static const domus_supervision all = {
        .all_for_one = true, .rules = rules, .rules_count = 2, .otherwise = DOMUS_STOP};

    for (uint32_t failed = 2; failed < 4; failed++) {
        open_boss_with_six_children(&all);
        domt_kin_fail_actor(failed, -EPERM);
        ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, restarts), 0);
        domt_kin_fail_actor(failed, -EIO);
        for (uint32_t i = 2; i < 8; i++)
            ck_assert_uint_eq(domt_kin_of[i].mounts, 2);
        ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, restarts), 6);
        domt_kin_fail_actor(failed, -EINVAL);
        ck_assert_uint_eq(domt_kin_count_houses(), 1);
        ck_assert_uint_eq(domt_kin_of[1].mounts, 1);
        domt_kin_close_world();
    }
}

DOMT_TEST(all_for_one_counts_one_failure_once_and_escalates_for_all)
{
    static const domus_supervision all = {
        .all_for_one = true, .intensity = 2, .otherwise = DOMUS_RESTART};

    open_boss_with_six_children(&all);
    domt_kin_fail_actor(2, -EIO);
    domt_kin_fail_actor(3, -EIO);
    ck_assert_uint_eq(domt_kin_count_houses(), 7);
    domt_kin_fail_actor(4, -EIO);
    ck_assert_uint_eq(domt_kin_count_houses(), 0);
    for (uint32_t i = 2; i < 8; i++)
        ck_assert_uint_eq(domt_kin_of[i].mounts, 3);
    domt_kin_close_world();
}

/* The stop of each child is done on its own thread, and the parent has not been told of the ends
 * yet. */
DOMT_TEST(all_for_one_meets_children_that_have_just_ended_elsewhere)
{
    for (int i = 0; i < 2; i++) {
        const domus_supervision all = {.all_for_one = true,
                                       .otherwise = i == 0 ? DOMUS_RESTART : DOMUS_STOP};
        domi_manager *there = NULL;

        open_boss_with_six_children(&all);
        there = domt_kin_world.managers[1];
        domt_kin_send_notice(3, &domt_kin_fail, -EIO);
        domt_kin_run_iteration_of_home(1);
        ck_assert_int_eq(domi_house_ask_to_stop(there, domt_kin_of[5].address), 0);
        domt_kin_run_iteration_of_home(1);
        ck_assert(!domt_kin_is_alive(5));
        ck_assert_int_eq(domi_house_ask_to_stop(there, domt_kin_of[7].address), 0);
        domt_kin_run_iteration_of_home(0);
        domt_settle_world(&domt_kin_world);
        ck_assert(!domt_kin_is_alive(7));
        ck_assert_uint_eq(domt_kin_count_houses(), i == 0 ? 5 : 1);
        domt_kin_stop_actor(1);
        ck_assert_uint_eq(domt_kin_count_houses(), 0);
        domt_kin_close_world();
    }
}

static int spawn_a_child_on_each_home(domus_stack *stack, void *unused)
{
    const domus_spawn_options there = {.placement = DOMUS_ON_THREAD, .thread = 1};

    ck_assert_int_eq(domt_kin_spawn_in_handler(stack, 8, &domt_kin_hearing, NULL), 0);
    ck_assert_int_eq(domt_kin_spawn_in_handler(stack, 9, &domt_kin_hearing, &there), 0);
    return 0;
}

/* The parent spawns a child in the same run in which it is told of a child's failure. */
DOMT_TEST(all_for_one_meets_children_that_are_just_born)
{
    for (uint32_t round = 0; round < 4; round++) {
        const domus_supervision all = {.all_for_one = true,
                                       .otherwise = round % 2 == 0 ? DOMUS_RESTART : DOMUS_STOP};
        uint32_t failed = 2 + round / 2;

        open_boss_with_six_children(&all);
        domt_kin_send_notice(failed, &domt_kin_fail, -EIO);
        domt_kin_run_houses_of_home(failed - 2);
        domt_kin_send_function_to_run(domt_outside_manager(&domt_kin_world), 1,
                                      spawn_a_child_on_each_home, NULL);
        domt_settle_world(&domt_kin_world);
        if (round % 2 == 0) {
            domt_kin_send_notice(8, &domt_kin_note, 0);
            domt_kin_send_note(9);
            ck_assert_uint_eq(domt_kin_of[8].notes, 1);
            ck_assert_uint_eq(domt_kin_of[9].notes, 1);
            ck_assert_uint_eq(domt_kin_count_houses(), 9);
        } else {
            ck_assert_uint_eq(domt_kin_count_houses(), 1);
        }
        domt_kin_close_world();
    }
}

DOMT_TEST(all_children_may_fail_at_once)
{
    static const domus_supervision all = {
        .all_for_one = true, .intensity = 10, .otherwise = DOMUS_RESTART};

    open_boss_with_six_children(&all);
    for (uint32_t i = 2; i < 8; i++)
        domt_kin_send_notice(i, &domt_kin_fail, -EIO);
    domt_settle_world(&domt_kin_world);
    ck_assert_uint_eq(domt_kin_count_houses(), 7);
    for (uint32_t i = 2; i < 8; i++) {
        ck_assert_uint_ge(domt_kin_of[i].mounts, 2);
        domt_kin_send_notice(i, &domt_kin_note, 0);
    }
    domt_settle_world(&domt_kin_world);
    for (uint32_t i = 2; i < 8; i++)
        ck_assert_uint_eq(domt_kin_of[i].notes, 1);
    domt_kin_close_world();
}

DOMT_SUITE(30)
