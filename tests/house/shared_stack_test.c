/* The turns of one run use one stack, so a turn must not see what the turn before it has left
 * there: an answered ask, a sender, a conversation that parked, a failure. */
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <domus/conversation.h>

#include <errno.h>

#define MS UINT64_C(1000000)

static domt_world world;
static domus_address worker, asker, other;
static int replied, resumed, turns;
static domus_address seen[2];
static uint32_t seen_count;

static void setup(void)
{
    domt_world_open(&world, 1);
    worker = domt_spawn(world.managers[0], world.managers[0], &domt_agent, NULL);
    asker = domt_spawn(world.managers[0], world.managers[0], &domt_agent, NULL);
    other = domt_spawn(world.managers[0], world.managers[0], &domt_agent, NULL);
    domt_settle(&world);
    replied = resumed = turns = 0;
}

static int answer_twice(domus_stack *stack, void *context)
{
    turns++;
    ck_assert_int_eq(domus_reply(stack, &domt_call_type, &(domt_call){0}), 0);
    ck_assert_int_eq(domus_reply(stack, &domt_call_type, &(domt_call){0}), -EALREADY);
    return 0;
}

static int answer_nothing(domus_stack *stack, void *context)
{
    turns++;
    replied = domus_reply(stack, &domt_call_type, &(domt_call){0});
    return 0;
}

static int hear(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, 0);
    return 0;
}

static int ask_worker(domus_stack *stack, void *context)
{
    return domus_ask(stack, worker, &domt_call_type, &(domt_call){answer_twice, NULL}, hear);
}

DOMT_TEST(a_notice_behind_an_answered_ask_has_no_ask)
{
    setup();
    domt_send(world.managers[0], asker, ask_worker, NULL);
    domt_send(world.managers[0], worker, answer_nothing, NULL);
    uint64_t before = DOMT_SUM(&world, runs);
    (void)domt_run_state(world.managers[0]);
    domt_settle(&world);
    ck_assert_uint_gt(DOMT_SUM(&world, runs), before);
    ck_assert_int_eq(turns, 2);
    ck_assert_int_eq(replied, -EINVAL);
    domt_world_end(&world);
}

static int go_on(domus_stack *stack, void *self, const domus_answer *answer)
{
    resumed++;
    return 0;
}

static int sleep_once(domus_stack *stack, void *context)
{
    turns++;
    return domus_sleep(stack, MS, go_on);
}

static int return_error(domus_stack *stack, void *context)
{
    turns++;
    return -EIO;
}

static int raise_and_return(domus_stack *stack, void *context)
{
    turns++;
    return domus_barrier(stack);
}

DOMT_TEST(a_turn_behind_one_that_parked_failed_or_held_ends_by_itself)
{
    setup();
    domt_send(world.managers[0], worker, sleep_once, NULL);
    domt_send(world.managers[0], worker, answer_nothing, NULL);
    domt_send(world.managers[0], worker, raise_and_return, NULL);
    domt_send(world.managers[0], worker, sleep_once, NULL);
    domt_send(world.managers[0], worker, return_error, NULL);
    domt_send(world.managers[0], worker, sleep_once, NULL);
    domt_settle(&world);
    ck_assert_int_eq(turns, 6);
    ck_assert_int_eq(replied, -EINVAL);
    ck_assert_int_eq(resumed, 0);
    domt_pass(&world, 3 * MS);
    ck_assert_int_eq(resumed, 3);
    domt_world_end(&world);
}

static int note_sender(domus_stack *stack, void *context)
{
    seen[seen_count++] = domus_sender(stack);
    return 0;
}

static int tell_worker(domus_stack *stack, void *context)
{
    return domus_notice(stack, worker, &domt_call_type, &(domt_call){note_sender, NULL});
}

DOMT_TEST(each_turn_sees_the_sender_of_its_own_message)
{
    setup();
    seen_count = 0;
    domt_send(world.managers[0], other, tell_worker, NULL);
    domt_send(world.managers[0], worker, note_sender, NULL);
    (void)domt_run_state(world.managers[0]); /* the worker has both when it runs */
    domt_settle(&world);
    ck_assert_uint_eq(seen_count, 2);
    ck_assert_ptr_null(seen[0].house);
    ck_assert_ptr_eq(seen[1].house, other.house);
    domt_world_end(&world);
}

DOMT_SUITE(30)
