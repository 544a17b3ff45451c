/* Timers of actors: firing once, at a fixed rate, and with a fixed delay; missed ticks; and a
 * cancel in every state. */
#include "house/conversation/timer.h"

#include "base/memory.h"
#include "house/dispatch/dispatch.h"
#include "house/family/life.h"
#include "tests/house/recorder.h"
#include "tests/house/steps.h"
#include "tests/support/suite.h"

#include <errno.h>

#define MS UINT64_C(1000000)

static domt_world world;
static domt_log log0;
static domus_address one;

static void open_world(uint32_t timers_max)
{
    domt_world_init(&world, 2);
    if (timers_max != 0)
        world.config.scheduler.timers_max = timers_max;
    ck_assert_int_eq(domt_world_start(&world), 0);
    one = domt_spawn_recorder(&world, 0, &log0);
}

static void close_world(void)
{
    ck_assert_uint_eq(world.managers[0]->timing.timers, 0);
    ck_assert_uint_eq(world.managers[0]->timing.wheel.count, 0);
    ck_assert_ptr_null(one.house->attached);
    domt_end_clean_world(&world);
}

static domi_manager *home_manager(void)
{
    return world.managers[0];
}

/* An order to an actor to arm or cancel a timer, and the result of the verb. */
typedef struct order {
    uint64_t delay_ns;
    uint64_t period_ns;
    int64_t number;
    int result;
    domus_timer timer;
    bool repeat; /* true: the timer has a fixed delay; false: a fixed rate */
} order;

static int arm_timer_as_ordered(domus_stack *stack, void *order_)
{
    order *now = order_;

    if (now->period_ns != 0 && now->repeat)
        now->result = domus_repeat(stack, now->period_ns, &domt_tick, &now->number, &now->timer);
    else if (now->period_ns != 0)
        now->result = domus_every(stack, now->period_ns, &domt_tick, &now->number, &now->timer);
    else
        now->result = domus_after(stack, now->delay_ns, &domt_tick, &now->number, &now->timer);
    return 0;
}

static int cancel_timer_as_ordered(domus_stack *stack, void *order_)
{
    order *now = order_;

    now->result = domus_timer_cancel(stack, now->timer);
    return 0;
}

static order arm_timer_after(uint64_t delay_ns, int64_t number)
{
    order now = {.delay_ns = delay_ns, .number = number, .result = 1};

    domt_run_as_actor(&world, one, arm_timer_as_ordered, &now);
    ck_assert_int_eq(now.result, 0);
    return now;
}

static order arm_periodic_timer(uint64_t period_ns)
{
    order now = {.period_ns = period_ns, .number = 1, .result = 1};

    domt_run_as_actor(&world, one, arm_timer_as_ordered, &now);
    ck_assert_int_eq(now.result, 0);
    return now;
}

static int result_of_cancel_by_actor(domus_address who, order now)
{
    domt_run_as_actor(&world, who, cancel_timer_as_ordered, &now);
    return now.result;
}

/* --- once ------------------------------------------------------------------------------------ */

DOMT_TEST(after_fires_once_and_never_early)
{
    open_world(0);
    (void)arm_timer_after(5 * MS, 1);
    (void)arm_timer_after(3 * MS, 2);
    (void)arm_timer_after(0, 3);
    (void)arm_timer_after(7 * MS / 2, 4);
    domt_pass_time(&world, 3 * MS - 1);
    ck_assert_uint_eq(log0.count, 1);
    domt_pass_time(&world, 1);
    ck_assert_uint_eq(log0.count, 2);
    domt_pass_time(&world, 100 * MS);
    ck_assert_uint_eq(log0.count, 4);
    static const int64_t order_fired[] = {3, 2, 4, 1};
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(log0.entries[i].number, order_fired[i]);
    close_world();
}

