/* The turns of runners: the functions of the program that are called around each turn, and the
 * wake-up for a job. Wake-ups that come through no queue are noticed between long turns, and a
 * runner that is awake is not called. The profile of runners (runtime/pools/span.c) has columns of
 * its own in the table. */
#include "tests/runtime/pooled.h"

#include <domus/profile.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const domus_type go_type = {.name = "go"};
static _Atomic uint32_t handled;

/* --- functions of the program ----------------------------------------------------------------- */

static _Atomic uint32_t befores, afters, completions;
static _Atomic bool mixed_up;

static void check_and_count_hook_before_turn(domus_runner *runner, domus_job *job)
{
    if (atomic_load(&befores) != atomic_load(&afters) || domus_runner_number(runner) != 0)
        atomic_store(&mixed_up, true);
    atomic_fetch_add(&befores, 1);
}

static void count_hook_after_turn(domus_runner *runner, domus_job *job)
{
    atomic_fetch_add(&afters, 1);
}

static void count_completion(domus_runner *runner, domus_job *job)
{
    atomic_fetch_add(&completions, 1);
}

static int stop_own_actor_on_go(domus_stack *stack, void *self, const void *nothing)
{
    return domus_stop(stack, domus_self(stack));
}

DOMT_TEST(hooks_are_called_around_each_turn)
{
    const domus_behaviour brief = {
        .name = "brief", .on = (const domus_on[]){{&go_type, stop_own_actor_on_go, 0}, {0}}};
    static const domus_pool_hooks hooks = {check_and_count_hook_before_turn, count_hook_after_turn,
                                           count_completion};

    for (uint32_t i = 0; i < DOMT_POLICIES; i++) {
        const domus_pool_config work = {
            .name = "work", .runners = 1, .policy = domt_policies[i]->name, .hooks = &hooks};
        domus_config config = domt_config_of_threads(1);
        atomic_store(&befores, 0);
        atomic_store(&afters, 0);
        atomic_store(&completions, 0);
        domt_pooled_start_with_config(&config, &work);
        for (uint32_t j = 1; j <= 10; j++) {
            domus_address address = domt_pooled_spawn(domt_pooled.pool, &brief, NULL);
            domt_send_notice(domt_pooled.system, address, &go_type, NULL);
            DOMT_WAIT_FOR(10, atomic_load(&completions) == j);
        }
        domt_end_system(domt_pooled.system);
        ck_assert_uint_ge(atomic_load(&befores), 10);
        ck_assert_uint_eq(atomic_load(&befores), atomic_load(&afters));
        ck_assert(!atomic_load(&mixed_up));
        ck_assert_uint_eq(atomic_load(&completions), 10);
    }
}

/* --- sleep ------------------------------------------------------------------------------------ */

static int count_handled_go(domus_stack *stack, void *self, const void *nothing)
{
    atomic_fetch_add(&handled, 1);
    return 0;
}

/* A runner of the policy `stealing` has found nothing before, so without the wake-up it would sleep
 * for a second. */
DOMT_TEST(a_job_from_outside_wakes_a_runner)
{
    const domus_behaviour hearing = {
        .name = "hearing", .on = (const domus_on[]){{&go_type, count_handled_go, 0}, {0}}};
    for (uint32_t i = 0; i < DOMT_POLICIES; i++) {
        const domus_pool_config work = {.name = "work",
                                        .runners = 2,
                                        .policy = domt_policies[i]->name,
                                        .stealing = {.aggressive_attempts = 1,
                                                     .moderate_attempts = 1,
                                                     .relaxed_sleep_ns = 1000 * DOMT_MS}};
        domus_config config = domt_config_of_threads(1);
        domt_pooled_start_with_config(&config, &work);
        domus_address address = domt_pooled_spawn(domt_pooled.pool, &hearing, NULL);
        atomic_store(&handled, 0);
        for (uint32_t j = 1; j <= 10; j++) {
            domt_pause_ns(5 * DOMT_MS); /* wait until the runners sleep */
            uint64_t since_ns = domt_now_ns();
            domt_send_notice(domt_pooled.system, address, &go_type, NULL);
            DOMT_WAIT_FOR(10, atomic_load(&handled) == j);
            ck_assert_uint_lt(domt_now_ns() - since_ns, 700 * DOMT_MS);
        }
        domt_end_system(domt_pooled.system);
    }
}

