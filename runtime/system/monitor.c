/* The monitor's looks and its sleep. It falls asleep in the steps of base/park.h: it exchanges its
 * word, looks at everything again, and sleeps; the kernel compares the word once more before the
 * sleep. But the word has other values than a park word: nothing is put for the monitor, its word
 * tells it to end, and it also sleeps for a time while the word is AWAKE, so that no thread pays
 * for waking it then. */
#include "runtime/system/monitor.h"

#include "runtime/os/futex.h"
#include "runtime/os/threads.h"
#include "runtime/system/pressure.h"
#include "runtime/system/run_time.h"
#include "runtime/system/stall.h"

/* Let the monitor take a look at all that it watches. Returns the nanoseconds until its next
 * look. */
static uint64_t take_all_looks_of_monitor(domus_system *system)
{
    uint64_t next_ns = DOMI_LIVE(system, memory.interval_ns);

    domi_counter_add(&system->monitor.looks, 1);
    /* Threads look at memory between their runs, too, but the monitor does so as well, because one
     * run may be long. */
    domi_pressure_look_if_due(system, DOMUS_LOG_OUTSIDE, domi_clock_now(&system->clock));
    uint64_t stalls_ns = domi_stalls_look_at_all_threads(system);
    if (stalls_ns < next_ns)
        next_ns = stalls_ns;
    uint64_t run_ns = domi_run_time_look_at_all_behaviours(system);
    if (run_ns < next_ns)
        next_ns = run_ns;
    if (system->monitor.pools != NULL) {
        uint64_t pools_ns = system->monitor.pools->look(system);
        if (pools_ns < next_ns)
            next_ns = pools_ns;
    }
    return next_ns;
}

/* True if this system needs a monitor, because something is watched or measured. */
static bool is_monitor_needed(const domus_system *system)
{
    return system->simulator == NULL &&
           (DOMI_LIVE(system, stall.threshold_ns) != 0 || system->monitor.pools != NULL ||
            system->config.profile.level != DOMUS_PROFILE_OFF);
}

static bool is_any_thread_awake(const domus_system *system)
{
    if (system->monitor.pools != NULL && system->monitor.pools->is_awake(system))
        return true;
    for (uint32_t i = 0; i < system->count; i++) {
        _Atomic uint32_t *park = (_Atomic uint32_t *)(uintptr_t)&system->threads[i].manager.park;
        /* seq_cst: pairs with domi_monitor_wake_if_resting(), so either this sees that the thread
         * is awake, or the thread sees that the monitor is asleep. */
        if (!domi_park_is_word_of_sleeper(atomic_load_explicit(park, memory_order_seq_cst)))
            return true;
    }
    return false;
}

/* Returns how many runs and spawns all threads have done so far. */
static uint64_t sum_runs_and_spawns(const domus_system *system)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < system->count; i++) {
        const domi_counters *counters = &system->threads[i].manager.counters;
        sum += domi_counter_read(&counters->runs) + domi_counter_read(&counters->spawns);
    }
    return sum;
}

/* Returns whether any thread is at work, or was until a moment ago; threads that wake and fall
 * asleep often also count as at work. */
static bool was_any_thread_at_work_recently(domus_system *system)
{
    domi_monitor *monitor = &system->monitor;
    uint64_t now_ns = domi_clock_now(&system->clock);
    uint64_t done = sum_runs_and_spawns(system);

    if (done != monitor->works || is_any_thread_awake(system) || domi_stalls_is_any_open(system))
        monitor->lively_ns = now_ns;
    monitor->works = done;
    return now_ns - monitor->lively_ns < DOMI_MONITOR_LINGER_NS;
}

void domi_monitor_sleep_until_woken(domus_system *system)
{
    domi_monitor *monitor = &system->monitor;
    uint32_t expected = DOMI_MONITOR_AWAKE;

    /* seq_cst, as the looks at the park words that follow: pairs with
     * domi_monitor_wake_if_resting(). */
    if (!atomic_compare_exchange_strong_explicit(&monitor->word, &expected, DOMI_MONITOR_ASLEEP,
                                                 memory_order_seq_cst, memory_order_relaxed))
        return; /* the word of the monitor is ENDING */
    if (is_any_thread_awake(system)) {
        /* a compare-exchange, because another thread may have changed the monitor's word already */
        expected = DOMI_MONITOR_ASLEEP;
        (void)atomic_compare_exchange_strong_explicit(&monitor->word, &expected, DOMI_MONITOR_AWAKE,
                                                      memory_order_relaxed, memory_order_relaxed);
        return;
    }
    while (atomic_load_explicit(&monitor->word, memory_order_relaxed) == DOMI_MONITOR_ASLEEP)
        domi_futex_wait(&monitor->word, DOMI_MONITOR_ASLEEP, NULL);
    domi_stalls_forget_last_looks(system);
    domi_run_time_forget_last_look(system);
}

static void *run_monitor_thread(void *system_)
{
    domus_system *system = system_;
    domi_monitor *monitor = &system->monitor;
    clockid_t cpu_clock = CLOCK_THREAD_CPUTIME_ID;

    (void)pthread_getcpuclockid(pthread_self(), &cpu_clock);
    atomic_store_explicit(&monitor->cpu_clock, (uint64_t)cpu_clock, memory_order_relaxed);
    monitor->lively_ns = domi_clock_now(&system->clock);
    domi_random_init(&monitor->chance, monitor->lively_ns);
    domi_stalls_forget_last_looks(system);
    while (atomic_load_explicit(&monitor->word, memory_order_relaxed) != DOMI_MONITOR_ENDING) {
        const struct timespec next = domi_clock_deadline_after(take_all_looks_of_monitor(system));

        if (was_any_thread_at_work_recently(system))
            domi_futex_wait(&monitor->word, DOMI_MONITOR_AWAKE, &next);
        else
            domi_monitor_sleep_until_woken(system);
    }
    return NULL;
}

void domi_monitor_wake_if_asleep(domi_monitor *monitor)
{
    uint32_t asleep = DOMI_MONITOR_ASLEEP;

    /* Relaxed: no data is handed over with the word. Only the thread that changes it makes the
     * system call. */
    if (atomic_compare_exchange_strong_explicit(&monitor->word, &asleep, DOMI_MONITOR_AWAKE,
                                                memory_order_relaxed, memory_order_relaxed))
        domi_futex_wake(&monitor->word);
}

int domi_monitor_start(domus_system *system)
{
    domi_monitor *monitor = &system->monitor;

    if (!is_monitor_needed(system))
        return 0;
    atomic_store_explicit(&monitor->word, DOMI_MONITOR_AWAKE, memory_order_relaxed);
    int result = domi_unpinned_start_thread(&monitor->pthread, run_monitor_thread, system,
                                            "domus-monitor", &system->all_cpus);
    monitor->started = result == 0;
    return result;
}

void domi_monitor_stop(domus_system *system)
{
    domi_monitor *monitor = &system->monitor;

    if (!monitor->started)
        return;
    atomic_store_explicit(&monitor->word, DOMI_MONITOR_ENDING, memory_order_relaxed);
    domi_futex_wake(&monitor->word);
    pthread_join(monitor->pthread, NULL);
    monitor->started = false;
}
