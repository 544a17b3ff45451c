/* Messages of an actor with an order are taken by it, within the bounds and the rules that hold for
 * all messages. */
#include "base/memory.h"
#include "house/dispatch/describe.h"
#include "house/dispatch/invariants.h"
#include "house/dispatch/loan.h"
#include "house/family/behaviour.h"
#include "house/family/life.h"
#include "house/message/mailbox.h"
#include "house/message/order.h"
#include "tests/house/ordered.h"
#include "tests/house/steps.h"
#include "tests/support/suite.h"

#include <domus/spawn.h>

#include <errno.h>
#include <string.h>

#define MS UINT64_C(1000000)

/* --- the order -------------------------------------------------------------------------------- */

DOMT_TEST(mail_is_taken_by_the_order_and_equal_mail_as_it_came)
{
    domt_ordered_open_world(0);
    DOMT_ORDERED_TELL(52, 31, 50, 10, 33, 30, 51);
    domt_ordered_settle_and_expect("10 31 33 30 52 50 51 ");
    DOMT_ORDERED_TELL(7);
    domt_ordered_settle_and_expect("7 ");
    domt_pick_close_world();
}

DOMT_TEST(asks_and_notices_share_one_order)
{
    domt_ordered_open_world(0);
    DOMT_ORDERED_TELL(20);
    domt_ask_picker(10, 0);
    DOMT_ORDERED_TELL(30);
    domt_send_notice_to_picker(&domt_pick_urgent, 0);
    domt_ask_picker(40, 0);
    domt_ordered_settle_and_expect("u0 q10 20 30 q40 ");
    domt_pick_expect_answers("r10 r40 ");
    domt_pick_close_world();
}

DOMT_TEST(equal_asks_do_not_starve_a_notice)
{
    domt_ordered_open_world(0);
    DOMT_ORDERED_TELL(11);
    domt_ordered_sort_mail();
    domt_ask_picker(12, 0);
    domt_ordered_settle_and_expect("11 q12 ");
    domt_pick_close_world();
}

static int send_to_itself(domus_stack *stack, void *number)
{
    return domus_notice(stack, domus_self(stack), &domt_pick_urgent, number);
}

DOMT_TEST(more_urgent_mail_that_comes_during_a_run_is_next)
{
    static const int64_t five = 5;

    domt_ordered_open_world(0);
    DOMT_ORDERED_TELL(20, 30);
    domt_send_call_to_picker(send_to_itself, &five);
    domt_ordered_settle_and_expect("u5 20 30 ");
    domt_pick_close_world();
}

static int reply_with_number(domus_stack *stack, void *number)
{
    return domus_reply(stack, &domt_pick_number, number);
}

static int ask_asker(domus_stack *stack, void *number)
{
    domt_call call = {reply_with_number, number};

    return domus_ask(stack, domt_pick.asker, &domt_call_type, &call, domt_write_received_and_end);
}

DOMT_TEST(replies_are_taken_before_sorted_mail)
{
    static const int64_t number = 99;

    domt_ordered_open_world(0);
    domt_send_call_to_picker(ask_asker, &number);
    domt_ordered_run_picker();
    (void)domt_iterate_home(domt_pick.world.managers[1]);
    DOMT_ORDERED_TELL(2, 1);
    domt_ordered_settle_and_expect("(99) 2 1 ");
    domt_pick_close_world();
}

static int ask_other_actor_100_times(domus_stack *stack, void *number)
{
    domt_call call = {reply_with_number, number};

    for (uint64_t i = 0; i < 100; i++)
        ck_assert_int_eq(domus_ask_add(stack, domt_pick.asker, &domt_call_type, &call, 0, i + 1),
                         0);
    return domus_wait_all(stack, domt_hear_nothing);
}

