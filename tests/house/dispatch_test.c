/* What one run of a house takes, in which order, and how much of each. */
#include "house/dispatch.h"

#include "tests/house/recorder.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define MS UINT64_C(1000000)

static domt_world world;
static domt_log log0; /* of the actor under test, on home 0 */
static domt_log log1; /* of the others, on home 1 */

static domus_address one;   /* under test */
static domus_address other; /* asks it, and answers it */

static void open_world(uint32_t messages_per_run_max)
{
    domt_world_init(&world, 2);
    if (messages_per_run_max != 0)
        world.config.scheduler.messages_per_run_max = messages_per_run_max;
    ck_assert_int_eq(domt_world_start(&world), 0);
    one = domt_recorder_new(&world, 0, &log0);
    other = domt_recorder_new(&world, 1, &log1);
}

static domi_manager *home(void)
{
    return world.managers[0];
}

/* Turns of home 1 alone: what it sends to the house under test stays in its inbox. */
static void let_others_work(void)
{
    while (domt_turn(world.managers[1]) != 0)
        ;
}

static int arm(domus_stack *stack, void *count)
{
    for (int64_t i = 0; i < *(int *)count; i++)
        ck_assert_int_eq(domus_after(stack, MS, &domt_tick, &i, NULL), 0);
    return 0;
}

/* Give the house under test this much to do, all of it sorted into its mailboxes. */
static void fill(int replies, int asks, int notices, int events)
{
    for (int i = 0; i < replies; i++)
        domt_inquire_by(home(), one, other, i);
    domt_send(home(), one, arm, &events);
    while (domt_turn(home()) != 0)
        ;
    for (int i = 0; i < asks; i++)
        domt_inquire_by(world.managers[1], other, one, i);
    for (int i = 0; i < notices; i++)
        domt_note_to(domt_outside(&world), one, i);
    let_others_work();
    domt_jump(&world, 2 * MS);
    (void)domt_events(home());
    log0.count = 0;
}

/* One run, and what it wrote down. */
static const char *run_once(void)
{
    uint32_t first = log0.count;
    domi_house *house = domi_queue_take(&home()->ready[DOMUS_STATE]);

    ck_assert_ptr_eq(house, one.house);
    uint32_t handled = domi_house_run(home(), house);
    ck_assert_uint_eq(handled, log0.count - first);
    return domt_log_text(&log0, first);
}

static uint32_t letters(const char *text, char letter)
{
    uint32_t count = 0;

    for (; *text != '\0'; text++)
        count += *text == letter;
    return count;
}

START_TEST(run_takes_replies_exceptions_asks_notices_events)
{
    open_world(0);
    domus_address failing = domt_recorder_new(&world, 1, &log1);
    ((domt_recorder *)failing.house->self)->fail = -EIO;
    domt_inquire_by(home(), one, failing, 1);
    domt_inquire_by(home(), one, failing, 2);
    fill(2, 2, 2, 2);
    ck_assert_str_eq(run_once(), "rrxxaannee");
    ck_assert_int_eq(log0.entries[2].number, -EIO);
    ck_assert_uint_eq(one.house->state, DOMI_WAITING);
    domt_settle(&world);
    ck_assert_uint_eq(domt_log_count(&log1, 'r'), 2);
    domt_world_end(&world);
}
END_TEST

START_TEST(run_handles_at_most_64_and_goes_to_the_tail)
{
    open_world(0);
    domus_address second = domt_recorder_new(&world, 0, &log1);
    fill(0, 0, 200, 0);
    domt_note_to(home(), second, 1);
    ck_assert_uint_eq(strlen(run_once()), 64);
    ck_assert_uint_eq(one.house->state, DOMI_READY);
    ck_assert_uint_eq(one.house->mail, 136);
    ck_assert_ptr_eq(domi_queue_take(&home()->ready[0]), second.house);
    domi_house_run(home(), second.house);
    ck_assert_uint_eq(strlen(run_once()), 64);
    ck_assert_uint_eq(strlen(run_once()), 64);
    ck_assert_uint_eq(strlen(run_once()), 8);
    ck_assert_uint_eq(one.house->state, DOMI_WAITING);
    domt_world_end(&world);
}
END_TEST

