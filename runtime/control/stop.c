/* This file stops a system step by step: connections drain, processes end by themselves, actors
 * stop, blocking work ends, threads end.
 *
 * Each step is a word that every thread follows at its next phase 2 (follow.c). The thread that
 * stops the system waits meanwhile, looks at counters once a millisecond, and goes on when
 * everything of the step is done or the step's time is over. So nothing that an actor does can keep
 * a system from stopping, except a handler that does not return. The actors and handlers that did
 * not end in time are named (domus_system_left). */
#include "runtime/control/life.h"

#include "base/memory.h"
#include "house/conversation/stack.h"
#include "house/dispatch/manage.h"
#include "house/dispatch/phases.h"
#include "io/acceptors/acceptors.h"
#include "runtime/outside/detached.h"
#include "runtime/outside/outside_ask.h"
#include "runtime/outside/outsider.h"
#include "runtime/outside/resolver.h"
#include "runtime/outside/seat.h"
#include "runtime/outside/visit.h"
#include "runtime/pools/pools.h"
#include "runtime/system/losses.h"
#include "runtime/system/monitor.h"
#include "runtime/system/pressure.h"

#include <errno.h>
#include <string.h>

/* nanoseconds that cancelled operations of io have to complete */
#define ABORT_NS UINT64_C(5000000000)
/* least nanoseconds that a running handler has to return, before its thread is left behind */
#define END_NS UINT64_C(1000000000)

void domi_system_set_stage(domus_system *system, domi_stage stage)
{
    domi_outside_lock(system);
    system->stage = stage;
    /* In a drain foreign threads may still send to grains, but no grain may be spawned for such a
     * message any more. */
    system->outside.ending.closing = stage > DOMI_LAST_TO_SPAWN;
    if (stage == DOMI_STAGE_ENDING)
        domi_outside_fail_all_asks(system);
    domi_outside_unlock(system);
}

void domi_system_set_stop_step(domus_system *system, domi_stop_step step)
{
    /* No change of the configuration writes this word meanwhile, because the new stage has ended
     * all changes (change.c). seq_cst: this store comes before the looks at the park words, as a
     * put does, so no thread falls asleep without having seen the step. */
    uint32_t orders = atomic_load_explicit(&system->orders, memory_order_relaxed);
    atomic_store_explicit(&system->orders, domi_orders_with_stop_step(orders, step),
                          memory_order_seq_cst);
    domi_outside_lock(system);
    for (uint32_t i = 0; i < system->count; i++)
        domi_manager_notify_of_push(&system->outside, &system->threads[i].manager);
    /* From DOMI_STOP_ACTORS on detached actors are closed, so their list cannot grow, and is read
     * without the mutex. */
    if (step >= DOMI_STOP_ACTORS)
        domi_detached_wake_all_threads(system);
    domi_outside_unlock(system);
    domi_seats_wake_caretaker(system);
    domi_pools_call_all_runners(system);
}

/* --- waiting ---------------------------------------------------------------------------------- */

static bool has_stopped_listening(const domus_system *system)
{
    for (uint32_t i = 0; i < system->count; i++) {
        if (domi_thread_read_stop_step(&system->threads[i]) < DOMI_STOP_DRAIN ||
            atomic_load_explicit(
                (domi_counter *)(uintptr_t)&system->threads[i].io.counters.listeners_open,
                memory_order_acquire) != 0)
            return false;
    }
    return true;
}

/* True if the drain is over: no acceptor listens, and no connection is left. A connection is
 * counted before it is handed over, so if none is counted after the acceptors have stopped, none is
 * on its way. */
static bool is_drain_over(const domus_system *system)
{
    return has_stopped_listening(system) && domi_system_count_accepted_connections(system) == 0;
}

/* True if no connection is left that was accepted, while connections that this system has made to
 * others may be left. The number of the latter is read before and after, because a connection that
 * begins or ends between the reads would mix the counts. */
