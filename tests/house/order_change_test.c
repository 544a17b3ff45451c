/* The messages of an actor with an order under receives, a stash, barriers, and changes of the
 * behaviour. */
#include "base/memory.h"
#include "house/dispatch/invariants.h"
#include "house/family/life.h"
#include "house/message/mailbox.h"
#include "house/message/order.h"
#include "tests/house/ordered.h"
#include "tests/house/steps.h"
#include "tests/support/suite.h"

#include <domus/spawn.h>
#include <domus/supervise.h>

#include <errno.h>
#include <string.h>

#define MS UINT64_C(1000000)

/* Like domt_ordered_expect_handled() after a settle; also check the sorted lists of the picker. */
static void expect_handled_and_sorted(const char *expected)
{
    domt_ordered_settle_picker();
    domi_house_check_lists(domt_ordered_home_of_picker(), domt_pick.picker.house);
    domt_ordered_expect_handled(expected);
}

/* --- receives --------------------------------------------------------------------------------- */

/* A pattern of notes, urgent notes and questions. */
static const domus_pattern letters = {
    (const domus_type *const[]){&domt_pick_note, &domt_pick_urgent, &domt_pick_question, NULL},
    NULL};

DOMT_TEST(receive_takes_the_first_by_the_order)
{
    domt_ordered_open_world(0);
    DOMT_ORDERED_TELL(30, 10, 20);
    domt_send_call_to_picker(domt_receive_by_pattern, &letters);
    expect_handled_and_sorted("(10) 20 30 ");
    DOMT_ORDERED_TELL(10);
    domt_send_notice_to_picker(&domt_pick_urgent, 40);
    domt_send_notice_to_picker(&domt_pick_urgent, 20);
    domt_send_call_to_picker(domt_receive_by_pattern, &domt_urgents);
    expect_handled_and_sorted("(u20) 10 u40 ");
    domt_pick_close_world();
}

DOMT_TEST(receive_chooses_among_asks_and_notices)
{
    domt_ordered_open_world(0);
    DOMT_ORDERED_TELL(30);
    domt_ask_picker(20, 0);
    domt_send_notice_to_picker(&domt_pick_urgent, 10);
    domt_send_call_to_picker(domt_receive_by_pattern, &letters);
    domt_send_call_to_picker(domt_receive_by_pattern, &letters);
    expect_handled_and_sorted("(u10) (q20) 30 ");
    domt_pick_expect_answers("x-42 ");
    domt_pick_close_world();
}

DOMT_TEST(mail_that_no_receive_takes_is_looked_at_once_and_stays_in_order)
{
    domt_ordered_open_world(0);
    DOMT_ORDERED_TELL(31, 12, 30, 11);
    domt_send_call_to_picker(domt_receive_by_pattern, &domt_sevens);
    domt_ordered_settle_picker();
    ck_assert_uint_eq(domt_pick.looks, 4);
    DOMT_ORDERED_TELL(32, 13);
    domt_ordered_settle_picker();
    ck_assert_uint_eq(domt_pick.looks, 6);
    ck_assert_uint_eq(domi_order_count_mail(domt_pick.picker.house), 6);
    expect_handled_and_sorted("");
    DOMT_ORDERED_TELL(7);
    domt_ordered_settle_picker();
    ck_assert_uint_eq(domt_pick.looks, 7);
    expect_handled_and_sorted("(7) 12 11 13 31 30 32 ");
    domt_pick_close_world();
}

DOMT_TEST(later_receive_looks_at_all_mail)
{
    domt_ordered_open_world(0);
    DOMT_ORDERED_TELL(31, 22, 7);
    domt_send_call_to_picker(domt_receive_by_pattern, &domt_urgents);
    expect_handled_and_sorted("");
    domt_send_call_to_picker_as_event(domt_receive_by_pattern, &domt_sevens);
    expect_handled_and_sorted("(7) ");
    domt_send_notice_to_picker(&domt_pick_urgent, 50);
    expect_handled_and_sorted("(u50) 22 31 ");
    domt_pick_close_world();
}

static const domt_reception urgents_now = {&domt_urgents, 0, domt_write_received_and_end};
static const domt_reception letters_now = {&letters, 0, domt_write_received_and_end};
static const domt_reception sevens_now = {&domt_sevens, 0, domt_write_received_and_end};

DOMT_TEST(receive_that_does_not_wait_finds_nothing)
{
    domt_ordered_open_world(0);
    DOMT_ORDERED_TELL(31, 22);
    domt_send_call_to_picker(domt_receive_as_ordered, &urgents_now);
    expect_handled_and_sorted("- 22 31 ");
    domt_pick_close_world();
}

DOMT_TEST(receive_sees_no_ask_that_has_expired)
{
    domt_ordered_open_world(0);
    domt_ask_picker(20, 5 * MS);
    domt_advance_time_without_runs(&domt_pick.world, 10 * MS);
    domt_send_call_to_picker(domt_receive_as_ordered, &letters_now);
    domt_ordered_run_picker();
    ck_assert_uint_eq(DOMT_SUM(&domt_pick.world, asks_expired), 1);
    expect_handled_and_sorted("- ");
    domt_pick_close_world();
}

