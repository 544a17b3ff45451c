/* The loop: three phases, then the rest (contract: The loop).
 *
 * Phase 1, io, submits operations, reaps completions, and queues at each channel what they bring;
 * it runs no code of users. Phase 2 takes arrivals, mounts, fires timers, runs channels actors
 * within its bounds, and queues the sends. Phase 3 (state_phase.c) runs state actors until the
 * deadline. Then, if nothing is left to do, the thread rests (park.c). */
#include "runtime/loop/steps.h"

#include "house/dispatch/incoming.h"
#include "house/dispatch/phases.h"
#include "house/family/memory_watch.h"
#include "house/message/trim.h"
#include "io/completions/ring.h"
#include "io/completions/tick.h"
#include "runtime/files/kept.h"
#include "runtime/loop/observing.h"
#include "runtime/system/logs.h"
#include "runtime/system/losses.h"
#include "runtime/system/monitor.h"
#include "runtime/system/pressure.h"

/* a line is logged after so many refused enters in a row; they are at least a millisecond apart */
#define REFUSALS_TOLD 1000u

/* Check the ring. A thread whose ring has failed goes on without io: actors and messages need no
 * ring, and the stop that follows needs the thread. */
static void look_at_ring(domi_thread *thread)
{
    domi_io *io = &thread->io;

    if (io->failed != 0 && !thread->failed) {
        thread->failed = true;
        domi_io_fail(io);
        domi_system_handle_ring_failure(thread->system, thread->manager.index, io->failed);
    }
    if (io->refusals == REFUSALS_TOLD) {
        io->refusals++; /* this addition makes it one log line for each series of refusals */
        domi_log_line(thread->system, DOMUS_LOG_WARNING, thread->manager.index,
                      "the kernel has no room for io operations: trying again");
    }
}

/* nanoseconds; a thread that did not come back for longer was held up */
#define PAUSE_NS UINT64_C(10000000)

/* Stamp the time after completions were reaped. The data that they brought has the time of the last
 * stamp. If the thread was held up in between, that time is too old and is corrected. */
static void stamp_reaped(domi_thread *thread, domi_span span)
{
    uint64_t before_ns = thread->stamp_ns;

    domi_thread_stamp(thread, span);
    if (thread->stamp_ns - before_ns > PAUSE_NS)
        domi_io_refresh_activity(&thread->io, before_ns);
}

/* Returns the number of completions so far, without those of the wake poll; the number wraps
 * around. */
static uint32_t count_completions(const domi_io *io)
{
    return (uint32_t)domi_counter_read(&io->counters.completions) - io->wakes;
}

void domi_phase_io(domi_thread *thread)
{
    domi_system_check_not_forked(thread->system);
    if (DOMI_UNLIKELY(thread->level >= DOMUS_PROFILE_HISTOGRAMS))
        domi_observing_record_iteration(thread);
    thread->io_start_ns = thread->stamp_ns;
    domi_counter_add(&thread->counters.iterations, 1);
    /* If phase 3 has left only channels that are ready, its operations are submitted together with
     * those of the channels: one system call less for an answer that a state actor has given. */
    thread->holds_back = thread->manager.schedule.ready[DOMUS_CHANNELS].count != 0 &&
                         thread->manager.schedule.ready[DOMUS_STATE].count == 0;
    if (!thread->holds_back && domi_io_submit(&thread->io))
        domi_thread_stamp(thread, DOMI_SPAN_ENTER);
    if (DOMI_UNLIKELY(thread->io.failed != 0 || thread->io.refusals != 0))
        look_at_ring(thread);
    uint32_t before = count_completions(&thread->io);
    thread->completions = domi_io_reap(&thread->io);
    thread->brought = count_completions(&thread->io) - before;
    if (thread->judge_wakeup)
        domi_thread_count_empty_wakeup(thread);
    if (thread->completions != 0) {
        stamp_reaped(thread, DOMI_SPAN_COMPLETIONS);
        domi_counter_add(&thread->counters.io_behind_ns, thread->brought * thread->state_took_ns);
        if (DOMI_UNLIKELY(thread->level >= DOMUS_PROFILE_HISTOGRAMS))
            domi_run_observer_of(&thread->manager)->reaped_ns = thread->stamp_ns;
    }
    thread->state_took_ns = 0;
}

/* Look once a tick how short memory is and what is to be measured, and let this thread act on
 * that. */
