/* runtime/system/monitor.c: the monitor thread exists when it is needed, sleeps while no thread
 * works, and ends with its system. After a change of the configuration stalls are watched only if
 * there is a monitor. */
#include "tests/runtime/stalls.h"
#include "tests/support/death.h"

#include <domus/stall.h>

#include <errno.h>
#include <time.h>
#include <unistd.h>

static const domus_type stay_type = {.name = "stay"};
static const domus_type ask_type = {.name = "ask"};
static atomic_bool may_go, is_in;

static int doze_in_handler(domus_stack *stack, void *self, const void *payload)
{
    domt_stay_asleep(60 * DOMT_MS, "in stuck, handling stay");
    return 0;
}

static int reply_to_ask(domus_stack *stack, void *self, const void *payload)
{
    return domus_reply(stack, &ask_type, NULL);
}

static const domus_behaviour stuck = {
    .name = "stuck",
    .on = (const domus_on[]){{&stay_type, doze_in_handler, 0}, {&ask_type, reply_to_ask, 0}, {0}}};

static domus_config config_with_stall_threshold(uint32_t threads)
{
    domus_config config = domt_config_of_threads(threads);

    config.stall.threshold_ns = 25 * DOMT_MS;
    return config;
}

static bool is_monitor_asleep(const domus_system *system)
{
    return atomic_load((_Atomic uint32_t *)(uintptr_t)&system->monitor.word) == DOMI_MONITOR_ASLEEP;
}

static void expect_stall_is_reported(domus_system *system, domus_address address)
{
    uint32_t before = domt_count_log_lines("in stuck, handling stay", NULL);

    domt_send_notice(system, address, &stay_type, NULL);
    DOMT_WAIT_FOR(30, domt_count_log_lines("in stuck, handling stay", NULL) > before);
}

DOMT_TEST(monitor_sleeps_when_idle_and_sees_later_stalls)
{
    domus_config config = config_with_stall_threshold(2);
    domus_system *system = domt_start_logging_system(&config);
    domus_address address = domt_spawn(system, 1, &stuck, NULL);

    DOMT_WAIT_FOR(10, domt_profile_of_thread(system, 1).spawns == 1);
    for (int i = 0; i < 2; i++) {
        DOMT_WAIT_FOR(10, is_monitor_asleep(system));
        domt_pause_ns(20 * DOMT_MS); /* wait until the monitor thread has gone to sleep */
        clockid_t clock = (clockid_t)domi_counter_read(&system->monitor.cpu_clock);
        uint64_t looks = domi_counter_read(&system->monitor.looks);
        uint64_t cpu_ns = domi_clock_read_cpu_ns(clock);
        /* within this time the cap of a sleep wakes each thread of the system */
        domt_pause_ns(2100 * DOMT_MS);
        ck_assert_uint_eq(domi_counter_read(&system->monitor.looks), looks);
        ck_assert_uint_eq(domi_clock_read_cpu_ns(clock), cpu_ns);
        ck_assert(is_monitor_asleep(system));
        if (i == 0)
            expect_stall_is_reported(system, address);
        DOMT_WAIT_FOR(10, domt_profile_of_all_threads(system).stalls ==
                              domt_count_ended_stalls(system));
    }
    domt_end_system(system);
}

/* If a thread falls asleep and wakes very often, the monitor stays awake and need not be woken each
 * time. */
DOMT_TEST(thread_that_wakes_often_finds_the_monitor_awake)
{
    domus_config config = config_with_stall_threshold(1);
    domus_system *system = domt_start_logging_system(&config);
    domus_address address = domt_spawn(system, 0, &stuck, NULL);
    uint32_t slept = 0;

    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(domus_outside_ask(system, address, &ask_type, NULL, 0, NULL), 0);
        domt_pause_ns(40 * DOMT_MS); /* so long that the monitor looks several times */
        slept += is_monitor_asleep(system);
    }
    ck_assert_uint_le(slept, 10);
    domt_end_system(system);
}

DOMT_TEST(without_a_threshold_and_counters_there_is_no_monitor)
{
    domus_config config = config_with_stall_threshold(1);

    domus_system *system = domt_start_logging_system(&config);
    ck_assert(domt_has_thread_named("domus-monitor"));
    domt_end_system(system);
    ck_assert(!domt_has_thread_named("domus-monitor"));
    config.stall.threshold_ns = 0;
    config.profile.level = DOMUS_PROFILE_OFF;
    system = domt_start_logging_system(&config);
    ck_assert(!domt_has_thread_named("domus-monitor"));
    domus_address address = domt_spawn(system, 0, &stuck, NULL);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(domus_outside_ask(system, address, &ask_type, NULL, 0, NULL), 0);
    ck_assert_uint_eq(domt_profile_of_all_threads(system).stalls, 0);
    domt_end_system(system);
}

static int block_in_handler_until_allowed(domus_stack *stack, void *self, const void *payload)
{
    atomic_store(&is_in, true);
    while (!atomic_load(&may_go))
        domt_pause_ns(DOMT_MS);
    return 0;
}

