/* While an actor is lent, its home carries out what it arms and gives up on the loan: timers,
 * time-outs and promises. */
#include "house/conversation/stack.h"
#include "house/dispatch/dispatch.h"
#include "house/dispatch/loan.h"
#include "house/family/life.h"

#include "tests/house/steps.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <errno.h>

#define MS UINT64_C(1000000)

static domt_world world;
static domus_address one, silent;
static uint32_t rung, resumed;
static int last_error;
static domus_timer timer;

static const domus_type tick_type = {.name = "tick"};
static const domus_type question_type = {.name = "question"};

static int on_tick_count(domus_stack *stack, void *self, const void *payload)
{
    rung++;
    return 0;
}

/* Handle a question without an answer: the ask waits until its deadline. */
static int on_question_keep_ask(domus_stack *stack, void *self, const void *payload)
{
    domus_kept kept;

    return domus_keep(stack, &kept);
}

static const domus_behaviour behaviour = {
    .name = "traveller",
    .on = (const domus_on[]){{&domt_call_type, domt_on_call_run_function, 0},
                             {&tick_type, on_tick_count, 0},
                             {&question_type, on_question_keep_ask, 0},
                             {0}}};

static domi_manager *home_manager(void)
{
    return world.managers[0];
}

static domi_manager *thief_manager(void)
{
    return world.managers[1];
}

static void open_world(void)
{
    domt_world_open(&world, 2);
    one = domt_spawn(home_manager(), home_manager(), &behaviour, NULL);
    silent = domt_spawn(home_manager(), home_manager(), &behaviour, NULL);
    domt_settle_world(&world);
    rung = resumed = 0;
    last_error = 1;
}

static void close_world(void)
{
    ck_assert_uint_eq(home_manager()->timing.timers, 0);
    ck_assert_uint_eq(thief_manager()->timing.timers, 0);
    ck_assert_uint_eq(home_manager()->timing.wheel.count + thief_manager()->timing.wheel.count, 0);
    ck_assert_uint_eq(
        home_manager()->timing.deadlines.count + thief_manager()->timing.deadlines.count, 0);
    ck_assert_ptr_null(one.house->attached);
    domt_world_end(&world);
}

/* Lend the house of `one`, which is ready, to the thief for one run. */
static void lend_house_to_thief_for_one_run(void)
{
    ck_assert_uint_eq(
        domi_loans_expose_houses(home_manager(), &home_manager()->schedule.ready[DOMUS_STATE], 1),
        1);
    domi_loan *loan = domi_loan_take_exposed_house(thief_manager(), home_manager());
    ck_assert_ptr_nonnull(loan);
    ck_assert_ptr_eq(loan->house, one.house);
    domi_loan_run_house_and_return(thief_manager(), loan);
    ck_assert_uint_eq(domi_loans_settle_returned_houses(home_manager()), 1);
}

static void send_call_and_lend_house(int (*function)(domus_stack *, void *))
{
    domt_send_function_to_call(home_manager(), one, function, NULL);
    lend_house_to_thief_for_one_run();
}

/* Run `function` in `one`, then run the silent actor, which answers what it can, and lend the house
 * of `one` when the answer has come. */
static void send_call_and_lend_after_answer(int (*function)(domus_stack *, void *))
{
    domt_send_function_to_call(home_manager(), one, function, NULL);
    (void)domt_run_state_queue(home_manager());
    (void)domt_run_state_queue(home_manager());
    lend_house_to_thief_for_one_run();
}

static int arm_timer(domus_stack *stack, void *context)
{
    return domus_after(stack, 5 * MS, &tick_type, NULL, &timer);
}

static int cancel_timer(domus_stack *stack, void *context)
{
    last_error = domus_timer_cancel(stack, timer);
    return 0;
}

static int arm_and_cancel_timer(domus_stack *stack, void *context)
{
    return arm_timer(stack, context) != 0 ? -1 : cancel_timer(stack, context);
}

static int arm_repeating_timer(domus_stack *stack, void *context)
{
    return domus_repeat(stack, 5 * MS, &tick_type, NULL, &timer);
}

static int record_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    resumed++;
    last_error = answer->error;
    return 0;
}

static int ask_silent_actor_within_5_ms(domus_stack *stack, void *context)
{
    return domus_ask_within(stack, silent, &question_type, NULL, 5 * MS, record_answer);
}

static int record_first_then_wait_for_last(domus_stack *stack, void *self,
                                           const domus_answer *answer)
{
    (void)record_answer(stack, self, answer);
    return answer->error == 0 ? domus_wait_all(stack, record_answer)
                              : record_answer(stack, self, answer);
}

