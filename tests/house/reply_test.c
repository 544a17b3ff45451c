/* Replies are taken once, before or after a park, up to the maximum size; and a stack knows its
 * actor, the sender and the time. */
#include "tests/house/talk.h"
#include "tests/support/suite.h"

#include <errno.h>

static int reply_twice(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domt_reply_hello(stack, context), 0);
    ck_assert_int_eq(domt_reply_hello(stack, context), -EALREADY);
    ck_assert_ptr_eq(domus_sender(stack).house, domt_talk.asker.house); /* still known */
    return 0;
}

static int reply_to_notice(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domt_reply_hello(stack, context), -EINVAL);
    return 0;
}

DOMT_TEST(reply_is_taken_once_and_only_for_an_ask)
{
    domt_talk_open();
    domt_talk_ask(reply_twice);
    ck_assert_uint_eq(domt_talk.resumed, 1);
    domt_do(&domt_talk.world, domt_talk.other, reply_to_notice, NULL);
    domt_talk_close();
}

static int hear_and_reply(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(domt_reply_hello(stack, NULL), 0);
    ck_assert_int_eq(domt_reply_hello(stack, NULL), -EALREADY);
    return 0;
}

static int hear_nothing(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, -ENOMSG);
    return 0;
}

static int reply_and_park(domus_stack *stack, void *context)
{
    domt_call question = {domt_end_without_answer, NULL};

    ck_assert_int_eq(domt_reply_hello(stack, context), 0);
    return domus_ask(stack, domt_talk.third, &domt_call_type, &question, hear_nothing);
}

static int park_and_reply(domus_stack *stack, void *context)
{
    domt_call question = {domt_end_without_answer, NULL};

    return domus_ask(stack, domt_talk.third, &domt_call_type, &question, hear_and_reply);
}

DOMT_TEST(reply_may_come_before_or_after_a_park)
{
    domt_talk_open();
    domt_talk.third = domt_talk.asker; /* asked back while it waits: conversations interleave */
    domt_talk_ask(park_and_reply);
    ck_assert_uint_eq(domt_talk.resumed, 1);
    ck_assert_str_eq(domt_talk.text, "hello...");
    domt_talk_ask(reply_and_park);
    ck_assert_uint_eq(domt_talk.resumed, 2);
    ck_assert_int_eq(domt_talk.error, 0);
    domt_talk_close();
}

DOMT_TEST(actor_may_ask_itself)
{
    domt_talk_open();
    domt_talk.other = domt_talk.asker;
    domt_talk_ask(domt_reply_hello);
    ck_assert_uint_eq(domt_talk.resumed, 1);
    ck_assert_str_eq(domt_talk.text, "hello...");
    domt_talk_close();
}

static const domus_type huge = {.name = "huge", .size = DOMUS_PAYLOAD_MAX + 1};

static int send_huge(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_notice(stack, domt_talk.other, &huge, ""), -EMSGSIZE);
    ck_assert_int_eq(domus_ask(stack, domt_talk.other, &huge, "", domt_talk_hear), -EMSGSIZE);
    if (domus_sender(stack).house != NULL)
        ck_assert_int_eq(domus_reply(stack, &huge, ""), -EMSGSIZE);
    return domt_reply_hello(stack, NULL);
}

DOMT_TEST(payload_beyond_the_maximum_is_refused_and_nothing_lost)
{
    domt_talk_open();
    domt_talk_ask(send_huge); /* the reply that is small enough is still taken */
    ck_assert_str_eq(domt_talk.text, "hello...");
    domt_do(&domt_talk.world, domt_talk.other, send_huge, NULL);
    domt_talk_close();
}

/* --- who speaks ------------------------------------------------------------------------------ */

static int look_from_asker(domus_stack *stack, void *context)
{
    ck_assert_ptr_eq(domus_self(stack).house, domt_talk.other.house);
    ck_assert_uint_eq(domus_self(stack).lease, domt_talk.other.lease);
    ck_assert_ptr_eq(domus_sender(stack).house, domt_talk.asker.house);
    ck_assert_uint_eq(domus_sender(stack).lease, domt_talk.asker.lease);
    ck_assert_uint_eq(domus_now_ns(stack), domt_talk.world.managers[1]->now_ns);
    return 0;
}

static int look_from_outside(domus_stack *stack, void *context)
{
    ck_assert_ptr_null(domus_sender(stack).house);
    ck_assert_ptr_null(domus_frame(stack));
    return 0;
}

DOMT_TEST(stack_knows_self_sender_and_time)
{
    domt_talk_open();
    domt_talk_ask(look_from_asker);
    domt_do(&domt_talk.world, domt_talk.asker, look_from_outside, NULL);
    domt_talk_close();
}

DOMT_SUITE(60)