DOMT_TEST(after_a_very_long_time_is_no_overflow)
{
    open_world(0);
    order never = arm_timer_after(UINT64_MAX, 1);
    domt_pass_time(&world, 10 * MS);
    ck_assert_uint_eq(log0.count, 0);
    ck_assert_int_eq(result_of_cancel_by_actor(one, never), 0);
    close_world();
}

/* --- at a fixed rate ------------------------------------------------------------------------- */

static uint64_t missed[64];
static unsigned ticks;
static domus_timer own_timer;
static int own_results[2];

static int record_missed_ticks(domus_stack *stack, void *self, const void *number)
{
    ck_assert_ptr_null(domus_sender(stack).house);
    missed[ticks++ % 64] = domus_timer_missed(stack);
    if (*(const int64_t *)number == 99) { /* the ticking actor cancels its own timer twice */
        own_results[0] = domus_timer_cancel(stack, own_timer);
        own_results[1] = domus_timer_cancel(stack, own_timer);
    }
    return 0;
}

static int expect_no_missed_ticks_and_run_call(domus_stack *stack, void *self, const void *call_)
{
    const domt_call *call = call_;

    ck_assert_uint_eq(domus_timer_missed(stack), 0);
    return call->function(stack, call->context);
}

static const domus_behaviour ticking = {
    .name = "ticking",
    .on = (const domus_on[]){{&domt_tick, record_missed_ticks, 0},
                             {&domt_call_type, expect_no_missed_ticks_and_run_call, 0},
                             {0}}};

static order spawn_actor_with_timer(order now)
{
    one = domt_spawn(home_manager(), home_manager(), &ticking, NULL);
    domt_run_as_actor(&world, one, arm_timer_as_ordered, &now);
    ck_assert_int_eq(now.result, 0);
    own_timer = now.timer;
    return now;
}

static order spawn_actor_with_fixed_rate(uint64_t delay_ns, uint64_t period_ns, int64_t number)
{
    return spawn_actor_with_timer(
        (order){.delay_ns = delay_ns, .period_ns = period_ns, .number = number});
}

static order spawn_actor_with_fixed_delay(uint64_t delay_ns, int64_t number)
{
    return spawn_actor_with_timer((order){.period_ns = delay_ns, .number = number, .repeat = true});
}

DOMT_TEST(every_keeps_its_rate)
{
    open_world(0);
    order now = spawn_actor_with_fixed_rate(0, 10 * MS, 1);
    domt_pass_time(&world, 9 * MS);
    ck_assert_uint_eq(ticks, 0);
    domt_pass_time(&world, 191 * MS);
    ck_assert_uint_eq(ticks, 20);
    for (unsigned i = 0; i < ticks; i++)
        ck_assert_uint_eq(missed[i], 0);
    ck_assert_int_eq(result_of_cancel_by_actor(one, now), 0);
    domt_pass_time(&world, 50 * MS);
    ck_assert_uint_eq(ticks, 20);
    close_world();
}

DOMT_TEST(every_counts_the_ticks_that_pass_and_stays_in_step)
{
    open_world(0);
    order now = spawn_actor_with_fixed_rate(0, 10 * MS, 1);
    /* the thread was busy for 35 ms: the tick of 10 ms comes, and those of 20 and 30 ms are
     * missed */
    domt_advance_time_without_runs(&world, 35 * MS);
    domt_settle_world(&world);
    ck_assert_uint_eq(ticks, 1);
    ck_assert_uint_eq(missed[0], 2);
    domt_pass_time(&world, 5 * MS); /* the tick of 40 ms comes on time */
    ck_assert_uint_eq(ticks, 2);
    ck_assert_uint_eq(missed[1], 0);
    ck_assert_int_eq(result_of_cancel_by_actor(one, now), 0);
    close_world();
}

