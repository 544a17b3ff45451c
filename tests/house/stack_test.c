/* Conversations: ask, park, resume, answer, fail. Two agents talk: a question is a function that
 * the other one runs in its handler. */
#include "house/stack.h"

#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

static domt_world world;
static domus_address asker; /* home 0 */
static domus_address other; /* home 1, or home 0 where a test says so */

static unsigned drops;

static void count_drop(void *payload)
{
    (void)payload;
    drops++;
}

static const domus_type text8 = {.name = "text8", .size = 8, .drop = count_drop};

/* What the asker heard. */
static struct {
    unsigned resumed;
    int error;
    const domus_type *type;
    char text[9];
    domus_address sender;
} heard;

static int hear(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)self;
    heard.resumed++;
    heard.error = answer->error;
    heard.type = answer->type;
    heard.sender = domus_sender(stack);
    if (answer->type == &text8)
        memcpy(heard.text, answer->payload, 8);
    ck_assert((answer->error == 0) == (answer->payload != NULL));
    return 0;
}

static void open_world(void)
{
    domt_world_open(&world, 2);
    asker = domt_spawn(domt_outside(&world), world.managers[0], &domt_agent, NULL);
    other = domt_spawn(domt_outside(&world), world.managers[1], &domt_agent, NULL);
    domt_settle(&world);
}

/* Nothing is left of any conversation. */
static void close_world(void)
{
    ck_assert_uint_eq(asker.house->promises, 0);
    ck_assert_uint_eq(asker.house->stacks_count, 0);
    ck_assert_uint_eq(domt_in_use_all(&world), 0);
    domt_world_end(&world);
}

static int ask_other(domus_stack *stack, void *call)
{
    return domus_ask(stack, other, &domt_call_type, call, hear);
}

/* Let the other one handle a question by `function`. */
static void ask(int (*function)(domus_stack *, void *))
{
    domt_call question = {function, NULL};

    heard.error = 1;
    heard.type = NULL;
    domt_do(&world, asker, ask_other, &question);
}

/* --- how an ask can end ---------------------------------------------------------------------- */

static int reply_hello(domus_stack *stack, void *context)
{
    (void)context;
    return domus_reply(stack, &text8, "hello...");
}

static int end_without_answer(domus_stack *stack, void *context)
{
    (void)stack, (void)context;
    return 0;
}

static int fail_with_eio(domus_stack *stack, void *context)
{
    (void)stack, (void)context;
    return -EIO;
}

static int say_parked(domus_stack *stack, void *context)
{
    (void)stack, (void)context;
    return DOMUS_PARKED;
}

static int reply_then_fail(domus_stack *stack, void *context)
{
    ck_assert_int_eq(reply_hello(stack, context), 0);
    return -EIO;
}

START_TEST(ask_resumes_with_the_reply)
{
    open_world();
    ask(reply_hello);
    ck_assert_uint_eq(heard.resumed, 1);
    ck_assert_int_eq(heard.error, 0);
    ck_assert_ptr_eq(heard.type, &text8);
    ck_assert_str_eq(heard.text, "hello...");
    ck_assert_ptr_eq(heard.sender.house, other.house);
    ck_assert_uint_eq(heard.sender.lease, other.lease);
    ck_assert_uint_eq(drops, 0); /* who resumed has it */
    close_world();
}
END_TEST

START_TEST(ask_at_home_resumes_with_the_reply)
{
    open_world();
    other = domt_spawn(domt_outside(&world), world.managers[0], &domt_agent, NULL);
    domt_settle(&world);
    ask(reply_hello);
    ck_assert_uint_eq(heard.resumed, 1);
    ck_assert_str_eq(heard.text, "hello...");
    close_world();
}
END_TEST

START_TEST(ask_resumes_with_what_the_handler_returned)
{
    open_world();
    ask(fail_with_eio);
    ck_assert_int_eq(heard.error, -EIO);
    ck_assert_ptr_null(heard.type);
    close_world();
}
END_TEST

