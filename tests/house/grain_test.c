/* house/directory/grain.c: a grain has one life at a time, and a message that meets the end of a
 * life goes to the next one. */
#include "tests/house/grains.h"

#include "house/dispatch/dispatch.h"
#include "house/message/stop.h"

#include <domus/group.h>

#include <string.h>

static domi_manager *home_manager(uint32_t index)
{
    return domt_grain_world.managers[index];
}

/* Stop the life of grain "a" from one home; no home takes a step meanwhile. */
static void stop_life_of_grain_a_by_home(uint32_t index)
{
    ck_assert_int_eq(domi_house_ask_to_stop(home_manager(index), domt_grain_address_of_life("a")),
                     0);
}

static uint64_t count_dead_letters(void)
{
    return DOMT_SUM(&domt_grain_world, dead_letters);
}

DOMT_TEST(first_message_makes_a_grain_and_later_ones_find_it)
{
    domt_grains_begin_world();
    for (uint32_t i = 0; i < 3; i++) {
        domt_grain_send_notice(i % 2, "a", &domt_number, i);
        domt_grains_settle_world();
    }
    domt_grain_expect_notices_in_order(3);
    ck_assert_uint_eq(domt_books.made, 1);
    ck_assert_str_eq(domt_books.key, "a");
    ck_assert_uint_eq(domt_releases, 3);
    ck_assert_uint_eq(domus_grain_count(domt_carts), 1);
    domt_grain_ask_as_agent(0, "b", &domt_which);
    domt_grains_settle_world();
    ck_assert_uint_eq(domt_books.answers, 1);
    ck_assert_uint_eq(domt_books.answered_by[0], 2);
    ck_assert_uint_eq(domus_grain_count(domt_carts), 2);
    domt_grains_end_world();
    ck_assert_uint_eq(domt_books.stopped, 2);
}

DOMT_TEST(idle_grain_ends_and_the_next_message_makes_the_next)
{
    domt_grains_begin_world();
    for (uint32_t i = 0; i < 3; i++) {
        domt_grain_send_notice(0, "a", &domt_number, i);
        domt_grains_pass_ms(9);
        ck_assert_uint_eq(domus_grain_count(domt_carts), 1);
        domt_grains_pass_ms(4);
        ck_assert_uint_eq(domus_grain_count(domt_carts), 0);
        ck_assert_uint_eq(domt_books.stopped, i + 1);
    }
    domt_grain_expect_notices_in_order(3);
    ck_assert_uint_eq(domt_books.made, 3);
    domt_grains_end_world();
}

/* Put messages by one sender: the first half before the stop of the life, the other half behind
 * it. */
static void check_order_over_end_of_life(uint32_t sender, uint32_t stopper)
{
    domt_grains_begin_world();
    domt_grain_send_notice(sender, "a", &domt_number, 0);
    domt_grains_settle_world();
    for (uint32_t i = 1; i < 20; i++) {
        if (i == 10)
            stop_life_of_grain_a_by_home(stopper);
        domt_grain_send_notice(sender, "a", &domt_number, i);
    }
    domt_grain_ask_as_agent(sender, "a", &domt_which);
    domt_grains_settle_world();
    domt_grain_expect_notices_in_order(20);
    ck_assert_uint_eq(domt_books.made, 2);
    ck_assert_uint_eq(domt_books.lives[0], 1);
    /* a life handles at most one more message after its stop */
    ck_assert_uint_eq(domt_books.lives[2], 2);
    ck_assert_uint_eq(domt_books.answered_by[0], 2);
    ck_assert_int_eq(domt_books.errors[0], 0);
    ck_assert_uint_eq(count_dead_letters(), 0);
    ck_assert_uint_eq(domt_releases, 20);
    domt_grains_end_world();
}

DOMT_TEST(mail_meets_the_end_of_a_life_by_a_stop_of_its_home_of_another_or_of_its_own)
{
    /* home of the sender, and home of the actor that stops the life */
    static const uint32_t ways[][2] = {{1, 1}, {0, 0}, {0, 1}};

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        memset(&domt_books, 0, sizeof domt_books);
        check_order_over_end_of_life(ways[i][0], ways[i][1]);
    }
}

