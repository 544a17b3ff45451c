/* runtime/control/watchdog.c: a thread or runner that does not come back is silent, and every other
 * one is alive, whether busy, asleep or ended. */
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

static int on_stay(domus_stack *stack, void *self, const void *nothing)
{
    atomic_fetch_add(&staying, 1);
    while (!atomic_load(&may_go))
        domt_pause_ns(DOMT_MS);
    atomic_fetch_sub(&staying, 1);
    return 0;
}

/* Send oneself the next message, so that the thread never sleeps. */
static int on_tick(domus_stack *stack, void *self, const void *nothing)
{
    return atomic_load(&may_go) ? 0 : domus_notice(stack, domus_self(stack), &tick_type, NULL);
}

static domus_address second;

/* Wake another actor of the pool again and again, which counts as a life-beat, and do not
 * return. */
static int on_flood(domus_stack *stack, void *self, const void *nothing)
{
    atomic_fetch_add(&staying, 1);
    while (!atomic_load(&may_go)) {
        (void)domus_notice(stack, second, &tock_type, NULL);
        domt_pause_ns(DOMT_MS / 4);
    }
    atomic_fetch_sub(&staying, 1);
    return 0;
}

static int on_tock(domus_stack *stack, void *self, const void *nothing)
{
    return 0;
}

static const domus_on rows[] = {{&flood_type, on_flood, 0},
                                {&tock_type, on_tock, 0},
                                {&stay_type, on_stay, 0},
                                {&tick_type, on_tick, 0},
                                {0}};
static const domus_behaviour actor = {.name = "actor", .on = rows};
static const domus_pool_config work = {.name = "work", .runners = 2, .policy = "deques"};

static domus_watchdog *watchdog;

static void start_test(void)
{
    domus_config config = domt_config(2);
    atomic_store(&may_go, false);
    atomic_store(&staying, 0);
    domt_pooled_start(&config, &work);
    ck_assert_int_eq(domus_watchdog_new(domt_pooled.system, &watchdog), 0);
}

static void end_test(void)
{
    domus_watchdog_free(watchdog);
    domt_end(domt_pooled.system);
}

/* Returns whether each of 20 looks finds so many silent threads. A thread that is waking is silent
 * for a moment. */
static bool is_steady(int silent)
{
    for (int i = 0; i < 20; i++) {
        domt_pause_ns(DOMT_MS);
        if (domus_watchdog_look(watchdog) != silent)
            return false;
    }
    return true;
}

static void expect_steady(int silent)
{
    DOMT_WAIT_FOR(20, is_steady(silent));
}

DOMT_TEST(all_are_alive_while_they_sleep_and_when_they_have_ended)
{
    start_test();
    domt_pause_ns(20 * DOMT_MS);
    expect_steady(0);
    ck_assert_int_ge(domus_system_stop(domt_pooled.system), 0);
    expect_steady(0);
    end_test();
}

DOMT_TEST(a_thread_and_a_runner_that_hang_are_silent_until_they_go_on)
{
    start_test();
    domt_notice(domt_pooled.system, domt_spawn(domt_pooled.system, 1, &actor, NULL), &stay_type,
                NULL);
    DOMT_WAIT_FOR(20, atomic_load(&staying) == 1);
    expect_steady(1);
    domt_notice(domt_pooled.system, domt_pooled_spawn(domt_pooled.pool, &actor, NULL), &stay_type,
                NULL);
    DOMT_WAIT_FOR(20, atomic_load(&staying) == 2);
    atomic_store(&may_go, true);
    DOMT_WAIT_FOR(20, domus_watchdog_look(watchdog) == 0); /* the runner was at rest before */
    expect_steady(0);
    end_test();
}

/* A period is over only if all threads have shown life in it, at the same time or one after the
 * other. */
DOMT_TEST(a_runner_that_stays_or_sends_and_does_not_return_is_silent)
{
    for (int sends = 0; sends < 2; sends++) {
        start_test();
        second = domt_pooled_spawn(domt_pooled.pool, &actor, NULL);
        domt_notice(domt_pooled.system, domt_pooled_spawn(domt_pooled.pool, &actor, NULL),
                    sends ? &flood_type : &stay_type, NULL);
        DOMT_WAIT_FOR(20, atomic_load(&staying) == 1);
        expect_steady(1);
        atomic_store(&may_go, true);
        expect_steady(0);
        end_test();
    }
}

DOMT_TEST(threads_that_are_busy_for_long_are_alive)
{
    start_test();
    for (uint32_t i = 0; i < 2; i++)
        domt_notice(domt_pooled.system, domt_spawn(domt_pooled.system, i, &actor, NULL), &tick_type,
                    NULL);
    for (int periods = 0; periods < 10; periods++)
        DOMT_WAIT_FOR(20, domus_watchdog_look(watchdog) == 0);
    atomic_store(&may_go, true);
    end_test();
}

/* Set the words as if a thread had gone to sleep `asleep_ns` ago and had not come back. */
static void let_sleep(int64_t asleep_ns)
{
    domi_thread *thread = &domt_pooled.system->threads[1];
    uint64_t since_ns = domi_clock_now(&domt_pooled.system->clock) - (uint64_t)asleep_ns;
    atomic_store(&thread->counters.cpu_end_ns, 0);
    atomic_store(&thread->counters.stamp_ns, since_ns | DOMI_STAMP_ASLEEP);
    atomic_store(&thread->manager.park, DOMI_PARK_SLEEPING);
}

/* The threads have ended, so the test may write their words. */
DOMT_TEST(a_sleep_that_should_be_over_is_silence)
{
    start_test();
    ck_assert_int_ge(domus_system_stop(domt_pooled.system), 0);
    let_sleep((int64_t)DOMI_PARK_CAP_NS);
    expect_steady(0);
    let_sleep((int64_t)(DOMI_PARK_CAP_NS + 1500 * DOMT_MS));
    expect_steady(1);
    /* the wake-up lies in the future, so this thread is not overdue */
    let_sleep(-60 * INT64_C(1000000000));
    expect_steady(0);
    atomic_store(&domt_pooled.system->threads[1].manager.park,
                 DOMI_PARK_NOTIFIED); /* the woken thread does not wake */
    expect_steady(1);
    atomic_store(&domt_pooled.system->threads[1].manager.park, DOMI_PARK_SPINNING);
    expect_steady(0);
    atomic_store(&domt_pooled.system->threads[1].counters.cpu_end_ns, 1);
    atomic_store(&domt_pooled.system->threads[1].manager.park, DOMI_PARK_RUNNING);
    end_test();
}

/* Run a child that exits with the errno of a look or of a new watchdog. Returns its exit status. */
static int in_child(domus_system *system, domus_watchdog *looked_at)
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
    domus_config config = domt_config(1);
    domus_system *system = NULL;
    char error[256];

    ck_assert_int_eq(domus_system_new(&config, error, sizeof error, &system), 0);
    ck_assert_int_eq(domus_watchdog_new(system, &watchdog), -ESHUTDOWN);
    ck_assert_int_eq(domus_system_start(system), 0);
    domi_memory_fail_after(0, 0);
    ck_assert_int_eq(domus_watchdog_new(system, &watchdog), -ENOMEM);
    domi_memory_fail_after(-1, 0);
    ck_assert_int_eq(domus_watchdog_new(system, &watchdog), 0);
    ck_assert_int_eq(in_child(system, watchdog), ECHILD);
    ck_assert_int_eq(in_child(system, NULL), ECHILD);
    domus_watchdog_free(watchdog);
    domt_end(system);
    domus_watchdog_free(NULL);
}

DOMT_SUITE(30)
