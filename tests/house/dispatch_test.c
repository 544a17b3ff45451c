/* A run of a house takes messages in the order of their kinds, and a bounded number of each. */
#include "house/dispatch/dispatch.h"

#include "tests/house/recorder.h"
#include "tests/house/steps.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define MS UINT64_C(1000000)

static domt_world world;
static domt_log log0; /* log of the actor under test, on home 0 */
static domt_log log1; /* log of the other actors, on home 1 */

static domus_address one;   /* the actor under test */
static domus_address other; /* an actor that asks the one under test, and answers it */

static void open_world(uint32_t messages_per_run_max)
{
    domt_world_init(&world, 2);
    if (messages_per_run_max != 0)
        world.config.scheduler.messages_per_run_max = messages_per_run_max;
    ck_assert_int_eq(domt_world_start(&world), 0);
    one = domt_spawn_recorder(&world, 0, &log0);
    other = domt_spawn_recorder(&world, 1, &log1);
}

static domi_manager *home_manager(void)
{
    return world.managers[0];
}

static int arm_timers(domus_stack *stack, void *count)
{
    for (int64_t i = 0; i < *(int *)count; i++)
        ck_assert_int_eq(domus_after(stack, MS, &domt_tick, &i, NULL), 0);
    return 0;
}

/* Put so many messages of each kind for the house under test, and sort all of them into its
 * mailboxes. */
static void fill_mailboxes_of_house(int replies, int asks, int notices, int events)
{
    for (int i = 0; i < replies; i++)
        domt_let_recorder_ask(home_manager(), one, other, i);
    domt_send_function_to_call(home_manager(), one, arm_timers, &events);
    domt_let_home_work(home_manager());
    for (int i = 0; i < asks; i++)
        domt_let_recorder_ask(world.managers[1], other, one, i);
    for (int i = 0; i < notices; i++)
        domt_send_note(domt_outside_manager(&world), one, i);
    /* messages that home 1 sends stay in the inbox of the house under test */
    domt_let_home_work(world.managers[1]);
    domt_advance_time_without_runs(&world, 2 * MS);
    (void)domt_take_arrivals_and_timers(home_manager());
    log0.count = 0;
}

/* Run the house once. Returns the letters that this run wrote to the log. */
static const char *letters_of_next_run(void)
{
    uint32_t first = log0.count;
    domi_house *house = domi_queue_take_house(&home_manager()->schedule.ready[DOMUS_STATE]);

    ck_assert_ptr_eq(house, one.house);
    uint32_t handled = domi_house_run_and_settle(home_manager(), house);
    ck_assert_uint_eq(handled, log0.count - first);
    return domt_log_letters_from_entry(&log0, first);
}

static uint32_t count_letters_in_text(const char *text, char letter)
{
    uint32_t count = 0;

    for (; *text != '\0'; text++)
        count += *text == letter;
    return count;
}

DOMT_TEST(run_takes_replies_exceptions_asks_notices_events)
{
    open_world(0);
    domus_address failing = domt_spawn_failing_recorder(&world, 1, &log1);
    domt_let_recorder_ask(home_manager(), one, failing, 1);
    domt_let_recorder_ask(home_manager(), one, failing, 2);
    fill_mailboxes_of_house(2, 2, 2, 2);
    ck_assert_str_eq(letters_of_next_run(), "rrxxaannee");
    ck_assert_int_eq(log0.entries[2].number, -EIO);
    ck_assert_uint_eq(one.house->state, DOMI_WAITING);
    domt_settle_world(&world);
    ck_assert_uint_eq(domt_log_count_letter(&log1, 'r'), 2);
    domt_world_end(&world);
}

DOMT_TEST(run_handles_at_most_64_and_goes_to_the_tail)
{
    open_world(0);
    domus_address second = domt_spawn_recorder(&world, 0, &log1);
    fill_mailboxes_of_house(0, 0, 200, 0);
    domt_send_note(home_manager(), second, 1);
    ck_assert_uint_eq(strlen(letters_of_next_run()), 64);
    ck_assert_uint_eq(one.house->state, DOMI_READY);
    ck_assert_uint_eq(one.house->mail, 136);
    ck_assert_ptr_eq(domi_queue_take_house(&home_manager()->schedule.ready[0]), second.house);
    domi_house_run_and_settle(home_manager(), second.house);
    ck_assert_uint_eq(strlen(letters_of_next_run()), 64);
    ck_assert_uint_eq(strlen(letters_of_next_run()), 64);
    ck_assert_uint_eq(strlen(letters_of_next_run()), 8);
    ck_assert_uint_eq(one.house->state, DOMI_WAITING);
    domt_world_end(&world);
}

