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

#define ABORT_NS UINT64_C(5000000000) /* time for cancelled operations to complete */
#define END_NS   UINT64_C(1000000000) /* least time for a running handler to return */

void domi_system_set_stage(domus_system *system, domi_stage stage)
{
    domi_outside_lock(system);
    system->stage = stage;
    /* A message to a grain is one that foreign threads may send in a drain, but it may not spawn a
     * grain. */
    system->outside.ending.closing = stage > DOMI_LAST_TO_SPAWN;
    if (stage == DOMI_STAGE_ENDING)
        domi_outside_close(system);
    domi_outside_unlock(system);
}

void domi_system_set_stop_step(domus_system *system, domi_stop_step step)
{
    /* There is no change of the configuration meanwhile, because the stage has ended them
     * (change.c). seq_cst: the store comes before the looks at the park words, as a put does. */
    uint32_t orders = atomic_load_explicit(&system->orders, memory_order_relaxed);
    atomic_store_explicit(&system->orders, domi_orders_with_step(orders, step),
                          memory_order_seq_cst);
    domi_outside_lock(system);
    for (uint32_t i = 0; i < system->count; i++)
        domi_manager_notify(&system->outside, &system->threads[i].manager);
    /* From DOMI_STOP_ACTORS on detached actors are closed, so their list cannot grow, and it is
     * read without the mutex. */
    if (step >= DOMI_STOP_ACTORS)
        domi_detached_notify_all(system);
    domi_outside_unlock(system);
    domi_seats_wake_caretaker(system);
    domi_pools_call(system);
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

/* True if the drain is over. Connections are counted before they are handed over. So if none is
 * counted after the acceptors have stopped, none is on its way. */
static bool is_drain_over(const domus_system *system)
{
    return has_stopped_listening(system) && domi_system_connections(system) == 0;
}

/* True if no connection is left that was accepted. A connection that begins or ends between the
 * reads would mix the counts, so that what this side has connected is read twice. */
static bool have_all_connections_ended(const domus_system *system)
{
    uint64_t before = domi_system_count_outbound(system);

    return has_stopped_listening(system) && domi_system_connections(system) == before &&
           domi_system_count_outbound(system) == before;
}

static bool have_all_threads_closed(const domus_system *system)
{
    for (uint32_t i = 0; i < system->count; i++) {
        if (domi_thread_read_stop_step(&system->threads[i]) < DOMI_STOP_CLOSE)
            return false;
    }
    return domi_pools_have_begun_step(system, DOMI_STOP_CLOSE);
}

static bool have_all_actors_ended(const domus_system *system)
{
    for (uint32_t i = 0; i < system->count; i++) {
        if (domi_thread_read_stop_step(&system->threads[i]) < DOMI_STOP_ACTORS ||
            domi_counter_read(&system->threads[i].manager.births.houses) != 0)
            return false;
    }
    return domi_detached_houses(system) == 0 &&
           domi_pools_have_begun_step(system, DOMI_STOP_ACTORS) &&
           domi_pools_count_houses(system) == 0;
}

static bool have_all_threads_ended(const domus_system *system)
{
    return system->ended >= system->count && domi_detached_have_all_ended(system) &&
           domi_pools_have_ended(system);
}

/* Wait until `is_so` is true or `until_ns` has come. Returns the last answer. */
static bool wait_until(domus_system *system, bool (*is_so)(const domus_system *system),
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

/* Note the handlers of the threads that have not left their loops, for domus_system_left(). */
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

/* The on_stop of an actor that is left runs on the thread that stops the system.
 * `domi_thread_manager` is set as on a thread of the system, so that a stop of the system from
 * within that on_stop fails with -EDEADLK and does not end the same actor again. */
static void end_detached(domus_system *system)
{
    for (uint32_t i = 0; i < system->detached_count; i++) {
        domi_manager *manager = &system->detached[i]->manager;
        /* manager of the calling thread, if an actor of another system stops this one; else NULL */
        domi_manager *outer = domi_thread_manager;

        domi_manager_own(manager);
        (void)domi_manager_take_arrivals(manager);
        domi_system_record_left_actors(system, manager);
        domi_thread_manager = manager;
        domi_manager_end_actors(manager);
        domi_thread_manager = outer;
    }
}

bool domi_system_end(domus_system *system, uint64_t until_ns)
{
    domi_detached_close(system);
    domi_system_set_stop_step(system, DOMI_STOP_END);
    if (until_ns != UINT64_MAX && !wait_until(system, have_all_threads_ended, until_ns))
        return false;
    domi_monitor_stop(system);
    for (uint32_t i = 0; i < system->count; i++)
        domi_thread_join(&system->threads[i]);
    domi_detached_join(system);
    domi_seats_join(system);
    /* The threads have ended, so the calling thread owns their managers now. A message that was put
     * after its receiver had ended is late mail. */
    for (uint32_t i = 0; i < system->count; i++) {
        domi_manager_own(&system->threads[i].manager);
        (void)domi_manager_take_arrivals(&system->threads[i].manager);
    }
    end_detached(system);
    domi_pools_end(system);
    for (size_t i = 0; i < system->config.listener_count; i++) {
        domi_acceptor_free_unmounted(system->unmounted[i]);
        system->unmounted[i] = NULL;
    }
    return true;
}

static void drain_threads(domus_system *system)
{
    uint64_t until_ns =
        domi_clock_now(&system->clock) + DOMI_LIVE(system, shutdown.drain_timeout_ns);

    system->cut_before = system->cut_logged = domi_system_count_cut(system);
    domi_system_set_stage(system, DOMI_STAGE_DRAINING);
    domi_system_set_stop_step(system, DOMI_STOP_DRAIN);
    if (wait_until(system, have_all_connections_ended, until_ns))
        domi_system_set_stop_step(system, DOMI_STOP_UPSTREAM);
    if (!wait_until(system, is_drain_over, until_ns)) {
        domi_system_set_stop_step(system, DOMI_STOP_ABORT);
        (void)wait_until(system, is_drain_over, domi_clock_now(&system->clock) + ABORT_NS);
    }
}

/* True if each thread of the loop has begun the step that is wanted. The step before that one is
 * over then, with the mounts of all actors that were spawned before it. Detached threads do not
 * follow this step, so their mounts are counted. */
static bool have_threads_begun_step(const domus_system *system)
{
    domi_stop_step wanted = domi_system_read_step(system, memory_order_relaxed);

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

/* Send the last event to all processes that did not get it. A process for which there is no memory
 * now is told to stop later, with all other actors. */
static void tell_processes(domus_system *system, uint64_t until_ns)
{
    domus_address addresses[64];
    uint32_t count;

    while ((count = domi_processes_mark_told(&system->processes, addresses, 64)) != 0) {
        domi_outside_lock(system);
        system->outside.now_ns = domi_clock_now(&system->clock);
        for (uint32_t i = 0; i < count; i++)
            (void)domi_process_cancel(&system->outside, addresses[i], until_ns);
        domi_outside_unlock(system);
    }
}

/* Tell all processes, and wait for their end. Everything that processes use is still there, so that
 * they can come to their end by themselves. Processes that are born meanwhile are told as well. */
static void finish_processes(domus_system *system, uint64_t until_ns)
{
    (void)wait_until(system, have_threads_begun_step,
                     until_ns); /* every actor has then been mounted */
    do {
        tell_processes(system, until_ns);
        if (!wait_until(system, is_wait_for_processes_over, until_ns))
            return;
    } while (domi_counter_read(&system->processes.count) != 0);
}

/* First spawning is stopped on all threads, then every actor stops. So no actor is born on a thread
 * that has already stopped its actors. Between the two no process begins, either: a process that
 * began late, as in a pool whose runners were busy, is told now, and has what is left of the time
 * of the others. */
static void stop_actors(domus_system *system, uint64_t processes_until_ns, uint64_t until_ns)
{
    domi_detached_close(system);
    domi_system_set_stop_step(system, DOMI_STOP_CLOSE);
    if (!wait_until(system, have_all_threads_closed, until_ns))
        return;
    if (domi_counter_read(&system->processes.untold) != 0)
        finish_processes(system, processes_until_ns);
    domi_system_set_stop_step(system, DOMI_STOP_ACTORS);
    (void)wait_until(system, have_all_actors_ended, until_ns);
}

static int stop_threads(domus_system *system)
{
    uint64_t time_ns = DOMI_LIVE(system, shutdown.actor_timeout_ns);
    if (system->stage == DOMI_STAGE_RUNNING) {
        domi_outsiders_detach_own(system);
        drain_threads(system);
        uint64_t processes_until_ns = domi_clock_now(&system->clock) + time_ns;
        finish_processes(system, processes_until_ns);
        stop_actors(system, processes_until_ns, domi_clock_now(&system->clock) + time_ns);
        if (system->workers != NULL)
            (void)domi_workers_stop(system->workers, 0);
        domi_resolver_close(system->resolver);
        domi_system_set_stage(system, DOMI_STAGE_ENDING);
    }
    if (!domi_system_end(system,
                         domi_clock_now(&system->clock) + (time_ns > END_NS ? time_ns : END_NS))) {
        record_stuck_handlers(system);
        domi_system_log_left(system);
        domi_system_log_held_connections(system);
        (void)domi_system_log_cut(system);
        return -ETIMEDOUT;
    }
    domi_system_set_stage(system, DOMI_STAGE_STOPPED);
    domi_pressure_end(system);
    domi_system_log_left(system);
    int cut = domi_system_log_cut(system);
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
    /* This thread ends late mail and the actors of detached threads, so it uses the system's
     * allocator meanwhile. */
    const domus_allocator *before = domi_memory_set_allocator(system->hooks.allocator);
    int result = stop_threads(system);
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
