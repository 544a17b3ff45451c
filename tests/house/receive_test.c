/* house/conversation/receive.c: a receive takes the messages of its pattern and leaves the others,
 * within its time, also several at once.
 *
 * A receive remembers up to which message it has seen a mailbox. When that message is removed by
 * something else, the mailbox is searched anew: the remembered place would be freed memory. */
#include "house/dispatch/dispatch.h"
#include "house/family/family.h"
#include "house/family/life.h"
#include "tests/house/picker.h"
#include "tests/house/steps.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define MS UINT64_C(1000000)

DOMT_TEST(receive_takes_the_first_match_and_the_others_keep_their_order)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(domt_receive_by_pattern, &domt_sevens);
    domt_send_notes_to_picker(1, 3);
    domt_send_notice_to_picker(&domt_pick_urgent, 7);
    domt_send_notes_to_picker(7, 8);
    domt_send_notice_to_picker(&domt_pick_note, 7);
    domt_pick_expect_text("(7) 1 2 3 u7 8 7 ");
    ck_assert_uint_eq(domt_pick.releases, 0);
    domt_pick_close_world();
}

DOMT_TEST(receive_waits_for_the_next_match_and_nothing_else_is_taken)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(domt_receive_by_pattern, &domt_sevens);
    for (int64_t i = 1; i < 4; i++) {
        domt_send_notice_to_picker(&domt_pick_note, i);
        domt_pick_expect_text("");
        ck_assert_uint_eq(domt_pick.picker.house->state, DOMI_WAITING);
    }
    /* the pattern has looked at each of the three messages once */
    ck_assert_uint_eq(domt_pick.looks, 3);
    domt_send_notice_to_picker(&domt_pick_note, 7);
    domt_pick_expect_text("(7) 1 2 3 ");
    domt_pick_close_world();
}

DOMT_TEST(mailbox_longer_than_one_run_looks_at_is_searched_to_its_end)
{
    enum { MANY = 20000 };

    domt_pick_open_world(60000, 0);
    domt_send_call_to_picker(domt_receive_by_pattern, &domt_sevens);
    for (int64_t i = 0; i < MANY; i++)
        domt_send_notice_to_picker(&domt_pick_note, 0);
    domt_send_notice_to_picker(&domt_pick_note, 7);
    while (domt_pick.text[0] == '\0')
        ck_assert_uint_ne(domt_iterate_home(domt_pick.world.managers[0]), 0);
    ck_assert_int_eq(strncmp(domt_pick.text, "(7) ", 4), 0);
    ck_assert_uint_eq(domt_pick.looks, MANY + 1);
    domt_world_end(&domt_pick.world);
    ck_assert_uint_ge(domt_pick.releases, MANY - 64);
}

/* The pattern of a receive sees the state of the actor and the frame of the receiving
 * conversation. */
static bool is_number_in_frame(const void *self, const void *frame, const domus_type *type,
                               const void *payload)
{
    ck_assert_ptr_eq(self, domt_pick.picker.house->self);
    return type == &domt_pick_note && *(const int64_t *)payload == *(const int64_t *)frame;
}

static int receive_number_in_frame(domus_stack *stack, void *number)
{
    static const domus_pattern framed = {.matches = is_number_in_frame};

    *(int64_t *)domus_frame(stack) = *(int64_t *)number;
    return domus_receive(stack, &framed, domt_write_received_and_end);
}

DOMT_TEST(pattern_sees_the_frame_of_its_conversation)
{
    int64_t number = 3;

    domt_pick_open_world(0, 0);
    domt_send_call_to_picker_as_event(receive_number_in_frame, &number);
    domt_pick_settle_world();
    number = 2;
    domt_send_call_to_picker_as_event(receive_number_in_frame, &number);
    domt_pick_settle_world();
    domt_send_notes_to_picker(1, 4);
    domt_pick_expect_text("(2) (3) 1 4 ");
    domt_pick_close_world();
}

/* --- within a time --------------------------------------------------------------------------- */

static const domt_reception within_5 = {&domt_sevens, 5 * MS, domt_write_received_and_end};

DOMT_TEST(receive_within_a_time_fails_not_early_and_what_waits_is_handled)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(domt_receive_as_ordered, &within_5);
    domt_send_notes_to_picker(1, 2);
    domt_pick_settle_world();
    domt_pick_pass_ns(5 * MS - 1);
    domt_pick_expect_text("");
    domt_pick_pass_ns(1);
    domt_pick_expect_text("- 1 2 ");
    domt_send_notice_to_picker(&domt_pick_note, 7);
    domt_pick_expect_text("- 1 2 7 ");
    domt_pick_close_world();
}

