/* M7: a barrier belongs to the stack that raised it, and falls when that stack ends; then the
 * messages that waited are handled. An actor that has as many conversations as it may have behaves
 * likewise. */
#include "house/dispatch/dispatch.h"

#include "tests/house/recorder.h"
#include "tests/house/steps.h"
#include "tests/support/suite.h"

#include <errno.h>

#define MS UINT64_C(1000000)

static domt_world world;
static domt_log log0; /* log of the actor under test, on home 0 */
static domt_log log1; /* log of the other two actors, on homes 1 and 2 */
static domus_address one;
static domus_address other; /* the recorder on home 1 that the actor under test asks */
static domus_address slow;  /* an actor on home 2, which works only when a test lets it */

static void open_world(uint32_t conversations_max)
{
    domt_world_init(&world, 3);
    if (conversations_max != 0)
        world.config.scheduler.conversations_max = conversations_max;
    ck_assert_int_eq(domt_world_start(&world), 0);
    one = domt_spawn_recorder(&world, 0, &log0);
    other = domt_spawn_recorder(&world, 1, &log1);
    slow = domt_spawn_recorder(&world, 2, &log1);
}

/* Let home 0 work until it has nothing to do; the other homes do not work, so its asks are not
 * answered meanwhile. */
static void let_home_0_work(void)
{
    domt_let_home_work(world.managers[0]);
}

static void send_notice_and_question(void)
{
    domt_send_note(domt_outside_manager(&world), one, 1);
    domt_let_recorder_ask(world.managers[1], other, one, 2);
    domt_let_home_work(world.managers[1]);
}

static int raise_barrier_and_park(domus_stack *stack, void *result)
{
    *(int *)result = domus_barrier(stack);
    return domus_ask(stack, slow, &domt_question, &(int64_t){100}, domt_hear_nothing);
}

static int park_then_raise_barrier(domus_stack *stack, void *result)
{
    int64_t number = 100;
    int parked = domus_ask(stack, slow, &domt_question, &number, domt_hear_nothing);

    *(int *)result = domus_barrier(stack);
    return parked;
}

static int raise_barrier(domus_stack *stack, void *result)
{
    *(int *)result = domus_barrier(stack);
    return 0;
}

static int raise_barrier_and_fail(domus_stack *stack, void *result)
{
    *(int *)result = domus_barrier(stack);
    return -EIO;
}

static int raise_barrier_twice(domus_stack *stack, void *results_)
{
    int *results = results_;

    results[0] = domus_barrier(stack);
    results[1] = domus_barrier(stack);
    return 0;
}

static int arm_timer(domus_stack *stack, void *number)
{
    return domus_after(stack, MS, &domt_tick, number, NULL);
}

static void check_kinds_handled_in_barrier(int (*raise)(domus_stack *, void *))
{
    int result = -1;
    int64_t number = 5;

    open_world(0);
    domt_run_as_actor(&world, one, arm_timer, &number);
    domt_send_function_to_call(world.managers[0], one, raise, &result);
    let_home_0_work();
    ck_assert_int_eq(result, 0);
    ck_assert_uint_ne(one.house->marks & DOMI_MARK_BARRIER, 0);

    send_notice_and_question();
    let_home_0_work();
    ck_assert_uint_eq(log0.count, 0);
    ck_assert_uint_eq(one.house->mail, 2);
    /* Messages that the barrier holds back make no house ready. */
    ck_assert_uint_eq(one.house->state, DOMI_WAITING);
    domt_advance_time_without_runs(&world, 2 * MS);
    let_home_0_work();
    ck_assert_str_eq(domt_log_letters_from_entry(&log0, 0),
                     "e"); /* events are handled while the barrier is up */

    /* the answer comes, and the conversation that has raised the barrier ends */
    domt_settle_world(&world);
    ck_assert_uint_eq(one.house->marks & DOMI_MARK_BARRIER, 0);
    ck_assert_str_eq(domt_log_letters_from_entry(&log0, 0), "ean");
    ck_assert_uint_eq(domt_log_count_letter(&log1, 'r'), 1);
    domt_world_end(&world);
}

DOMT_TEST(m7_house_in_barrier_takes_only_replies_exceptions_and_events)
{
    check_kinds_handled_in_barrier(raise_barrier_and_park);
}

DOMT_TEST(m7_barrier_raised_behind_the_ask_moves_to_the_parked_stack)
{
    check_kinds_handled_in_barrier(park_then_raise_barrier);
}