START_TEST(ask_that_nobody_answered_fails_with_enomsg)
{
    open_world();
    ask(end_without_answer);
    ck_assert_int_eq(heard.error, -ENOMSG);
    close_world();
}
END_TEST

START_TEST(handler_that_parks_for_nothing_fails_its_ask)
{
    open_world();
    ask(say_parked);
    ck_assert_int_eq(heard.error, -EINVAL);
    domt_do(&world, other, say_parked, NULL); /* as a notice: a failure of the actor */
    ck_assert_uint_eq(DOMT_SUM(&world, failures), 1);
    close_world();
}
END_TEST

START_TEST(handler_that_replied_and_then_fails_is_a_failure_of_its_own)
{
    open_world();
    ask(reply_then_fail);
    ck_assert_uint_eq(heard.resumed, 1);
    ck_assert_int_eq(heard.error, 0);
    ck_assert_uint_eq(DOMT_SUM(&world, failures), 1);
    close_world();
}
END_TEST

static domus_address gone;

static int ask_gone(domus_stack *stack, void *context)
{
    int result = domus_ask(stack, gone, &text8, "dropped.", hear);

    (void)context;
    ck_assert_int_eq(result, DOMUS_PARKED);
    ck_assert_uint_eq(heard.resumed, 0); /* later, never from within */
    return result;
}

START_TEST(ask_of_nobody_and_of_a_stale_address_resumes_with_estale)
{
    open_world();
    for (int i = 0; i < 3; i++) {
        gone = i == 0   ? (domus_address){0}
               : i == 1 ? (domus_address){other.house, other.lease + 1}
                        : (domus_address){asker.house, asker.lease + 1};
        heard.resumed = drops = 0;
        domt_do(&world, asker, ask_gone, NULL);
        ck_assert_uint_eq(heard.resumed, 1);
        ck_assert_int_eq(heard.error, -ESTALE);
        ck_assert_uint_eq(drops, 1);
    }
    close_world();
}
END_TEST

/* --- an error on its way through three actors ------------------------------------------------ */

static domus_address third;

static int forward(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)self;
    if (answer->error != 0)
        return answer->error;
    return domus_reply(stack, answer->type, answer->payload);
}

static int ask_third(domus_stack *stack, void *function)
{
    domt_call question = {*(int (**)(domus_stack *, void *))function, NULL};

    return domus_ask(stack, third, &domt_call_type, &question, forward);
}

START_TEST(answers_and_errors_are_forwarded_through_a_parked_conversation)
{
    int (*const functions[])(domus_stack *, void *) = {reply_hello, fail_with_eio,
                                                       end_without_answer};
    const int errors[] = {0, -EIO, -ENOMSG};

    open_world();
    for (int i = 0; i < 3; i++) {
        int (*function)(domus_stack *, void *) = functions[i];
        domt_call question = {ask_third, &function};
        third = domt_spawn(domt_outside(&world), world.managers[i % 2], &domt_agent, NULL);
        domt_do(&world, asker, ask_other, &question);
        ck_assert_int_eq(heard.error, errors[i]);
        ck_assert_uint_eq(heard.resumed, (unsigned)i + 1);
    }
    ck_assert_str_eq(heard.text, "hello...");
    close_world();
}
END_TEST

/* --- handlers that change their mind --------------------------------------------------------- */

static int ask_and_return(domus_stack *stack, void *result)
{
    domt_call question = {reply_hello, NULL};

    ck_assert_int_eq(domus_ask(stack, other, &domt_call_type, &question, hear), DOMUS_PARKED);
    return *(int *)result;
}

START_TEST(handler_that_asks_and_ends_hears_no_answer)
{
    int results[] = {0, -EIO};

    open_world();
    for (unsigned i = 0; i < 2; i++) {
        domt_do(&world, asker, ask_and_return, &results[i]);
        ck_assert_uint_eq(heard.resumed, 0);
        ck_assert_uint_eq(drops, i + 1); /* the late answer is dropped ... */
        ck_assert_uint_eq(DOMT_SUM(&world, dead_letters), i + 1); /* ... and counted */
    }
    ck_assert_uint_eq(DOMT_SUM(&world, failures), 1);
    close_world();
}
END_TEST