START_TEST(run_length_is_configured)
{
    open_world(100);
    fill(0, 0, 150, 0);
    ck_assert_uint_eq(strlen(run_once()), 100);
    ck_assert_uint_eq(strlen(run_once()), 50);
    domt_world_end(&world);
}
END_TEST

START_TEST(run_keeps_8_places_for_notices_and_8_for_events)
{
    open_world(0);
    fill(0, 100, 100, 100);
    const char *text = run_once();
    ck_assert_uint_eq(letters(text, 'a'), 48);
    ck_assert_uint_eq(letters(text, 'n'), 8);
    ck_assert_uint_eq(letters(text, 'e'), 8);
    domt_world_end(&world);
}
END_TEST

START_TEST(run_keeps_no_places_for_what_does_not_wait)
{
    const char *text;

    open_world(0);
    fill(0, 100, 100, 0);
    text = run_once();
    ck_assert_uint_eq(letters(text, 'a'), 56);
    ck_assert_uint_eq(letters(text, 'n'), 8);
    domt_settle(&world);
    fill(0, 100, 0, 100);
    text = run_once();
    ck_assert_uint_eq(letters(text, 'a'), 56);
    ck_assert_uint_eq(letters(text, 'e'), 8);
    domt_settle(&world);
    fill(0, 3, 100, 100); /* places that asks leave go to notices, then to events */
    text = run_once();
    ck_assert_uint_eq(letters(text, 'a'), 3);
    ck_assert_uint_eq(letters(text, 'n'), 53);
    ck_assert_uint_eq(letters(text, 'e'), 8);
    domt_world_end(&world);
}
END_TEST

/* Whatever waits in whatever number: after some runs each kind was handled. */
static void nothing_starves(uint32_t messages_per_run_max)
{
    const char *kinds = "rxane";

    open_world(messages_per_run_max);
    domus_address failing = domt_recorder_new(&world, 1, &log1);
    ((domt_recorder *)failing.house->self)->fail = -EIO;
    for (int i = 0; i < 200; i++)
        domt_inquire_by(home(), one, failing, i);
    fill(200, 200, 200, 200);
    const char *text = run_once();
    ck_assert_uint_eq(strlen(text), messages_per_run_max);
    for (; *kinds != '\0'; kinds++)
        ck_assert_msg(letters(text, *kinds) != 0, "%c starves behind %s", *kinds, text);
    domt_settle(&world);
    ck_assert_uint_eq(log0.count, 1000);
    domt_world_end(&world);
}

START_TEST(nothing_starves_in_a_run_of_64)
{
    nothing_starves(64);
}
END_TEST

START_TEST(nothing_starves_in_the_shortest_run)
{
    nothing_starves(16);
}
END_TEST

/* --- what no row takes, and what fails ------------------------------------------------------- */

static unsigned drops;

static void count_drop(void *payload)
{
    (void)payload;
    drops++;
}

static const domus_type unknown = {.name = "unknown", .size = 8, .drop = count_drop};
static int answer_error;

static int keep_error(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)stack, (void)self;
    answer_error = answer->error;
    return 0;
}

static int ask_unknown(domus_stack *stack, void *to)
{
    return domus_ask(stack, *(domus_address *)to, &unknown, "payload", keep_error);
}

START_TEST(ask_of_a_type_without_a_row_fails_and_is_dropped)
{
    open_world(0);
    domt_do(&world, other, ask_unknown, &one);
    ck_assert_int_eq(answer_error, -EOPNOTSUPP);
    ck_assert_uint_eq(drops, 1);
    ck_assert_uint_eq(DOMT_SUM(&world, dead_letters), 1);
    ck_assert_uint_eq(domt_in_use_all(&world), 0);
    domt_world_end(&world);
}
END_TEST

