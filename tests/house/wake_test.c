/* domus_wake() ends the sleep of another conversation of the actor: once, without an error, and not
 * as a cancel. */
#include "house/conversation/stack.h"
#include "house/message/mailbox.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <errno.h>

#define MS UINT64_C(1000000)

static domt_world world;
static domus_address sleeper, other;
static domus_conversation asleep;
static unsigned heard;
static int error;

static int run_call_of_test(domus_stack *stack, void *self, const void *call_)
{
    const domt_call *call = call_;

    return call->function(stack, call->context);
}

static const domus_type question = {.name = "question"};

static int keep_ask_for_ever(domus_stack *stack, void *self, const void *payload)
{
    static domus_kept kept;

    return domus_keep(stack, &kept);
}

static const domus_behaviour talking = {
    .name = "talking",
    .on = (const domus_on[]){{&domt_call_type, run_call_of_test, 0},
                             {&question, keep_ask_for_ever, 0},
                             {NULL, NULL, 0}},
};

static void open_world(void)
{
    domt_world_open(&world, 1);
    sleeper = domt_spawn(domt_outside_manager(&world), world.managers[0], &talking, NULL);
    other = domt_spawn(domt_outside_manager(&world), world.managers[0], &talking, NULL);
    domt_settle_world(&world);
    heard = 0;
    error = 1;
}

static void close_world(void)
{
    ck_assert_uint_eq(domi_house_count_parked_conversations(sleeper.house), 0);
    ck_assert_uint_eq(world.managers[0]->timing.deadlines.count, 0);
    domt_world_end(&world);
}

static int record_error_of_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    heard++;
    error = answer->error;
    return 0;
}

static int sleep_100_ms_and_remember(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_conversation_of(stack, &asleep), 0);
    return domus_sleep(stack, 100 * MS, record_error_of_answer);
}

static int try_to_wake_sleeper(domus_stack *stack, void *result)
{
    *(int *)result = domus_wake(stack, asleep);
    return 0;
}

static int try_to_cancel_sleeper(domus_stack *stack, void *result)
{
    *(int *)result = domus_cancel(stack, asleep);
    return 0;
}

/* Let the sleeper handle two calls in one run. */
static void run_two_calls_in_one_run(int (*first)(domus_stack *, void *), int *ret_first,
                                     int (*second)(domus_stack *, void *), int *ret_second)
{
    *ret_first = *ret_second = 1;
    domt_send_function_to_call(world.managers[0], sleeper, first, ret_first);
    domt_send_function_to_call(world.managers[0], sleeper, second, ret_second);
    domt_settle_world(&world);
}

DOMT_TEST(a_sleep_is_over_once_without_an_error_and_counts_as_no_cancel)
{
    int first, second;

    open_world();
    domt_run_as_actor(&world, sleeper, sleep_100_ms_and_remember, NULL);
    run_two_calls_in_one_run(try_to_wake_sleeper, &first, try_to_wake_sleeper, &second);
    ck_assert_int_eq(first, 0);
    /* the second wake returns 0, too: the conversation had not gone on yet */
    ck_assert_int_eq(second, 0);
    ck_assert_uint_eq(heard, 1);
    ck_assert_int_eq(error, 0);
    domt_run_as_actor(&world, sleeper, try_to_wake_sleeper, &first);
    ck_assert_int_eq(first, -ENOENT); /* -ENOENT: the conversation has ended */
    domt_pass_time(&world, 200 * MS);
    ck_assert_uint_eq(heard, 1);
    ck_assert_uint_eq(DOMT_SUM(&world, cancels), 0);
    ck_assert_uint_eq(DOMT_SUM(&world, handled[DOMI_EXCEPTION]), 0);
    ck_assert_uint_eq(DOMT_SUM(&world, handled[DOMI_REPLY]), 1);
    close_world();
}

DOMT_TEST(whichever_comes_first_of_a_wake_and_a_cancel_ends_the_sleep)
{
    int first, second;

    open_world();
    domt_run_as_actor(&world, sleeper, sleep_100_ms_and_remember, NULL);
    run_two_calls_in_one_run(try_to_cancel_sleeper, &first, try_to_wake_sleeper, &second);
    ck_assert_int_eq(first, 0);
    ck_assert_int_eq(second, -EALREADY);
    ck_assert_int_eq(error, -ECANCELED);
    ck_assert_uint_eq(DOMT_SUM(&world, handled[DOMI_EXCEPTION]), 1);
    domt_run_as_actor(&world, sleeper, sleep_100_ms_and_remember, NULL);
    run_two_calls_in_one_run(try_to_wake_sleeper, &first, try_to_cancel_sleeper, &second);
    ck_assert_int_eq(first, 0);
    ck_assert_int_eq(second, 0);
    /* the wake came before the cancel, so the sleep ended without an error */
    ck_assert_int_eq(error, 0);
    ck_assert_uint_eq(heard, 2);
    close_world();
}

DOMT_TEST(another_actor_cannot_wake_a_sleeper)
{
    int result = 1;

    open_world();
    domt_run_as_actor(&world, sleeper, sleep_100_ms_and_remember, NULL);
    domt_run_as_actor(&world, other, try_to_wake_sleeper, &result);
    ck_assert_int_eq(result, -ENOENT);
    asleep = (domus_conversation){asleep.stack, asleep.serial + 1};
    domt_run_as_actor(&world, sleeper, try_to_wake_sleeper, &result);
    ck_assert_int_eq(result, -ENOENT);
    ck_assert_uint_eq(heard, 0);
    domt_pass_time(&world, 200 * MS);
    ck_assert_uint_eq(heard, 1);
    close_world();
}

static int ask_other_and_sleep(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_conversation_of(stack, &asleep), 0);
    ck_assert_int_eq(domus_ask_add(stack, other, &question, NULL, 50 * MS, 1), 0);
    ck_assert_int_eq(domus_sleep_add(stack, 100 * MS, 2), 0);
    return domus_wait_first(stack, record_error_of_answer);
}

/* A wake does not end the wait for an ask without a sleep. */
static int ask_other_without_sleep(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_conversation_of(stack, &asleep), 0);
    return domus_ask_within(stack, other, &question, NULL, 50 * MS, record_error_of_answer);
}

DOMT_TEST(conversation_that_waits_for_an_ask_is_not_woken)
{
    int result = 1;

    open_world();
    domt_run_as_actor(&world, sleeper, ask_other_and_sleep, NULL);
    domt_run_as_actor(&world, sleeper, try_to_wake_sleeper, &result);
    ck_assert_int_eq(result, 0);
    ck_assert_uint_eq(heard, 1);
    ck_assert_int_eq(error, 0);
    domt_run_as_actor(&world, sleeper, ask_other_without_sleep, NULL);
    domt_run_as_actor(&world, sleeper, try_to_wake_sleeper, &result);
    ck_assert_uint_eq(heard, 1);
    domt_pass_time(&world, 60 * MS);
    ck_assert_uint_eq(heard, 2);
    ck_assert_int_eq(error, -ETIMEDOUT);
    close_world();
}

DOMT_SUITE(20)
