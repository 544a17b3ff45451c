/* Behaviours that change, and messages that are stashed and unstashed. */
#include "house/dispatch/dispatch.h"
#include "tests/house/picker.h"
#include "tests/house/steps.h"
#include "tests/support/suite.h"

#include <domus/spawn.h>

#include <errno.h>

#define MS UINT64_C(1000000)

/* --- become ---------------------------------------------------------------------------------- */

static int stops;

static void on_stop_count_stop(domus_stack *stack, void *self)
{
    stops++;
}

static int record_number_as_other_behaviour(domus_stack *stack, void *self, const void *number)
{
    (void)domus_take(stack);
    domt_pick_write_number("o", *(const int64_t *)number, "");
    return 0;
}

static int go_back_to_former_behaviour(domus_stack *stack, void *self, const void *number)
{
    (void)domus_take(stack);
    return domus_become(stack, NULL);
}

/* A behaviour that handles notes but no questions; an urgent note makes the actor go back to its
 * first behaviour. */
static const domus_behaviour other = {
    .name = "other",
    .state_size = 8,
    .on = (const domus_on[]){{&domt_pick_note, record_number_as_other_behaviour, 200},
                             {&domt_pick_urgent, go_back_to_former_behaviour, 0},
                             {0}},
    .on_stop = on_stop_count_stop};

static int become_behaviour(domus_stack *stack, void *behaviour)
{
    return domus_become(stack, behaviour);
}

DOMT_TEST(become_is_for_the_next_message_on_and_null_goes_back)
{
    domt_pick_open_world(0, 0);
    domt_send_notice_to_picker(&domt_pick_note, 1);
    domt_send_call_to_picker(become_behaviour, &other);
    domt_send_notes_to_picker(2, 3);
    domt_send_notice_to_picker(&domt_pick_urgent, 0);
    domt_send_notice_to_picker(&domt_pick_note, 4);
    domt_pick_expect_text("1 o2 o3 4 ");
    /* the behaviour is the first one again, so domus_become(NULL) has none to go back to */
    domt_send_call_to_picker(become_behaviour, NULL);
    domt_send_notice_to_picker(&domt_pick_note, 5);
    domt_pick_expect_text("1 o2 o3 4 5 ");
    domt_pick_close_world();
}

DOMT_TEST(ask_that_the_new_behaviour_does_not_know_fails)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(become_behaviour, &other);
    domt_pick_settle_world();
    domt_ask_picker(1, 0);
    domt_pick_expect_answers("x-95 ");
    ck_assert_uint_eq(domt_pick.releases, 1);
    domt_pick_close_world();
}

DOMT_TEST(callbacks_are_those_of_the_behaviour_an_actor_has_become)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(become_behaviour, &other);
    domt_pick_settle_world();
    domt_pick_stop_picker();
    ck_assert_int_eq(stops, 1);
    domt_pick_close_world();
}

static int record_wake_up(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, 0);
    domt_pick_write_number("w", 9, "");
    return 0;
}

static int become_and_sleep(domus_stack *stack, void *behaviour)
{
    ck_assert_int_eq(domus_become(stack, behaviour), 0);
    return domus_sleep(stack, 5 * MS, record_wake_up);
}

DOMT_TEST(conversation_goes_on_under_the_new_behaviour)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(become_and_sleep, &other);
    domt_send_notice_to_picker(&domt_pick_note, 1);
    domt_pick_expect_text("o1 ");
    domt_pick_pass_ns(6 * MS);
    domt_pick_expect_text("o1 w9 ");
    domt_pick_close_world();
}

static const domus_behaviour too_large = {.name = "too large", .state_size = 9};
static const domus_behaviour of_channels = {.name = "channels", .kind = DOMUS_CHANNELS};
static const domus_behaviour no_handler = {
    .name = "no handler", .on = (const domus_on[]){{&domt_pick_note, NULL, 0}, {0}}};
static const domus_behaviour wide_frame = {
    .name = "wide frame",
    .on = (const domus_on[]){
        {&domt_pick_note, record_number_as_other_behaviour, DOMUS_FRAME_MAX + 1}, {0}}};

