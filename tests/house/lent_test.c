/* What a lent house arms and gives up is carried out by its home. */
#include "house/loan.h"

#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <errno.h>

#define MS UINT64_C(1000000)

static domt_world world;
static domus_address one;
static domus_address silent;
static uint32_t rung, resumed;
static int last_error;
static domus_timer timer;

static const domus_type tick_type = {.name = "tick"};
static const domus_type question_type = {.name = "question"};

static int on_call(domus_stack *stack, void *self, const void *payload)
{
    const domt_call *call = payload;

    (void)self;
    return call->function(stack, call->context);
}

static int on_tick(domus_stack *stack, void *self, const void *payload)
{
    (void)stack;
    (void)self;
    (void)payload;
    rung++;
    return 0;
}

/* Never answers. */
static int on_question(domus_stack *stack, void *self, const void *payload)
{
    domus_kept kept;

    (void)self;
    (void)payload;
    return domus_keep(stack, &kept);
}

static const domus_behaviour behaviour = {
    .name = "traveller",
    .on = (const domus_on[]){{&domt_call_type, on_call, 0},
                             {&tick_type, on_tick, 0},
                             {&question_type, on_question, 0},
                             {NULL, NULL, 0}},
};

static domi_manager *home(void)
{
    return world.managers[0];
}

static domi_manager *thief(void)
{
    return world.managers[1];
}

static void open_world(void)
{
    domt_world_open(&world, 2);
    one = domt_spawn(home(), home(), &behaviour, NULL);
    silent = domt_spawn(home(), home(), &behaviour, NULL);
    domt_settle(&world);
    rung = resumed = 0;
    last_error = 1;
}

static void close_world(void)
{
    ck_assert_uint_eq(home()->timers, 0);
    ck_assert_uint_eq(thief()->timers, 0);
    ck_assert_uint_eq(home()->wheel.count + thief()->wheel.count, 0);
    ck_assert_uint_eq(home()->deadlines.count + thief()->deadlines.count, 0);
    ck_assert_ptr_null(one.house->attached);
    domt_world_end(&world);
}

/* `one` is ready: lend it for one run. */
static void lend(void)
{
    ck_assert_uint_eq(domi_loans_expose(home(), &home()->ready[DOMUS_STATE], 1), 1);
    domi_loan *loan = domi_loan_take(thief(), home());
    ck_assert_ptr_nonnull(loan);
    ck_assert_ptr_eq(loan->house, one.house);
    domi_loan_repay(thief(), loan);
    ck_assert_uint_eq(domi_loans_settle(home()), 1);
}

static void lend_call(int (*function)(domus_stack *, void *))
{
    domt_send(home(), one, function, NULL);
    lend();
}

static int arm(domus_stack *stack, void *context)
{
    (void)context;
    return domus_after(stack, 5 * MS, &tick_type, NULL, &timer);
}

static int cancel(domus_stack *stack, void *context)
{
    (void)context;
    last_error = domus_timer_cancel(stack, timer);
    return 0;
}

static int arm_and_cancel(domus_stack *stack, void *context)
{
    int error = arm(stack, context);

    return error != 0 ? error : cancel(stack, context);
}

static int repeat(domus_stack *stack, void *context)
{
    (void)context;
    return domus_repeat(stack, 5 * MS, &tick_type, NULL, &timer);
}

static int then(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)stack;
    (void)self;
    resumed++;
    last_error = answer->error;
    return 0;
}

static int ask_within(domus_stack *stack, void *context)
{
    (void)context;
    return domus_ask_within(stack, silent, &question_type, NULL, 5 * MS, then);
}

static int then_last(domus_stack *stack, void *self, const domus_answer *answer)
{
    resumed++;
    last_error = answer->error;
    return answer->error == 0 ? domus_wait_all(stack, then) : then(stack, self, answer);
}

/* One is answered at once, by an error, the other one never. */
static int ask_two(domus_stack *stack, void *context)
{
    (void)context;
    int error = domus_ask_add(stack, silent, &question_type, NULL, 5 * MS, 1);
    if (error == 0)
        error = domus_ask_add(stack, silent, &tick_type, NULL, 7 * MS, 2);
    return error != 0 ? error : domus_wait_first(stack, then_last);
}