DOMT_TEST(places_of_a_run_are_kept_for_sorted_mail_behind_replies)
{
    static const int64_t number = 99;

    domt_ordered_open_world(0);
    domt_send_call_to_picker(ask_other_actor_100_times, &number);
    domt_ordered_run_picker();
    (void)domt_iterate_home(domt_pick.world.managers[1]);
    (void)domt_iterate_home(domt_pick.world.managers[1]);
    DOMT_ORDERED_TELL(2, 1);
    domt_ask_picker(0, 0);
    domt_ordered_run_picker();
    ck_assert_uint_ne(domt_pick.picker.house->replies, 0);
    domt_ordered_expect_handled("q0 2 1 ");
    domt_ordered_settle_picker();
    domt_pick_close_world();
}

/* --- a bad comparison ------------------------------------------------------------------------- */

static uint32_t calls;

static int compare_inconsistently(const domus_type *one_type, const void *one,
                                  const domus_type *other_type, const void *other)
{
    static const int results[] = {-1, 1, 0, -1, -1, 1};

    return results[calls++ % 6];
}

static int compare_as_always_before(const domus_type *one_type, const void *one,
                                    const domus_type *other_type, const void *other)
{
    return -1;
}

DOMT_TEST(comparison_that_is_no_order_loses_nothing)
{
    domus_order *const orders[] = {compare_inconsistently, compare_as_always_before};

    for (size_t i = 0; i < 2; i++) {
        domt_ordered_open_world(0);
        domt_by_tens.order = orders[i];
        for (int64_t n = 0; n < 1000; n++)
            domt_send_notice_to_picker(&domt_pick_note, n);
        domt_ordered_settle_picker();
        int64_t sum = 0;
        char *at = domt_pick.text;
        for (int n = 0; n < 1000; n++)
            sum += strtoll(at, &at, 10);
        ck_assert_int_eq(sum, 499500);
        domt_pick_close_world();
    }
}

/* --- stops ------------------------------------------------------------------------------------ */

DOMT_TEST(stop_lets_one_more_be_handled_and_the_others_are_dead_letters)
{
    domt_ordered_open_world(0);
    for (int64_t n = 0; n < 100; n++)
        domt_send_notice_to_picker(&domt_pick_note, 99 - n);
    domt_ask_picker(500, 0);
    domt_ordered_sort_mail();
    DOMT_ORDERED_TELL(700);
    domt_pick_stop_picker();
    domt_ordered_expect_handled("");
    domt_pick_expect_answers("x-116 ");
    ck_assert_uint_eq(domt_pick.releases, 102);
    ck_assert_uint_eq(DOMT_SUM(&domt_pick.world, dead_letters), 102);
    domt_pick_close_world();
}

static int stop_itself_after_mail(domus_stack *stack, void *context)
{
    return domus_stop_after_mail(stack, domus_self(stack));
}

DOMT_TEST(stop_after_mail_lets_all_be_handled_that_came_before_it)
{
    domt_ordered_open_world(0);
    DOMT_ORDERED_TELL(30, 20);
    domt_send_call_to_picker(stop_itself_after_mail, NULL);
    domt_ordered_limit_messages_of_run(8);
    /* the actor asks for its stop behind its messages, which were all handled before */
    domt_ordered_run_picker();
    domt_ordered_settle_and_expect("20 30 ");
    ck_assert_uint_ne(atomic_load(&domt_pick.picker.house->life) >> 32, domt_pick.picker.lease);
    domt_pick_close_world();
}

static int stop_picker_after_mail(domus_stack *stack, void *context)
{
    return domus_stop_after_mail(stack, domt_pick.picker);
}

DOMT_TEST(stop_after_mail_comes_before_more_urgent_mail_that_was_put_later)
{
    domt_ordered_open_world(0);
    DOMT_ORDERED_TELL(31, 32, 33, 34, 35, 36, 37, 38, 39, 20);
    domt_send_function_to_call(domt_pick.world.managers[1], domt_pick.asker, stop_picker_after_mail,
                               NULL);
    (void)domt_iterate_home(domt_pick.world.managers[1]);
    (void)domt_take_arrivals_and_timers(domt_ordered_home_of_picker());
    DOMT_ORDERED_TELL(10);
    domt_ordered_limit_messages_of_run(8);
    domt_ordered_run_picker();
    domt_ordered_expect_handled("20 31 32 33 34 35 36 37 ");
    domt_ask_picker(5, 0);
    domt_ordered_settle_and_expect("38 39 ");
    domt_pick_expect_answers("x-116 ");
    ck_assert_uint_eq(domt_pick.releases, 2);
    domt_pick_close_world();
}