static void ask_silent_actor_twice(domus_stack *stack, const domus_type *one_type, uint64_t one_ns,
                                   const domus_type *other_type, uint64_t other_ns)
{
    ck_assert_int_eq(domus_ask_add(stack, silent, one_type, NULL, one_ns, 1), 0);
    ck_assert_int_eq(domus_ask_add(stack, silent, other_type, NULL, other_ns, 2), 0);
}

/* Ask twice: one ask fails at once, the other one is never answered. */
static int ask_failing_and_unanswered(domus_stack *stack, void *context)
{
    ask_silent_actor_twice(stack, &question_type, 5 * MS, &tick_type, 7 * MS);
    return domus_wait_first(stack, record_first_then_wait_for_last);
}

DOMT_TEST(timer_armed_on_a_loan_fires_at_home)
{
    open_world();
    send_call_and_lend_house(arm_timer);
    ck_assert_uint_eq(home_manager()->timing.wheel.count, 1);
    ck_assert_uint_eq(thief_manager()->timing.wheel.count, 0);
    ck_assert_uint_eq(home_manager()->timing.timers, 1);
    domt_pass_time(&world, 4 * MS);
    ck_assert_uint_eq(rung, 0);
    domt_pass_time(&world, 3 * MS);
    ck_assert_uint_eq(rung, 1);
    close_world();
}

DOMT_TEST(timer_cancelled_on_a_loan_never_fires)
{
    open_world();
    domt_run_as_actor(&world, one, arm_timer, NULL);
    send_call_and_lend_house(cancel_timer);
    ck_assert_int_eq(last_error, 0);
    ck_assert_uint_eq(home_manager()->timing.wheel.count, 0);
    domt_pass_time(&world, 10 * MS);
    ck_assert_uint_eq(rung, 0);
    close_world();
}

DOMT_TEST(timer_armed_and_cancelled_on_one_loan_never_fires)
{
    open_world();
    send_call_and_lend_house(arm_and_cancel_timer);
    ck_assert_int_eq(last_error, 0);
    domt_pass_time(&world, 10 * MS);
    ck_assert_uint_eq(rung, 0);
    close_world();
}

DOMT_TEST(event_handled_on_a_loan_arms_its_timer_again_at_home)
{
    open_world();
    domt_run_as_actor(&world, one, arm_repeating_timer, NULL);
    for (uint32_t i = 1; i <= 3; i++) {
        domt_advance_time_without_runs(&world, 6 * MS);
        (void)domt_take_arrivals_and_timers(home_manager());
        lend_house_to_thief_for_one_run();
        ck_assert_uint_eq(rung, i);
        ck_assert_uint_eq(home_manager()->timing.wheel.count, 1);
    }
    domt_run_as_actor(&world, one, cancel_timer, NULL);
    close_world();
}

DOMT_TEST(time_that_comes_while_the_house_is_away_waits_for_it)
{
    open_world();
    domt_run_as_actor(&world, one, arm_timer, NULL);
    one.house->slot |= DOMI_SLOT_EXPOSED;
    for (int i = 0; i < 10; i++) {
        domt_advance_time_without_runs(&world, MS);
        (void)domt_take_arrivals_and_timers(home_manager());
    }
    ck_assert_ptr_null(one.house->tails[DOMI_EVENT]);
    one.house->slot = 0;
    domt_pass_time(&world, 2 * MS);
    ck_assert_uint_eq(rung, 1);
    close_world();
}

DOMT_TEST(ask_made_on_a_loan_times_out_at_home)
{
    open_world();
    send_call_and_lend_house(ask_silent_actor_within_5_ms);
    ck_assert_uint_eq(home_manager()->timing.deadlines.count, 1);
    domt_pass_time(&world, 10 * MS);
    ck_assert_uint_eq(resumed, 1);
    ck_assert_int_eq(last_error, -ETIMEDOUT);
    close_world();
}

DOMT_TEST(conversation_that_ends_on_a_loan_leaves_nothing_on_the_wheel)
{
    open_world();
    /* the ask of type tick fails, because the silent actor has no row for it */
    domt_run_as_actor(&world, one, ask_failing_and_unanswered, NULL);
    ck_assert_uint_ge(resumed, 1);
    domt_pass_time(&world, 20 * MS);
    uint32_t before = resumed;

    /* the error resumes the conversation on the loan; it ends, and the other ask is given up */
    send_call_and_lend_after_answer(ask_failing_and_unanswered);
    ck_assert_uint_gt(resumed, before);
    /* the deadline that is left is that of the silent actor's kept ask */
    ck_assert_uint_eq(home_manager()->timing.deadlines.count, 1);
    domt_pass_time(&world, 10 * MS);
    close_world();
}