DOMT_TEST(receive_within_a_very_long_time_is_no_overflow)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(
        domt_receive_as_ordered,
        &(domt_reception){&domt_sevens, UINT64_MAX, domt_write_received_and_end});
    domt_pick_settle_world();
    domt_pick_pass_ns(10 * MS);
    domt_pick_expect_text("");
    domt_send_notice_to_picker(&domt_pick_note, 7);
    domt_pick_expect_text("(7) ");
    domt_pick_close_world();
}

static int write_and_receive_without_wait(domus_stack *stack, void *self,
                                          const domus_answer *answer)
{
    return domt_write_received(answer)
               ? domus_receive_within(stack, &domt_any, 0, write_and_receive_without_wait)
               : 0;
}

static const domt_reception flush = {&domt_any, 0, write_and_receive_without_wait};

/* A receive without a wait, repeated, takes all messages that are there. */
DOMT_TEST(flush_takes_all_that_is_there_and_does_not_wait)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(domt_receive_as_ordered, &flush);
    domt_send_notes_to_picker(1, 200);
    domt_send_notice_to_picker(&domt_pick_urgent, 201);
    domt_pick_settle_world();
    ck_assert_int_eq(strncmp(domt_pick.text, "(1) (2) (3) ", 12), 0);
    ck_assert_ptr_nonnull(strstr(domt_pick.text, "(199) (200) (u201) - "));
    domt_pick.text[0] = '\0';
    domt_send_notice_to_picker(&domt_pick_note, 5);
    domt_pick_expect_text("5 ");
    domt_pick_close_world();
}

static int write_received_or_receive_any(domus_stack *stack, void *self, const domus_answer *answer)
{
    if (answer->error != 0)
        return domus_receive(stack, &domt_any, domt_write_received_and_end);
    return domt_write_received_and_end(stack, self, answer);
}

/* A receive by priority: take an urgent message if there is one, else any message. */
DOMT_TEST(priority_receive_takes_the_urgent_before_the_older)
{
    static const domt_reception by_priority = {&domt_urgents, 0, write_received_or_receive_any};

    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(domt_receive_as_ordered, &by_priority);
    domt_send_notes_to_picker(1, 2);
    domt_send_notice_to_picker(&domt_pick_urgent, 3);
    domt_pick_expect_text("(u3) 1 2 ");
    domt_send_call_to_picker(domt_receive_as_ordered, &by_priority);
    domt_send_notes_to_picker(4, 5);
    domt_pick_expect_text("(u3) 1 2 (4) 5 ");
    domt_send_call_to_picker(domt_receive_as_ordered, &by_priority);
    domt_pick_settle_world();
    domt_send_notice_to_picker(&domt_pick_note, 6);
    domt_pick_expect_text("(u3) 1 2 (4) 5 (6) ");
    domt_pick_close_world();
}

static int receive_all_that_wait_in_mount(domus_stack *stack, void *self)
{
    return domt_receive_as_ordered(stack, (void *)(uintptr_t)&flush);
}

/* The mailbox is empty and no message comes, so only the time can end the receive. */
DOMT_TEST(looking_into_an_empty_mailbox_ends_also_from_an_event_and_at_mount)
{
    static const domus_behaviour mounting = {.name = "mounting",
                                             .on_mount = receive_all_that_wait_in_mount};

    domt_pick_open_world(0, 0);
    domt_send_call_to_picker_as_event(domt_receive_as_ordered, &flush);
    domt_pick_expect_text("- ");
    (void)domt_spawn(domt_outside_manager(&domt_pick.world), domt_pick.world.managers[0], &mounting,
                     NULL);
    domt_pick_expect_text("- - ");
    domt_pick_close_world();
}

DOMT_TEST(world_may_end_when_a_receive_has_timed_out_and_was_not_resumed)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker_as_event(domt_receive_as_ordered, &within_5);
    domt_send_call_to_picker_as_event(domt_receive_by_pattern, &domt_urgents);
    domt_pick_settle_world();
    domt_send_notice_to_picker(&domt_pick_note, 1);
    domt_pick_settle_world();
    domt_advance_time_without_runs(&domt_pick.world, 6 * MS);
    (void)domi_manager_fire_timers(domt_pick.world.managers[0]);
    ck_assert_ptr_nonnull(domt_pick.picker.house->tails[DOMI_EXCEPTION]);
    domt_world_end(&domt_pick.world);
    ck_assert_str_eq(domt_pick.text, "");
    ck_assert_uint_eq(domt_pick.releases, 1);
}