/* --- long work -------------------------------------------------------------------------------- */

#define TURN_NS (5 * DOMT_MS)
static const domus_type tick_type = {.name = "tick"};
static _Atomic uint32_t ticks, turns;

static int spin_for_turn_and_repeat(domus_stack *stack, void *self, const void *nothing)
{
    uint64_t until_ns = domt_now_ns() + TURN_NS;
    while (domt_now_ns() < until_ns)
        continue;
    atomic_fetch_add(&turns, 1);
    return domus_notice(stack, domus_self(stack), &go_type, NULL);
}

static int count_tick(domus_stack *stack, void *self, const void *nothing)
{
    atomic_fetch_add(&ticks, 1);
    return 0;
}

static int arm_timer_in_mount(domus_stack *stack, void *self)
{
    return domus_every(stack, 10 * DOMT_MS, &tick_type, NULL, NULL);
}

static const domus_behaviour computing = {
    .name = "computing", .on = (const domus_on[]){{&go_type, spin_for_turn_and_repeat, 0}, {0}}};
static const domus_behaviour ticking = {.name = "ticking",
                                        .on = (const domus_on[]){{&tick_type, count_tick, 0}, {0}},
                                        .on_mount = arm_timer_in_mount};

/* Begin with one runner and two actors whose turns take 5 ms and never stop. */
static void begin_actors_with_long_turns(const domus_policy *policy)
{
    const domus_pool_config work = {
        .name = "work", .runners = 1, .own_policy = policy, .throughput = 1};
    domus_config config = domt_config_of_threads(1);

    domt_pooled_start_with_config(&config, &work);
    domt_pause_ns(20 * DOMT_MS); /* wait until the runner sleeps without a timer */
    for (int i = 0; i < 2; i++)
        domt_send_notice(domt_pooled.system, domt_pooled_spawn(domt_pooled.pool, &computing, NULL),
                         &go_type, NULL);
}

DOMT_TEST(timers_come_between_long_turns)
{
    begin_actors_with_long_turns(&domus_policy_sharing);
    (void)domt_pooled_spawn(domt_pooled.pool, &ticking, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&ticks) != 0);
    uint32_t ticks_before = atomic_load(&ticks);
    uint32_t turns_before = atomic_load(&turns);
    DOMT_WAIT_FOR(20, atomic_load(&turns) - turns_before >= 120);
    /* The ticking actor has a turn after each two turns of 5 ms, in which its timer of 10 ms is
     * due; one tick for eight turns leaves room for a slow machine. */
    ck_assert_uint_ge(atomic_load(&ticks) - ticks_before, 120 / 8);
    domt_end_system(domt_pooled.system);
}

static _Atomic uint32_t calls;

static void count_call_of_policy(domus_pool *pool)
{
    atomic_fetch_add(&calls, 1);
    domus_policy_sharing.call(pool);
}

/* On its mount an actor arms timers, each of which is later than the one before. */
static int arm_100_timers_in_mount(domus_stack *stack, void *self)
{
    domus_timer timer;
    for (uint32_t i = 0; i < 100; i++)
        ck_assert_int_eq(domus_after(stack, (1000 + i) * DOMT_MS, &tick_type, NULL, &timer), 0);
    return domt_count_mount(stack, self);
}