static bool have_all_connections_ended(const domus_system *system)
{
    uint64_t before = domi_system_count_made_connections(system);

    return has_stopped_listening(system) &&
           domi_system_count_accepted_connections(system) == before &&
           domi_system_count_made_connections(system) == before;
}

static bool have_all_threads_begun_close(const domus_system *system)
{
    for (uint32_t i = 0; i < system->count; i++) {
        if (domi_thread_read_stop_step(&system->threads[i]) < DOMI_STOP_CLOSE)
            return false;
    }
    return domi_pools_have_runners_begun_stop_step(system, DOMI_STOP_CLOSE);
}

static bool have_all_actors_ended(const domus_system *system)
{
    for (uint32_t i = 0; i < system->count; i++) {
        if (domi_thread_read_stop_step(&system->threads[i]) < DOMI_STOP_ACTORS ||
            domi_counter_read(&system->threads[i].manager.births.houses) != 0)
            return false;
    }
    return domi_detached_count_busy_threads(system) == 0 &&
           domi_pools_have_runners_begun_stop_step(system, DOMI_STOP_ACTORS) &&
           domi_pools_count_houses(system) == 0;
}

static bool have_all_threads_ended(const domus_system *system)
{
    return system->ended >= system->count && domi_detached_have_all_ended(system) &&
           domi_pools_have_ended(system);
}

/* Wait until `is_so` is true or the time `until_ns` has come. Returns what `is_so` answered
 * last. */
static bool wait_until_true_or_late(domus_system *system, bool (*is_so)(const domus_system *system),
                                    uint64_t until_ns)
{
    bool so = false;

    if (system->simulator != NULL)
        return system->simulator->wait(system->simulator, is_so, until_ns);
    pthread_mutex_lock(&system->mutex);
    while (!(so = is_so(system)) && domi_clock_now(&system->clock) < until_ns) {
        const struct timespec next = domi_clock_deadline_after(1000000);
        (void)pthread_cond_timedwait(&system->changed, &system->mutex, &next);
    }
    pthread_mutex_unlock(&system->mutex);
    return so;
}

/* Record the running handlers of the threads that have not left their loops, for
 * domus_system_left(). */
static void record_stuck_handlers(domus_system *system)
{
    pthread_mutex_lock(&system->mutex);
    for (uint32_t i = 0; i < system->count; i++) {
        if (domi_thread_read_stop_step(&system->threads[i]) != DOMI_STOP_END)
            domi_system_record_running_actor(system, &system->threads[i].manager);
    }
    for (uint32_t i = 0; i < system->detached_count; i++) {
        if (system->detached[i]->busy)
            domi_system_record_running_actor(system, &system->detached[i]->manager);
    }
    domi_pools_record_stuck_handlers(system);
    pthread_mutex_unlock(&system->mutex);
}

/* --- the steps -------------------------------------------------------------------------------- */

/* End the detached actors that are left: their on_stop runs on the thread that stops the system.
 * `domi_thread_manager` is set as on a thread of the system, so that a stop of the system from
 * within such an on_stop fails with -EDEADLK and does not end the same actor again. */
static void end_detached_actors(domus_system *system)
{
    for (uint32_t i = 0; i < system->detached_count; i++) {
        domi_manager *manager = &system->detached[i]->manager;
        /* manager of the calling thread, if it belongs to another system whose actor stops this
         * one; else NULL */
        domi_manager *outer = domi_thread_manager;

        domi_manager_become_owner(manager);
        (void)domi_manager_take_arrivals(manager);
        domi_system_record_left_actors(system, manager);
        domi_thread_manager = manager;
        domi_manager_end_actors(manager);
        domi_thread_manager = outer;
    }
}

