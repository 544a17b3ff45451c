/* house/conversation/stack.c: conversations ask, park and resume, and an ask can end in each of its
 * ways. Replies may be sent before or after a park, once, and up to the maximum size; and answers
 * that come before their conversation waits for them are kept in order. */
#include "house/conversation/stack.h"
#include "tests/house/steps.h"
#include "tests/house/talk.h"
#include "tests/support/suite.h"

#include <domus/conversation.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- how an ask can end ---------------------------------------------------------------------- */

static int return_parked_without_wait(domus_stack *stack, void *context)
{
    return DOMUS_PARKED;
}

static int reply_then_fail(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domt_reply_hello(stack, context), 0);
    return -EIO;
}

DOMT_TEST(ask_resumes_with_the_reply)
{
    domt_talk_open_world();
    domt_talk_ask_by_function(domt_reply_hello);
    domt_talk_expect_answers(1, 0);
    ck_assert_ptr_eq(domt_talk.type, &domt_text);
    ck_assert_str_eq(domt_talk.text, "hello...");
    ck_assert_ptr_eq(domt_talk.sender.house, domt_talk.other.house);
    ck_assert_uint_eq(domt_talk.sender.lease, domt_talk.other.lease);
    /* the answer is not released while the resumed function has it */
    ck_assert_uint_eq(domt_talk.releases, 0);
    domt_talk_close_world();
}

DOMT_TEST(ask_whose_handler_did_not_reply_resumes_with_an_error)
{
    static const struct {
        int (*function)(domus_stack *, void *);
        int error;
    } rows[] = {{domt_fail_with_eio, -EIO},
                {domt_end_without_answer, -ENOMSG},
                {return_parked_without_wait, -EINVAL}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        domt_talk_open_world();
        domt_talk_ask_by_function(rows[i].function);
        ck_assert_msg(domt_talk.error == rows[i].error && domt_talk.type == NULL, "row %zu: %d", i,
                      domt_talk.error);
        domt_talk_close_world();
    }
}

DOMT_TEST(handler_of_a_notice_that_parks_for_nothing_is_a_failure_of_the_actor)
{
    domt_talk_open_world();
    domt_run_as_actor(&domt_talk.world, domt_talk.other, return_parked_without_wait, NULL);
    ck_assert_uint_eq(DOMT_SUM(&domt_talk.world, failures), 1);
    domt_talk_close_world();
}

DOMT_TEST(handler_that_replied_and_then_fails_is_a_failure_of_its_own)
{
    domt_talk_open_world();
    domt_talk_ask_by_function(reply_then_fail);
    domt_talk_expect_answers(1, 0);
    ck_assert_uint_eq(DOMT_SUM(&domt_talk.world, failures), 1);
    domt_talk_close_world();
}

static domus_address gone;

static int ask_ended_actor(domus_stack *stack, void *context)
{
    int result = domus_ask(stack, gone, &domt_text, "dropped.", domt_talk_record_answer);

    ck_assert_int_eq(result, DOMUS_PARKED);
    /* An answer resumes its function later, never from within the verb that asked. */
    ck_assert_uint_eq(domt_talk.resumed, 0);
    return result;
}

DOMT_TEST(ask_of_nobody_and_of_a_stale_address_resumes_with_estale)
{
    domt_talk_open_world();
    for (int i = 0; i < 3; i++) {
        gone = i == 0   ? (domus_address){0}
               : i == 1 ? (domus_address){domt_talk.other.house, domt_talk.other.lease + 1}
                        : (domus_address){domt_talk.asker.house, domt_talk.asker.lease + 1};
        domt_talk.resumed = domt_talk.releases = 0;
        domt_run_as_actor(&domt_talk.world, domt_talk.asker, ask_ended_actor, NULL);
        domt_talk_expect_answers(1, -ESTALE);
        ck_assert_uint_eq(domt_talk.releases, 1);
    }
    domt_talk_close_world();
}

/* --- an error on its way through three actors ------------------------------------------------ */

static int reply_with_answer_of_other(domus_stack *stack, void *self, const domus_answer *answer)
{
    if (answer->error != 0)
        return answer->error;
    return domus_reply(stack, answer->type, answer->payload);
}

static int ask_third_and_pass_answer_on(domus_stack *stack, void *function)
{
    domt_call question = {*(int (**)(domus_stack *, void *))function, NULL};

    return domus_ask(stack, domt_talk.third, &domt_call_type, &question,
                     reply_with_answer_of_other);
}