/* The runner no longer sleeps when the timers are armed, so nobody needs to call it. */
DOMT_TEST(later_timers_do_not_call_a_runner)
{
    const domus_behaviour arming = {.name = "arming",
                                    .on = (const domus_on[]){{&tick_type, count_tick, 0}, {0}},
                                    .on_mount = arm_100_timers_in_mount};
    domus_policy own = domus_policy_sharing;

    own.name = "own";
    own.call = count_call_of_policy;
    begin_actors_with_long_turns(&own);
    atomic_store(&calls, 0);
    atomic_store(&domt_mounted, 0);
    (void)domt_pooled_spawn(domt_pooled.pool, &arming, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&domt_mounted) == 1);
    ck_assert_uint_le(atomic_load(&calls), 1);
    domt_end_system(domt_pooled.system);
}

/* --- the profile ------------------------------------------------------------------------------ */

#define RUNNERS 2u

static const domus_type work_type = {.name = "work", .size = sizeof(uint64_t)};
static _Atomic uint32_t worked;

/* Compute for as many nanoseconds as the message says. */
static int compute_as_message_says(domus_stack *stack, void *self, const void *ns)
{
    uint64_t until_ns = domt_now_ns() + *(const uint64_t *)ns;
    while (domt_now_ns() < until_ns)
        ;
    atomic_fetch_add(&worked, 1);
    return 0;
}

static const domus_behaviour working = {
    .name = "working", .on = (const domus_on[]){{&work_type, compute_as_message_says, 0}, {0}}};

static void begin_pool_with_profile_level(const char *policy, domus_profile_level level)
{
    const domus_pool_config work = {.name = "work", .runners = RUNNERS, .policy = policy};
    domus_config config = domt_config_of_threads(1);
    config.profile.level = level;
    atomic_store(&worked, 0);
    domt_pooled_start_with_config(&config, &work);
}

static domus_runner_profile sum_profiles_of_runners(void)
{
    domus_runner_profile sum = {0}, one;

    for (uint32_t i = 0; i < RUNNERS; i++) {
        ck_assert_int_eq(domus_pool_profile(domt_pooled.pool, i, &one, NULL), 0);
        ck_assert_uint_eq(one.wall_ns, one.run_ns + one.search_ns + one.park_ns);
        ck_assert_uint_eq(one.begun, 1);
        sum.wall_ns += one.wall_ns;
        sum.run_ns += one.run_ns;
        sum.search_ns += one.search_ns;
        sum.park_ns += one.park_ns;
        sum.turns += one.turns;
        sum.messages += one.messages;
        sum.parks += one.parks;
        sum.steals += one.steals;
        sum.stolen += one.stolen;
        sum.global_takes += one.global_takes;
    }
    return sum;
}

static void send_work_and_wait(domus_address address, uint32_t count, uint64_t ns)
{
    uint32_t before = atomic_load(&worked);
    for (uint32_t i = 0; i < count; i++)
        domt_send_notice(domt_pooled.system, address, &work_type, &ns);
    DOMT_WAIT_FOR(20, atomic_load(&worked) == before + count);
}

static void run_runners_tell_what_they_did(const char *policy)
{
    begin_pool_with_profile_level(policy, DOMUS_PROFILE_COUNTERS);
    uint64_t since_ns = domt_now_ns();
    domus_address address = domt_pooled_spawn(domt_pooled.pool, &working, NULL);
    send_work_and_wait(address, 100, 0);
    send_work_and_wait(address, 4, 20 * DOMT_MS);
    domt_pause_ns(200 * DOMT_MS);
    uint64_t over_ns = domt_now_ns() - since_ns;
    domus_runner_profile sum = sum_profiles_of_runners();
    ck_assert_uint_eq(sum.messages, 104);
    ck_assert_uint_ge(sum.turns, 2);
    ck_assert_uint_le(sum.turns, 106);
    ck_assert_uint_gt(sum.parks, 0);
    ck_assert_uint_eq(sum.steals, sum.stolen);
    ck_assert_uint_ge(sum.run_ns, 80 * DOMT_MS);
    /* the runners have begun a little later than the test's clock */
    ck_assert_uint_ge(sum.wall_ns + 100 * DOMT_MS, RUNNERS * over_ns);
    /* While there was nothing to do both runners slept, and later one of them slept while the other
     * one worked. */
    ck_assert_uint_ge(sum.park_ns + sum.search_ns, 200 * DOMT_MS);
    ck_assert_uint_gt(sum.search_ns, 0);
    ck_assert_uint_gt(sum.park_ns, sum.search_ns);
    domus_runner_profile one;
    ck_assert_int_eq(domus_pool_profile(domt_pooled.pool, RUNNERS, &one, NULL), -EINVAL);
    domt_end_system(domt_pooled.system);
}