bool domi_system_end_threads(domus_system *system, uint64_t until_ns)
{
    domi_detached_close_for_spawns(system);
    domi_system_set_stop_step(system, DOMI_STOP_END);
    if (until_ns != UINT64_MAX &&
        !wait_until_true_or_late(system, have_all_threads_ended, until_ns))
        return false;
    domi_monitor_stop(system);
    for (uint32_t i = 0; i < system->count; i++)
        domi_thread_wait_for_end(&system->threads[i]);
    domi_detached_join_threads(system);
    domi_seats_join_caretaker(system);
    /* All threads have ended, so the calling thread owns their managers now, and makes dead letters
     * of the messages that were put after their receivers had ended. */
    for (uint32_t i = 0; i < system->count; i++) {
        domi_manager_become_owner(&system->threads[i].manager);
        (void)domi_manager_take_arrivals(&system->threads[i].manager);
    }
    end_detached_actors(system);
    domi_pools_join_and_end_actors(system);
    for (size_t i = 0; i < system->config.listener_count; i++) {
        domi_acceptor_free_unmounted(system->unmounted[i]);
        system->unmounted[i] = NULL;
    }
    return true;
}

static void drain_connections_of_system(domus_system *system)
{
    uint64_t until_ns =
        domi_clock_now(&system->clock) + DOMI_LIVE(system, shutdown.drain_timeout_ns);

    system->cut_before = system->cut_logged = domi_system_count_cut_channels(system);
    domi_system_set_stage(system, DOMI_STAGE_DRAINING);
    domi_system_set_stop_step(system, DOMI_STOP_DRAIN);
    if (wait_until_true_or_late(system, have_all_connections_ended, until_ns))
        domi_system_set_stop_step(system, DOMI_STOP_UPSTREAM);
    if (!wait_until_true_or_late(system, is_drain_over, until_ns)) {
        domi_system_set_stop_step(system, DOMI_STOP_ABORT);
        (void)wait_until_true_or_late(system, is_drain_over,
                                      domi_clock_now(&system->clock) + ABORT_NS);
    }
}

/* True if each thread of the loop has begun the wanted step of the stop. Then the step before is
 * over, and all actors that were spawned before it are mounted. Detached threads do not follow this
 * step, so their mounts are counted. */
static bool have_threads_begun_wanted_stop_step(const domus_system *system)
{
    domi_stop_step wanted = domi_system_read_stop_step(system, memory_order_relaxed);

    for (uint32_t i = 0; i < system->count; i++) {
        if (domi_thread_read_stop_step(&system->threads[i]) < wanted)
            return false;
    }
    return domi_detached_have_all_mounted(system);
}

static bool is_wait_for_processes_over(const domus_system *system)
{
    return domi_counter_read(&system->processes.count) == 0 ||
           domi_counter_read(&system->processes.untold) != 0;
}

/* Send the last event to all processes (domus/process.h) that did not get it yet. A process for
 * which there is no memory now is told to stop later, with all other actors. */
static void tell_processes_to_end(domus_system *system, uint64_t until_ns)
{
    domus_address addresses[64];
    uint32_t count;

    while ((count = domi_processes_take_to_tell_of_end(&system->processes, addresses, 64)) != 0) {
        domi_outside_lock(system);
        system->outside.now_ns = domi_clock_now(&system->clock);
        for (uint32_t i = 0; i < count; i++)
            (void)domi_process_send_last_event(&system->outside, addresses[i], until_ns);
        domi_outside_unlock(system);
    }
}

/* Tell all processes (domus/process.h) to end, and wait for that. Everything that processes use
 * still runs, so that they can come to their end by themselves. Processes that are born meanwhile
 * are told as well. */
static void tell_processes_and_wait_for_end(domus_system *system, uint64_t until_ns)
{
    /* When this wait is over, each actor that was spawned before this step is mounted. */
    (void)wait_until_true_or_late(system, have_threads_begun_wanted_stop_step, until_ns);
    do {
        tell_processes_to_end(system, until_ns);
        if (!wait_until_true_or_late(system, is_wait_for_processes_over, until_ns))
            return;
    } while (domi_counter_read(&system->processes.count) != 0);
}