static int stop_picker_after_mail(domus_stack *stack, void *context)
{
    return domus_stop_after_mail(stack, domt_pick.picker);
}

DOMT_TEST(stop_after_mail_comes_when_receives_have_taken_what_was_before_it)
{
    domt_ordered_open_world(0);
    domt_send_call_to_picker(domt_receive_by_pattern, &domt_urgents);
    domt_ordered_settle_picker();
    domt_send_notice_to_picker(&domt_pick_note, 20);
    domt_send_function_to_call(domt_pick.world.managers[1], domt_pick.asker, stop_picker_after_mail,
                               NULL);
    domt_ordered_settle_picker();
    ck_assert_int_eq(domt_send_notice(domt_ordered_home_of_picker(), domt_pick.picker,
                                      &domt_pick_urgent, &(int64_t){1}),
                     0);
    /* The waiting note keeps the order to stop back, and no message that came behind that order is
     * taken. */
    expect_handled_and_sorted("");
    ck_assert_uint_eq(domt_pick.picker.house->mail, 3);
    ck_assert_int_eq(domi_house_ask_to_stop(domt_ordered_home_of_picker(), domt_pick.picker), 0);
    domt_ordered_settle_picker();
    domt_pick_close_world();
}

/* --- the stash -------------------------------------------------------------------------------- */

static int stash_received(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, 0);
    return domus_stash(stack);
}

static const domt_reception aside = {&letters, DOMUS_FOR_EVER, stash_received};

DOMT_TEST(mail_that_was_aside_comes_before_equal_mail)
{
    domt_ordered_open_world(0);
    DOMT_ORDERED_TELL(20, 21, 10, 30);
    domt_ask_picker(23, 0);
    for (int i = 0; i < 3; i++)
        domt_send_call_to_picker(domt_receive_as_ordered, &aside);
    /* these 16 calls fill two runs; each receives nothing, and leaves the messages sorted */
    for (int i = 0; i < 16; i++)
        domt_send_call_to_picker(domt_receive_as_ordered, &sevens_now);
    (void)domi_manager_take_arrivals(domt_ordered_home_of_picker());
    domt_ordered_limit_messages_of_run(8);
    for (int i = 0; i < 5; i++)
        domt_ordered_run_picker();
    ck_assert_uint_eq(domt_pick.picker.house->family->stashed, 3);
    domt_send_call_to_picker(domt_unstash_all, NULL);
    DOMT_ORDERED_TELL(11, 22);
    domt_ordered_limit_messages_of_run(64);
    domt_ordered_settle_picker();
    char *notes = domt_pick.text;
    while (strncmp(notes, "- ", 2) == 0)
        notes += 2;
    ck_assert_str_eq(notes, "10 11 q23 20 21 22 30 ");
    domt_pick_close_world();
}

/* --- a barrier -------------------------------------------------------------------------------- */

static int ask_picker_back(domus_stack *stack, void *context)
{
    return domus_ask(stack, domt_pick.picker, &domt_pick_question, context,
                     domt_write_received_and_end);
}

static int raise_barrier_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_uint_eq(answer->tag, 2);
    ck_assert_int_eq(domus_barrier(stack), 0);
    return domus_wait_all(stack, domt_write_received_and_end);
}

static int ask_asker_and_sleep(domus_stack *stack, void *context)
{
    domt_call call = {ask_picker_back, context};

    ck_assert_int_eq(domus_ask_add(stack, domt_pick.asker, &domt_call_type, &call, 0, 1), 0);
    ck_assert_int_eq(domus_sleep_add(stack, 5 * MS, 2), 0);
    return domus_wait_first(stack, raise_barrier_after_sleep);
}

DOMT_TEST(sorted_ask_that_would_wait_for_itself_fails)
{
    static const int64_t number = 50;

    domt_ordered_open_world(0);
    domt_send_call_to_picker(ask_asker_and_sleep, &number);
    domt_ordered_run_picker();
    (void)domt_iterate_home(domt_pick.world.managers[1]);
    (void)domt_take_arrivals_and_timers(domt_ordered_home_of_picker());
    DOMT_ORDERED_TELL(40, 60);
    domt_ordered_sort_mail();
    domt_advance_time_without_runs(&domt_pick.world, 10 * MS);
    domt_ordered_settle_picker();
    ck_assert_uint_eq(DOMT_SUM(&domt_pick.world, circles), 1);
    /* the ask back fails because of the circle; then the asker's conversation ends without an
     * answer */
    expect_handled_and_sorted("x35 x42 40 60 ");
    domt_pick_close_world();
}

/* --- other behaviours ------------------------------------------------------------------------- */

static int become_behaviour(domus_stack *stack, void *behaviour)
{
    return domus_become(stack, behaviour);
}

