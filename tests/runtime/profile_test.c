/* runtime/control/profile.c: the profile of a system counts time to the nanosecond, and work to the
 * message. */
#include "tests/runtime/running.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const domus_type work_type = {.name = "work", .size = sizeof(uint64_t)};
static _Atomic uint64_t worked;

static uint64_t cpu_time_of_thread_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Handle a message by using as much CPU time as it says, however often the thread is
 * interrupted. */
static int use_cpu_as_message_says(domus_stack *stack, void *self, const void *payload)
{
    uint64_t until_ns = cpu_time_of_thread_ns() + *(const uint64_t *)payload;
    (void)self;
    while (cpu_time_of_thread_ns() < until_ns)
        continue;
    atomic_fetch_add(&worked, 1);
    return 0;
}

static const domus_on work_rows[] = {{&work_type, use_cpu_as_message_says, 0}, {0}};
static const domus_behaviour workers[] = {
    [DOMUS_STATE] = {.name = "worker", .on = work_rows},
    [DOMUS_CHANNELS] = {.name = "worker", .kind = DOMUS_CHANNELS, .on = work_rows}};

static uint64_t sum_of_phase_times(const domus_profile *profile)
{
    uint64_t sum = 0;
    for (int i = 0; i < DOMUS_PHASES; i++)
        sum += profile->phase_ns[i];
    return sum;
}

static void expect_within_share(uint64_t value, uint64_t wanted, double share)
{
    ck_assert_msg((double)value >= (double)wanted * (1 - share) &&
                      (double)value <= (double)wanted * (1 + share),
                  "%lu is not within %g %% of %lu", value, share * 100, wanted);
}

/* The difference between two snapshots of the profile is what has happened in between, also in
 * time, within 1 %. */
DOMT_TEST(phases_sum_to_wall_time)
{
    domus_system *system = domt_start_system_of_threads(2);
    domus_address busy = domt_spawn(system, 0, &workers[DOMUS_STATE], NULL);
    domus_profile before[2], after[2];

    /* A snapshot contains only spans of time that have ended, so both are taken while the threads
     * sleep. */
    for (uint32_t i = 0; i < 2; i++)
        DOMT_WAIT_FOR(10, domt_profile_of_thread(system, i).parks != 0);
    domt_pause_ns(20 * DOMT_MS);
    uint64_t began_ns = domt_now_ns();
    for (uint32_t i = 0; i < 2; i++)
        before[i] = domt_profile_of_thread(system, i);
    for (uint64_t i = 1; i <= 20; i++) {
        domt_send_notice(system, busy, &work_type, &(uint64_t){10 * DOMT_MS});
        DOMT_WAIT_FOR(20, atomic_load(&worked) == i);
        domt_pause_ns(10 * DOMT_MS);
    }
    domt_pause_ns(100 * DOMT_MS);
    for (uint32_t i = 0; i < 2; i++)
        after[i] = domt_profile_of_thread(system, i);
    uint64_t took_ns = domt_now_ns() - began_ns;
    for (uint32_t i = 0; i < 2; i++) {
        ck_assert_uint_eq(sum_of_phase_times(&before[i]), before[i].wall_ns);
        ck_assert_uint_eq(sum_of_phase_times(&after[i]), after[i].wall_ns);
        expect_within_share(after[i].wall_ns - before[i].wall_ns, took_ns, 0.01);
    }
    ck_assert_int_eq(domus_system_stop(system), 0);
    for (uint32_t i = 0; i < 2; i++) {
        /* the counts of a thread can still be read after the thread has ended */
        domus_profile last = domt_profile_of_thread(system, i);
        ck_assert_uint_eq(sum_of_phase_times(&last), last.wall_ns);
        ck_assert_uint_ge(last.wall_ns, after[i].wall_ns);
    }
    domt_end_system(system);
}