DOMT_TEST(run_length_is_configured)
{
    open_world(100);
    fill_mailboxes_of_house(0, 0, 150, 0);
    ck_assert_uint_eq(strlen(letters_of_next_run()), 100);
    ck_assert_uint_eq(strlen(letters_of_next_run()), 50);
    domt_world_end(&world);
}

DOMT_TEST(run_keeps_8_places_for_notices_and_8_for_events_unless_none_wait)
{
    static const struct {
        int waiting[3];
        uint32_t handled[3]; /* asks, notices and events that are handled */
    } rows[] = {
        {{100, 100, 100}, {48, 8, 8}},
        {{100, 100, 0}, {56, 8, 0}},
        {{100, 0, 100}, {56, 0, 8}},
        /* places that a few asks do not use go to notices, then to events */
        {{3, 100, 100}, {3, 53, 8}},
    };

    open_world(0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fill_mailboxes_of_house(0, rows[i].waiting[0], rows[i].waiting[1], rows[i].waiting[2]);
        const char *text = letters_of_next_run();
        for (int kind = 0; kind < 3; kind++)
            ck_assert_msg(count_letters_in_text(text, "ane"[kind]) == rows[i].handled[kind],
                          "row %zu: %s", i, text);
        domt_settle_world(&world);
    }
    domt_world_end(&world);
}

/* Check for many mixtures of waiting messages that each kind is handled within some runs. */
static void check_no_kind_starves(uint32_t messages_per_run_max)
{
    const char *kinds = "rxane";

    open_world(messages_per_run_max);
    domus_address failing = domt_spawn_failing_recorder(&world, 1, &log1);
    for (int i = 0; i < 200; i++)
        domt_let_recorder_ask(home_manager(), one, failing, i);
    fill_mailboxes_of_house(200, 200, 200, 200);
    const char *text = letters_of_next_run();
    ck_assert_uint_eq(strlen(text), messages_per_run_max);
    for (; *kinds != '\0'; kinds++)
        ck_assert_msg(count_letters_in_text(text, *kinds) != 0, "%c starves behind %s", *kinds,
                      text);
    domt_settle_world(&world);
    ck_assert_uint_eq(log0.count, 1000);
    domt_world_end(&world);
}

DOMT_TEST(nothing_starves_in_a_run_of_64_nor_in_one_that_keeps_one_place_for_each)
{
    check_no_kind_starves(64);
    check_no_kind_starves(16);
    check_no_kind_starves(8);
}

/* --- runs of fewer than 8 messages, which keep no places -------------------------------------- */

/* Check for the messages of one kind that their numbers were handled in the order in which they
 * were sent. */
static void check_kind_was_handled_in_order(char kind)
{
    int64_t next = 0;

    for (uint32_t i = 0; i < log0.count; i++) {
        if (log0.entries[i].what == kind)
            ck_assert_int_eq(log0.entries[i].number, next++);
    }
    ck_assert_int_eq(next, 50);
}

/* All five mailboxes are full, and a run is short: in five runs each mailbox comes first once. */
DOMT_TEST(short_runs_begin_with_each_mailbox_in_turn)
{
    for (uint32_t most = 1; most < 8; most++) {
        char text[64] = "";

        open_world(most);
        domus_address failing = domt_spawn_failing_recorder(&world, 1, &log1);
        for (int i = 0; i < 50; i++)
            domt_let_recorder_ask(home_manager(), one, failing, i);
        fill_mailboxes_of_house(50, 50, 50, 50);
        for (uint32_t i = 0; i < 5; i++) {
            const char *run = letters_of_next_run();
            ck_assert_uint_eq(strlen(run), most);
            strncat(text, run, most);
        }
        for (const char *kind = "rxane"; *kind != '\0'; kind++)
            ck_assert_msg(count_letters_in_text(text, *kind) == most, "runs of %u: %s", most, text);
        domt_settle_world(&world);
        ck_assert_uint_eq(log0.count, 250);
        for (const char *kind = "rane"; *kind != '\0'; kind++)
            check_kind_was_handled_in_order(*kind);
        domt_world_end(&world);
    }
}

/* Check that one message of each other kind is handled while messages of one kind flood the
 * house. */