/* --- bounds and dead lines -------------------------------------------------------------------- */

DOMT_TEST(bound_of_the_mailbox_holds_for_sorted_mail)
{
    int64_t number = 90;

    domt_ordered_open_world(20);
    for (int64_t n = 0; n < 20; n++)
        domt_send_notice_to_picker(&domt_pick_note, 10 * n);
    ck_assert_int_eq(
        domt_send_notice(domt_ordered_home_of_picker(), domt_pick.picker, &domt_pick_note, &number),
        -ENOBUFS);
    domt_ordered_limit_messages_of_run(8);
    domt_ordered_run_picker();
    ck_assert_uint_eq(domt_pick.picker.house->mail, 12);
    ck_assert_uint_eq(domi_order_count_mail(domt_pick.picker.house), 12);
    domi_house_check_lists(domt_ordered_home_of_picker(), domt_pick.picker.house);
    domt_ordered_settle_picker();
    domt_pick.text[0] = '\0';
    for (int64_t n = 20; n > 0; n--)
        domt_send_notice_to_picker(&domt_pick_note, 10 * n);
    ck_assert_int_eq(
        domt_send_notice(domt_ordered_home_of_picker(), domt_pick.picker, &domt_pick_note, &number),
        -ENOBUFS);
    domt_ordered_settle_and_expect(
        "10 20 30 40 50 60 70 80 90 100 110 120 130 140 150 160 170 180 190 200 ");
    domt_pick_close_world();
}

static int end_conversation_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    return 0;
}

static int raise_barrier_for_20_ms(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_barrier(stack), 0);
    return domus_sleep(stack, 20 * MS, end_conversation_after_sleep);
}

DOMT_TEST(ask_whose_asker_has_given_up_is_taken_out_of_sorted_mail)
{
    const domi_house *house;

    domt_ordered_open_world(0);
    house = domt_pick.picker.house;
    DOMT_ORDERED_TELL(10, 30);
    domt_ask_picker(20, 0);
    domus_address first = domt_pick.asker;
    domt_pick.asker = domt_spawn(domt_outside_manager(&domt_pick.world),
                                 domt_pick.world.managers[1], &domt_agent, NULL);
    domt_ask_picker(21, 0);
    domt_ordered_sort_mail();
    domt_send_call_to_picker(raise_barrier_for_20_ms, NULL);
    domt_ordered_run_picker();
    ck_assert_int_eq(domi_house_ask_to_stop(domt_outside_manager(&domt_pick.world), first), 0);
    /* the asker stops on home 1 and cancels its asks */
    (void)domt_iterate_home(domt_pick.world.managers[1]);
    ck_assert_uint_eq(house->mail, 4);
    domt_ordered_run_picker();
    ck_assert_uint_eq(house->mail, 3);
    ck_assert_uint_eq(domi_order_count_mail(house), 3);
    domi_house_check_lists(domt_ordered_home_of_picker(), house);
    domt_advance_time_without_runs(&domt_pick.world, 20 * MS);
    domt_ordered_settle_and_expect("10 q21 30 ");
    ck_assert_ptr_nonnull(strstr(domt_pick.answers, "r21 "));
    ck_assert_ptr_null(strstr(domt_pick.answers, "r20 "));
    domt_pick_close_world();
}

DOMT_TEST(ask_that_has_expired_is_not_handled)
{
    domt_ordered_open_world(0);
    DOMT_ORDERED_TELL(10);
    domt_ask_picker(20, 5 * MS);
    domt_ordered_sort_mail();
    domt_advance_time_without_runs(&domt_pick.world, 10 * MS);
    domt_ordered_run_picker(); /* the ask has expired, but nobody has cancelled it yet */
    domt_ordered_expect_handled("10 ");
    ck_assert_uint_eq(DOMT_SUM(&domt_pick.world, asks_expired), 1);
    domt_ordered_settle_picker();
    domt_pick_close_world();
}