DOMT_TEST(every_has_one_event_under_way)
{
    open_world(0);
    order now = spawn_actor_with_fixed_rate(0, 10 * MS, 1);
    for (int i = 0; i < 5; i++) { /* the house with the timer's event does not run meanwhile */
        domt_advance_time_without_runs(&world, 10 * MS);
        ck_assert_uint_eq(domi_manager_fire_timers(home_manager()), 1);
        ck_assert_uint_eq(domi_house_count_events(one.house), 1);
    }
    domt_settle_world(&world);
    ck_assert_uint_eq(ticks, 1);
    ck_assert_uint_eq(missed[0], 4);
    domt_pass_time(&world, 10 * MS);
    ck_assert_uint_eq(missed[1], 0);
    ck_assert_int_eq(result_of_cancel_by_actor(one, now), 0);
    close_world();
}

/* --- with a fixed delay ---------------------------------------------------------------------- */

DOMT_TEST(repeat_counts_its_delay_from_the_last_event_that_was_handled)
{
    open_world(0);
    order now = spawn_actor_with_fixed_delay(10 * MS, 1);
    domt_pass_time(&world, 10 * MS - 1);
    ck_assert_uint_eq(ticks, 0);
    domt_pass_time(&world, 1);
    ck_assert_uint_eq(ticks, 1);
    domt_advance_time_without_runs(&world, 10 * MS); /* the timer's event is under way for 15 ms */
    ck_assert_uint_eq(domi_manager_fire_timers(home_manager()), 1);
    domt_advance_time_without_runs(&world, 15 * MS);
    ck_assert_uint_eq(domi_manager_fire_timers(home_manager()), 0);
    domt_settle_world(&world);
    ck_assert_uint_eq(ticks, 2);
    domt_pass_time(&world, 10 * MS - 1);
    ck_assert_uint_eq(ticks, 2);
    domt_pass_time(&world, 1);
    ck_assert_uint_eq(ticks, 3);
    for (unsigned i = 0; i < ticks; i++)
        ck_assert_uint_eq(missed[i], 0); /* a timer with a fixed delay misses no tick */
    ck_assert_int_eq(result_of_cancel_by_actor(one, now), 0);
    domt_pass_time(&world, 50 * MS);
    ck_assert_uint_eq(ticks, 3);
    close_world();
}

DOMT_TEST(repeat_is_cancelled_in_every_state)
{
    open_world(0);
    /* this timer is cancelled while it is armed */
    order now = spawn_actor_with_fixed_delay(5 * MS, 1);
    ck_assert_int_eq(result_of_cancel_by_actor(one, now), 0);
    ck_assert_int_eq(result_of_cancel_by_actor(one, now), -ENOENT);

    /* this timer is cancelled while its event is under way */
    now = spawn_actor_with_fixed_delay(5 * MS, 1);
    domt_advance_time_without_runs(&world, 5 * MS);
    ck_assert_uint_eq(domi_manager_fire_timers(home_manager()), 1);
    domt_send_function_to_call(home_manager(), one, cancel_timer_as_ordered, &now);
    domt_settle_world(&world);
    ck_assert_int_eq(now.result, 0);
    ck_assert_uint_eq(ticks, 0);

    (void)spawn_actor_with_fixed_delay(5 * MS, 99); /* this timer is cancelled in its own handler */
    domt_pass_time(&world, 20 * MS);
    ck_assert_uint_eq(ticks, 1);
    ck_assert_int_eq(own_results[0], 0);
    ck_assert_int_eq(own_results[1], -ENOENT);

    /* the actor is stopped while the timer's event is under way */
    now = spawn_actor_with_fixed_delay(5 * MS, 1);
    domt_advance_time_without_runs(&world, 5 * MS);
    ck_assert_uint_eq(domi_manager_fire_timers(home_manager()), 1);
    domt_stop_actor_and_settle(&world, home_manager(), one);
    domt_pass_time(&world, 20 * MS);
    close_world();
}

/* --- cancel ---------------------------------------------------------------------------------- */