static int resume_ask_and_end(domus_stack *stack, void *self, const domus_answer *answer)
{
    int result = 0;

    (void)self, (void)answer;
    return ask_and_return(stack, &result);
}

static int ask_twice_and_end(domus_stack *stack, void *context)
{
    domt_call question = {reply_hello, NULL};

    (void)context;
    return domus_ask(stack, other, &domt_call_type, &question, resume_ask_and_end);
}

START_TEST(resumed_conversation_that_asks_and_ends_hears_no_answer)
{
    open_world();
    domt_do(&world, asker, ask_twice_and_end, NULL);
    ck_assert_uint_eq(heard.resumed, 0);
    ck_assert_uint_eq(drops, 1);
    close_world();
}
END_TEST

static int ask_gone_and_end(domus_stack *stack, void *context)
{
    (void)context;
    (void)ask_gone(stack, NULL);
    return 0;
}

static int ask_gone_again(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)self, (void)answer;
    return ask_gone_and_end(stack, NULL);
}

static int ask_gone_twice_and_end(domus_stack *stack, void *context)
{
    (void)context;
    return domus_ask(stack, gone, &text8, "dropped.", ask_gone_again);
}

START_TEST(failed_ask_of_a_conversation_that_ended_is_not_heard)
{
    open_world();
    gone = (domus_address){0};
    domt_do(&world, asker, ask_gone_and_end, NULL);
    domt_do(&world, asker, ask_gone_twice_and_end, NULL);
    ck_assert_uint_eq(heard.resumed, 0);
    ck_assert_uint_eq(drops, 3);
    close_world();
}
END_TEST

static int ask_twice(domus_stack *stack, void *context)
{
    int parked = ask_other(stack, context);

    ck_assert_int_eq(parked, DOMUS_PARKED);
    ck_assert_int_eq(domus_ask(stack, other, &text8, "dropped.", hear), -EBUSY);
    return parked;
}

START_TEST(second_ask_of_a_waiting_stack_is_busy)
{
    domt_call question = {reply_hello, NULL};

    open_world();
    domt_do(&world, asker, ask_twice, &question);
    ck_assert_uint_eq(heard.resumed, 1);
    ck_assert_uint_eq(drops, 0); /* the refused payload stays the caller's */
    close_world();
}
END_TEST

/* --- reply ----------------------------------------------------------------------------------- */

static int reply_twice(domus_stack *stack, void *context)
{
    ck_assert_int_eq(reply_hello(stack, context), 0);
    ck_assert_int_eq(reply_hello(stack, context), -EALREADY);
    ck_assert_ptr_eq(domus_sender(stack).house, asker.house); /* still known */
    return 0;
}

static int reply_to_notice(domus_stack *stack, void *context)
{
    ck_assert_int_eq(reply_hello(stack, context), -EINVAL);
    return 0;
}

START_TEST(reply_is_taken_once_and_only_for_an_ask)
{
    open_world();
    ask(reply_twice);
    ck_assert_uint_eq(heard.resumed, 1);
    domt_do(&world, other, reply_to_notice, NULL);
    close_world();
}
END_TEST

static int hear_and_reply(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)self, (void)answer;
    ck_assert_int_eq(reply_hello(stack, NULL), 0);
    ck_assert_int_eq(reply_hello(stack, NULL), -EALREADY);
    return 0;
}

static int hear_nothing(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)stack, (void)self;
    ck_assert_int_eq(answer->error, -ENOMSG);
    return 0;
}

static int reply_and_park(domus_stack *stack, void *context)
{
    domt_call question = {end_without_answer, NULL};

    ck_assert_int_eq(reply_hello(stack, context), 0);
    return domus_ask(stack, third, &domt_call_type, &question, hear_nothing);
}