DOMT_TEST(each_phase_has_the_time_that_was_spent_in_it)
{
    domus_system *system = domt_start_system_of_threads(3);
    domus_address state = domt_spawn(system, 1, &workers[DOMUS_STATE], NULL);
    domus_address channels = domt_spawn(system, 2, &workers[DOMUS_CHANNELS], NULL);
    domus_profile before[3], after[3];

    for (uint32_t i = 0; i < 3; i++)
        before[i] = domt_profile_of_thread(system, i);
    for (int i = 0; i < 10; i++) {
        domt_send_notice(system, state, &work_type, &(uint64_t){20 * DOMT_MS});
        domt_send_notice(system, channels, &work_type, &(uint64_t){20 * DOMT_MS});
    }
    DOMT_WAIT_FOR(20, atomic_load(&worked) == 20);
    domt_pause_ns(50 * DOMT_MS);
    for (uint32_t i = 0; i < 3; i++) {
        after[i] = domt_profile_of_thread(system, i);
        for (int phase = 0; phase < DOMUS_PHASES; phase++)
            after[i].phase_ns[phase] -= before[i].phase_ns[phase];
        after[i].wall_ns -= before[i].wall_ns;
    }
    ck_assert_uint_gt(after[0].phase_ns[DOMUS_PHASE_SLEEP], after[0].wall_ns / 100 * 95);
    ck_assert_uint_ge(after[1].phase_ns[DOMUS_PHASE_STATE], 200 * DOMT_MS);
    ck_assert_uint_lt(after[1].phase_ns[DOMUS_PHASE_CHANNELS], 10 * DOMT_MS);
    ck_assert_uint_ge(after[2].phase_ns[DOMUS_PHASE_CHANNELS], 200 * DOMT_MS);
    ck_assert_uint_lt(after[2].phase_ns[DOMUS_PHASE_STATE], 10 * DOMT_MS);
    domt_end_system(system);
}

#define CROWD 100

static domus_address crowd[CROWD];

/* Send each actor of the crowd a message that takes 0.1 ms of CPU. */
static int send_to_whole_crowd(domus_stack *stack, void *self, const void *payload)
{
    const uint64_t time_ns = DOMT_MS / 10;

    for (int i = 0; i < CROWD; i++)
        ck_assert_int_eq(domus_notice(stack, crowd[i], &work_type, &time_ns), 0);
    return 0;
}

/* One phase of state actors makes all of the crowd ready and handles it, so only the looks between
 * its runs count who waits. */
DOMT_TEST(ready_time_is_counted_at_each_look_of_a_phase)
{
    static const domus_type call_type = {.name = "call", .size = 0};
    const domus_on rows[] = {
        {&work_type, use_cpu_as_message_says, 0}, {&call_type, send_to_whole_crowd, 0}, {0}};
    const domus_behaviour both = {.name = "both", .on = rows};
    domus_config config = domt_config_of_threads(1);

    config.scheduler.min_budget_ns = config.scheduler.min_budget_busy_ns = 1000 * DOMT_MS;
    config.scheduler.max_budget_ns = 1000 * DOMT_MS;
    atomic_store(&worked, 0);
    domus_system *system = domt_start_system(&config);
    for (int i = 0; i < CROWD; i++)
        crowd[i] = domt_spawn(system, 0, &both, NULL);
    domt_send_notice(system, crowd[0], &call_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&worked) == CROWD);
    DOMT_WAIT_FOR(20, domt_profile_of_thread(system, 0).ready_ns >= 200 * DOMT_MS);
    domt_end_system(system);
}

DOMT_TEST(level_off_measures_no_time_and_counts_all_the_same)
{
    domus_config config = domt_config_of_threads(1);

    config.profile.level = DOMUS_PROFILE_OFF;
    domus_system *system = domt_start_system(&config);
    domus_address address = domt_spawn(system, 0, &workers[DOMUS_STATE], NULL);
    domt_send_notice(system, address, &work_type, &(uint64_t){5 * DOMT_MS});
    DOMT_WAIT_FOR(20, atomic_load(&worked) == 1);
    DOMT_WAIT_FOR(20, domt_profile_of_thread(system, 0).notices == 1);
    ck_assert_uint_eq(domt_profile_of_thread(system, 0).wall_ns, 0);
    ck_assert_int_eq(domus_system_stop(system), 0);
    domus_profile profile = domt_profile_of_thread(system, 0);
    ck_assert_uint_eq(profile.wall_ns, 0);
    ck_assert_uint_eq(sum_of_phase_times(&profile), 0);
    ck_assert_uint_gt(profile.iterations, 0);
    domt_end_system(system);
}

/* --- counters add up -------------------------------------------------------------------------- */

static const domus_type plain_type = {.name = "plain"};
static const domus_type failing_type = {.name = "failing"};
static const domus_type unknown_type = {.name = "unknown"};
static const domus_type tick_type = {.name = "tick"};
static const domus_type begin_type = {.name = "begin", .size = sizeof(domus_address)};
static const domus_type question_type = {.name = "question", .size = sizeof(uint64_t)};
static const domus_type answer_type = {.name = "answer"};
static _Atomic uint64_t resumed;