/* --- other ways to run it --------------------------------------------------------------------- */

DOMT_TEST(short_runs_take_mail_by_the_order)
{
    domt_ordered_open_world(0);
    domt_ordered_limit_messages_of_run(1);
    DOMT_ORDERED_TELL(40, 10, 41, 60);
    domt_ask_picker(20, 0);
    domt_ordered_settle_and_expect("10 q20 40 41 60 ");
    domt_pick_close_world();
}

DOMT_TEST(thief_takes_mail_by_the_order)
{
    domi_queue *queue;

    domt_ordered_open_world(0);
    queue = &domt_ordered_home_of_picker()->schedule.ready[DOMUS_STATE];
    DOMT_ORDERED_TELL(30, 20);
    domt_ordered_sort_mail();
    DOMT_ORDERED_TELL(10);
    ck_assert_uint_eq(domi_loans_expose_houses(domt_ordered_home_of_picker(), queue, 1), 1);
    domi_loan *loan =
        domi_loan_take_exposed_house(domt_pick.world.managers[1], domt_ordered_home_of_picker());
    ck_assert_ptr_nonnull(loan);
    domi_loan_run_house_and_return(domt_pick.world.managers[1], loan);
    domt_ordered_expect_handled("10 20 30 ");
    ck_assert_uint_eq(domi_loans_settle_returned_houses(domt_ordered_home_of_picker()), 1);
    domt_ordered_settle_picker();
    domt_pick_close_world();
}

/* --- seen and refused ------------------------------------------------------------------------- */

DOMT_TEST(description_says_how_much_is_sorted)
{
    char bytes[1024];
    domi_text text = {.at = bytes, .size = sizeof bytes};

    domt_ordered_open_world(0);
    DOMT_ORDERED_TELL(10, 20);
    domt_ask_picker(30, 0);
    domt_ordered_sort_mail();
    DOMT_ORDERED_TELL(40);
    domi_house_describe(domt_ordered_home_of_picker(), domt_pick.picker.house, &text);
    ck_assert_ptr_nonnull(strstr(bytes, "1 notices, 0 events, 3 in their order, 0 not sorted"));
    domt_ordered_settle_picker();
    domt_pick_close_world();
}

DOMT_TEST(channels_actor_has_no_order)
{
    domus_behaviour channels = {.name = "channels", .kind = DOMUS_CHANNELS};

    domt_ordered_open_world(0);
    ck_assert_int_eq(domi_behaviour_check(&channels), 0);
    channels.order = domt_by_tens.order;
    ck_assert_int_eq(domi_behaviour_check(&channels), -EINVAL);
    ck_assert_ptr_nonnull(strstr(domi_behaviour_find_fault(&channels), "`order`"));
    domt_pick_close_world();
}

DOMT_TEST(spawn_without_memory_for_the_order_fails)
{
    domus_address address = {0};
    uint32_t failures = 0;
    int error;

    domt_ordered_open_world(0);
    do {
        domi_memory_fail_allocation_after(failures++, 0);
        error = domi_house_spawn_without_parent(domt_outside_manager(&domt_pick.world),
                                                domt_ordered_home_of_picker(), &domt_by_tens, NULL,
                                                &address);
        domi_memory_fail_allocation_after(-1, 0);
        ck_assert(error == 0 || error == -ENOMEM);
    } while (error != 0);
    /* the allocations that failed: those of the family and of the order */
    ck_assert_uint_gt(failures, 2);
    domt_ordered_settle_picker();
    ck_assert_int_eq(domi_house_ask_to_stop(domt_outside_manager(&domt_pick.world), address), 0);
    domt_ordered_settle_picker();
    domt_pick_close_world();
}

DOMT_SUITE(20)