static int park_and_reply(domus_stack *stack, void *context)
{
    domt_call question = {end_without_answer, NULL};

    (void)context;
    return domus_ask(stack, third, &domt_call_type, &question, hear_and_reply);
}

START_TEST(reply_may_come_before_or_after_a_park)
{
    open_world();
    third = asker; /* who is asked back while it waits: conversations interleave */
    ask(park_and_reply);
    ck_assert_uint_eq(heard.resumed, 1);
    ck_assert_str_eq(heard.text, "hello...");
    ask(reply_and_park);
    ck_assert_uint_eq(heard.resumed, 2);
    ck_assert_int_eq(heard.error, 0);
    close_world();
}
END_TEST

START_TEST(actor_may_ask_itself)
{
    open_world();
    other = asker;
    ask(reply_hello);
    ck_assert_uint_eq(heard.resumed, 1);
    ck_assert_str_eq(heard.text, "hello...");
    close_world();
}
END_TEST

static const domus_type huge = {.name = "huge", .size = DOMUS_PAYLOAD_MAX + 1};

static int send_huge(domus_stack *stack, void *context)
{
    (void)context;
    ck_assert_int_eq(domus_notice(stack, other, &huge, ""), -EMSGSIZE);
    ck_assert_int_eq(domus_ask(stack, other, &huge, "", hear), -EMSGSIZE);
    if (domus_sender(stack).house != NULL)
        ck_assert_int_eq(domus_reply(stack, &huge, ""), -EMSGSIZE);
    return reply_hello(stack, NULL);
}

START_TEST(payload_beyond_the_maximum_is_refused_and_nothing_lost)
{
    open_world();
    ask(send_huge); /* the reply that is small enough is still taken */
    ck_assert_str_eq(heard.text, "hello...");
    domt_do(&world, other, send_huge, NULL);
    close_world();
}
END_TEST

/* --- who speaks ------------------------------------------------------------------------------ */

static int look_from_asker(domus_stack *stack, void *context)
{
    (void)context;
    ck_assert_ptr_eq(domus_self(stack).house, other.house);
    ck_assert_uint_eq(domus_self(stack).lease, other.lease);
    ck_assert_ptr_eq(domus_sender(stack).house, asker.house);
    ck_assert_uint_eq(domus_sender(stack).lease, asker.lease);
    ck_assert_uint_eq(domus_now_ns(stack), world.managers[1]->now_ns);
    return 0;
}

static int look_from_outside(domus_stack *stack, void *context)
{
    (void)context;
    ck_assert_ptr_null(domus_sender(stack).house);
    ck_assert_ptr_null(domus_frame(stack));
    return 0;
}

START_TEST(stack_knows_self_sender_and_time)
{
    open_world();
    ask(look_from_asker);
    domt_do(&world, asker, look_from_outside, NULL);
    close_world();
}
END_TEST

DOMT_MAIN("stack", 60, ask_resumes_with_the_reply, ask_at_home_resumes_with_the_reply,
          ask_resumes_with_what_the_handler_returned, ask_that_nobody_answered_fails_with_enomsg,
          handler_that_parks_for_nothing_fails_its_ask,
          handler_that_replied_and_then_fails_is_a_failure_of_its_own,
          ask_of_nobody_and_of_a_stale_address_resumes_with_estale,
          answers_and_errors_are_forwarded_through_a_parked_conversation,
          handler_that_asks_and_ends_hears_no_answer,
          resumed_conversation_that_asks_and_ends_hears_no_answer,
          failed_ask_of_a_conversation_that_ended_is_not_heard,
          second_ask_of_a_waiting_stack_is_busy, reply_is_taken_once_and_only_for_an_ask,
          reply_may_come_before_or_after_a_park, actor_may_ask_itself,
          payload_beyond_the_maximum_is_refused_and_nothing_lost, stack_knows_self_sender_and_time)
