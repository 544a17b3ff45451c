/* Receives of asks; and receives beside stops, barriers, full mailboxes and withdrawn asks, and
 * without memory. */
#include "base/memory.h"
#include "house/dispatch/dispatch.h"
#include "house/family/life.h"
#include "tests/house/picker.h"
#include "tests/support/suite.h"

#include <domus/spawn.h>

#include <errno.h>
#include <string.h>

#define MS UINT64_C(1000000)

/* --- asks ------------------------------------------------------------------------------------ */

static int write_and_reply_to_received(domus_stack *stack, void *self, const domus_answer *answer)
{
    int64_t number = *(const int64_t *)answer->payload * 10;

    (void)domt_write_received_and_end(stack, self, answer);
    ck_assert_ptr_eq(domus_sender(stack).house, domt_pick.asker.house);
    ck_assert_int_eq(domus_reply(stack, &domt_pick_number, &number), 0);
    ck_assert_ptr_eq(domus_sender(stack).house, domt_pick.asker.house);
    ck_assert_int_eq(domus_reply(stack, &domt_pick_number, &number), -EALREADY);
    ck_assert_int_eq(domus_fail(stack, -EIO), -EALREADY);
    ck_assert_int_eq(domus_forward(stack, domt_pick.asker), -EALREADY);
    return 0;
}

DOMT_TEST(ask_that_was_received_is_answered_once)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(
        domt_receive_as_ordered,
        &(domt_reception){&domt_questions, DOMUS_FOR_EVER, write_and_reply_to_received});
    domt_pick_settle_world();
    domt_send_notice_to_picker(&domt_pick_note, 1);
    domt_ask_picker(4, 0);
    domt_pick_expect_text("(q4) 1 ");
    domt_pick_expect_answers("r40 ");
    ck_assert_uint_eq(domt_pick.releases, 0);
    domt_pick_close_world();
}

static int write_received_and_fail(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)domt_write_received_and_end(stack, self, answer);
    return -EIO;
}

static int write_received_and_receive_again(domus_stack *stack, void *self,
                                            const domus_answer *answer)
{
    (void)domt_write_received_and_end(stack, self, answer);
    return domus_receive(stack, &domt_questions, write_received_and_fail);
}

DOMT_TEST(received_ask_without_an_answer_fails_as_its_function_returns)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(
        domt_receive_as_ordered,
        &(domt_reception){&domt_questions, DOMUS_FOR_EVER, write_received_and_receive_again});
    domt_pick_settle_world();
    domt_ask_picker(1, 0);
    /* -ENOMSG: the function that got the ask parked its conversation without an answer */
    domt_pick_expect_answers("x-42 ");
    domt_ask_picker(2, 0);
    domt_pick_expect_answers("x-42 x-5 ");
    domt_pick_close_world();
}

static int reply_to_received_and_own_ask(domus_stack *stack, void *self, const domus_answer *answer)
{
    int64_t numbers[2] = {100, 200};

    (void)domt_write_received_and_end(stack, self, answer);
    /* this replies to the received ask, which is the current message */
    ck_assert_int_eq(domus_reply(stack, &domt_pick_number, &numbers[0]), 0);
    /* this replies to the conversation's own ask */
    ck_assert_int_eq(domus_reply(stack, &domt_pick_number, &numbers[1]), 0);
    ck_assert_int_eq(domus_reply(stack, &domt_pick_number, &numbers[1]), -EALREADY);
    return 0;
}

static int receive_question_for_own_ask(domus_stack *stack, void *self, const void *payload)
{
    return domus_receive(stack, &domt_questions, reply_to_received_and_own_ask);
}

static const domus_behaviour asked = {
    .name = "asked",
    .on = (const domus_on[]){{&domt_pick_question, receive_question_for_own_ask, 0}, {0}}};

DOMT_TEST(conversation_that_was_asked_answers_what_it_received_first)
{
    domt_pick_open_world(0, 0);
    domt_pick.picker = domt_spawn(domt_outside_manager(&domt_pick.world),
                                  domt_pick.world.managers[0], &asked, NULL);
    domt_pick_settle_world();
    domt_ask_picker(1, 0);
    domt_pick_settle_world();
    domt_ask_picker(2, 0);
    domt_pick_expect_text("(q2) ");
    domt_pick_expect_answers("r100 r200 ");
    domt_pick_close_world();
}