static int try_to_become_wrong_behaviours(domus_stack *stack, void *context)
{
    static const domus_behaviour *const wrong[] = {&too_large, &of_channels, &no_handler,
                                                   &wide_frame};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(domus_become(stack, wrong[i]) == -EINVAL, "%s", wrong[i]->name);
    return 0;
}

DOMT_TEST(behaviour_that_could_not_be_spawned_in_this_place_is_refused)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(try_to_become_wrong_behaviours, NULL);
    domt_send_notice_to_picker(&domt_pick_note, 1);
    domt_pick_expect_text("1 ");
    domt_pick_close_world();
}

/* --- stash ----------------------------------------------------------------------------------- */

static int results[8];
static int results_count;

static int stash_current_message(domus_stack *stack, void *self, const void *number)
{
    results[results_count++ % 8] = domus_stash(stack);
    return 0;
}

static int unstash_and_go_back(domus_stack *stack, void *self, const void *number)
{
    (void)domus_take(stack);
    domus_unstash(stack);
    return domus_become(stack, NULL);
}

/* A behaviour that stashes notes and questions; an urgent note makes the actor unstash them and go
 * back. */
static const domus_behaviour closed = {
    .name = "closed",
    .on = (const domus_on[]){{&domt_pick_note, stash_current_message, 0},
                             {&domt_pick_question, stash_current_message, 100},
                             {&domt_pick_urgent, unstash_and_go_back, 0},
                             {0}}};

DOMT_TEST(stashed_messages_come_back_in_order_before_waiting_ones)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(become_behaviour, &closed);
    domt_pick_settle_world();
    for (int64_t i = 1; i < 4; i++) {
        domt_send_notice_to_picker(&domt_pick_note, i);
        domt_ask_picker(10 + i, 0);
        domt_pick_settle_world();
    }
    ck_assert_str_eq(domt_pick.text, "");
    ck_assert_uint_eq(domt_pick.picker.house->mail, 0);
    ck_assert_str_eq(domt_pick.answers, "");
    domt_send_notice_to_picker(&domt_pick_urgent, 0);
    domt_send_notes_to_picker(4, 5);
    /* the questions are handled behind the notes, and answered in the next run */
    domt_pick_expect_text("1 2 3 4 5 q11 q12 q13 ");
    domt_pick_expect_answers("r11 r12 r13 ");
    ck_assert_uint_eq(domt_pick.releases, 0);
    domt_pick_close_world();
}

DOMT_TEST(stash_is_bounded_by_mailbox_max)
{
    domt_pick_open_world(4, 0);
    domt_send_call_to_picker(become_behaviour, &closed);
    domt_pick_settle_world();
    results_count = 0;
    for (int64_t i = 1; i < 7; i++) {
        domt_send_notice_to_picker(&domt_pick_note, i);
        domt_pick_settle_world();
    }
    ck_assert_int_eq(results_count, 6);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(results[i], i < 4 ? 0 : -ENOBUFS);
    domt_send_notice_to_picker(&domt_pick_urgent, 0);
    domt_pick_expect_text("1 2 3 4 ");
    domt_pick_close_world();
}

DOMT_TEST(stashed_messages_are_dead_letters_when_the_actor_stops)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(become_behaviour, &closed);
    domt_pick_settle_world();
    domt_send_notes_to_picker(1, 3);
    domt_ask_picker(4, 0);
    domt_pick_settle_world();
    domt_pick_stop_picker();
    domt_pick_expect_answers("x-116 ");
    ck_assert_uint_eq(domt_pick.releases, 4);
    ck_assert_uint_eq(DOMT_SUM(&domt_pick.world, dead_letters), 4);
    domt_pick_close_world();
}

DOMT_TEST(stashed_ask_that_expires_meanwhile_is_not_handled)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(become_behaviour, &closed);
    domt_pick_settle_world();
    domt_ask_picker(1, 5 * MS);
    domt_pick_settle_world();
    domt_pick_pass_ns(6 * MS);
    domt_send_notice_to_picker(&domt_pick_urgent, 0);
    domt_pick_expect_text("");
    ck_assert_uint_eq(DOMT_SUM(&domt_pick.world, asks_expired), 1);
    ck_assert_uint_eq(domt_pick.releases, 1);
    ck_assert_str_eq(domt_pick.answers, "x-110 ");
    domt_pick_close_world();
}