/* --- several --------------------------------------------------------------------------------- */

DOMT_TEST(several_receives_are_tried_in_the_order_in_which_they_began)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker_as_event(domt_receive_as_ordered, &within_5);
    domt_send_call_to_picker_as_event(domt_receive_by_pattern, &domt_any);
    domt_send_call_to_picker_as_event(domt_receive_by_pattern, &domt_urgents);
    domt_pick_settle_world();
    ck_assert_uint_eq(domi_house_count_parked_conversations(domt_pick.picker.house), 3);
    /* the first and the second receive could take this note; the first one does */
    domt_send_notice_to_picker(&domt_pick_note, 7);
    domt_pick_settle_world();
    ck_assert_uint_eq(domi_house_count_parked_conversations(domt_pick.picker.house), 2);
    /* the second and the third receive could take this urgent note; the second one does */
    domt_send_notice_to_picker(&domt_pick_urgent, 7);
    domt_send_notice_to_picker(&domt_pick_note, 1);
    domt_pick_expect_text("(7) (u7) ");
    /* only this message is left, which the third receive does not take */
    ck_assert_uint_eq(domt_pick.picker.house->mail, 1);
    domt_send_notice_to_picker(&domt_pick_urgent, 8);
    domt_pick_expect_text("(7) (u7) (u8) 1 ");
    domt_pick_close_world();
}

DOMT_TEST(new_receive_looks_at_what_the_others_have_left)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker_as_event(domt_receive_by_pattern, &domt_sevens);
    domt_pick_settle_world();
    domt_send_notes_to_picker(1, 2);
    domt_send_notice_to_picker(&domt_pick_urgent, 3);
    domt_pick_settle_world();
    domt_send_call_to_picker_as_event(domt_receive_by_pattern, &domt_urgents);
    domt_pick_expect_text("(u3) ");
    domt_send_notice_to_picker(&domt_pick_note, 7);
    domt_pick_expect_text("(u3) (7) 1 2 ");
    domt_pick_close_world();
}

static int write_and_end_while_receiving_next(domus_stack *stack, void *self,
                                              const domus_answer *answer)
{
    (void)domt_write_received(answer);
    ck_assert_int_eq(domus_receive(stack, &domt_any, domt_write_received_and_end), DOMUS_PARKED);
    return 0; /* the conversation ends while the receive that it has begun still waits */
}

DOMT_TEST(receive_of_a_conversation_that_ended_takes_nothing)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(
        domt_receive_as_ordered,
        &(domt_reception){&domt_sevens, DOMUS_FOR_EVER, write_and_end_while_receiving_next});
    domt_send_notes_to_picker(6, 8);
    domt_pick_expect_text("(7) 6 8 ");
    domt_pick_close_world();
}

static domus_conversation first;

static int receive_and_remember_conversation(domus_stack *stack, void *reception)
{
    ck_assert_int_eq(domus_conversation_of(stack, &first), 0);
    return domt_receive_as_ordered(stack, reception);
}

static int write_and_cancel_remembered(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(domus_cancel(stack, first), 0);
    ck_assert_int_eq(domus_cancel(stack, first), -EALREADY);
    return domt_write_received_and_end(stack, self, answer);
}

/* While the mailbox is searched for several receives, the first one that is resumed cancels
 * another. */
DOMT_TEST(resumed_receive_may_cancel_another_receive)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker_as_event(receive_and_remember_conversation, &within_5);
    domt_send_call_to_picker_as_event(
        domt_receive_as_ordered,
        &(domt_reception){&domt_urgents, DOMUS_FOR_EVER, write_and_cancel_remembered});
    domt_pick_settle_world();
    domt_send_notice_to_picker(&domt_pick_note, 1);
    domt_send_notice_to_picker(&domt_pick_urgent, 2);
    domt_send_notice_to_picker(&domt_pick_note, 7);
    domt_pick_expect_text("(u2) x125 1 7 ");
    domt_pick_pass_ns(6 * MS);
    domt_pick_expect_text("(u2) x125 1 7 ");
    domt_pick_close_world();
}