DOMT_TEST(timer_that_is_cancelled_while_armed_never_fires)
{
    open_world(0);
    order once = arm_timer_after(5 * MS, 1);
    order periodic = arm_periodic_timer(5 * MS);
    ck_assert_int_eq(result_of_cancel_by_actor(one, once), 0);
    ck_assert_int_eq(result_of_cancel_by_actor(one, periodic), 0);
    ck_assert_int_eq(result_of_cancel_by_actor(one, once), -ENOENT);
    ck_assert_int_eq(result_of_cancel_by_actor(one, periodic), -ENOENT);
    domt_pass_time(&world, 20 * MS);
    ck_assert_uint_eq(log0.count, 0);
    close_world();
}

DOMT_TEST(event_under_way_of_a_cancelled_timer_is_not_handled)
{
    open_world(0);
    order orders[] = {arm_timer_after(5 * MS, 1), arm_periodic_timer(5 * MS)};
    domt_advance_time_without_runs(&world, 5 * MS);
    ck_assert_uint_eq(domi_manager_fire_timers(home_manager()), 2);
    /* the notices with the cancels are handled before the events of the timers */
    for (int i = 0; i < 2; i++)
        domt_send_function_to_call(home_manager(), one, cancel_timer_as_ordered, &orders[i]);
    domt_settle_world(&world);
    ck_assert_int_eq(orders[0].result, 0);
    ck_assert_int_eq(orders[1].result, 0);
    domt_pass_time(&world, 20 * MS);
    ck_assert_uint_eq(log0.count, 0);
    close_world();
}

DOMT_TEST(cancel_of_a_timer_that_was_handled_finds_nothing)
{
    open_world(0);
    order once = arm_timer_after(5 * MS, 1);
    domt_pass_time(&world, 5 * MS);
    ck_assert_uint_eq(log0.count, 1);
    ck_assert_int_eq(result_of_cancel_by_actor(one, once), -ENOENT);
    /* a new timer lies in the memory of the old one, and the old handle does not cancel it */
    order next = arm_timer_after(5 * MS, 2);
    ck_assert_ptr_eq(next.timer.timer, once.timer.timer);
    ck_assert_int_eq(result_of_cancel_by_actor(one, once), -ENOENT);
    domt_pass_time(&world, 5 * MS);
    ck_assert_uint_eq(log0.count, 2);
    close_world();
}

DOMT_TEST(cancel_from_its_own_handler_ends_a_period_only)
{
    open_world(0);
    (void)spawn_actor_with_fixed_rate(5 * MS, 0, 99);
    domt_pass_time(&world, 20 * MS);
    ck_assert_uint_eq(ticks, 1);
    /* -ENOENT: the last event of the timer is being handled, so nothing is left to cancel */
    ck_assert_int_eq(own_results[0], -ENOENT);
    (void)spawn_actor_with_fixed_rate(0, 5 * MS, 99);
    domt_pass_time(&world, 20 * MS);
    ck_assert_uint_eq(ticks, 2);
    ck_assert_int_eq(own_results[0], 0);
    ck_assert_int_eq(own_results[1], -ENOENT);
    close_world();
}

DOMT_TEST(only_the_arming_actor_may_cancel_a_timer)
{
    static domt_log log1;

    open_world(0);
    domus_address other = domt_spawn_recorder(&world, 0, &log1);
    order now = arm_timer_after(5 * MS, 1);
    ck_assert_int_eq(result_of_cancel_by_actor(other, now), -ENOENT);
    ck_assert_int_eq(result_of_cancel_by_actor(one, (order){.timer = {NULL, 0}}), -ENOENT);
    domt_pass_time(&world, 5 * MS);
    ck_assert_uint_eq(log0.count, 1);
    close_world();
}

/* --- limits ---------------------------------------------------------------------------------- */