static void look_at_memory(domi_thread *thread)
{
    domi_manager *manager = &thread->manager;

    domi_pressure_look_if_due(thread->system, manager->index, manager->now_ns);
    domi_manager_look_at_pressure(manager);
    domi_observing_apply_level(thread);
    bool is_short = manager->memory.pressure_seen != DOMUS_MEMORY_NORMAL;
    domi_io_pressure pressure = domi_pressure_for_io(&thread->system->pressure);
    domi_io_set_pressure(&thread->io, &pressure);
    domi_memory_watches_fire(manager, manager);
    domi_belts_look_at_memory(manager);
    domi_belts_trim(manager);
    /* Trim at memory.threadMax, too: free memory of one size cannot be used for another size. */
    if (is_short || manager->memory.at_max) {
        domi_kept_clear(thread->kept);
        (void)domi_thread_trim(thread, DOMI_TRIM_BUSY);
    }
}

/* True if a timer is so long overdue that the thread must have been held up: by its own handler, by
 * the machine, or by a stop signal. */
static bool was_thread_held_up(domi_manager *manager)
{
    uint64_t due_ns = domi_wheel_next_ns(&manager->timing.wheel);
    uint64_t deadline_ns = domi_wheel_next_ns(&manager->timing.deadlines);

    if (deadline_ns < due_ns)
        due_ns = deadline_ns;
    /* 0 means that timers are left which one iteration could not fire, or that were set late. */
    return due_ns != 0 && due_ns < manager->now_ns && manager->now_ns - due_ns > PAUSE_NS;
}

/* Take arrivals from other threads, mount actors that were spawned, and fire timers that are due.
 * Returns how many things were done. */
static uint32_t handle_arrivals_and_timers(domi_thread *thread)
{
    domi_manager *manager = &thread->manager;
    uint32_t done = domi_manager_has_arrivals(manager) ? domi_manager_take_arrivals(manager) : 0;

    if (manager->schedule.mounting.head != NULL) {
        domi_monitor_wake_if_resting(&thread->system->monitor);
        done += domi_manager_mount_actors(manager);
    }

    if (manager->now_ns >= thread->next_tick_ns) {
        uint32_t before = count_completions(&thread->io);
        look_at_memory(thread);
        /* After a pause, the completions that arrived meanwhile are taken first, so that no
         * time-out fires against data that had come in time. */
        if (was_thread_held_up(manager)) {
            uint32_t taken;
            (void)domi_io_reap_all(&thread->io, thread->config->io.completion_entries, &taken);
            done += taken;
        }
        done += domi_manager_fire_timers(manager) + domi_io_fire_timers(&thread->io);
        /* collected completions also count as io */
        thread->brought += count_completions(&thread->io) - before;
        bool more = domi_wheel_next_ns(&manager->timing.wheel) == 0 ||
                    domi_wheel_next_ns(&manager->timing.deadlines) == 0;
        thread->next_tick_ns = more ? 0 : manager->now_ns + DOMI_WHEEL_TICK_NS;
    }
    return done;
}

void domi_phase_channels(domi_thread *thread)
{
    domi_manager *manager = &thread->manager;

    if (domi_thread_has_to_follow(thread, memory_order_relaxed))
        domi_thread_follow(thread);
    if (handle_arrivals_and_timers(thread) != 0)
        stamp_reaped(thread, DOMI_SPAN_EVENTS);
    if (manager->schedule.ready[DOMUS_CHANNELS].count != 0)
        domi_monitor_wake_if_resting(&thread->system->monitor);
    if (domi_manager_run_channels(manager) != 0)
        domi_thread_stamp(thread, DOMI_SPAN_CHANNELS);
    domi_system_check_not_forked(thread->system);
    uint32_t sends = domi_io_queue_sends(&thread->io);
    /* Answers are submitted before phase 3 if state actors are ready; otherwise they are submitted
     * at the rest. Operations that were held back are submitted now if there will be no rest. */
    bool has_state = manager->schedule.ready[DOMUS_STATE].count != 0;
    bool leaves = thread->holds_back
                      ? has_state || manager->schedule.ready[DOMUS_CHANNELS].count != 0
                      : has_state && sends != 0;
    if (leaves && domi_io_submit(&thread->io))
        domi_thread_stamp(thread, DOMI_SPAN_ENTER);
}

void domi_thread_loop(domi_thread *thread)
{
    while (!domi_thread_is_at_end(thread)) {
        domi_phase_io(thread);
        domi_phase_channels(thread);
        domi_phase_state(thread);
        if (!domi_thread_is_at_end(thread))
            domi_thread_rest(thread);
    }
    domi_thread_stop_noting_sleepers(thread);
}