DOMT_TEST(profile_of_runners_tells_what_they_did)
{
    for (uint32_t i = 0; i < DOMT_POLICIES; i++)
        run_runners_tell_what_they_did(domt_policies[i]->name);
}

DOMT_TEST(runners_measure_no_time_at_profile_level_off)
{
    domus_profile counters;
    domus_runner_profile one;
    uint64_t notices = 0;

    begin_pool_with_profile_level("deques", DOMUS_PROFILE_OFF);
    send_work_and_wait(domt_pooled_spawn(domt_pooled.pool, &working, NULL), 50, 0);
    for (uint32_t i = 0; i < RUNNERS; i++) {
        ck_assert_int_eq(domus_pool_profile(domt_pooled.pool, i, &one, &counters), 0);
        ck_assert_uint_eq(one.wall_ns + one.run_ns + one.search_ns + one.park_ns, 0);
        notices += counters.notices;
    }
    ck_assert_uint_eq(notices, 50);
    domt_end_system(domt_pooled.system);
}

/* The profile is read while the runners begin and end waits all the time. */
DOMT_TEST(runner_times_never_go_back)
{
    domus_runner_profile before[RUNNERS] = {0};

    begin_pool_with_profile_level("sharing", DOMUS_PROFILE_COUNTERS);
    domus_address address = domt_pooled_spawn(domt_pooled.pool, &working, NULL);
    const uint64_t none = 0;
    uint64_t until_ns = domt_now_ns() + DOMT_SCALE(300, 100) * DOMT_MS;
    while (domt_now_ns() < until_ns) {
        (void)domus_outside_notice(domt_pooled.system, address, &work_type, &none);
        for (uint32_t i = 0; i < RUNNERS; i++) {
            domus_runner_profile now;
            ck_assert_int_eq(domus_pool_profile(domt_pooled.pool, i, &now, NULL), 0);
            ck_assert_uint_eq(now.wall_ns, now.run_ns + now.search_ns + now.park_ns);
            ck_assert_uint_ge(now.wall_ns, before[i].wall_ns);
            ck_assert_uint_ge(now.run_ns, before[i].run_ns);
            ck_assert_uint_ge(now.search_ns, before[i].search_ns);
            ck_assert_uint_ge(now.turns, before[i].turns);
            before[i] = now;
        }
    }
    domt_end_system(domt_pooled.system);
}

DOMT_TEST(profile_table_has_the_runners)
{
    static const char *const texts[] = {
        "\npool work (rings)     ", "\nrun    ",     "\nsearch ", "\npark   ",
        "\nturns                 ", "\nmessages   ", "\nparks  ", "\nnotices ",
    };

    begin_pool_with_profile_level("rings", DOMUS_PROFILE_COUNTERS);
    send_work_and_wait(domt_pooled_spawn(domt_pooled.pool, &working, NULL), 50, 0);
    size_t size = domus_system_profile_table(domt_pooled.system, NULL, 0) + 1000;
    char *table = malloc(size);
    ck_assert_ptr_nonnull(table);
    (void)domus_system_profile_table(domt_pooled.system, table, size);
    const char *at = strstr(table, texts[0]);
    ck_assert_ptr_nonnull(at);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_msg(strstr(at, texts[i]) != NULL, "no%s in\n%s", texts[i], at);
    /* the table has no row for steals, because there were none */
    ck_assert_ptr_null(strstr(at, "\nsteals "));
    free(table);
    domt_end_system(domt_pooled.system);
}

DOMT_SUITE(60)