static int ignore_message(domus_stack *stack, void *self, const void *payload)
{
    return 0;
}

static int fail_with_edom(domus_stack *stack, void *self, const void *payload)
{
    return -EDOM;
}

/* Answer asks with even numbers, and fail asks with odd ones. */
static int reply_to_even_number(domus_stack *stack, void *self, const void *payload)
{
    return *(const uint64_t *)payload % 2 == 0 ? domus_reply(stack, &answer_type, NULL) : -EDOM;
}

static int count_resumed_conversation(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_fetch_add(&resumed, 1);
    return 0;
}

static int ask_with_next_tag(domus_stack *stack, void *self_, const void *payload)
{
    uint64_t *number = self_;
    (*number)++;
    return domus_ask(stack, *(const domus_address *)payload, &question_type, number,
                     count_resumed_conversation);
}

static int set_five_timers(domus_stack *stack, void *self)
{
    int result = 0;
    for (uint64_t ms = 1; ms <= 5 && result == 0; ms++)
        result = domus_after(stack, ms * DOMT_MS, &tick_type, NULL, NULL);
    return result;
}

static const domus_behaviour known = {
    .name = "known",
    .state_size = sizeof(uint64_t),
    .on = (const domus_on[]){{&plain_type, ignore_message, 0},
                             {&failing_type, fail_with_edom, 0},
                             {&tick_type, ignore_message, 0},
                             {&begin_type, ask_with_next_tag, 0},
                             {&question_type, reply_to_even_number, 0},
                             {0}},
    .on_mount = set_five_timers};

static int refuse_to_mount(domus_stack *stack, void *self)
{
    return -EDOM;
}

static const domus_behaviour unborn = {.name = "unborn", .on_mount = refuse_to_mount};

DOMT_TEST(counters_add_up_for_a_known_workload)
{
    domus_config config = domt_config_of_threads(2);

    config.scheduler.mailbox_max = 16;
    /* no thread stands in for another one, so each runs its own actors */
    config.scheduler.idle.stand_in_ns = 0;
    domus_system *system = domt_start_system(&config);
    domus_address one = domt_spawn(system, 0, &known, NULL);
    domus_address two = domt_spawn(system, 1, &known, NULL);
    (void)domt_spawn(system, 1, &unborn, NULL);
    domus_address gone = domt_spawn(system, 0, &known, NULL);

    for (uint64_t i = 1; i <= 100; i++) {
        domt_send_notice(system, one, &plain_type, NULL);
        domt_send_notice(system, one, &failing_type, NULL);
        domt_send_notice(system, one, &unknown_type, NULL);
        domt_send_notice(system, one, &begin_type, &two);
        DOMT_WAIT_FOR(10, atomic_load(&resumed) == i);
    }
    /* three mounted actors have armed five timers each */
    DOMT_WAIT_FOR(10, domt_profile_of_all_threads(system).events == 15);
    ck_assert_int_eq(domus_outside_stop(system, gone), 0);
    DOMT_WAIT_FOR(10, domt_profile_of_all_threads(system).stops == 2);
    ck_assert_int_eq(domus_outside_notice(system, gone, &plain_type, NULL), -ESTALE);

    domus_profile first = domt_profile_of_thread(system, 0);
    domus_profile second = domt_profile_of_thread(system, 1);
    ck_assert_uint_eq(first.notices, 400);
    ck_assert_uint_eq(first.dead_letters, 100);
    ck_assert_uint_eq(first.failures, 100);
    ck_assert_uint_eq(first.replies, 50);
    ck_assert_uint_eq(first.exceptions, 50);
    ck_assert_uint_eq(first.asks, 0);
    ck_assert_uint_eq(first.spawns, 2);
    ck_assert_uint_eq(first.stops, 1);
    ck_assert_uint_eq(first.timers_fired, 10);
    ck_assert_uint_eq(first.events, 10);
    ck_assert_uint_eq(second.asks, 100);
    ck_assert_uint_eq(second.notices + second.replies + second.exceptions, 0);
    /* the failed mount; a failed ask counts for the thread of its asker */
    ck_assert_uint_eq(second.failures, 1);
    ck_assert_uint_eq(second.spawns, 2);
    ck_assert_uint_eq(second.stops, 1);
    ck_assert_uint_eq(second.timers_fired, 5);
    ck_assert_uint_eq(first.refusals + second.refusals, 0);
    ck_assert_uint_ge(first.runs, 100);
    ck_assert_uint_eq(first.reads + first.accepted + first.channels_opened, 0);
    domt_end_system(system);
}

