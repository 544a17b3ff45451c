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

/* number of enters in a row that the kernel refuses for lack of room, mostly a millisecond apart,
 * after which that is logged */
#define REFUSALS_TOLD 1000u

/* Check whether the thread's ring has failed or refuses operations. A thread whose ring has
 * failed goes on without io: actors and messages need no ring, and the stop that follows needs
 * the thread. */
static void handle_failure_of_ring(domi_thread *thread)
{
    domi_io *io = &thread->io;

    if (io->failed != 0 && !thread->failed) {
        thread->failed = true;
        domi_io_end_all_on_failed_ring(io);
        domi_system_report_failed_ring(thread->system, thread->manager.index, io->failed);
    }
    if (io->refusals == REFUSALS_TOLD) {
        /* one more than the limit, so each series of refusals is logged only once */
        io->refusals++;
        domi_log_line(thread->system, DOMUS_LOG_WARNING, thread->manager.index,
                      "the kernel has no room for io operations: trying again");
    }
}

/* nanoseconds; if an iteration takes longer, the thread was held up (by a handler or the
 * machine) */
#define PAUSE_NS UINT64_C(10000000)

/* Stamp the time after completions were reaped. Channels have noted the last stamp as the time
 * at which the bytes came; if the thread was held up since then, that time is too old and is
 * corrected. */
static void stamp_time_after_reaping(domi_thread *thread, domi_span span)
{
    uint64_t before_ns = thread->stamp_ns;

    domi_thread_stamp_time(thread, span);
    if (thread->stamp_ns - before_ns > PAUSE_NS)
        domi_io_refresh_times_of_activity(&thread->io, before_ns);
}

/* Returns how many completions the ring has brought so far, without those of the wake poll; the
 * number wraps around. */
static uint32_t count_completions_of_io(const domi_io *io)
{
    return (uint32_t)domi_counter_read(&io->counters.completions) - io->wakes;
}

void domi_thread_run_phase_io(domi_thread *thread)
{
    domi_system_check_not_forked(thread->system);
    if (DOMI_UNLIKELY(thread->level >= DOMUS_PROFILE_HISTOGRAMS))
        domi_observing_record_iteration(thread);
    thread->io_start_ns = thread->stamp_ns;
    domi_counter_add(&thread->counters.iterations, 1);
    /* If only channels are ready after phase 3, the operations of phase 3 are held back and
     * submitted with the channels' own: this saves a system call for an answer that a state
     * actor has given. */
    thread->holds_back = thread->manager.schedule.ready[DOMUS_CHANNELS].count != 0 &&
                         thread->manager.schedule.ready[DOMUS_STATE].count == 0;
    if (!thread->holds_back && domi_io_enter_ring_if_useful(&thread->io))
        domi_thread_stamp_time(thread, DOMI_SPAN_ENTER);
    if (DOMI_UNLIKELY(thread->io.failed != 0 || thread->io.refusals != 0))
        handle_failure_of_ring(thread);
    uint32_t before = count_completions_of_io(&thread->io);
    thread->completions = domi_io_reap_completions(&thread->io);
    thread->brought = count_completions_of_io(&thread->io) - before;
    if (thread->judge_wakeup)
        domi_thread_count_empty_wakeup(thread);
    if (thread->completions != 0) {
        stamp_time_after_reaping(thread, DOMI_SPAN_COMPLETIONS);
        domi_counter_add(&thread->counters.io_behind_ns, thread->brought * thread->state_took_ns);
        if (DOMI_UNLIKELY(thread->level >= DOMUS_PROFILE_HISTOGRAMS))
            domi_run_observer_of_manager(&thread->manager)->reaped_ns = thread->stamp_ns;
    }
    thread->state_took_ns = 0;
}

/* Once a tick, look how short memory is and which level the profile has, and let this thread act
 * on both. */
static void look_at_memory_and_profile_level(domi_thread *thread)
{
    domi_manager *manager = &thread->manager;

    domi_pressure_look_if_due(thread->system, manager->index, manager->now_ns);
    domi_manager_reread_memory_level(manager);
    domi_observing_apply_profile_level(thread);
    bool is_short = manager->memory.pressure_seen != DOMUS_MEMORY_NORMAL;
    domi_io_pressure pressure = domi_pressure_get_state_for_io(&thread->system->pressure);
    domi_io_set_memory_shortage(&thread->io, &pressure);
    domi_memory_watches_put_events(manager, manager);
    domi_belts_allow_when_memory_is_back(manager);
    domi_belts_free_unused_rings(manager);
    /* Slabs are trimmed at memory.threadMax, too, because free objects of one size cannot be
     * used for another size. */
    if (is_short || manager->memory.at_max) {
        domi_kept_forget_all_files(thread->kept);
        (void)domi_thread_trim_slabs(thread, DOMI_TRIM_BUSY);
    }
}