static domus_kept kept;

static int write_received_and_keep_it(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)domt_write_received_and_end(stack, self, answer);
    ck_assert_int_eq(domus_keep(stack, &kept), 0);
    ck_assert_int_eq(domus_keep(stack, &kept), -EALREADY);
    return domus_receive(stack, &domt_sevens, domt_write_received_and_end);
}

static int reply_to_kept(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_kept_reply(stack, kept, &domt_pick_number, &(int64_t){50}), 0);
    ck_assert_int_eq(domus_kept_reply(stack, kept, &domt_pick_number, &(int64_t){50}), -ENOENT);
    return 0;
}

DOMT_TEST(received_ask_may_be_kept_while_its_conversation_receives_again)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(
        domt_receive_as_ordered,
        &(domt_reception){&domt_questions, DOMUS_FOR_EVER, write_received_and_keep_it});
    domt_pick_settle_world();
    domt_ask_picker(1, 0);
    domt_pick_expect_answers("");
    domt_send_call_to_picker_as_event(reply_to_kept, NULL);
    domt_pick_expect_answers("r50 ");
    domt_send_notice_to_picker(&domt_pick_note, 7);
    domt_pick_expect_text("(q1) (7) ");
    domt_pick_close_world();
}

DOMT_TEST(asks_are_received_before_notices)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker_as_event(domt_receive_by_pattern, &domt_any);
    domt_send_notice_to_picker(&domt_pick_note, 1);
    domt_ask_picker(2, 0);
    domt_send_call_to_picker_as_event(domt_receive_by_pattern, &domt_any);
    /* the picker has handled messages, and has received none yet */
    (void)domt_iterate_home(domt_pick.world.managers[0]);
    domt_pick_settle_world();
    domt_send_notice_to_picker(&domt_pick_note, 3);
    domt_ask_picker(4, 0);
    domt_pick_expect_text("q2 1 (q4) (3) ");
    domt_pick_expect_answers("r2 x-42 ");
    domt_pick_close_world();
}

/* An ask whose deadline is over is counted as expired, dropped once, and not shown to a receive. */
DOMT_TEST(expired_ask_is_not_received)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(domt_receive_by_pattern, &domt_sevens);
    domt_pick_settle_world();
    domt_ask_picker(1, 5 * MS);
    domt_ask_picker(2, 0);
    domt_pick_settle_world();
    domt_pick_pass_ns(6 * MS);
    domt_pick_expect_answers("x-110 ");
    domt_send_call_to_picker_as_event(domt_receive_by_pattern, &domt_questions);
    domt_pick_expect_text("(q2) ");
    ck_assert_uint_eq(DOMT_SUM(&domt_pick.world, asks_expired), 1);
    ck_assert_uint_eq(domt_pick.releases, 1);
    domt_send_notice_to_picker(&domt_pick_note, 7);
    domt_pick_settle_world();
    domt_pick_close_world();
}

static domus_conversation inquiry;

static int expect_cancel(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, -ECANCELED);
    return 0;
}

static int ask_picker_and_remember(domus_stack *stack, void *number)
{
    ck_assert_int_eq(domus_conversation_of(stack, &inquiry), 0);
    return domus_ask(stack, domt_pick.picker, &domt_pick_question, number, expect_cancel);
}

static int cancel_conversation_of_inquiry(domus_stack *stack, void *context)
{
    return domus_cancel(stack, inquiry);
}

DOMT_TEST(ask_that_was_seen_and_then_withdrawn_does_not_hurt_the_search)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(domt_receive_by_pattern, &domt_sevens);
    domt_run_as_actor(&domt_pick.world, domt_pick.asker, ask_picker_and_remember, &(int64_t){1});
    domt_send_notice_to_picker(&domt_pick_note, 2);
    domt_pick_settle_world();
    domt_run_as_actor(&domt_pick.world, domt_pick.asker, cancel_conversation_of_inquiry, NULL);
    ck_assert_uint_eq(domt_pick.releases, 1);
    ck_assert_uint_eq(domt_pick.picker.house->mail, 1);
    domt_ask_picker(3, 0);
    domt_send_notice_to_picker(&domt_pick_note, 7);
    domt_pick_expect_text("(7) q3 2 ");
    domt_pick_close_world();
}