static void check_kind_passes_flood(uint32_t most, int replies, int asks, int notices, int events,
                                    char kind)
{
    char text[64] = "";

    open_world(most);
    fill_mailboxes_of_house(replies, asks, notices, events);
    for (uint32_t i = 0; i < 6 && strchr(text, kind) == NULL; i++)
        strncat(text, letters_of_next_run(), 8);
    ck_assert_msg(strchr(text, kind) != NULL, "%c starves in runs of %u: %s", kind, most, text);
    domt_settle_world(&world);
    domt_world_end(&world);
}

DOMT_TEST(no_flood_of_one_kind_starves_another_in_short_runs)
{
    static const char kinds[] = "rane";

    for (uint32_t most = 1; most <= 8; most++) {
        for (int flood = 0; flood < 4; flood++) {
            for (int other_kind = 0; other_kind < 4; other_kind++) {
                int counts[4] = {0, 0, 0, 0};
                counts[other_kind] = 1;
                counts[flood] = 50;
                check_kind_passes_flood(most, counts[0], counts[1], counts[2], counts[3],
                                        kinds[other_kind]);
            }
        }
    }
}

static uint32_t channel_runs;

static uint32_t count_channel_run(domi_manager *manager, domi_house *house, uint32_t budget)
{
    ck_assert_uint_ge(budget, 1);
    channel_runs++;
    return 1;
}

DOMT_TEST(channels_have_their_turn_in_short_runs)
{
    open_world(1);
    fill_mailboxes_of_house(0, 0, 50, 50);
    home_manager()->io_hooks.run_channels = count_channel_run;
    one.house->marks |= DOMI_MARK_CHANNELS;
    for (int i = 0; i < 9; i++)
        domi_house_run_and_settle(
            home_manager(), domi_queue_take_house(&home_manager()->schedule.ready[DOMUS_STATE]));
    ck_assert_uint_eq(channel_runs, 3);
    ck_assert_uint_eq(log0.count, 6);
    one.house->marks &= (uint16_t)~DOMI_MARK_CHANNELS;
    domt_settle_world(&world);
    domt_world_end(&world);
}

/* --- priority --------------------------------------------------------------------------------- */

static int sleep_5_ms(domus_stack *stack, void *context)
{
    return domus_sleep(stack, 5 * MS, domt_hear_nothing);
}

static int receive_within_5_ms(domus_stack *stack, void *context)
{
    static const domus_pattern any = {NULL, NULL};

    return domus_receive_within(stack, &any, 5 * MS, domt_hear_nothing);
}

DOMT_TEST(only_an_ask_under_way_takes_high_priority_away)
{
    int64_t number = 1;

    open_world(0);
    domt_run_as_actor(&world, one, sleep_5_ms, NULL);
    ck_assert_uint_eq(domi_house_count_parked_conversations(one.house), 1);
    ck_assert(domi_house_has_high_priority(one.house));
    domt_let_recorder_ask(home_manager(), one, other, number);
    domt_let_home_work(home_manager());
    ck_assert_uint_eq(one.house->asks, 1);
    ck_assert(!domi_house_has_high_priority(one.house));
    domt_settle_world(&world);
    ck_assert(domi_house_has_high_priority(one.house));
    domt_pass_time(&world, 10 * MS);
    domt_run_as_actor(&world, one, receive_within_5_ms, NULL);
    ck_assert_uint_eq(domi_house_count_parked_conversations(one.house), 1);
    ck_assert(domi_house_has_high_priority(one.house));
    domt_pass_time(&world, 10 * MS);
    ck_assert_uint_eq(domi_house_count_parked_conversations(one.house), 0);
    domt_world_end(&world);
}

DOMT_TEST(how_often_queues_take_normal_houses_is_configured)
{
    domt_world_init(&world, 1);
    world.config.scheduler.normal_every = 7;
    ck_assert_int_eq(domt_world_start(&world), 0);
    ck_assert_uint_eq(home_manager()->schedule.ready[DOMUS_STATE].normal_every, 7);
    ck_assert_uint_eq(home_manager()->schedule.ready[DOMUS_CHANNELS].normal_every, 7);
    domt_world_end(&world);
}

/* --- what no row takes, and what fails ------------------------------------------------------- */

static const domus_type unknown = {.name = "unknown", .size = 8, .release = domt_count_release};
static int answer_error;

static int record_error_of_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    answer_error = answer->error;
    return 0;
}