/* Stop all actors. First spawning ends on all threads, and only then the actors stop, so no actor
 * is born on a thread that has stopped its actors already. A process that began late (as in a pool
 * whose runners were busy) is told after spawning has ended, and has the rest of the time that the
 * other processes had. */
static void close_spawning_and_stop_actors(domus_system *system, uint64_t processes_until_ns,
                                           uint64_t until_ns)
{
    domi_detached_close_for_spawns(system);
    domi_system_set_stop_step(system, DOMI_STOP_CLOSE);
    if (!wait_until_true_or_late(system, have_all_threads_begun_close, until_ns))
        return;
    if (domi_counter_read(&system->processes.untold) != 0)
        tell_processes_and_wait_for_end(system, processes_until_ns);
    domi_system_set_stop_step(system, DOMI_STOP_ACTORS);
    (void)wait_until_true_or_late(system, have_all_actors_ended, until_ns);
}

static int stop_system_step_by_step(domus_system *system)
{
    uint64_t time_ns = DOMI_LIVE(system, shutdown.actor_timeout_ns);
    if (system->stage == DOMI_STAGE_RUNNING) {
        domi_outsiders_detach_calling_thread(system);
        drain_connections_of_system(system);
        uint64_t processes_until_ns = domi_clock_now(&system->clock) + time_ns;
        tell_processes_and_wait_for_end(system, processes_until_ns);
        close_spawning_and_stop_actors(system, processes_until_ns,
                                       domi_clock_now(&system->clock) + time_ns);
        if (system->workers != NULL)
            (void)domi_workers_stop(system->workers, 0);
        domi_resolver_close(system->resolver);
        domi_system_set_stage(system, DOMI_STAGE_ENDING);
    }
    if (!domi_system_end_threads(system, domi_clock_now(&system->clock) +
                                             (time_ns > END_NS ? time_ns : END_NS))) {
        record_stuck_handlers(system);
        domi_system_log_left_actors(system);
        domi_system_log_connections_held_up(system);
        (void)domi_system_log_cut_channels(system);
        return -ETIMEDOUT;
    }
    domi_system_set_stage(system, DOMI_STAGE_STOPPED);
    domi_pressure_end_measuring(system);
    domi_system_log_left_actors(system);
    int cut = domi_system_log_cut_channels(system);
    if (system->failed != 0) {
        memcpy(system->error, system->failed_text, sizeof system->error);
        return system->failed;
    }
    return cut;
}

int domus_system_stop(domus_system *system)
{
    if (system->stage != DOMI_STAGE_NEW && domi_system_is_forked(system))
        return -ECHILD;
    if (domi_thread_manager != NULL && domi_thread_manager->system == system)
        return -EDEADLK;
    if (system->workers != NULL && domi_workers_is_helper(system->workers))
        return -EDEADLK;
    if (system->stage != DOMI_STAGE_RUNNING && system->stage != DOMI_STAGE_ENDING)
        return 0;
    /* The calling thread turns late mail into dead letters and ends detached actors, so it uses the
     * system's allocator meanwhile. */
    const domus_allocator *before = domi_memory_set_allocator(system->hooks.allocator);
    int result = stop_system_step_by_step(system);
    (void)domi_memory_set_allocator(before);
    return result;
}

void domus_quit(domus_stack *stack)
{
    domus_system *system = stack->manager->system;

    pthread_mutex_lock(&system->mutex);
    system->asked_to_stop = true;
    pthread_cond_broadcast(&system->changed);
    pthread_mutex_unlock(&system->mutex);
    if (system->hooks.quit != NULL)
        system->hooks.quit(system->hooks.quit_context);
}

void domus_system_wait(domus_system *system)
{
    pthread_mutex_lock(&system->mutex);
    while (!system->asked_to_stop)
        pthread_cond_wait(&system->changed, &system->mutex);
    pthread_mutex_unlock(&system->mutex);
}