DOMT_TEST(become_sorts_by_the_new_order)
{
    domt_ordered_open_world(0);
    DOMT_ORDERED_TELL(11, 31, 21, 10, 30);
    domt_send_call_to_picker(become_behaviour, &domt_by_tens_down);
    expect_handled_and_sorted("31 30 21 11 10 ");
    DOMT_ORDERED_TELL(10, 20);
    domt_send_call_to_picker(become_behaviour, NULL);
    expect_handled_and_sorted("10 20 ");
    domt_pick_close_world();
}

DOMT_TEST(become_without_an_order_takes_asks_first_again)
{
    domt_ordered_open_world(0);
    DOMT_ORDERED_TELL(30, 10);
    domt_ask_picker(40, 0);
    domt_ask_picker(20, 0);
    domt_ordered_sort_mail();
    domt_send_call_to_picker(become_behaviour, &domt_picking);
    domt_ordered_limit_messages_of_run(64);
    expect_handled_and_sorted("q20 q40 10 30 ");
    DOMT_ORDERED_TELL(30, 10);
    expect_handled_and_sorted("30 10 ");
    domt_pick_close_world();
}

DOMT_TEST(become_with_an_order_sorts_what_waits)
{
    domt_ordered_open_world(0);
    domt_pick.picker = domt_spawn(domt_outside_manager(&domt_pick.world),
                                  domt_ordered_home_of_picker(), &domt_picking, NULL);
    domt_ordered_settle_picker();
    DOMT_ORDERED_TELL(30);
    domt_send_call_to_picker(become_behaviour, &domt_by_tens);
    DOMT_ORDERED_TELL(20, 10);
    expect_handled_and_sorted("30 10 20 ");
    domt_send_call_to_picker(become_behaviour, NULL);
    domt_ordered_settle_picker();
    DOMT_ORDERED_TELL(20, 10);
    expect_handled_and_sorted("20 10 ");
    domt_pick_close_world();
}

DOMT_TEST(become_while_receives_wait_lets_them_look_again)
{
    domt_ordered_open_world(0);
    domt_send_call_to_picker(domt_receive_by_pattern, &domt_sevens);
    DOMT_ORDERED_TELL(30, 10);
    domt_ordered_settle_picker();
    domt_send_call_to_picker_as_event(become_behaviour, &domt_picking);
    domt_ordered_settle_picker();
    ck_assert_uint_eq(domt_pick.looks, 4);
    ck_assert_uint_eq(domi_order_count_mail(domt_pick.picker.house), 0);
    domt_send_call_to_picker_as_event(become_behaviour, &domt_by_tens);
    domt_ordered_settle_picker();
    ck_assert_uint_eq(domt_pick.looks, 6);
    DOMT_ORDERED_TELL(20, 7);
    expect_handled_and_sorted("(7) 10 20 30 ");
    domt_pick_close_world();
}

static int try_to_become_without_memory(domus_stack *stack, void *behaviour)
{
    int error;

    /* this makes the picker's family, for which no memory must be needed later */
    ck_assert_int_eq(domus_become(stack, &domt_picking), 0);
    domi_memory_fail_allocation_after(0, 0);
    error = domus_become(stack, behaviour);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_int_eq(error, -ENOMEM);
    return 0;
}

DOMT_TEST(become_without_memory_changes_nothing)
{
    domt_ordered_open_world(0);
    domt_pick.picker = domt_spawn(domt_outside_manager(&domt_pick.world),
                                  domt_ordered_home_of_picker(), &domt_picking, NULL);
    domt_ordered_settle_picker();
    domt_send_call_to_picker(try_to_become_without_memory, &domt_by_tens);
    DOMT_ORDERED_TELL(20, 10);
    expect_handled_and_sorted("20 10 ");
    domt_pick_close_world();
}

/* --- restarts --------------------------------------------------------------------------------- */

static int spawn_picker(domus_stack *stack, void *behaviour)
{
    return domus_spawn(stack, behaviour, NULL, &domt_pick.picker);
}

static int fail_with_eio(domus_stack *stack, void *context)
{
    return -EIO;
}

DOMT_TEST(restart_keeps_mail_and_sorts_it_by_the_first_order)
{
    static const domus_supervision always = {.otherwise = DOMUS_RESTART};
    domus_behaviour boss = domt_agent;
    domus_address parent;

    domt_ordered_open_world(0);
    boss.supervision = &always;
    parent = domt_spawn(domt_outside_manager(&domt_pick.world), domt_ordered_home_of_picker(),
                        &boss, NULL);
    domt_run_as_actor(&domt_pick.world, parent, spawn_picker, &domt_by_tens);
    domt_send_call_to_picker(become_behaviour, &domt_by_tens_down);
    domt_send_call_to_picker(fail_with_eio, NULL);
    DOMT_ORDERED_TELL(11, 31, 21, 10);
    domt_ordered_settle_picker();
    ck_assert_uint_eq(DOMT_SUM(&domt_pick.world, restarts), 1);
    expect_handled_and_sorted("11 10 21 31 ");
    domt_pick_close_world();
}

DOMT_SUITE(20)
