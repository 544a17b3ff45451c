/* This file adds up how long the actors of each behaviour run; run_time.h says how. */
#include "runtime/system/run_time.h"

#define LOOK_LEAST_NS UINT64_C(5000000)
/* greatest random addition to the time between two looks, which makes 10 ms in the mean */
#define LOOK_RANDOM_NS UINT64_C(10000000)

static void add_time_to_running_behaviour(const domus_system *system, domi_manager *manager,
                                          uint64_t passed_ns)
{
    const domus_behaviour *running = domi_manager_running_behaviour(manager);

    if (running == NULL)
        return;
    uint32_t number = domi_behaviours_find_number(&system->behaviours, running);
    domi_counter_add(&manager->tallies[number].run_ns, passed_ns);
}

/* Look at the detached threads, which are made under the system's mutex while the system runs. If
 * another thread has the mutex, this look leaves them out. */
static void add_time_on_detached_threads(domus_system *system, uint64_t passed_ns)
{
    if (pthread_mutex_trylock(&system->mutex) != 0)
        return;
    for (uint32_t i = 0; i < system->detached_count; i++)
        add_time_to_running_behaviour(system, system->managers[system->count + 1 + i], passed_ns);
    pthread_mutex_unlock(&system->mutex);
}

uint64_t domi_run_time_look_at_all_behaviours(domus_system *system)
{
    domi_monitor *monitor = &system->monitor;
    uint64_t now_ns = domi_clock_now(&system->clock);

    if (atomic_load_explicit(&system->profile_level, memory_order_relaxed) == DOMUS_PROFILE_OFF) {
        monitor->looked_ns = 0;
        return LOOK_LEAST_NS + LOOK_RANDOM_NS;
    }
    if (monitor->looked_ns != 0 && now_ns < monitor->look_ns)
        return monitor->look_ns - now_ns;
    if (monitor->looked_ns != 0) {
        uint64_t passed_ns = now_ns - monitor->looked_ns;
        for (uint32_t i = 0; i < system->count; i++)
            add_time_to_running_behaviour(system, &system->threads[i].manager, passed_ns);
        for (uint32_t i = system->pools_from; i < system->managers_count; i++)
            add_time_to_running_behaviour(system, system->managers[i], passed_ns);
        add_time_on_detached_threads(system, passed_ns);
    }
    monitor->looked_ns = now_ns;
    monitor->look_ns =
        now_ns + LOOK_LEAST_NS + domi_random_below(&monitor->chance, LOOK_RANDOM_NS + 1);
    return monitor->look_ns - now_ns;
}

void domi_run_time_forget_last_look(domus_system *system)
{
    system->monitor.looked_ns = 0;
}