static const domus_behaviour waiting = {
    .name = "waiting",
    .on = (const domus_on[]){{&stay_type, block_in_handler_until_allowed, 0}, {0}}};

DOMT_TEST(a_stop_during_a_stall_leaves_it_watched)
{
    domus_config config = config_with_stall_threshold(2);
    config.shutdown.drain_timeout_ns = 10 * DOMT_MS;
    config.shutdown.actor_timeout_ns = 10 * DOMT_MS;
    domus_system *system = domt_start_logging_system(&config);

    domt_send_notice(system, domt_spawn(system, 0, &waiting, NULL), &stay_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&is_in));
    ck_assert_int_eq(domus_system_stop(system), -ETIMEDOUT);
    ck_assert_uint_eq(domt_count_log_lines("in waiting, handling stay", NULL), 1);
    ck_assert_uint_eq(domt_profile_of_thread(system, 0).stalls, 1);
    ck_assert(domt_has_thread_named("domus-monitor"));
    atomic_store(&may_go, true);
    DOMT_WAIT_FOR(10, domt_count_ended_stalls(system) == 1);
    ck_assert_int_eq(domus_system_stop(system), 0);
    ck_assert(!domt_has_thread_named("domus-monitor"));
    ck_assert_uint_eq(domt_count_log_lines("in waiting, handling stay", NULL), 1);
    ck_assert_uint_eq(domt_profile_of_thread(system, 0).stalls, 1);
    domus_system_free(system);
}

static void start_system_in_child(void *config)
{
    alarm(60);
    domus_system *own = domt_start_logging_system(config);
    expect_stall_is_reported(own, domt_spawn(own, 0, &stuck, NULL));
    domt_end_system(own);
}

static void stop_system_of_parent_in_child(void *system)
{
    alarm(60);
    ck_assert_int_eq(domus_system_stop(system), -ECHILD);
    ck_assert(!domt_has_thread_named("domus-monitor"));
    domus_system_free(system);
}

/* A forked child has no monitor for the systems of its parent, but a system that it starts itself
 * gets one. */
DOMT_TEST(a_fork_keeps_the_monitor_with_its_threads)
{
    domus_config config = config_with_stall_threshold(1);
    static char said[DOMT_SAID_MAX];

    ck_assert_int_eq(domt_run_in_child(start_system_in_child, &config, said), 0);
    domus_system *system = domt_start_logging_system(&config);
    domus_address address = domt_spawn(system, 0, &stuck, NULL);
    ck_assert_int_eq(domt_run_in_child(stop_system_of_parent_in_child, system, said), 0);
    expect_stall_is_reported(system, address);
    domt_end_system(system);
}

/* --- changes while the system runs -------------------------------------------------------------
 */

static _Atomic bool goes_on;

static int block_while_test_goes_on(domus_stack *stack, void *self, const void *payload)
{
    for (int i = 0; i < 20000 && atomic_load(&goes_on); i++)
        domt_pause_ns(DOMT_MS);
    return 0;
}

static const domus_behaviour still = {
    .name = "still", .on = (const domus_on[]){{&stay_type, block_while_test_goes_on, 0}, {0}}};

/* Returns whether some thread of the system is stalled at present. */
static bool is_some_thread_stalled(domus_system *system)
{
    static domus_stall stalls[DOMUS_STALLS_KEPT];
    uint32_t count = 0;

    ck_assert_int_eq(domus_stalls_read(system, stalls, DOMUS_STALLS_KEPT, &count), 0);
    for (uint32_t i = 0; i < count; i++) {
        if (!stalls[i].is_over)
            return true;
    }
    return false;
}

DOMT_TEST(stall_is_over_when_stalls_are_not_watched_any_more)
{
    domus_config config = domt_config_of_threads(1);
    char error[128];

    config.stall.threshold_ns = 10 * DOMT_MS;
    domus_system *system = domt_start_system(&config);
    atomic_store(&goes_on, true);
    domt_send_notice(system, domt_spawn(system, 0, &still, NULL), &stay_type, NULL);
    DOMT_WAIT_FOR(10, is_some_thread_stalled(system));
    ck_assert_int_eq(domus_system_change_key(system, "stall.threshold", "0", error, sizeof error),
                     1);
    DOMT_WAIT_FOR(10, !is_some_thread_stalled(system));
    atomic_store(&goes_on, false);
    domt_end_system(system);
}

/* A system that began without a monitor thread cannot watch stalls after a change. */
DOMT_TEST(stalls_are_not_watched_if_nothing_was_at_the_start)
{
    domus_config config = domt_config_of_threads(1);
    char error[128];

    config.stall.threshold_ns = 0;
    config.profile.level = DOMUS_PROFILE_OFF;
    domus_system *system = domt_start_system(&config);
    ck_assert_int_eq(
        domus_system_change_key(system, "stall.threshold", "25ms", error, sizeof error), -EPERM);
    ck_assert_str_eq(error, "these keys count at a start: stall.threshold");
    domt_end_system(system);
}

DOMT_SUITE(120)
