/* Runs that are too short to keep places for each kind of message: with which kind they begin, and
 * that they handle all kinds that longer runs handle. Receives look at messages in runs of any
 * length. tests/house/dispatch_test.c checks that no mailbox starves. */
#include "house/dispatch/dispatch.h"

#include "tests/house/recorder.h"
#include "tests/house/steps.h"
#include "tests/support/suite.h"

#include <domus/receive.h>

#define MS UINT64_C(1000000)

static domt_world world;
static domt_log log0, log1;
static domus_address one; /* the actor under test */
static domus_address other;
static uint32_t resumed;

static void open_world(uint32_t messages_per_run_max)
{
    domt_world_init(&world, 2);
    world.config.scheduler.messages_per_run_max = messages_per_run_max;
    ck_assert_int_eq(domt_world_start(&world), 0);
    one = domt_spawn_recorder(&world, 0, &log0);
    other = domt_spawn_recorder(&world, 1, &log1);
    resumed = 0;
}

static domi_manager *home_manager(void)
{
    return world.managers[0];
}

static void let_home_work(domi_manager *manager)
{
    domt_let_home_work(manager);
}

static const char *letters_of_next_run(void)
{
    uint32_t first = log0.count;

    (void)domi_house_run_and_settle(
        home_manager(), domi_queue_take_house(&home_manager()->schedule.ready[DOMUS_STATE]));
    return domt_log_letters_from_entry(&log0, first);
}

DOMT_TEST(run_begins_at_the_kind_behind_the_one_the_last_began_with)
{
    open_world(2);
    domt_let_recorder_ask(home_manager(), one, other, 0);
    let_home_work(home_manager());
    for (int i = 0; i < 3; i++)
        domt_let_recorder_ask(world.managers[1], other, one, i);
    for (int i = 0; i < 3; i++)
        domt_send_note(domt_outside_manager(&world), one, i);
    let_home_work(world.managers[1]);
    (void)domi_manager_take_arrivals(home_manager());
    log0.count = 0;
    one.house->events &= ~DOMI_EVENT_FIRST_MASK; /* makes the next run begin with the replies */
    ck_assert_str_eq(letters_of_next_run(), "ra");
    ck_assert_str_eq(letters_of_next_run(), "aa");
    ck_assert_str_eq(letters_of_next_run(), "nn");
    ck_assert_str_eq(letters_of_next_run(), "n");
    domt_settle_world(&world);
    domt_world_end(&world);
}

static int count_received_message(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, 0);
    resumed++;
    return 0;
}

static int receive_any_message(domus_stack *stack, void *context)
{
    static const domus_pattern any = {NULL, NULL};

    return domus_receive(stack, &any, count_received_message);
}

DOMT_TEST(receive_takes_its_message_in_the_shortest_run)
{
    open_world(1);
    domt_run_as_actor(&world, one, receive_any_message, NULL);
    ck_assert_uint_eq(resumed, 0);
    domt_send_note(domt_outside_manager(&world), one, 1);
    (void)domi_manager_take_arrivals(home_manager());
    for (int run = 0; run < 3 && home_manager()->schedule.ready[DOMUS_STATE].count != 0; run++)
        (void)letters_of_next_run();
    ck_assert_uint_eq(resumed, 1);
    domt_settle_world(&world);
    domt_world_end(&world);
}

/* Conversations ask again and again, so that in each run more answers wait than the run takes. */
DOMT_TEST(receive_does_not_starve_behind_replies)
{
    for (uint32_t most = 1; most <= 64; most *= 2) {
        open_world(most);
        for (int i = 0; i < 200; i++)
            domt_let_recorder_ask(home_manager(), one, other, i);
        domt_send_function_to_call(home_manager(), one, receive_any_message, NULL);
        let_home_work(home_manager());
        ck_assert_uint_eq(resumed, 0);
        let_home_work(world.managers[1]);
        domt_send_note(domt_outside_manager(&world), one, 1);
        (void)domi_manager_take_arrivals(home_manager());
        /* A run that keeps places handles each kind. In runs without such places, each kind comes
         * first once. */
        for (uint32_t run = 0; run < (most < 8 ? 6 : 1); run++)
            (void)letters_of_next_run();
        ck_assert_ptr_nonnull(one.house->tails[DOMI_REPLY]);
        ck_assert_msg(resumed == 1, "a receive starves in runs of %u", most);
        domt_settle_world(&world);
        domt_world_end(&world);
    }
}

static int arm_timers_of_1_ms(domus_stack *stack, void *count)
{
    for (int64_t i = 0; i < *(int *)count; i++)
        ck_assert_int_eq(domus_after(stack, MS, &domt_tick, &i, NULL), 0);
    return 0;
}

/* The count of events and the kind with which the next run begins share a word; a full count must
 * not change that kind. */
DOMT_TEST(full_count_of_events_does_not_change_where_a_run_begins)
{
    open_world(3);
    domt_send_function_to_call(home_manager(), one, arm_timers_of_1_ms, &(int){30});
    let_home_work(home_manager());
    uint32_t first = one.house->events & DOMI_EVENT_FIRST_MASK;
    domt_advance_time_without_runs(&world, 2 * MS);
    (void)domt_take_arrivals_and_timers(home_manager());
    ck_assert_uint_eq(domi_house_count_events(one.house), 30);
    ck_assert_uint_eq(one.house->events & DOMI_EVENT_FIRST_MASK, first);
    for (uint32_t left = 27; left != 0; left -= 3) {
        ck_assert_str_eq(letters_of_next_run(), "eee");
        ck_assert_uint_eq(domi_house_count_events(one.house), left);
    }
    ck_assert_str_eq(letters_of_next_run(), "eee");
    ck_assert_uint_eq(domi_house_count_events(one.house), 0);
    domt_settle_world(&world);
    domt_world_end(&world);
}

DOMT_TEST(event_of_an_actor_that_is_not_mounted_is_dropped_in_the_shortest_run)
{
    for (int mounted = 0; mounted < 2; mounted++) {
        open_world(1);
        domt_send_function_to_call(home_manager(), one, arm_timers_of_1_ms, &(int){1});
        let_home_work(home_manager());
        domt_advance_time_without_runs(&world, 2 * MS);
        (void)domt_take_arrivals_and_timers(home_manager());
        if (mounted == 0)
            one.house->marks |= DOMI_MARK_UNMOUNTED;
        ck_assert_str_eq(letters_of_next_run(), mounted == 0 ? "" : "e");
        ck_assert_uint_eq(domi_house_count_events(one.house), 0);
        one.house->marks &= (uint16_t)~DOMI_MARK_UNMOUNTED;
        domt_settle_world(&world);
        domt_world_end(&world);
    }
}

DOMT_SUITE(20)