static domus_profile refusals_seen;
static atomic_bool refused;

/* Send 40 messages to an actor on this thread, whose mailbox takes 16, before that actor can
 * run. */
static int overflow_mailbox(domus_stack *stack, void *self, const void *payload)
{
    domus_address to = *(const domus_address *)payload;
    uint64_t full = 0;

    for (int i = 0; i < 40; i++)
        full += domus_notice(stack, to, &plain_type, NULL) == -ENOBUFS;
    refusals_seen.refusals = full;
    atomic_store(&refused, true);
    return 0;
}

static const domus_behaviour flooder = {
    .name = "flooder", .on = (const domus_on[]){{&begin_type, overflow_mailbox, 0}, {0}}};

DOMT_TEST(refused_messages_are_counted)
{
    domus_config config = domt_config_of_threads(1);

    config.scheduler.mailbox_max = 16;
    domus_system *system = domt_start_system(&config);
    domus_address to = domt_spawn(system, 0, &known, NULL);
    domus_address from = domt_spawn(system, 0, &flooder, NULL);
    domt_send_notice(system, from, &begin_type, &to);
    DOMT_WAIT_FOR(10, atomic_load(&refused));
    ck_assert_uint_eq(refusals_seen.refusals, 40 - 16);
    DOMT_WAIT_FOR(10, domt_profile_of_thread(system, 0).notices == 17);
    ck_assert_uint_eq(domt_profile_of_thread(system, 0).refusals, 40 - 16);
    domt_end_system(system);
}

/* --- snapshots -------------------------------------------------------------------------------- */

/* Add the phase `sleep` to the phase `submit`. They divide one span by the thread's CPU time, which
 * is read a little later, so a thread that was interrupted moves time from one to the other; only
 * the sum is exact. */
static void add_sleep_phase_to_submit_phase(domus_profile *profile)
{
    profile->phase_ns[DOMUS_PHASE_SUBMIT] += profile->phase_ns[DOMUS_PHASE_SLEEP];
    profile->phase_ns[DOMUS_PHASE_SLEEP] = 0;
}

DOMT_TEST(snapshots_of_threads_that_run_never_go_back)
{
    domus_system *system = domt_start_system_of_threads(2);
    domus_address state = domt_spawn(system, 0, &workers[DOMUS_STATE], NULL);
    domus_address channels = domt_spawn(system, 1, &workers[DOMUS_CHANNELS], NULL);
    domus_profile last[2] = {0};
    uint64_t backwards = 0;
    uint64_t sent = 0;

    for (uint32_t round = 0; round < (DOMT_SANITIZED ? 20000u : 60000u); round++) {
        if (sent == atomic_load(&worked)) {
            uint64_t work_ns = round % 3 * DOMT_MS / 2;
            domt_send_notice(system, round % 2 == 0 ? state : channels, &work_type, &work_ns);
            sent++;
        }
        domus_profile now = domt_profile_of_thread(system, round % 2);
        ck_assert_uint_eq(sum_of_phase_times(&now), now.wall_ns);
        add_sleep_phase_to_submit_phase(&now);
        const uint64_t *new_field = (const uint64_t *)(const void *)&now;
        const uint64_t *old_field = (const uint64_t *)(const void *)&last[round % 2];
        for (size_t i = 0; i < sizeof now / sizeof *new_field; i++)
            backwards += new_field[i] < old_field[i];
        last[round % 2] = now;
    }
    ck_assert_uint_eq(backwards, 0);
    ck_assert_uint_gt(sent, 10);
    domt_end_system(system);
}

DOMT_TEST(phases_have_names_and_threads_are_checked)
{
    domus_system *system = domt_start_system_of_threads(1);
    domus_profile profile;

    for (int i = 0; i < DOMUS_PHASES; i++) {
        ck_assert_ptr_nonnull(domus_phase_name((domus_phase)i));
        for (int k = 0; k < i; k++)
            ck_assert_str_ne(domus_phase_name((domus_phase)i), domus_phase_name((domus_phase)k));
    }
    ck_assert_ptr_null(domus_phase_name(DOMUS_PHASES));
    ck_assert_ptr_null(domus_phase_name((domus_phase)1000));
    memset(&profile, 0xa5, sizeof profile);
    ck_assert_int_eq(domus_system_profile(system, 1, &profile), -EINVAL);
    ck_assert_uint_eq(profile.wall_ns, UINT64_C(0xa5a5a5a5a5a5a5a5));
    domt_end_system(system);
}

DOMT_SUITE(60)