DOMT_TEST(answers_and_errors_are_forwarded_through_a_parked_conversation)
{
    int (*const functions[])(domus_stack *, void *) = {domt_reply_hello, domt_fail_with_eio,
                                                       domt_end_without_answer};
    const int errors[] = {0, -EIO, -ENOMSG};

    domt_talk_open_world();
    for (int i = 0; i < 3; i++) {
        int (*function)(domus_stack *, void *) = functions[i];
        domt_call question = {ask_third_and_pass_answer_on, &function};
        domt_talk.third = domt_spawn(domt_outside_manager(&domt_talk.world),
                                     domt_talk.world.managers[i % 2], &domt_agent, NULL);
        domt_run_as_actor(&domt_talk.world, domt_talk.asker, domt_talk_ask_other_agent, &question);
        ck_assert_int_eq(domt_talk.error, errors[i]);
        ck_assert_uint_eq(domt_talk.resumed, (unsigned)i + 1);
    }
    ck_assert_str_eq(domt_talk.text, "hello...");
    domt_talk_close_world();
}

/* --- handlers that change their mind --------------------------------------------------------- */

static int ask_and_return_without_wait(domus_stack *stack, void *result)
{
    domt_call question = {domt_reply_hello, NULL};

    ck_assert_int_eq(
        domus_ask(stack, domt_talk.other, &domt_call_type, &question, domt_talk_record_answer),
        DOMUS_PARKED);
    return *(int *)result;
}

DOMT_TEST(handler_that_asks_and_ends_hears_no_answer)
{
    int results[] = {0, -EIO};

    domt_talk_open_world();
    for (unsigned i = 0; i < 2; i++) {
        domt_run_as_actor(&domt_talk.world, domt_talk.asker, ask_and_return_without_wait,
                          &results[i]);
        ck_assert_uint_eq(domt_talk.resumed, 0);
        /* the answer that comes too late is released */
        ck_assert_uint_eq(domt_talk.releases, i + 1);
        ck_assert_uint_eq(DOMT_SUM(&domt_talk.world, dead_letters),
                          i + 1); /* the answer that comes too late counts as a dead letter */
    }
    ck_assert_uint_eq(DOMT_SUM(&domt_talk.world, failures), 1);
    domt_talk_close_world();
}

static int ask_other_to_fail(domus_stack *stack, void *context)
{
    domt_call question = {domt_fail_with_eio, NULL};

    return domus_ask(stack, domt_talk.other, &domt_call_type, &question, domt_talk_record_answer);
}

/* The first conversation ends without waiting. The second one uses the same stack, and both answers
 * come. */
DOMT_TEST(late_answer_does_not_resume_the_next_conversation)
{
    int result = 0;

    domt_talk_open_world();
    domi_manager *home = domt_talk.world.managers[0];
    domt_send_function_to_call(home, domt_talk.asker, ask_and_return_without_wait, &result);
    domt_send_function_to_call(home, domt_talk.asker, ask_other_to_fail, NULL);
    (void)domt_iterate_home(home);
    ck_assert_uint_eq(domt_talk.asker.house->asks, 1);
    domt_settle_world(&domt_talk.world);
    domt_talk_expect_answers(1, -EIO);
    ck_assert_uint_eq(domt_talk.releases, 1);
    domt_talk_close_world();
}

static int ask_again_when_resumed_and_end(domus_stack *stack, void *self,
                                          const domus_answer *answer)
{
    int result = 0;

    (void)domus_take(stack);
    return ask_and_return_without_wait(stack, &result);
}

static int ask_twice_and_end(domus_stack *stack, void *context)
{
    domt_call question = {domt_reply_hello, NULL};

    return domus_ask(stack, domt_talk.other, &domt_call_type, &question,
                     ask_again_when_resumed_and_end);
}

DOMT_TEST(resumed_conversation_that_asks_and_ends_hears_no_answer)
{
    domt_talk_open_world();
    domt_run_as_actor(&domt_talk.world, domt_talk.asker, ask_twice_and_end, NULL);
    ck_assert_uint_eq(domt_talk.resumed, 0);
    ck_assert_uint_eq(domt_talk.releases, 1);
    domt_talk_close_world();
}

static int ask_ended_actor_and_end(domus_stack *stack, void *context)
{
    (void)ask_ended_actor(stack, NULL);
    return 0;
}

static int ask_ended_actor_again(domus_stack *stack, void *self, const domus_answer *answer)
{
    return ask_ended_actor_and_end(stack, NULL);
}

static int ask_ended_actor_twice_and_end(domus_stack *stack, void *context)
{
    return domus_ask(stack, gone, &domt_text, "dropped.", ask_ended_actor_again);
}

