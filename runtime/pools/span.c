/* This file measures how long a runner works, searches and sleeps; runners.h says how. */
#include "runtime/pools/runners.h"

#include "base/clock.h"
#include "base/spinlock.h"
#include "runtime/system/system.h"

#include <time.h>

/* most attempts to read a runner's times while the runner is interrupted in changing them */
#define READS_MAX 100000

static bool are_times_measured(const domus_runner *runner)
{
    return runner->pool->system->config.profile.level != DOMUS_PROFILE_OFF;
}

/* Keep a read of the clock between the accesses to memory before and behind it. The processor may
 * read the TSC before an earlier access is done, and do a later access before the TSC is read; an
 * lfence waits for all earlier instructions. The C library reads other clocks, and orders the read
 * by itself. */
static void fence_read_of_clock(void)
{
#if defined(__x86_64__)
    __builtin_ia32_lfence();
#endif
}

static uint64_t read_own_cpu_ns(void)
{
    return domi_clock_read_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* --- the runner writes ------------------------------------------------------------------------ */

/* Set one of the runner's times. Release: the store comes after MOVING was stored in `stamp_ns`, so
 * a reader that finds the new value also finds MOVING, or a later stamp. */
static void set_time_of_runner(domi_counter *counter, uint64_t value)
{
    atomic_store_explicit(counter, value, memory_order_release);
}

/* Begin a change of the runner's times: store MOVING as the stamp, then read the clock. The store
 * is seq_cst, so that it is seen before the clock is read: a reader that has not seen it has read
 * an earlier time. Returns the stamp before the change. */
static uint64_t begin_change_of_times(domus_runner *runner, uint64_t *ret_now_ns)
{
    domi_counter *stamp_ns = &runner->counters.stamp_ns;
    uint64_t before_ns = domi_counter_read(stamp_ns);

    atomic_store_explicit(stamp_ns, DOMI_RUNNER_MOVING, memory_order_seq_cst);
    fence_read_of_clock();
    *ret_now_ns = domi_clock_now(&runner->pool->system->clock);
    return before_ns;
}

static void record_change_between_work_and_wait(domus_runner *runner, bool waits)
{
    domi_runner_counters *counters = &runner->counters;
    uint64_t now_ns;
    uint64_t before_ns = begin_change_of_times(runner, &now_ns);

    if (before_ns != 0)
        set_time_of_runner(&counters->lived_ns,
                           domi_counter_read(&counters->lived_ns) + now_ns - before_ns);
    set_time_of_runner(&counters->waits, waits ? 1 : 0);
    set_time_of_runner(&counters->stamp_ns, now_ns);
}

void domi_span_begin_life_of_runner(domus_runner *runner)
{
    domi_counter_add(&runner->counters.begun, 1);
    if (are_times_measured(runner))
        record_change_between_work_and_wait(runner, false);
}

void domi_span_end_life_of_runner(domus_runner *runner)
{
    if (!are_times_measured(runner))
        return;
    record_change_between_work_and_wait(runner, false);
    set_time_of_runner(&runner->counters.stamp_ns, 0);
}

void domi_span_begin_wait_of_runner(domus_runner *runner)
{
    if (!are_times_measured(runner))
        return;
    runner->wait_cpu_ns = read_own_cpu_ns();
    record_change_between_work_and_wait(runner, true);
}

void domi_span_end_wait_of_runner(domus_runner *runner)
{
    domi_runner_counters *counters = &runner->counters;

    if (!are_times_measured(runner))
        return;
    uint64_t used_ns = read_own_cpu_ns() - runner->wait_cpu_ns;
    uint64_t now_ns;
    uint64_t before_ns = begin_change_of_times(runner, &now_ns);
    uint64_t waited_ns = now_ns - before_ns;
    if (used_ns > waited_ns)
        used_ns = waited_ns;
    set_time_of_runner(&counters->search_ns, domi_counter_read(&counters->search_ns) + used_ns);
    set_time_of_runner(&counters->park_ns,
                       domi_counter_read(&counters->park_ns) + waited_ns - used_ns);
    set_time_of_runner(&counters->lived_ns, domi_counter_read(&counters->lived_ns) + waited_ns);
    set_time_of_runner(&counters->waits, 0);
    set_time_of_runner(&counters->stamp_ns, now_ns);
}

/* --- any thread reads ------------------------------------------------------------------------- */

static uint64_t read_time_of_runner(const domi_counter *counter)
{
    return atomic_load_explicit((domi_counter *)(uintptr_t)counter, memory_order_acquire);
}

domi_spans domi_span_read_times(const domus_runner *runner)
{
    const domi_runner_counters *counters = &runner->counters;
    domi_spans spans = {0};
    uint64_t stamp_ns = 0, now_ns = 0;
    bool waits = false, same = false;

    for (int reads = 0; !same && reads < READS_MAX; reads++) {
        now_ns = domi_clock_now(&runner->pool->system->clock);
        fence_read_of_clock();
        stamp_ns = read_time_of_runner(&counters->stamp_ns);
        spans.lived_ns = read_time_of_runner(&counters->lived_ns);
        spans.search_ns = read_time_of_runner(&counters->search_ns);
        spans.park_ns = read_time_of_runner(&counters->park_ns);
        waits = read_time_of_runner(&counters->waits) != 0;
        same =
            stamp_ns != DOMI_RUNNER_MOVING && read_time_of_runner(&counters->stamp_ns) == stamp_ns;
        if (!same)
            domi_pause();
    }
    if (!same || stamp_ns == 0 || now_ns <= stamp_ns)
        return spans;
    spans.lived_ns += now_ns - stamp_ns;
    if (waits)
        spans.park_ns += now_ns - stamp_ns;
    return spans;
}
