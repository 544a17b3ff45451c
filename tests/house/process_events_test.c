/* house/family/process.c: which messages and yields a step of a process is given, and which of
 * them together. */
#include "house/dispatch/dispatch.h"

#include "tests/house/processing.h"

/* --- messages -------------------------------------------------------------------------------- */

static int hear(domus_stack *stack, void *self, const domus_answer *answer)
{
    error = answer->error;
    value = error == 0 ? *(const uint64_t *)answer->payload : 0;
    return 0;
}

static int ask_process(domus_stack *stack, void *number)
{
    return domus_ask(stack, process, &large_type, number, hear);
}

static int reply_when_told(domus_stack *stack, const domus_process_event *events, uint32_t count,
                           domus_process_output *out)
{
    for (uint32_t i = 0; i < count; i++) {
        ck_assert_int_eq(events[i].type, DOMUS_PROCESS_MESSAGE);
        ck_assert_int_eq(events[i].error, 0);
        if (events[i].data_type == &number_type)
            return domus_kept_reply(stack, kept, &value_type, &sum);
        ck_assert_ptr_eq(events[i].sender.house, other.house);
    }
    return 0;
}

DOMT_TEST(messages_of_any_type_are_events_and_asks_are_answered_later)
{
    static char payload[600] = {5};

    step_does = reply_when_told;
    open_process();
    error = 1;
    domt_do(&world, other, ask_process, payload);
    ck_assert_int_eq(error, 1);
    ck_assert_uint_eq(asks, 1);
    send(&number_type, 10);
    domt_settle(&world);
    ck_assert_int_eq(error, 0);
    ck_assert_uint_eq(value, 15);
    ck_assert_uint_eq(steps, 3);
    domt_do(&world, other, ask_process, payload); /* this ask will never be answered */
    stop_process();
    ck_assert_int_eq(error, -ESTALE);
    close_world();
}

static int fall_silent(domus_stack *stack, const domus_process_event *events, uint32_t count,
                       domus_process_output *out)
{
    ck_assert_uint_le(count, DOMUS_PROCESS_EVENTS_MAX);
    return 0;
}

DOMT_TEST(events_of_one_turn_come_in_one_step_and_a_full_one_is_made_at_once)
{
    step_does = fall_silent;
    open_process();
    for (uint64_t i = 0; i < 10; i++)
        send(&number_type, i);
    domt_settle(&world);
    ck_assert_uint_eq(steps, 2);
    ck_assert_uint_eq(counts[1], 10);
    for (uint64_t i = 0; i < 40; i++)
        send(i % 2 == 0 ? &number_type : &value_type, i);
    domt_settle(&world);
    ck_assert_uint_eq(steps, 5);
    ck_assert_uint_eq(counts[2], DOMUS_PROCESS_EVENTS_MAX);
    ck_assert_uint_eq(counts[3], DOMUS_PROCESS_EVENTS_MAX);
    ck_assert_uint_eq(counts[4], 8);
    ck_assert_uint_eq(sum, 45 + 780);
    stop_process();
    close_world();
}

/* --- yields ---------------------------------------------------------------------------------- */

static int reply_number(domus_stack *stack, void *context)
{
    return domus_reply(stack, &number_type, context);
}

static int fail_ask(domus_stack *stack, void *context)
{
    return -EIO;
}

static uint64_t tags;

static int yield_three(domus_stack *stack, const domus_process_event *events, uint32_t count,
                       domus_process_output *out)
{
    static uint64_t number = 1000;
    domt_call good = {reply_number, &number};
    domt_call bad = {fail_ask, NULL};

    for (uint32_t i = 0; i < count; i++) {
        ck_assert_int_eq(events[i].type, DOMUS_PROCESS_COMPLETE);
        ck_assert_int_eq(events[i].error, events[i].tag == 2 ? -EIO : 0);
        ck_assert((events[i].data != NULL) == (events[i].tag == 1));
        tags = tags * 10 + events[i].tag;
    }
    if (count != 0)
        return 0;
    ck_assert_int_eq(domus_process_ask(out, other, &domt_call_type, &good, 0, 1), 0);
    ck_assert_int_eq(domus_process_ask(out, other, &domt_call_type, &bad, 50 * MS, 2), 0);
    ck_assert_int_eq(domus_process_sleep(out, 3 * MS, 3), 0);
    return domus_process_sleep(out, 3 * MS, 4);
}

DOMT_TEST(yields_complete_with_their_tags_those_of_one_turn_together)
{
    step_does = yield_three;
    open_world(&spawner);
    domt_do(&world, agent, spawn_in, "count");
    ck_assert_uint_eq(steps, 2);
    ck_assert_uint_eq(counts[1], 2);
    ck_assert_uint_eq(sum, 1000);
    domt_pass(&world, 10 * MS);
    ck_assert_uint_eq(steps, 3);
    ck_assert_uint_eq(counts[2], 2);
    ck_assert(tags == 1234 || tags == 1243);
    stop_process();
    close_world();
}

static int yield_too_much(domus_stack *stack, const domus_process_event *events, uint32_t count,
                          domus_process_output *out)
{
    if (count != 0)
        return 0;
    for (uint64_t i = 0; i < DOMUS_PROCESS_YIELDS_MAX - 1; i++)
        ck_assert_int_eq(domus_process_sleep(out, MS, i), 0);
    ck_assert_int_eq(domus_process_sleep(out, MS, DOMUS_PROCESS_TAG_MAX + 1), -EINVAL);
    ck_assert_int_eq(domus_process_sleep(out, MS, DOMUS_PROCESS_TAG_MAX), 0);
    ck_assert_int_eq(domus_process_sleep(out, MS, 1), -ENOBUFS);
    ck_assert_int_eq(domus_process_ask(out, other, &value_type, &sum, MS, 1), -ENOBUFS);
    return 0;
}

DOMT_TEST(step_yields_at_most_64_and_all_complete)
{
    step_does = yield_too_much;
    open_process();
    domt_pass(&world, 5 * MS);
    uint32_t events = 0;
    for (unsigned i = 0; i < steps; i++)
        events += counts[i];
    ck_assert_uint_eq(events, DOMUS_PROCESS_YIELDS_MAX);
    stop_process();
    close_world();
}

static int yield_for_ever(domus_stack *stack, const domus_process_event *events, uint32_t count,
                          domus_process_output *out)
{
    ck_assert_int_eq(domus_process_sleep(out, 1000000 * MS, 1), 0);
    return domus_process_sleep(out, 1000000 * MS, 2);
}

DOMT_TEST(stopped_process_makes_no_further_step_and_drops_what_it_gathered)
{
    step_does = yield_for_ever;
    open_process();
    domi_manager_set_run_limit(world.managers[0], 4); /* the turn of 8 is not over in one run */
    for (uint64_t i = 0; i < 8; i++)
        send(&owned_type, i);
    (void)domi_manager_take_arrivals(world.managers[0]);
    (void)domt_run_state(world.managers[0]);
    ck_assert_uint_eq(process.house->mail, 4);
    ck_assert_uint_eq(steps, 1);
    stop_process();
    ck_assert_uint_eq(steps, 1);
    ck_assert_uint_eq(releases, 8);
    ck_assert_uint_eq(closes, 1);
    ck_assert_uint_eq(DOMT_SUM(&world, failures), 0);
    close_world();
}

DOMT_SUITE(60)