DOMT_TEST(failed_ask_of_a_conversation_that_ended_is_not_heard)
{
    domt_talk_open_world();
    gone = (domus_address){0};
    domt_run_as_actor(&domt_talk.world, domt_talk.asker, ask_ended_actor_and_end, NULL);
    domt_run_as_actor(&domt_talk.world, domt_talk.asker, ask_ended_actor_twice_and_end, NULL);
    ck_assert_uint_eq(domt_talk.resumed, 0);
    ck_assert_uint_eq(domt_talk.releases, 3);
    domt_talk_close_world();
}

static int ask_other_then_itself(domus_stack *stack, void *context)
{
    int parked = domt_talk_ask_other_agent(stack, context);

    ck_assert_int_eq(parked, DOMUS_PARKED);
    return domus_ask(stack, domt_talk.asker, &domt_text, "dropped.", domt_talk_record_answer);
}

DOMT_TEST(conversation_waits_for_what_it_asked_last)
{
    domt_call question = {domt_reply_hello, NULL};

    domt_talk_open_world();
    domt_run_as_actor(&domt_talk.world, domt_talk.asker, ask_other_then_itself, &question);
    /* the asker is shown the answer to the second ask, not the hello to the first */
    domt_talk_expect_answers(1, -EOPNOTSUPP);
    domt_talk_close_world();
}

/* --- replies ---------------------------------------------------------------------------------- */

static int reply_twice(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domt_reply_hello(stack, context), 0);
    ck_assert_int_eq(domt_reply_hello(stack, context), -EALREADY);
    /* after its reply a handler still knows the sender */
    ck_assert_ptr_eq(domus_sender(stack).house, domt_talk.asker.house);
    return 0;
}

static int try_to_reply_to_notice(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domt_reply_hello(stack, context), -EINVAL);
    return 0;
}

DOMT_TEST(reply_is_taken_once_and_only_for_an_ask)
{
    domt_talk_open_world();
    domt_talk_ask_by_function(reply_twice);
    ck_assert_uint_eq(domt_talk.resumed, 1);
    domt_run_as_actor(&domt_talk.world, domt_talk.other, try_to_reply_to_notice, NULL);
    domt_talk_close_world();
}

static int handle_answer_and_reply(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(domt_reply_hello(stack, NULL), 0);
    ck_assert_int_eq(domt_reply_hello(stack, NULL), -EALREADY);
    return 0;
}

static int expect_enomsg(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, -ENOMSG);
    return 0;
}

static int reply_and_ask_third(domus_stack *stack, void *context)
{
    domt_call question = {domt_end_without_answer, NULL};

    ck_assert_int_eq(domt_reply_hello(stack, context), 0);
    return domus_ask(stack, domt_talk.third, &domt_call_type, &question, expect_enomsg);
}

static int ask_third_and_reply(domus_stack *stack, void *context)
{
    domt_call question = {domt_end_without_answer, NULL};

    return domus_ask(stack, domt_talk.third, &domt_call_type, &question, handle_answer_and_reply);
}

DOMT_TEST(reply_may_come_before_or_after_a_park)
{
    domt_talk_open_world();
    /* the third actor is the asker itself: it is asked back while its conversation waits */
    domt_talk.third = domt_talk.asker;
    domt_talk_ask_by_function(ask_third_and_reply);
    ck_assert_uint_eq(domt_talk.resumed, 1);
    ck_assert_str_eq(domt_talk.text, "hello...");
    domt_talk_ask_by_function(reply_and_ask_third);
    domt_talk_expect_answers(2, 0);
    domt_talk_close_world();
}

DOMT_TEST(actor_may_ask_itself)
{
    domt_talk_open_world();
    domt_talk.other = domt_talk.asker;
    domt_talk_ask_by_function(domt_reply_hello);
    ck_assert_uint_eq(domt_talk.resumed, 1);
    ck_assert_str_eq(domt_talk.text, "hello...");
    domt_talk_close_world();
}

static const domus_type huge = {.name = "huge", .size = DOMUS_PAYLOAD_MAX + 1};

static int try_to_send_too_large_payload(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_notice(stack, domt_talk.other, &huge, ""), -EMSGSIZE);
    ck_assert_int_eq(domus_ask(stack, domt_talk.other, &huge, "", domt_talk_record_answer),
                     -EMSGSIZE);
    if (domus_sender(stack).house != NULL)
        ck_assert_int_eq(domus_reply(stack, &huge, ""), -EMSGSIZE);
    return domt_reply_hello(stack, NULL);
}