DOMT_TEST(mail_sorted_behind_a_stop_goes_on_to_the_next_life)
{
    domt_grains_begin_world();
    domt_grain_send_notice(0, "a", &domt_number, 0);
    domt_grains_settle_world();
    domt_grain_send_notice(0, "a", &domt_number, 1);
    stop_life_of_grain_a_by_home(1);
    /* the life begins to stop while messages wait in its inbox */
    (void)domt_run_state_queue(home_manager(1));
    domt_grain_send_notice(0, "a", &domt_number, 2);
    domt_grains_settle_world();
    domt_grain_expect_notices_in_order(3);
    ck_assert_uint_eq(domt_books.lives[1], 2);
    ck_assert_uint_eq(count_dead_letters(), 0);
    domt_grains_end_world();
}

DOMT_TEST(many_ends_of_lives_in_a_row_lose_no_message)
{
    domt_grains_begin_world();
    for (uint32_t i = 0; i < 60; i++) {
        domt_grain_send_notice(i / 7 % 2, "a", &domt_number, i);
        if (i % 3 == 1)
            stop_life_of_grain_a_by_home(i / 3 % 2);
        if (i % 5 == 2)
            (void)domt_iterate_home(home_manager(1));
        /* the system settles before another sender goes on, because order holds only for one
         * sender */
        if (i % 7 == 6)
            domt_grains_settle_world();
    }
    domt_grains_settle_world();
    domt_grain_expect_notices_in_order(60);
    ck_assert_uint_gt(domt_books.made, 8);
    ck_assert_uint_eq(count_dead_letters(), 0);
    domt_grains_end_world();
}

DOMT_TEST(stashed_messages_go_on_before_waiting_ones)
{
    domt_grains_begin_world();
    domt_grain_send_notice(1, "a", &domt_aside, 0);
    domt_grains_settle_world();
    ck_assert_uint_eq(domt_books.handled, 0);
    stop_life_of_grain_a_by_home(1);
    domt_grain_send_notice(1, "a", &domt_number, 1);
    domt_grain_send_notice(1, "a", &domt_number, 2);
    domt_grains_settle_world();
    domt_grain_expect_notices_in_order(3);
    ck_assert_uint_eq(domt_books.lives[0], 2);
    domt_grains_end_world();
}

DOMT_TEST(unanswered_asks_of_a_life_fail_when_it_ends)
{
    domt_grains_begin_world();
    domt_grain_ask_as_agent(0, "a", &domt_slow);
    domt_grain_ask_as_agent(0, "a", &domt_keeping);
    domt_grains_settle_world();
    stop_life_of_grain_a_by_home(0);
    domt_grains_settle_world();
    ck_assert_uint_eq(domt_books.answers, 2);
    ck_assert_int_eq(domt_books.errors[0], -ESTALE);
    ck_assert_int_eq(domt_books.errors[1], -ESTALE);
    ck_assert_uint_eq(domt_books.made, 1);
    ck_assert_uint_eq(domus_grain_count(domt_carts), 0);
    domt_grains_end_world();
}

DOMT_TEST(grain_with_a_conversation_is_not_idle)
{
    domt_grains_begin_world();
    domt_grain_ask_as_agent(0, "a", &domt_slow);
    domt_grains_pass_ms(95);
    ck_assert_uint_eq(domus_grain_count(domt_carts), 1);
    domt_grains_pass_ms(10);
    ck_assert_uint_eq(domt_books.answers, 1);
    ck_assert_int_eq(domt_books.errors[0], 0);
    ck_assert_uint_eq(domt_books.answered_by[0], 1);
    domt_grains_pass_ms(25);
    ck_assert_uint_eq(domus_grain_count(domt_carts), 0);
    domt_grains_end_world();
}

DOMT_TEST(failure_ends_a_grain_only_if_its_kind_says_so)
{
    for (int ends = 0; ends < 2; ends++) {
        memset(&domt_books, 0, sizeof domt_books);
        domt_cart_kind.ends_on_failure = ends == 1;
        domt_grains_begin_world();
        domt_grain_send_notice(0, "a", &domt_failing, 0);
        domt_grain_send_notice(0, "a", &domt_number, 1);
        domt_grain_send_notice(0, "a", &domt_number, 2);
        domt_grains_settle_world();
        domt_grain_expect_notices_in_order(3);
        ck_assert_uint_eq(domt_books.lives[2], ends == 1 ? 2 : 1);
        ck_assert_uint_eq(DOMT_SUM(&domt_grain_world, failures), 1);
        domt_grains_end_world();
    }
}

static int stop_life_after_mail(domus_stack *stack, void *nothing)
{
    return domus_stop_after_mail(stack, domt_grain_address_of_life("a"));
}