/* Ask twice so that the ask that fails first is the promise within the stack (`stack->first`), and
 * the other promise is from the pool. */
static int ask_failing_first(domus_stack *stack, void *context)
{
    ask_silent_actor_twice(stack, &tick_type, 0, &question_type, 7 * MS);
    return domus_wait_first(stack, record_answer);
}

static int ask_twice_and_wait_for_all(domus_stack *stack, void *context)
{
    ask_silent_actor_twice(stack, &tick_type, 7 * MS, &question_type, 50 * MS);
    return domus_wait_all(stack, record_answer);
}

DOMT_TEST(answer_that_came_on_a_loan_and_is_kept_has_no_deadline_any_more)
{
    open_world();
    /* one ask has failed, and the conversation waits for the other one */
    send_call_and_lend_after_answer(ask_twice_and_wait_for_all);
    ck_assert_uint_eq(resumed, 0);
    /* the 7 ms of the first ask are over, the 50 ms of the other one are not */
    domt_pass_time(&world, 20 * MS);
    ck_assert_uint_eq(resumed, 0);
    domt_pass_time(&world, 50 * MS);
    ck_assert_uint_eq(resumed, 1);
    ck_assert_ptr_null(home_manager()->timing.notes);
    close_world();
}

DOMT_TEST(kept_answer_is_given_up_at_home)
{
    open_world();
    send_call_and_lend_after_answer(ask_twice_and_wait_for_all);
    domt_stop_actor_and_settle(&world, home_manager(), one);
    ck_assert_ptr_null(home_manager()->timing.notes);
    ck_assert_uint_eq(home_manager()->timing.deadlines.count, 0);
    domt_pass_time(&world, 50 * MS);
    domt_world_end(&world);
}

DOMT_TEST(deadline_of_a_conversation_that_ended_on_a_loan_passes_before_it_is_back)
{
    open_world();
    domt_send_function_to_call(home_manager(), one, ask_failing_first, NULL);
    (void)domt_run_state_queue(home_manager());
    (void)domt_run_state_queue(home_manager());
    ck_assert_uint_eq(
        domi_loans_expose_houses(home_manager(), &home_manager()->schedule.ready[DOMUS_STATE], 1),
        1);
    domi_loan *loan = domi_loan_take_exposed_house(thief_manager(), home_manager());
    domi_loan_run_house_and_return(thief_manager(), loan);
    ck_assert_uint_eq(resumed, 1);
    domt_advance_time_without_runs(&world, 20 * MS);
    (void)domi_manager_fire_timers(home_manager());
    ck_assert_uint_eq(domi_loans_settle_returned_houses(home_manager()), 1);
    ck_assert_uint_eq(home_manager()->timing.deadlines.count, 0);
    domt_settle_world(&world);
    close_world();
}

static int ask_and_receive_and_wait_for_all(domus_stack *stack, void *context)
{
    static const domus_type *const types[] = {&tick_type, NULL};
    static const domus_pattern pattern = {.types = types};

    int error = domus_ask_add(stack, silent, &question_type, NULL, 50 * MS, 1);
    if (error == 0)
        error = domus_receive_add(stack, &pattern, 5 * MS, 2);
    return error != 0 ? error : domus_wait_all(stack, record_answer);
}

static int send_tick_to_actor_under_test(domus_stack *stack, void *context)
{
    return domus_notice(stack, one, &tick_type, NULL);
}

DOMT_TEST(message_received_on_the_loan_that_began_the_receive_is_kept)
{
    open_world();
    domt_send_function_to_call(home_manager(), silent, send_tick_to_actor_under_test, NULL);
    domt_send_function_to_call(home_manager(), one, ask_and_receive_and_wait_for_all, NULL);
    /* takes the house of the silent actor from its queue */
    domi_house *house = domi_queue_take_house(&home_manager()->schedule.ready[DOMUS_STATE]);
    (void)domi_house_run_and_settle(home_manager(), house);
    lend_house_to_thief_for_one_run();
    ck_assert_uint_eq(resumed, 0);
    ck_assert_ptr_nonnull(one.house->stacks->answers);
    ck_assert_int_eq(one.house->stacks->answers->state, DOMI_PROMISE_DONE);
    /* the record of the loan waits to go back to its pool */
    ck_assert_uint_eq(home_manager()->pool.chained, 1);
    domt_pass_time(&world, 60 * MS);
    ck_assert_uint_eq(resumed, 1);
    close_world();
}

