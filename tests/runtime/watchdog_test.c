/* Threads that watch others: the watchdog tells silent threads from busy ones, and the monitor
 * thread exists only while it is needed. */
#include "base/memory.h"
#include "runtime/system/system.h"
#include "tests/runtime/pooled.h"
#include "tests/runtime/running.h"
#include "tests/runtime/stalls.h"
#include "tests/support/death.h"

#include <domus/stall.h>
#include <domus/watchdog.h>
#include <errno.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* runtime/control/watchdog.c: a thread or runner that does not return from a handler is silent;
 * every other one counts as alive, whether it is busy, asleep or has ended. */

static const domus_type stay_type = {.name = "stay"};
static const domus_type tick_type = {.name = "tick"};
static const domus_type flood_type = {.name = "flood"};
static const domus_type tock_type = {.name = "tock"};
static atomic_bool may_go;
static _Atomic uint32_t staying;

static int stay_in_handler_until_allowed(domus_stack *stack, void *self, const void *nothing)
{
    atomic_fetch_add(&staying, 1);
    while (!atomic_load(&may_go))
        domt_pause_ns(DOMT_MS);
    atomic_fetch_sub(&staying, 1);
    return 0;
}

/* Send this actor the next message, so that its thread never sleeps. */
static int notify_own_actor_until_allowed(domus_stack *stack, void *self, const void *nothing)
{
    return atomic_load(&may_go) ? 0 : domus_notice(stack, domus_self(stack), &tick_type, NULL);
}

static domus_address second;

/* Wake another actor of the pool again and again, which counts as a life-beat of the runner, and do
 * not return. */
static int wake_other_actor_until_allowed(domus_stack *stack, void *self, const void *nothing)
{
    atomic_fetch_add(&staying, 1);
    while (!atomic_load(&may_go)) {
        (void)domus_notice(stack, second, &tock_type, NULL);
        domt_pause_ns(DOMT_MS / 4);
    }
    atomic_fetch_sub(&staying, 1);
    return 0;
}

static int ignore_message(domus_stack *stack, void *self, const void *nothing)
{
    return 0;
}

static const domus_on rows[] = {{&flood_type, wake_other_actor_until_allowed, 0},
                                {&tock_type, ignore_message, 0},
                                {&stay_type, stay_in_handler_until_allowed, 0},
                                {&tick_type, notify_own_actor_until_allowed, 0},
                                {0}};
static const domus_behaviour actor = {.name = "actor", .on = rows};
static const domus_pool_config work = {.name = "work", .runners = 2, .policy = "deques"};

static domus_watchdog *watchdog;

static void start_system_with_watchdog(void)
{
    domus_config config = domt_config_of_threads(2);
    atomic_store(&may_go, false);
    atomic_store(&staying, 0);
    domt_pooled_start_with_config(&config, &work);
    ck_assert_int_eq(domus_watchdog_new(domt_pooled.system, &watchdog), 0);
}

static void end_system_with_watchdog(void)
{
    domus_watchdog_free(watchdog);
    domt_end_system(domt_pooled.system);
}

/* Returns whether each of 20 looks finds exactly this number of silent threads. A thread that is
 * just waking is silent for a moment. */
static bool is_count_of_silent_threads_steady(int silent)
{
    for (int i = 0; i < 20; i++) {
        domt_pause_ns(DOMT_MS);
        if (domus_watchdog_look(watchdog) != silent)
            return false;
    }
    return true;
}

static void expect_steady_number_of_silent(int silent)
{
    DOMT_WAIT_FOR(20, is_count_of_silent_threads_steady(silent));
}

DOMT_TEST(sleeping_and_ended_threads_count_as_alive)
{
    start_system_with_watchdog();
    domt_pause_ns(20 * DOMT_MS);
    expect_steady_number_of_silent(0);
    ck_assert_int_ge(domus_system_stop(domt_pooled.system), 0);
    expect_steady_number_of_silent(0);
    end_system_with_watchdog();
}

DOMT_TEST(a_thread_and_a_runner_that_hang_are_silent_until_they_go_on)
{
    start_system_with_watchdog();
    domt_send_notice(domt_pooled.system, domt_spawn(domt_pooled.system, 1, &actor, NULL),
                     &stay_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&staying) == 1);
    expect_steady_number_of_silent(1);
    domt_send_notice(domt_pooled.system, domt_pooled_spawn(domt_pooled.pool, &actor, NULL),
                     &stay_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&staying) == 2);
    atomic_store(&may_go, true);
    /* one look finds no silence, because the runner was at rest before it hung */
    DOMT_WAIT_FOR(20, domus_watchdog_look(watchdog) == 0);
    expect_steady_number_of_silent(0);
    end_system_with_watchdog();
}

/* A period of the watchdog is over only when each thread has shown life in it, at the same time as
 * others or not. */