DOMT_TEST(stop_after_mail_ends_one_life_and_not_the_next)
{
    domt_grains_begin_world();
    domt_grain_send_notice(0, "a", &domt_number, 0);
    domt_grains_settle_world();
    domt_grain_send_notice(0, "a", &domt_number, 1);
    domt_send_function_to_call(home_manager(0), domt_grain_agents[0], stop_life_after_mail, NULL);
    (void)domt_run_state_queue(home_manager(0));
    /* the message comes to a life that is ending */
    domt_send_function_to_call(home_manager(0), domt_grain_agents[0], stop_life_after_mail, NULL);
    (void)domt_run_state_queue(home_manager(0));
    domt_grain_send_notice(0, "a", &domt_number, 2);
    domt_grains_settle_world();
    domt_grain_expect_notices_in_order(3);
    ck_assert_uint_eq(domt_books.made, 2);
    ck_assert_uint_eq(domus_grain_count(domt_carts), 1);
    ck_assert_uint_eq(count_dead_letters(), 1);
    domt_grains_end_world();
}

/* Cancel an ask that an ending life gave back: the next life holds it then, and answers the asker
 * with -ECANCELED. */
static domus_conversation waiting;

static int record_error_of_cancelled(domus_stack *stack, void *self, const domus_answer *answer)
{
    domt_books.errors[domt_books.answers++] = answer->error;
    return 0;
}

static int ask_slow_grain_and_remember(domus_stack *stack, void *nothing)
{
    uint32_t number = 0;

    ck_assert_int_eq(domus_conversation_of(stack, &waiting), 0);
    return domus_grain_ask(stack, domt_carts, "a", &domt_slow, &number, record_error_of_cancelled);
}

static int cancel_remembered_ask(domus_stack *stack, void *nothing)
{
    return domus_cancel(stack, waiting);
}

DOMT_TEST(cancel_follows_an_ask_to_the_next_life)
{
    domt_grains_begin_world();
    domt_grain_send_notice(0, "a", &domt_number, 0);
    domt_grains_settle_world();
    stop_life_of_grain_a_by_home(0);
    domt_send_function_to_call(home_manager(0), domt_grain_agents[0], ask_slow_grain_and_remember,
                               NULL);
    domt_grains_settle_world();
    ck_assert_uint_eq(domt_books.made, 2);
    uint64_t before = DOMT_SUM(&domt_grain_world, cancels);
    domt_run_as_actor(&domt_grain_world, domt_grain_agents[0], cancel_remembered_ask, NULL);
    ck_assert_int_eq(domt_books.errors[0], -ECANCELED);
    /* the cancel is counted by the asker and by the holder of the ask */
    ck_assert_uint_eq(DOMT_SUM(&domt_grain_world, cancels), before + 2);
    ck_assert_ptr_null(domt_grain_address_of_life("a").house->stacks);
    domt_grains_end_world();
}

DOMT_TEST(end_of_the_world_takes_what_waits)
{
    domt_grains_begin_world();
    domt_grain_send_notice(0, "a", &domt_number, 0);
    domt_grains_settle_world();
    stop_life_of_grain_a_by_home(1);
    for (uint32_t i = 1; i < 5; i++)
        domt_grain_send_notice(0, "a", &domt_number, i);
    domt_grain_ask_as_agent(0, "a", &domt_which);
    domt_grains_end_world();
    ck_assert_uint_eq(domt_releases, 5);
    ck_assert_uint_eq(domt_books.made, 1);
}

DOMT_TEST(no_next_life_is_made_when_the_system_closes)
{
    domt_grains_begin_world();
    domt_grain_send_notice(0, "a", &domt_number, 0);
    domt_grains_settle_world();
    stop_life_of_grain_a_by_home(0);
    domt_grain_send_notice(0, "a", &domt_number, 1);
    domt_grain_ask_as_agent(0, "a", &domt_which);
    for (uint32_t i = 0; i < 2; i++)
        home_manager(i)->ending.closing = true;
    domt_grains_settle_world();
    domt_grain_expect_notices_in_order(1);
    ck_assert_int_eq(domt_books.errors[0], -ESHUTDOWN);
    ck_assert_int_eq(domt_grain_try_notice(0, "a", &domt_number, 2), -ESHUTDOWN);
    /* the refused send leaves the last payload with the caller */
    ck_assert_uint_eq(domt_releases, 2);
    domt_grains_end_world();
}

DOMT_SUITE(20)
