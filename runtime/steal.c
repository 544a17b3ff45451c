/* The condition of stealing (DESIGN 5): is somebody overwhelmed while this thread has nothing to
 * do?
 *
 * `readies` is the victim's depth, idleCount the thief's consecutive iterations without work. So
 * far the answer is only counted (steals_wanted in the profile), which is what the thresholds are
 * tuned by; nothing is exposed or lent. */
#include "runtime/thread.h"

static uint32_t readies_of(const domi_manager *manager)
{
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&manager->readies,
                                memory_order_relaxed);
}

void domi_thread_idle(domi_thread *thread)
{
    const domi_manager *manager = &thread->manager;
    uint64_t floor = thread->config->scheduler.steal.floor;
    uint64_t aggression = thread->config->scheduler.steal.aggression;

    uint64_t runs = domi_counter_read(&thread->manager.counters.runs);

    /* An iteration that ran a house or reaped a completion was not idle. */
    if (runs != thread->runs_seen || thread->completions != 0)
        thread->idle_count = 0;
    else
        thread->idle_count++;
    thread->runs_seen = runs;
    if (thread->idle_count == 0 || !thread->config->scheduler.steal.enabled)
        return;
    for (uint32_t i = 0; i < manager->threads; i++) {
        uint64_t readies = readies_of(manager->managers[i]);
        if (i == manager->index || readies <= floor || thread->idle_count * readies < aggression)
            continue;
        domi_counter_add(&thread->counters.steals_wanted, 1);
        return;
    }
}