DOMT_TEST(a_runner_that_stays_or_sends_and_does_not_return_is_silent)
{
    for (int sends = 0; sends < 2; sends++) {
        start_system_with_watchdog();
        second = domt_pooled_spawn(domt_pooled.pool, &actor, NULL);
        domt_send_notice(domt_pooled.system, domt_pooled_spawn(domt_pooled.pool, &actor, NULL),
                         sends ? &flood_type : &stay_type, NULL);
        DOMT_WAIT_FOR(20, atomic_load(&staying) == 1);
        expect_steady_number_of_silent(1);
        atomic_store(&may_go, true);
        expect_steady_number_of_silent(0);
        end_system_with_watchdog();
    }
}

DOMT_TEST(threads_that_are_busy_for_long_are_alive)
{
    start_system_with_watchdog();
    for (uint32_t i = 0; i < 2; i++)
        domt_send_notice(domt_pooled.system, domt_spawn(domt_pooled.system, i, &actor, NULL),
                         &tick_type, NULL);
    for (int periods = 0; periods < 10; periods++)
        DOMT_WAIT_FOR(20, domus_watchdog_look(watchdog) == 0);
    atomic_store(&may_go, true);
    end_system_with_watchdog();
}

/* Set a thread's words as if it had gone to sleep `asleep_ns` ago and had not come back since. */
static void pretend_thread_is_asleep(int64_t asleep_ns)
{
    domi_thread *thread = &domt_pooled.system->threads[1];
    uint64_t since_ns = domi_clock_now(&domt_pooled.system->clock) - (uint64_t)asleep_ns;
    atomic_store(&thread->counters.cpu_end_ns, 0);
    atomic_store(&thread->counters.stamp_ns, since_ns | DOMI_STAMP_ASLEEP);
    atomic_store(&thread->manager.park, DOMI_PARK_SLEEPING);
}

/* The system was stopped, so the test may write the words of its threads. */
DOMT_TEST(overdue_sleep_counts_as_silence)
{
    start_system_with_watchdog();
    ck_assert_int_ge(domus_system_stop(domt_pooled.system), 0);
    pretend_thread_is_asleep((int64_t)DOMI_PARK_CAP_NS);
    expect_steady_number_of_silent(0);
    pretend_thread_is_asleep((int64_t)(DOMI_PARK_CAP_NS + 1500 * DOMT_MS));
    expect_steady_number_of_silent(1);
    /* the sleep begins in the future here, so the thread is not overdue */
    pretend_thread_is_asleep(-60 * INT64_C(1000000000));
    expect_steady_number_of_silent(0);
    atomic_store(&domt_pooled.system->threads[1].manager.park,
                 DOMI_PARK_NOTIFIED); /* the thread was woken, but does not come back */
    expect_steady_number_of_silent(1);
    atomic_store(&domt_pooled.system->threads[1].manager.park, DOMI_PARK_SPINNING);
    expect_steady_number_of_silent(0);
    atomic_store(&domt_pooled.system->threads[1].counters.cpu_end_ns, 1);
    atomic_store(&domt_pooled.system->threads[1].manager.park, DOMI_PARK_RUNNING);
    end_system_with_watchdog();
}

/* Look at a watchdog, or make one, in a forked child, which exits with the errno of that call.
 * Returns the exit status. */
static int errno_of_watchdog_in_child(domus_system *system, domus_watchdog *looked_at)
{
    domus_watchdog *other;
    int status = 0;
    pid_t pid = fork();

    if (pid == 0)
        _exit(looked_at != NULL ? -domus_watchdog_look(looked_at)
                                : -domus_watchdog_new(system, &other));
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

DOMT_TEST(watchdog_is_made_of_a_system_that_was_started_in_this_process)
{
    domus_config config = domt_config_of_threads(1);
    domus_system *system = NULL;
    char error[256];

    ck_assert_int_eq(domus_system_new(&config, error, sizeof error, &system), 0);
    ck_assert_int_eq(domus_watchdog_new(system, &watchdog), -ESHUTDOWN);
    ck_assert_int_eq(domus_system_start(system), 0);
    domi_memory_fail_allocation_after(0, 0);
    ck_assert_int_eq(domus_watchdog_new(system, &watchdog), -ENOMEM);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_int_eq(domus_watchdog_new(system, &watchdog), 0);
    ck_assert_int_eq(errno_of_watchdog_in_child(system, watchdog), ECHILD);
    ck_assert_int_eq(errno_of_watchdog_in_child(system, NULL), ECHILD);
    domus_watchdog_free(watchdog);
    domt_end_system(system);
    domus_watchdog_free(NULL);
}

/* --- monitor ---------------------------------------------------------------------------------- */

/* runtime/system/monitor.c: the monitor thread exists when it is needed, sleeps while no thread
 * works, and ends with its system. After a change of the configuration stalls are watched only if
 * there is a monitor. */

static const domus_type ask_type = {.name = "ask"};
static atomic_bool may_go_monitor, is_in;

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
        domt_pause_ns(40 * DOMT_MS); /* in this pause the monitor looks several times */
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
    while (!atomic_load(&may_go_monitor))
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
    atomic_store(&may_go_monitor, true);
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