/* --- stops ----------------------------------------------------------------------------------- */

static int write_all_received_until_error(domus_stack *stack, void *self,
                                          const domus_answer *answer)
{
    (void)domus_take(stack);
    return domt_write_received(answer)
               ? domus_receive(stack, &domt_any, write_all_received_until_error)
               : answer->error;
}

static int stop_itself_and_receive_on(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)domus_take(stack);
    if (answer->error == 0)
        ck_assert_int_eq(domus_stop(stack, domus_self(stack)), 0);
    return write_all_received_until_error(stack, self, answer);
}

DOMT_TEST(stop_while_receiving_fails_the_receive_and_what_waits)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(domt_receive_by_pattern, &domt_sevens);
    domt_pick_settle_world();
    domt_send_notes_to_picker(1, 3);
    domt_ask_picker(4, 0);
    domt_pick_settle_world();
    domt_pick_stop_picker();
    domt_pick_expect_text("x125 ");
    domt_pick_expect_answers("x-116 ");
    ck_assert_uint_eq(domt_pick.releases, 4);
    ck_assert_uint_eq(DOMT_SUM(&domt_pick.world, stops), 1);
    domt_pick_close_world();
}

DOMT_TEST(actor_that_stops_itself_receives_at_most_one_more)
{
    static const domt_reception stopping = {&domt_any, DOMUS_FOR_EVER, stop_itself_and_receive_on};

    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(domt_receive_as_ordered, &stopping);
    domt_send_notes_to_picker(1, 9);
    domt_pick_expect_text("(1) x125 ");
    ck_assert_uint_eq(domt_pick.releases, 8);
    ck_assert_uint_eq(DOMT_SUM(&domt_pick.world, stops), 1);
    domt_pick_close_world();

    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(domt_receive_as_ordered, &stopping);
    domt_pick_settle_world();
    for (int64_t i = 1; i < 5; i++)
        domt_ask_picker(i, 0);
    domt_pick_expect_text("(q1) x125 ");
    domt_pick_expect_answers("x-42 x-116 x-116 x-116 ");
    domt_pick_close_world();
}

static int stop_picker_after_mail(domus_stack *stack, void *context)
{
    return domus_stop_after_mail(stack, domt_pick.picker);
}

/* The order to stop is not a message that a pattern could take. */
DOMT_TEST(stop_after_mail_ends_an_actor_that_receives_everything)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(
        domt_receive_as_ordered,
        &(domt_reception){&domt_any, DOMUS_FOR_EVER, write_all_received_until_error});
    domt_pick_settle_world();
    domt_send_notes_to_picker(1, 3);
    domt_run_as_actor(&domt_pick.world, domt_pick.asker, stop_picker_after_mail, NULL);
    ck_assert_str_eq(domt_pick.text, "(1) (2) (3) x125 ");
    ck_assert_uint_eq(DOMT_SUM(&domt_pick.world, stops), 1);
    domt_pick_close_world();
}

DOMT_TEST(stop_after_mail_waits_for_the_mail_that_a_receive_has_left)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(domt_receive_by_pattern, &domt_sevens);
    domt_send_notes_to_picker(1, 3);
    domt_run_as_actor(&domt_pick.world, domt_pick.asker, stop_picker_after_mail, NULL);
    ck_assert_str_eq(domt_pick.text, "");
    domt_send_notice_to_picker(&domt_pick_note, 7);
    domt_pick_expect_text("(7) 1 2 3 ");
    ck_assert_uint_eq(DOMT_SUM(&domt_pick.world, stops), 1);
    domt_pick_close_world();
}

/* --- limits ---------------------------------------------------------------------------------- */

DOMT_TEST(messages_that_no_pattern_takes_are_bounded_by_mailbox_max_and_counted)
{
    int64_t number = 0;

    domt_pick_open_world(8, 0);
    domt_send_call_to_picker(domt_receive_by_pattern, &domt_urgents);
    domt_pick_settle_world();
    domt_send_notes_to_picker(1, 8);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(domt_send_notice(domt_pick.world.managers[0], domt_pick.picker,
                                          &domt_pick_note, &number),
                         -ENOBUFS);
    domt_pick_settle_world();
    ck_assert_uint_eq(DOMT_SUM(&domt_pick.world, refusals), 5);
    ck_assert_uint_eq(domt_pick.picker.house->mail, 8);
    /* Only the end of the receive frees the full mailbox: here the actor is stopped, and its
     * conversation with it. */
    domt_pick_stop_picker();
    ck_assert_uint_eq(domt_pick.releases, 8);
    domt_pick_close_world();
}