DOMT_TEST(m7_barrier_falls_when_its_handler_ends)
{
    int (*const handlers[])(domus_stack *, void *) = {raise_barrier, raise_barrier_and_fail};

    open_world(0);
    for (int64_t i = 0; i < 2; i++) {
        int result = -1;
        domt_send_function_to_call(world.managers[0], one, handlers[i], &result);
        domt_send_note(world.managers[0], one, i);
        let_home_0_work();
        ck_assert_int_eq(result, 0);
        ck_assert_uint_eq(one.house->marks & DOMI_MARK_BARRIER, 0);
        ck_assert_int_eq(domt_log_count_letter(&log0, 'n'), i + 1);
    }
    domt_world_end(&world);
}

DOMT_TEST(m7_mail_behind_the_barrier_in_one_run_waits)
{
    int result;

    open_world(0);
    domt_send_note(world.managers[0], one, 1);
    domt_send_function_to_call(world.managers[0], one, raise_barrier_and_park, &result);
    for (int64_t i = 2; i < 10; i++)
        domt_send_note(world.managers[0], one, i);
    let_home_0_work();
    /* Only the notice that came before the barrier has been handled. */
    ck_assert_str_eq(domt_log_letters_from_entry(&log0, 0), "n");
    ck_assert_uint_eq(one.house->mail, 8);
    domt_settle_world(&world);
    for (int i = 0; i < 9; i++) /* the barrier has fallen: all notices were handled in order */
        ck_assert_int_eq(log0.entries[i].number, i + 1);
    domt_world_end(&world);
}

DOMT_TEST(m7_other_conversations_end_without_lowering_the_barrier)
{
    int result;

    open_world(0);
    domt_let_recorder_ask(world.managers[0], one, slow, 7);
    domt_let_recorder_ask(world.managers[0], one, (domus_address){0}, 8);
    domt_send_function_to_call(world.managers[0], one, raise_barrier_and_park, &result);
    domt_send_note(world.managers[0], one, 9);
    (void)domt_iterate_home(world.managers[0]);
    let_home_0_work();
    /* The ask to nobody fails, so the conversation ends by an exception: replies and exceptions are
     * handled in a barrier. */
    ck_assert_str_eq(domt_log_letters_from_entry(&log0, 0), "x");
    ck_assert_uint_ne(one.house->marks & DOMI_MARK_BARRIER, 0);
    domt_settle_world(&world);
    ck_assert_uint_eq(domt_log_count_letter(&log0, 'r'), 1);
    ck_assert_uint_eq(domt_log_count_letter(&log0, 'n'), 1);
    domt_world_end(&world);
}

DOMT_TEST(m7_second_barrier_of_the_same_stack_is_already_raised)
{
    int results[2] = {-1, -1};

    open_world(0);
    domt_run_as_actor(&world, one, raise_barrier_twice, results);
    ck_assert_int_eq(results[0], 0);
    ck_assert_int_eq(results[1], -EALREADY);
    domt_world_end(&world);
}

/* The error that another conversation of the same actor gets when it tries to raise the barrier; it
 * runs meanwhile by a reply or an event. */
static int second_result;

static int raise_barrier_when_resumed(domus_stack *stack, void *self, const domus_answer *answer)
{
    second_result = domus_barrier(stack);
    return 0;
}

static int ask_nobody_then_raise_barrier(domus_stack *stack, void *context)
{
    return domus_ask(stack, (domus_address){0}, &domt_question, &(int64_t){1},
                     raise_barrier_when_resumed);
}

DOMT_TEST(m7_barrier_while_another_stack_holds_it_answers_ebusy)
{
    int result;

    open_world(0);
    domt_send_function_to_call(world.managers[0], one, ask_nobody_then_raise_barrier, NULL);
    domt_send_function_to_call(world.managers[0], one, raise_barrier_and_park, &result);
    let_home_0_work();
    ck_assert_int_eq(second_result, -EBUSY);
    ck_assert_uint_ne(one.house->marks & DOMI_MARK_BARRIER, 0);
    domt_settle_world(&world);
    domt_run_as_actor(&world, one, ask_nobody_then_raise_barrier, NULL);
    ck_assert_int_eq(second_result, 0);
    ck_assert_uint_eq(one.house->marks & DOMI_MARK_BARRIER, 0);
    domt_world_end(&world);
}