START_TEST(notice_of_a_type_without_a_row_is_a_dead_letter)
{
    open_world(0);
    ck_assert_int_eq(domt_notice(domt_outside(&world), one, &unknown, "payload"), 0);
    domt_settle(&world);
    ck_assert_uint_eq(drops, 1);
    ck_assert_uint_eq(DOMT_SUM(&world, dead_letters), 1);
    ck_assert_uint_eq(domt_in_use_all(&world), 0);
    domt_world_end(&world);
}
END_TEST

static int fail_it(domus_stack *stack, void *context)
{
    (void)stack, (void)context;
    return -EIO;
}

START_TEST(notice_that_fails_is_counted_and_ends_nothing)
{
    open_world(0);
    domt_do(&world, one, fail_it, NULL);
    ck_assert_uint_eq(DOMT_SUM(&world, failures), 1);
    domt_note_to(domt_outside(&world), one, 1);
    domt_settle(&world);
    ck_assert_uint_eq(domt_log_count(&log0, 'n'), 1);
    domt_world_end(&world);
}
END_TEST

START_TEST(counters_tell_messages_by_kind)
{
    open_world(0);
    uint64_t before = domt_handled(&world, DOMI_NOTICE);
    domus_address nobody = {0};
    for (int i = 0; i < 3; i++)
        domt_inquire_by(home(), one, other, i);
    for (int i = 0; i < 2; i++)
        domt_inquire_by(home(), one, nobody, i);
    int events = 4;
    domt_send(home(), one, arm, &events);
    domt_settle(&world);
    domt_pass(&world, 3 * MS);
    ck_assert_uint_eq(domt_handled(&world, DOMI_REPLY), 3);
    ck_assert_uint_eq(domt_handled(&world, DOMI_EXCEPTION), 2);
    ck_assert_uint_eq(domt_handled(&world, DOMI_ASK), 3);
    ck_assert_uint_eq(domt_handled(&world, DOMI_NOTICE) - before, 6);
    ck_assert_uint_eq(domt_handled(&world, DOMI_EVENT), 4);
    ck_assert_uint_eq(DOMT_SUM(&world, timers_fired), 4);
    domt_world_end(&world);
}
END_TEST

/* --- channels actors ------------------------------------------------------------------------- */

static int to_and_fro(domus_stack *stack, void *self, const void *number)
{
    domus_address *peer = self;

    return domus_notice(stack, *peer, &domt_note, number);
}

static const domus_behaviour endless = {
    .name = "endless",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(domus_address),
    .on = (const domus_on[]){{&domt_note, to_and_fro, 0}, {NULL, NULL, 0}},
};

/* Two channels actors that answer each other for ever cannot stop the thread. */
START_TEST(channels_actors_wait_for_the_next_tick_after_many_runs)
{
    domt_world_init(&world, 1);
    world.config.scheduler.channels_runs_per_tick = 10;
    ck_assert_int_eq(domt_world_start(&world), 0);
    domus_address a = domt_spawn(home(), home(), &endless, NULL);
    domus_address b = domt_spawn(home(), home(), &endless, NULL);
    (void)domt_events(home());
    *(domus_address *)a.house->self = b;
    *(domus_address *)b.house->self = a;
    domt_note_to(home(), a, 1);
    domt_note_to(home(), a, 2); /* two messages on their way: both houses stay ready */
    for (int tick = 0; tick < 3; tick++) {
        uint32_t runs = domi_manager_channels(home());
        ck_assert_uint_ge(runs, 10);
        ck_assert_uint_le(runs, 20);
        ck_assert(domi_manager_has_work(home()));
    }
    domt_world_end(&world);
}
END_TEST

DOMT_MAIN("dispatch", 60, run_takes_replies_exceptions_asks_notices_events,
          run_handles_at_most_64_and_goes_to_the_tail, run_length_is_configured,
          run_keeps_8_places_for_notices_and_8_for_events,
          run_keeps_no_places_for_what_does_not_wait, nothing_starves_in_a_run_of_64,
          nothing_starves_in_the_shortest_run, ask_of_a_type_without_a_row_fails_and_is_dropped,
          notice_of_a_type_without_a_row_is_a_dead_letter,
          notice_that_fails_is_counted_and_ends_nothing, counters_tell_messages_by_kind,
          channels_actors_wait_for_the_next_tick_after_many_runs)