DOMT_TEST(world_may_end_while_messages_are_stashed)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker(become_behaviour, &closed);
    domt_pick_settle_world();
    domt_send_notes_to_picker(1, 3);
    domt_ask_picker(4, 0);
    domt_pick_settle_world();
    domt_world_end(&domt_pick.world);
    ck_assert_uint_eq(domt_pick.releases, 4);
}

static int try_to_stash_event(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_stash(stack), -EINVAL); /* -EINVAL: an event cannot be stashed */
    domus_unstash(stack);
    return 0;
}

static int try_to_stash_answered_ask(domus_stack *stack, void *self, const void *number)
{
    ck_assert_int_eq(domus_reply(stack, &domt_pick_number, number), 0);
    ck_assert_int_eq(domus_stash(stack), -EALREADY);
    return 0;
}

static int on_number_stash_twice_and_go_back(domus_stack *stack, void *self, const void *number)
{
    ck_assert_int_eq(domus_stash(stack), 0);
    ck_assert_int_eq(domus_stash(stack), -EINVAL);
    domus_unstash(stack);
    return domus_become(stack, NULL);
}

static const domus_behaviour wrong = {
    .name = "wrong",
    .on = (const domus_on[]){{&domt_pick_question, try_to_stash_answered_ask, 0},
                             {&domt_pick_note, on_number_stash_twice_and_go_back, 0},
                             {0}}};

DOMT_TEST(only_a_message_being_handled_is_stashed_and_once)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker_as_event(try_to_stash_event, NULL);
    domt_send_call_to_picker(become_behaviour, &wrong);
    domt_pick_settle_world();
    domt_ask_picker(1, 0);
    domt_pick_expect_answers("r1 ");
    /* note 5 was stashed and unstashed, and the old behaviour has handled it */
    domt_send_notice_to_picker(&domt_pick_note, 5);
    domt_pick_expect_text("5 ");
    domt_pick_close_world();
}

/* --- stash and receive ----------------------------------------------------------------------- */

static int stash_current_after_receive(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)domt_write_received(answer);
    ck_assert_int_eq(domus_stash(stack), 0);
    ck_assert_ptr_eq(domus_sender(stack).house,
                     answer->type == &domt_pick_question ? domt_pick.asker.house : NULL);
    return domus_receive(stack, &domt_sevens, domt_write_received_and_end);
}

DOMT_TEST(received_messages_may_be_stashed_and_received_again)
{
    domt_pick_open_world(0, 0);
    domt_send_call_to_picker_as_event(
        domt_receive_as_ordered,
        &(domt_reception){&domt_any, DOMUS_FOR_EVER, stash_current_after_receive});
    domt_pick_settle_world();
    domt_send_notice_to_picker(&domt_pick_note, 7);
    domt_pick_expect_text("(7) ");
    domt_send_notice_to_picker(&domt_pick_note, 1);
    domt_pick_settle_world();
    domt_send_call_to_picker_as_event(domt_unstash_all, NULL);
    domt_pick_expect_text("(7) (7) 1 ");

    domt_send_call_to_picker_as_event(
        domt_receive_as_ordered,
        &(domt_reception){&domt_questions, DOMUS_FOR_EVER, stash_current_after_receive});
    domt_pick_settle_world();
    domt_ask_picker(3, 0);
    domt_pick_expect_answers("");
    domt_send_call_to_picker_as_event(domt_unstash_all, NULL);
    domt_send_notice_to_picker(&domt_pick_note, 7);
    domt_pick_expect_text("(7) (7) 1 (q3) (7) q3 ");
    domt_pick_expect_answers("r3 ");
    ck_assert_uint_eq(domt_pick.releases, 0);
    domt_pick_close_world();
}

DOMT_SUITE(60)