DOMT_TEST(payload_beyond_the_maximum_is_refused_and_nothing_lost)
{
    domt_talk_open_world();
    /* after the refused huge reply, a small one is taken */
    domt_talk_ask_by_function(try_to_send_too_large_payload);
    ck_assert_str_eq(domt_talk.text, "hello...");
    domt_run_as_actor(&domt_talk.world, domt_talk.other, try_to_send_too_large_payload, NULL);
    domt_talk_close_world();
}

/* --- who speaks ------------------------------------------------------------------------------ */

static int check_stack_of_ask(domus_stack *stack, void *context)
{
    ck_assert_ptr_eq(domus_self(stack).house, domt_talk.other.house);
    ck_assert_uint_eq(domus_self(stack).lease, domt_talk.other.lease);
    ck_assert_ptr_eq(domus_sender(stack).house, domt_talk.asker.house);
    ck_assert_uint_eq(domus_sender(stack).lease, domt_talk.asker.lease);
    ck_assert_uint_eq(domus_now_ns(stack), domt_talk.world.managers[1]->now_ns);
    return 0;
}

static int check_stack_of_outside_call(domus_stack *stack, void *context)
{
    ck_assert_ptr_null(domus_sender(stack).house);
    ck_assert_ptr_null(domus_frame(stack));
    return 0;
}

DOMT_TEST(stack_knows_self_sender_and_time)
{
    domt_talk_open_world();
    domt_talk_ask_by_function(check_stack_of_ask);
    domt_run_as_actor(&domt_talk.world, domt_talk.asker, check_stack_of_outside_call, NULL);
    domt_talk_close_world();
}

/* --- answers that are kept -------------------------------------------------------------------- */

#define MS UINT64_C(1000000)

static char heard[32]; /* the tags of all answers that domus_wait_all() has shown, in order */

static int write_tags_of_answers(domus_stack *stack, void *self, const domus_answer *answer)
{
    for (; answer != NULL; answer = answer->next) {
        size_t length = strlen(heard);
        snprintf(heard + length, sizeof heard - length, "%d ", (int)answer->tag);
    }
    return 0;
}

static int ask_other_with_tag(domus_stack *stack, uint64_t tag)
{
    static const domt_call hello = {domt_reply_hello, NULL};

    return domus_ask_add(stack, domt_talk.other, &domt_call_type, &hello, 0, tag);
}

static int ask_more_and_wait_for_all(domus_stack *stack, void *self, const domus_answer *answer)
{
    /* the tag of the sleep, which ended last and is shown first */
    ck_assert_uint_eq(answer->tag, 0);
    ck_assert_int_eq(ask_other_with_tag(stack, 3), 0);
    ck_assert_int_eq(ask_other_with_tag(stack, 4), 0);
    return domus_wait_all(stack, write_tags_of_answers);
}

static int ask_twice_and_sleep(domus_stack *stack, void *context)
{
    ck_assert_int_eq(ask_other_with_tag(stack, 1), 0);
    ck_assert_int_eq(ask_other_with_tag(stack, 2), 0);
    return domus_sleep(stack, 50 * MS, ask_more_and_wait_for_all);
}

DOMT_TEST(answers_that_are_kept_outlast_one_that_came_later_and_was_shown)
{
    domt_talk_open_world();
    domt_run_as_actor(&domt_talk.world, domt_talk.asker, ask_twice_and_sleep, NULL);
    ck_assert_uint_eq(domt_talk.asker.house->stacks->pending, 1);
    domt_pass_time(&domt_talk.world, 60 * MS);
    ck_assert_str_eq(heard, "1 2 3 4 ");
    domt_talk_close_world();
}

/* --- as many as may be kept ------------------------------------------------------------------- */

static unsigned handled;

static int sleep_50_ms(domus_stack *stack, void *context)
{
    handled++;
    return domus_sleep(stack, 50 * MS, domt_hear_nothing);
}

DOMT_TEST(actor_with_all_its_conversations_takes_mail_again_when_one_ends)
{
    domt_talk_open_world();
    domt_talk.world.managers[0]->limits.conversations_max = 2;
    for (int i = 0; i < 5; i++)
        domt_run_as_actor(&domt_talk.world, domt_talk.asker, sleep_50_ms, NULL);
    ck_assert_uint_eq(handled, 2);
    domt_pass_time(&domt_talk.world, 60 * MS);
    ck_assert_uint_eq(handled, 4);
    domt_pass_time(&domt_talk.world, 60 * MS);
    ck_assert_uint_eq(handled, 5);
    domt_pass_time(&domt_talk.world, 60 * MS);
    domt_talk_close_world();
}

DOMT_SUITE(60)