DOMT_TEST(timers_max_refuses_and_recovers)
{
    order extra = {.delay_ns = MS, .number = 5, .result = 1};
    order first;

    open_world(3);
    first = arm_timer_after(5 * MS, 1);
    (void)arm_timer_after(5 * MS, 2);
    (void)arm_periodic_timer(5 * MS);
    domt_run_as_actor(&world, one, arm_timer_as_ordered, &extra);
    ck_assert_int_eq(extra.result, -ENOBUFS);
    ck_assert_ptr_null(extra.timer.timer); /* the failed verb has not changed the handle */
    ck_assert_int_eq(result_of_cancel_by_actor(one, first), 0);
    domt_run_as_actor(&world, one, arm_timer_as_ordered, &extra);
    ck_assert_int_eq(extra.result, 0);
    domt_pass_time(&world, 5 * MS);
    ck_assert_uint_eq(log0.count, 3);
    ck_assert_uint_eq(home_manager()->timing.timers, 1);
    domt_world_end(&world);
}

static int try_wrong_timers(domus_stack *stack, void *context)
{
    static const domus_type large = {.name = "large", .size = DOMUS_TIMER_PAYLOAD_MAX + 1};
    static const domus_type largest = {.name = "largest", .size = DOMUS_TIMER_PAYLOAD_MAX};
    static const char payload[DOMUS_TIMER_PAYLOAD_MAX + 1];

    ck_assert_int_eq(domus_after(stack, MS, &large, payload, NULL), -EMSGSIZE);
    ck_assert_int_eq(domus_every(stack, MS, &large, payload, NULL), -EMSGSIZE);
    ck_assert_int_eq(domus_every(stack, MS - 1, &domt_tick, payload, NULL), -EINVAL);
    ck_assert_int_eq(domus_every(stack, 0, &domt_tick, payload, NULL), -EINVAL);
    ck_assert_int_eq(domus_repeat(stack, MS, &large, payload, NULL), -EMSGSIZE);
    ck_assert_int_eq(domus_repeat(stack, MS - 1, &domt_tick, payload, NULL), -EINVAL);
    ck_assert_int_eq(domus_after(stack, MS, &largest, payload, NULL), 0);
    return 0;
}

DOMT_TEST(payloads_and_periods_have_limits)
{
    open_world(0);
    domt_run_as_actor(&world, one, try_wrong_timers, NULL);
    /* no row takes the event of the timer, so it is a dead letter, and the timer is gone */
    domt_pass_time(&world, 2 * MS);
    ck_assert_uint_eq(DOMT_SUM(&world, dead_letters), 1);
    close_world();
}

static int count_tick_with_frame(domus_stack *stack, void *self, const void *number)
{
    ticks += domus_frame(stack) != NULL;
    return 0;
}

static const domus_behaviour framed = {
    .name = "framed",
    .on = (const domus_on[]){{&domt_tick, count_tick_with_frame, 64},
                             {&domt_call_type, expect_no_missed_ticks_and_run_call, 0},
                             {0}}};

/* An event that gets no memory for its row's frame is lost, and nothing else is. */
DOMT_TEST(event_without_a_frame_to_run_in_does_not_hurt_its_timer)
{
    order once = {.delay_ns = MS};
    order periodic = {.period_ns = MS};

    open_world(0);
    one = domt_spawn(home_manager(), home_manager(), &framed, NULL);
    domt_run_as_actor(&world, one, arm_timer_as_ordered, &once);
    domt_run_as_actor(&world, one, arm_timer_as_ordered, &periodic);
    domi_memory_fail_allocation_after(0, 1);
    domt_pass_time(&world, 3 * MS);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_uint_eq(DOMT_SUM(&world, dead_letters), 4);
    ck_assert_uint_eq(ticks, 0);
    ck_assert_uint_eq(home_manager()->timing.timers, 1);
    domt_pass_time(&world, 2 * MS);
    ck_assert_uint_eq(ticks, 2);
    ck_assert_int_eq(result_of_cancel_by_actor(one, periodic), 0);
    close_world();
}

DOMT_SUITE(60)