START_TEST(timer_armed_on_a_loan_fires_at_home)
{
    open_world();
    lend_call(arm);
    ck_assert_uint_eq(home()->wheel.count, 1);
    ck_assert_uint_eq(thief()->wheel.count, 0);
    ck_assert_uint_eq(home()->timers, 1);
    domt_pass(&world, 4 * MS);
    ck_assert_uint_eq(rung, 0);
    domt_pass(&world, 3 * MS);
    ck_assert_uint_eq(rung, 1);
    close_world();
}
END_TEST

START_TEST(timer_cancelled_on_a_loan_never_fires)
{
    open_world();
    domt_do(&world, one, arm, NULL);
    lend_call(cancel);
    ck_assert_int_eq(last_error, 0);
    ck_assert_uint_eq(home()->wheel.count, 0);
    domt_pass(&world, 10 * MS);
    ck_assert_uint_eq(rung, 0);
    close_world();
}
END_TEST

START_TEST(timer_armed_and_cancelled_on_one_loan_never_fires)
{
    open_world();
    lend_call(arm_and_cancel);
    ck_assert_int_eq(last_error, 0);
    domt_pass(&world, 10 * MS);
    ck_assert_uint_eq(rung, 0);
    close_world();
}
END_TEST

START_TEST(event_handled_on_a_loan_arms_its_timer_again_at_home)
{
    open_world();
    domt_do(&world, one, repeat, NULL);
    for (uint32_t i = 1; i <= 3; i++) {
        domt_jump(&world, 6 * MS);
        (void)domt_events(home());
        lend();
        ck_assert_uint_eq(rung, i);
        ck_assert_uint_eq(home()->wheel.count, 1);
    }
    domt_do(&world, one, cancel, NULL);
    close_world();
}
END_TEST

START_TEST(time_that_comes_while_the_house_is_away_waits_for_it)
{
    open_world();
    domt_do(&world, one, arm, NULL);
    one.house->slot |= DOMI_SLOT_EXPOSED;
    for (int i = 0; i < 10; i++) {
        domt_jump(&world, MS);
        (void)domt_events(home());
    }
    ck_assert_ptr_null(one.house->tails[DOMI_EVENT]);
    one.house->slot = 0;
    domt_pass(&world, 2 * MS);
    ck_assert_uint_eq(rung, 1);
    close_world();
}
END_TEST

START_TEST(ask_made_on_a_loan_times_out_at_home)
{
    open_world();
    lend_call(ask_within);
    ck_assert_uint_eq(home()->deadlines.count, 1);
    domt_pass(&world, 10 * MS);
    ck_assert_uint_eq(resumed, 1);
    ck_assert_int_eq(last_error, -ETIMEDOUT);
    close_world();
}
END_TEST

START_TEST(conversation_that_ends_on_a_loan_leaves_nothing_on_the_wheel)
{
    open_world();
    domt_do(&world, one, ask_two, NULL); /* the tick fails: there is nobody for it as an ask */
    ck_assert_uint_ge(resumed, 1);
    domt_pass(&world, 20 * MS);
    uint32_t before = resumed;

    domt_send(home(), one, ask_two, NULL);
    (void)domt_run_state(home()); /* asks */
    (void)domt_run_state(home()); /* the silent one answers one of them */
    lend();                       /* resumed by the error, and it ends: the other is let go */
    ck_assert_uint_gt(resumed, before);
    ck_assert_uint_eq(home()->deadlines.count, 0);
    domt_settle(&world);
    close_world();
}
END_TEST

DOMT_MAIN("lent", 60, timer_armed_on_a_loan_fires_at_home, timer_cancelled_on_a_loan_never_fires,
          timer_armed_and_cancelled_on_one_loan_never_fires,
          event_handled_on_a_loan_arms_its_timer_again_at_home,
          time_that_comes_while_the_house_is_away_waits_for_it,
          ask_made_on_a_loan_times_out_at_home,
          conversation_that_ends_on_a_loan_leaves_nothing_on_the_wheel)
