/* runtime/control/watchdog.c: a thread or runner that does not return from a handler is silent;
 * every other one counts as alive, whether it is busy, asleep or has ended. */
#include <domus/watchdog.h>

#include "tests/runtime/pooled.h"
#include "tests/runtime/running.h"

#include "base/memory.h"
#include "runtime/system/system.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

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
static bool is_number_of_silent_steady(int silent)
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
    DOMT_WAIT_FOR(20, is_number_of_silent_steady(silent));
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

DOMT_SUITE(30)