static int ask_type_without_row(domus_stack *stack, void *to)
{
    return domus_ask(stack, *(domus_address *)to, &unknown, "payload", record_error_of_answer);
}

DOMT_TEST(ask_of_a_type_without_a_row_fails_and_is_dropped)
{
    open_world(0);
    domt_run_as_actor(&world, other, ask_type_without_row, &one);
    ck_assert_int_eq(answer_error, -EOPNOTSUPP);
    ck_assert_uint_eq(domt_releases, 1);
    ck_assert_uint_eq(DOMT_SUM(&world, dead_letters), 1);
    domt_end_clean_world(&world);
}

DOMT_TEST(notice_of_a_type_without_a_row_is_a_dead_letter)
{
    open_world(0);
    ck_assert_int_eq(domt_send_notice(domt_outside_manager(&world), one, &unknown, "payload"), 0);
    domt_settle_world(&world);
    ck_assert_uint_eq(domt_releases, 1);
    ck_assert_uint_eq(DOMT_SUM(&world, dead_letters), 1);
    domt_end_clean_world(&world);
}

static int return_error(domus_stack *stack, void *context)
{
    return -EIO;
}

DOMT_TEST(notice_that_fails_is_counted_and_ends_nothing)
{
    open_world(0);
    domt_run_as_actor(&world, one, return_error, NULL);
    ck_assert_uint_eq(DOMT_SUM(&world, failures), 1);
    domt_send_note(domt_outside_manager(&world), one, 1);
    domt_settle_world(&world);
    ck_assert_uint_eq(domt_log_count_letter(&log0, 'n'), 1);
    domt_world_end(&world);
}

DOMT_TEST(counters_tell_messages_by_kind)
{
    open_world(0);
    uint64_t before = domt_sum_handled_messages(&world, DOMI_NOTICE);
    domus_address nobody = {0};
    for (int i = 0; i < 3; i++)
        domt_let_recorder_ask(home_manager(), one, other, i);
    for (int i = 0; i < 2; i++)
        domt_let_recorder_ask(home_manager(), one, nobody, i);
    int events = 4;
    domt_send_function_to_call(home_manager(), one, arm_timers, &events);
    domt_settle_world(&world);
    domt_pass_time(&world, 3 * MS);
    ck_assert_uint_eq(domt_sum_handled_messages(&world, DOMI_REPLY), 3);
    ck_assert_uint_eq(domt_sum_handled_messages(&world, DOMI_EXCEPTION), 2);
    ck_assert_uint_eq(domt_sum_handled_messages(&world, DOMI_ASK), 3);
    ck_assert_uint_eq(domt_sum_handled_messages(&world, DOMI_NOTICE) - before, 6);
    ck_assert_uint_eq(domt_sum_handled_messages(&world, DOMI_EVENT), 4);
    ck_assert_uint_eq(DOMT_SUM(&world, timers_fired), 4);
    domt_world_end(&world);
}

/* --- channels actors ------------------------------------------------------------------------- */

static int send_number_back_to_peer(domus_stack *stack, void *self, const void *number)
{
    domus_address *peer = self;

    return domus_notice(stack, *peer, &domt_note, number);
}

static const domus_behaviour endless = {
    .name = "endless",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(domus_address),
    .on = (const domus_on[]){{&domt_note, send_number_back_to_peer, 0}, {0}}};

/* Two channels actors that send to each other for ever cannot keep the thread in phase 2. */
DOMT_TEST(channels_actors_wait_for_the_next_tick_after_many_runs)
{
    domt_world_init(&world, 1);
    world.config.scheduler.channels_runs_per_iteration = 10;
    ck_assert_int_eq(domt_world_start(&world), 0);
    domus_address a = domt_spawn(home_manager(), home_manager(), &endless, NULL);
    domus_address b = domt_spawn(home_manager(), home_manager(), &endless, NULL);
    (void)domt_take_arrivals_and_timers(home_manager());
    *(domus_address *)a.house->self = b;
    *(domus_address *)b.house->self = a;
    domt_send_note(home_manager(), a, 1);
    /* two messages go round between the actors, so both houses stay ready */
    domt_send_note(home_manager(), a, 2);
    for (int tick = 0; tick < 3; tick++) {
        uint32_t runs = domi_manager_run_channels_actors(home_manager());
        ck_assert_uint_ge(runs, 10);
        ck_assert_uint_le(runs, 20);
        ck_assert(domi_manager_has_work(home_manager()));
    }
    domt_world_end(&world);
}

DOMT_SUITE(60)