/* Number of times that the same conversation raises the barrier again after a park. */
static int rounds;

static int raise_barrier_in_next_round(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, 0);
    ck_assert_int_eq(domus_barrier(stack), -EALREADY);
    return --rounds > 0 ? domus_ask(stack, slow, &domt_question, &(int64_t){rounds},
                                    raise_barrier_in_next_round)
                        : 0;
}

static int begin_rounds_in_barrier(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_barrier(stack), 0);
    return domus_ask(stack, slow, &domt_question, &(int64_t){0}, raise_barrier_in_next_round);
}

DOMT_TEST(m7_barrier_stays_through_many_parks)
{
    open_world(0);
    rounds = 20;
    domt_send_function_to_call(world.managers[0], one, begin_rounds_in_barrier, NULL);
    domt_send_note(world.managers[0], one, 1);
    while (rounds > 0) {
        ck_assert_uint_eq(log0.count, 0);
        let_home_0_work();
        (void)domt_iterate_home(world.managers[2]);
    }
    domt_settle_world(&world);
    ck_assert_uint_eq(log0.count, 1);
    domt_world_end(&world);
}

/* --- saturation ------------------------------------------------------------------------------ */

DOMT_TEST(actor_with_all_its_conversations_parked_takes_no_asks_and_notices)
{
    enum { MAX = 10, INQUIRIES = 1000 };
    int64_t number = 5;

    open_world(MAX);
    domt_run_as_actor(&world, one, arm_timer, &number);
    for (int i = 0; i < INQUIRIES; i++)
        domt_let_recorder_ask(world.managers[0], one, other, i);
    let_home_0_work();
    ck_assert_uint_eq(domi_house_count_parked_conversations(one.house), MAX);
    ck_assert_uint_ne(one.house->marks & DOMI_MARK_SATURATED, 0);
    ck_assert_uint_eq(one.house->mail, INQUIRIES - MAX);
    ck_assert_uint_eq(one.house->state, DOMI_WAITING);
    domt_advance_time_without_runs(&world, 2 * MS);
    let_home_0_work();
    ck_assert_str_eq(domt_log_letters_from_entry(&log0, 0), "e");
    domt_settle_world(&world);
    ck_assert_uint_eq(domt_log_count_letter(&log0, 'r'), INQUIRIES);
    ck_assert_int_eq(domt_log_sum_of_letter(&log0, 'r'), (int64_t)INQUIRIES * (INQUIRIES - 1) / 2);
    ck_assert_uint_eq(one.house->marks & DOMI_MARK_SATURATED, 0);
    ck_assert_uint_eq(domi_house_count_parked_conversations(one.house), 0);
    domt_world_end(&world);
}

DOMT_TEST(saturated_actor_takes_mail_again_when_one_conversation_ends)
{
    open_world(2);
    for (int i = 0; i < 2; i++)
        domt_let_recorder_ask(world.managers[0], one, other, i);
    domt_send_note(world.managers[0], one, 1);
    let_home_0_work();
    ck_assert_uint_eq(log0.count, 0);
    /* spawning the recorder also settles the world */
    domus_address quick = domt_spawn_recorder(&world, 1, &log1);
    ck_assert_uint_eq(domt_log_count_letter(&log0, 'n'), 1);
    domt_let_recorder_ask(world.managers[0], one, quick, 3);
    let_home_0_work();
    /* one conversation of at most two waits: the actor still takes messages */
    domt_send_note(world.managers[0], one, 2);
    let_home_0_work();
    ck_assert_uint_eq(domt_log_count_letter(&log0, 'n'), 2);
    domt_world_end(&world);
}

DOMT_TEST(barrier_and_saturation_are_lifted_one_by_one)
{
    int result;

    open_world(1);
    domt_send_function_to_call(world.managers[0], one, raise_barrier_and_park, &result);
    domt_send_note(world.managers[0], one, 1);
    let_home_0_work();
    ck_assert_uint_eq(one.house->marks & DOMI_MARKS_HOLD, DOMI_MARK_BARRIER | DOMI_MARK_SATURATED);
    ck_assert_uint_eq(log0.count, 0);
    domt_settle_world(&world);
    ck_assert_uint_eq(one.house->marks & DOMI_MARKS_HOLD, 0);
    ck_assert_uint_eq(log0.count, 1);
    domt_world_end(&world);
}

DOMT_SUITE(60)