/* True if a timer is so long overdue that the thread must have been held up: by a handler of its
 * own, by the machine, or by a stop signal. */
static bool was_thread_held_up(domi_manager *manager)
{
    uint64_t due_ns = domi_wheel_next_ns(&manager->timing.wheel);
    uint64_t deadline_ns = domi_wheel_next_ns(&manager->timing.deadlines);

    if (deadline_ns < due_ns)
        due_ns = deadline_ns;
    /* 0: due timers are left that one iteration could not fire, or one was armed for a time in the
     * past; neither shows that the thread was held up */
    return due_ns != 0 && due_ns < manager->now_ns && manager->now_ns - due_ns > PAUSE_NS;
}

/* Take what has arrived from other threads, mount actors that were spawned, and fire timers that
 * are due. Returns how many things were done. */
static uint32_t handle_arrivals_and_timers(domi_thread *thread)
{
    domi_manager *manager = &thread->manager;
    uint32_t done = domi_manager_has_arrivals(manager) ? domi_manager_take_arrivals(manager) : 0;

    if (manager->schedule.mounting.head != NULL) {
        domi_monitor_wake_if_resting(&thread->system->monitor);
        done += domi_manager_mount_actors(manager);
    }

    if (manager->now_ns >= thread->next_tick_ns) {
        uint32_t before = count_completions_of_io(&thread->io);
        look_at_memory_and_profile_level(thread);
        /* After the thread was held up, it first takes the completions that have arrived
         * meanwhile, so that no time-out fires although the data had come in time. */
        if (was_thread_held_up(manager)) {
            uint32_t taken;
            (void)domi_io_enter_and_reap_all(&thread->io, thread->config->io.completion_entries,
                                             &taken);
            done += taken;
        }
        done += domi_manager_fire_timers(manager) + domi_io_fire_timers(&thread->io);
        /* completions that the timers of io have brought also count as io of this iteration */
        thread->brought += count_completions_of_io(&thread->io) - before;
        bool more = domi_wheel_next_ns(&manager->timing.wheel) == 0 ||
                    domi_wheel_next_ns(&manager->timing.deadlines) == 0;
        thread->next_tick_ns = more ? 0 : manager->now_ns + DOMI_WHEEL_TICK_NS;
    }
    return done;
}

void domi_thread_run_phase_channels(domi_thread *thread)
{
    domi_manager *manager = &thread->manager;

    if (domi_thread_has_orders_to_follow(thread, memory_order_relaxed))
        domi_thread_follow_orders(thread);
    if (handle_arrivals_and_timers(thread) != 0)
        stamp_time_after_reaping(thread, DOMI_SPAN_EVENTS);
    if (manager->schedule.ready[DOMUS_CHANNELS].count != 0)
        domi_monitor_wake_if_resting(&thread->system->monitor);
    if (domi_manager_run_channels_actors(manager) != 0)
        domi_thread_stamp_time(thread, DOMI_SPAN_CHANNELS);
    domi_system_check_not_forked(thread->system);
    uint32_t sends = domi_io_resume_reads_and_queue_sends(&thread->io);
    /* If state actors are ready, answers are submitted before phase 3, otherwise by the rest
     * after it. Operations that were held back are submitted here if the thread will not rest. */
    bool has_state = manager->schedule.ready[DOMUS_STATE].count != 0;
    bool leaves = thread->holds_back
                      ? has_state || manager->schedule.ready[DOMUS_CHANNELS].count != 0
                      : has_state && sends != 0;
    if (leaves && domi_io_enter_ring_if_useful(&thread->io))
        domi_thread_stamp_time(thread, DOMI_SPAN_ENTER);
}

void domi_thread_run_loop(domi_thread *thread)
{
    while (!domi_thread_has_to_leave_loop(thread)) {
        domi_thread_run_phase_io(thread);
        domi_thread_run_phase_channels(thread);
        domi_thread_run_phase_state(thread);
        if (!domi_thread_has_to_leave_loop(thread))
            domi_thread_rest_until_work(thread);
    }
    domi_thread_stop_noting_sleepers(thread);
}