/* A receive resumes a conversation and begins none, so it works although no further conversation is
 * allowed. */
DOMT_TEST(receives_go_on_at_conversations_max)
{
    domt_pick_open_world(0, 2);
    domt_send_call_to_picker_as_event(domt_receive_by_pattern, &domt_sevens);
    domt_send_call_to_picker_as_event(domt_receive_by_pattern, &domt_urgents);
    domt_pick_settle_world();
    ck_assert_uint_ne(domt_pick.picker.house->marks & DOMI_MARK_SATURATED, 0);
    domt_send_notes_to_picker(6, 7);
    domt_pick_settle_world();
    domt_send_notice_to_picker(&domt_pick_urgent, 8);
    domt_pick_expect_text("(7) (u8) 6 ");
    domt_pick_close_world();
}

static int raise_barrier_and_sleep(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_barrier(stack), 0);
    return domus_sleep(stack, 5 * MS, domt_write_received_and_end);
}

DOMT_TEST(receive_waits_behind_a_barrier_of_another_conversation)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker_as_event(domt_receive_by_pattern, &domt_sevens);
    domt_pick_settle_world();
    domt_send_call_to_picker_as_event(raise_barrier_and_sleep, NULL);
    domt_pick_settle_world();
    domt_send_notes_to_picker(6, 7);
    domt_pick_expect_text("");
    ck_assert_uint_eq(domt_pick.picker.house->state, DOMI_WAITING);
    domt_pick.world.managers[0]->now_ns += 6 * MS;
    (void)domi_manager_fire_timers(domt_pick.world.managers[0]);
    ck_assert_uint_eq(domt_pick.picker.house->state, DOMI_READY);
    domt_pick.text[0] = '\0';
    domt_world_end(&domt_pick.world);
}

static int raise_barrier_and_receive(domus_stack *stack, void *reception)
{
    ck_assert_int_eq(domus_barrier(stack), 0);
    return domt_receive_as_ordered(stack, reception);
}

/* A barrier lets no asks and notices through, not even to a receive of the conversation that raised
 * the barrier: the receive ends after its time. */
DOMT_TEST(receive_under_the_own_barrier_ends_in_its_time)
{
    static const domt_reception look = {&domt_any, 0, domt_write_received_and_end};
    static const domt_reception wait = {&domt_any, 5 * MS, domt_write_received_and_end};

    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(raise_barrier_and_receive, &look);
    domt_send_notes_to_picker(1, 2);
    domt_pick_expect_text("- 1 2 ");
    domt_send_call_to_picker(raise_barrier_and_receive, &wait);
    domt_send_notes_to_picker(3, 4);
    domt_pick_expect_text("- 1 2 ");
    domt_pick_pass_ns(5 * MS);
    domt_pick_expect_text("- 1 2 - 3 4 ");
    domt_pick_close_world();
}

DOMT_TEST(receive_without_memory_fails_and_changes_nothing)
{
    int count = 0;

    do {
        domt_pick_open_world(0, 0);
        domt_send_call_to_picker(domt_receive_by_pattern, &domt_sevens);
        domt_send_notes_to_picker(6, 8);
        domi_memory_fail_allocation_after(count++, 1);
        domt_pick_settle_world();
        domi_memory_fail_allocation_after(-1, 0);
        /* A call that had no memory for its frame is a dead letter, and nothing is received
         * then. */
        bool failed = DOMT_SUM(&domt_pick.world, failures) != 0 ||
                      DOMT_SUM(&domt_pick.world, dead_letters) != 0;
        ck_assert_str_eq(domt_pick.text, failed ? "6 7 8 " : "(7) 6 8 ");
        domt_pick_close_world();
        ck_assert_int_lt(count, 100);
    } while (strcmp(domt_pick.text, "(7) 6 8 ") != 0);
    ck_assert_int_ge(count, 2);
}

DOMT_SUITE(60)
