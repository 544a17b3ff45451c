/* This file finds the manager of the calling thread, and reads what other threads may read of a
 * thread. */
#include "runtime/system/thread.h"

#include "house/dispatch/loan.h"

_Thread_local domi_manager *domi_thread_manager;

uint64_t domi_thread_count_beats(const domi_thread *thread)
{
    const domi_counters *counters = &thread->manager.counters;

    return domi_counter_read(&counters->runs) + domi_counter_read(&counters->spawns) +
           domi_counter_read(&counters->stops) + domi_counter_read(&counters->restarts) +
           domi_counter_read(&thread->counters.iterations) +
           domi_counter_read(&thread->counters.parks);
}

uint32_t domi_thread_read_published_ready_count(const domi_thread *thread)
{
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&thread->manager.loans.readies,
                                memory_order_relaxed);
}

uint32_t domi_thread_count_ready_houses(const domi_thread *thread)
{
    const domi_manager *manager = &thread->manager;
    uint32_t count =
        manager->schedule.ready[DOMUS_STATE].count + domi_loans_count_shared_houses(manager);

    /* with an ioRatio of 100, phase 3 runs its houses from a queue of its own, which is not
     * counted */
    if (thread->config->scheduler.io_ratio == 100 &&
        domi_thread_read_published_ready_count(thread) > count)
        count = domi_thread_read_published_ready_count(thread);
    return count + manager->schedule.ready[DOMUS_CHANNELS].count;
}

domi_stop_step domi_thread_read_stop_step(const domi_thread *thread)
{
    /* acquire: pairs with the release in domi_thread_follow_orders(), so what the thread did when
     * it began the step is seen. Before that, the thread may be about to hand over a connection
     * that no counter has yet. */
    return domi_orders_get_stop_step(
        atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&thread->orders, memory_order_acquire));
}