static int sleep_twice(domus_stack *stack, void *context)
{
    for (uint64_t tag = 1; tag <= 2; tag++)
        ck_assert_int_eq(domus_sleep_add(stack, 50 * MS, tag), 0);
    return domus_wait_first(stack, record_answer);
}

DOMT_TEST(failure_that_nobody_wants_any_more_is_dropped_at_home)
{
    open_world();
    domt_run_as_actor(&world, one, sleep_twice, NULL);
    domt_send_function_to_call(home_manager(), one, domt_do_nothing, NULL);
    ck_assert_int_eq(domi_house_ask_to_stop(home_manager(), one), 0);
    lend_house_to_thief_for_one_run(); /* the stop begins on the loan, and both asks fail */
    uint32_t most = thief_manager()->limits.messages_per_run_max;
    domi_manager_set_messages_per_run(thief_manager(), 1);
    lend_house_to_thief_for_one_run(); /* the conversation is told of the first failure, and ends */
    domi_manager_set_messages_per_run(thief_manager(), most);
    ck_assert_uint_eq(resumed, 1);
    domt_settle_world(&world);
    ck_assert_ptr_null(home_manager()->timing.notes);
    ck_assert_uint_eq(home_manager()->timing.deadlines.count, 0);
    domt_pass_time(&world, 100 * MS);
    domt_world_end(&world);
}

static uint64_t rang_ns[8];

static int record_missed_ticks(domus_stack *stack, void *self, const void *payload)
{
    if (rung < 8)
        rang_ns[rung] = domus_timer_missed(stack);
    rung++;
    return 0;
}

static const domus_behaviour periodic = {
    .name = "periodic",
    .on = (const domus_on[]){{&domt_call_type, domt_on_call_run_function, 0},
                             {&tick_type, record_missed_ticks, 0},
                             {0}}};

static int arm_timer_every_5_ms(domus_stack *stack, void *context)
{
    return domus_every(stack, 5 * MS, &tick_type, NULL, &timer);
}

DOMT_TEST(rate_is_kept_and_ticks_are_counted_while_the_house_is_away)
{
    open_world();
    domus_address third = domt_spawn(home_manager(), home_manager(), &periodic, NULL);
    domt_settle_world(&world);
    domt_run_as_actor(&world, third, arm_timer_every_5_ms, NULL);
    third.house->slot |= DOMI_SLOT_EXPOSED;
    for (int i = 0; i < 23; i++) {
        domt_advance_time_without_runs(&world, MS);
        (void)domi_manager_fire_timers(home_manager());
    }
    third.house->slot = 0;
    domt_pass_time(&world, 2 * MS);
    uint64_t seen = rung;
    for (uint32_t i = 0; i < rung; i++)
        seen += rang_ns[i];
    ck_assert_uint_ge(seen, 4); /* events of the ticks at 5, 10, 15 and 20 ms */
    domt_run_as_actor(&world, third, cancel_timer, NULL);
    close_world();
}

static int arm_timers_until_refused(domus_stack *stack, void *count)
{
    for (int i = 0; i < *(int *)count && last_error == 0; i++)
        last_error = domus_after(stack, 5 * MS, &tick_type, NULL, &timer);
    return 0;
}

DOMT_TEST(limit_of_timers_is_that_of_home)
{
    int count = 3;

    open_world();
    last_error = 0;
    world.config.scheduler.timers_max = 4;
    for (int i = 0; i < 2; i++) {
        domt_send_function_to_call(home_manager(), one, arm_timers_until_refused, &count);
        lend_house_to_thief_for_one_run();
    }
    ck_assert_int_eq(last_error, -ENOBUFS);
    ck_assert_uint_eq(home_manager()->timing.timers, 4);
    domt_pass_time(&world, 10 * MS);
    close_world();
}

DOMT_TEST(timer_cancelled_on_a_loan_whose_event_is_handled_at_home_is_off_the_wheel)
{
    open_world();
    domt_run_as_actor(&world, one, arm_timer_every_5_ms, NULL);
    domt_advance_time_without_runs(&world, 6 * MS);
    /* the timer's event is under way, and the periodic timer is armed again */
    (void)domt_take_arrivals_and_timers(home_manager());
    domt_send_function_to_call(home_manager(), one, cancel_timer, NULL);
    domi_manager_set_messages_per_run(thief_manager(), 1);
    lend_house_to_thief_for_one_run();
    ck_assert_int_eq(last_error, 0);
    domt_settle_world(&world);
    ck_assert_uint_eq(home_manager()->timing.wheel.count, 0);
    domt_pass_time(&world, 20 * MS);
    ck_assert_uint_eq(rung, 0);
    close_world();
}

DOMT_SUITE(60)