/* --- mail that leaves while it is seen ------------------------------------------------------- */

static int expect_edeadlk(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, -EDEADLK);
    return 0;
}

static int ask_picker_back(domus_stack *stack, void *context)
{
    return domus_ask(stack, domt_pick.picker, &domt_pick_question, &(int64_t){4}, expect_edeadlk);
}

static int raise_barrier_and_wait_for_all(domus_stack *stack, void *self,
                                          const domus_answer *answer)
{
    ck_assert_int_eq(domus_barrier(stack), 0);
    return domus_wait_all(stack, domt_write_received_and_end);
}

static int ask_asker_then_raise_barrier(domus_stack *stack, void *context)
{
    static const domt_call call = {ask_picker_back, NULL};

    ck_assert_int_eq(domus_ask_add(stack, domt_pick.asker, &domt_call_type, &call, 0, 0), 0);
    return domus_sleep(stack, 5 * MS, raise_barrier_and_wait_for_all);
}

DOMT_TEST(ask_that_waits_for_itself_leaves_the_mail_that_a_receive_has_seen)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker_as_event(ask_asker_then_raise_barrier, NULL);
    domt_send_call_to_picker_as_event(domt_receive_by_pattern, &domt_sevens);
    /* a run takes notices before events, so note 7 is handled before the receive begins */
    domt_send_notice_to_picker(&domt_pick_note, 7);
    domt_pick_settle_world();
    domt_send_notice_to_picker(&domt_pick_note, 1);
    domt_pick_settle_world();
    /* question 4 and note 1 wait in the mailbox, and the receive has looked at both */
    ck_assert_uint_eq(domt_pick.picker.house->mail, 2);
    domt_pick_pass_ns(6 * MS);
    ck_assert_uint_eq(DOMT_SUM(&domt_pick.world, circles), 1);
    ck_assert_uint_eq(domt_pick.releases, 1);
    domt_send_notes_to_picker(6, 7);
    domt_pick_expect_text("7 x42 (7) 1 6 ");
    domt_pick_close_world();
}

static bool is_number_7(const void *self, const void *frame, const domus_type *type,
                        const void *payload)
{
    return *(const int64_t *)payload == 7;
}

static const domus_pattern seventh_question = {
    (const domus_type *const[]){&domt_pick_question, NULL}, is_number_7};

static domi_node *node_last_seen_by_receive(void)
{
    return domt_pick.picker.house->family->seen[0];
}

static int ask_picker_question_3(domus_stack *stack, void *context)
{
    return domus_ask(stack, domt_pick.picker, &domt_pick_question, &(int64_t){3},
                     domt_hear_nothing);
}

/* Check that the receive takes the seventh question, although the question that it has seen last
 * was removed. */
static void expect_seventh_question_is_taken(const char *text)
{
    ck_assert_ptr_null(node_last_seen_by_receive());
    domt_ask_picker(7, 0);
    domt_pick_expect_text(text);
    domt_pick_close_world();
}

DOMT_TEST(receive_looks_anew_when_what_it_saw_last_was_cancelled)
{
    domt_pick_open_world(0, 0);
    domi_manager *there = domt_pick.world.managers[1];
    domus_address third = domt_spawn(there, there, &domt_agent, NULL);
    domt_send_call_to_picker(domt_receive_by_pattern, &seventh_question);
    domt_run_as_actor(&domt_pick.world, third, ask_picker_question_3, NULL);
    ck_assert_ptr_nonnull(node_last_seen_by_receive());
    ck_assert_int_eq(domi_house_ask_to_stop(there, third), 0);
    domt_pick_settle_world();
    ck_assert_uint_eq(domt_pick.picker.house->mail, 0);
    expect_seventh_question_is_taken("(q7) ");
}

DOMT_TEST(receive_looks_anew_when_what_it_saw_last_was_a_circle)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker_as_event(ask_asker_then_raise_barrier, NULL);
    domt_send_call_to_picker(domt_receive_by_pattern, &seventh_question);
    domt_pick_settle_world();
    ck_assert_ptr_nonnull(node_last_seen_by_receive());
    domt_pick_pass_ns(6 * MS);
    ck_assert_uint_eq(DOMT_SUM(&domt_pick.world, circles), 1);
    ck_assert_uint_eq(domt_pick.picker.house->mail, 0);
    expect_seventh_question_is_taken("x42 (q7) ");
}

DOMT_SUITE(60)
