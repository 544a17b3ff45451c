/* The loop: three phases, then the rest (contract: The loop).
 *
 * Phase 1, io, submits operations, reaps completions, and queues at each channel what they bring;
 * it runs no code of users. Phase 2 takes arrivals, mounts, fires timers, runs channels actors
 * within its bounds, and queues the sends. Phase 3 runs state actors until the deadline. Then, if
 * nothing is left to do, the thread rests. */
#include "runtime/system/system.h"

#include "house/dispatch/dispatch.h"
#include "house/family/memory_watch.h"
#include "house/message/pool.h"
#include "house/message/trim.h"
#include "io/completions/drain.h"
#include "io/completions/feed.h"
#include "io/completions/pressure.h"
#include "io/completions/ring.h"
#include "io/completions/timers.h"
#include "runtime/system/log.h"

#define REFUSALS_TOLD 1000u /* refused enters in a row; they are at least a millisecond apart */

/* A thread whose ring has failed goes on without io: actors and messages need no ring, and the stop
 * that follows needs the thread. */
static void look_at_ring(domi_thread *thread)
{
    domi_io *io = &thread->io;

    if (io->failed != 0 && !thread->failed) {
        thread->failed = true;
        domi_io_fail(io);
        domi_system_fail(thread->system, thread->manager.index, io->failed);
    }
    if (io->refusals == REFUSALS_TOLD) {
        io->refusals++; /* so that one line is logged for each such series of refusals */
        domi_log_line(thread->system, DOMUS_LOG_WARNING, thread->manager.index,
                      "the kernel has no room for io operations: trying again");
    }
}

#define PAUSE_NS UINT64_C(10000000)

/* Stamp the time after completions were reaped. The data that they brought was noted with the time
 * of the stamp before. If the thread was held up in between, that time is too old and is
 * corrected. */
static void stamp_reaped(domi_thread *thread, domi_span span)
{
    uint64_t before_ns = thread->stamp_ns;

    domi_thread_stamp(thread, span);
    if (thread->stamp_ns - before_ns > PAUSE_NS)
        domi_io_refresh_activity(&thread->io, before_ns);
}

/* Completions so far without those of the wake poll; the number wraps around. */
static uint32_t count_io(const domi_io *io)
{
    return (uint32_t)domi_counter_read(&io->counters.completions) - io->wakes;
}

void domi_phase_io(domi_thread *thread)
{
    domi_system_check_not_forked(thread->system);
    thread->io_start_ns = thread->stamp_ns;
    domi_counter_add(&thread->counters.iterations, 1);
    if (domi_io_submit(&thread->io))
        domi_thread_stamp(thread, DOMI_SPAN_ENTER);
    if (DOMI_UNLIKELY(thread->io.failed != 0 || thread->io.refusals != 0))
        look_at_ring(thread);
    uint32_t before = count_io(&thread->io);
    thread->completions = domi_io_reap(&thread->io);
    thread->brought = count_io(&thread->io) - before;
    if (thread->judge_wakeup)
        domi_thread_judge_wakeup(thread);
    if (thread->completions != 0)
        stamp_reaped(thread, DOMI_SPAN_COMPLETIONS);
}

/* Look, once a tick, how short memory is, and let this thread act on it. */
static void look_at_memory(domi_thread *thread)
{
    domi_manager *manager = &thread->manager;

    domi_pressure_tick(thread->system, manager->index, manager->now_ns);
    domi_manager_look_at_pressure(manager);
    bool is_short = manager->pressure_seen != DOMUS_MEMORY_NORMAL;
    domi_io_pressure pressure = domi_pressure_for_io(&thread->system->pressure);
    domi_io_set_pressure(&thread->io, &pressure);
    domi_memory_watches_fire(manager);
    /* Trim at memory.threadMax, too: memory that one size has free cannot be used by the others. */
    if (is_short || manager->at_max)
        (void)domi_thread_trim(thread, DOMI_TRIM_BUSY);
}

/* Is a timer overdue by so much that the thread must have been held up: by its own handler, by the
 * machine, or by a stop signal? */
static bool has_paused(const domi_manager *manager)
{
    uint64_t due_ns = domi_wheel_next_ns(&manager->wheel);
    uint64_t deadline_ns = domi_wheel_next_ns(&manager->deadlines);

    if (deadline_ns < due_ns)
        due_ns = deadline_ns;
    /* 0 means that timers are left which one iteration could not take, or that came late. */
    return due_ns != 0 && due_ns < manager->now_ns && manager->now_ns - due_ns > PAUSE_NS;
}

/* Take arrivals from other threads, mount actors that were spawned, and fire timers that are due.
 * Returns how much was done. */
static uint32_t take_events(domi_thread *thread)
{
    domi_manager *manager = &thread->manager;
    uint32_t done = domi_manager_take_arrivals(manager);

    if (manager->mounting.head != NULL) {
        domi_monitor_wake_if_resting(&thread->system->monitor);
        done += domi_manager_mount_actors(manager);
    }

    if (manager->now_ns >= thread->next_tick_ns) {
        uint32_t before = count_io(&thread->io);
        look_at_memory(thread);
        /* After a pause, the completions that arrived meanwhile are taken first, so that no
         * time-out fires against data that had come in time. */
        if (has_paused(manager)) {
            uint32_t taken;
            (void)domi_io_collect(&thread->io, thread->config->io.completion_entries, &taken);
            done += taken;
        }
        done += domi_manager_fire_timers(manager) + domi_io_fire_timers(&thread->io);
        thread->brought += count_io(&thread->io) - before; /* collected completions are io, too */
        bool more = domi_wheel_next_ns(&manager->wheel) == 0 ||
                    domi_wheel_next_ns(&manager->deadlines) == 0;
        thread->next_tick_ns = more ? 0 : manager->now_ns + DOMI_WHEEL_TICK_NS;
    }
    return done;
}

void domi_phase_channels(domi_thread *thread)
{
    domi_manager *manager = &thread->manager;

    if (thread->doing != atomic_load_explicit(thread->wanted, memory_order_relaxed))
        domi_thread_follow_stop(thread);
    if (take_events(thread) != 0)
        stamp_reaped(thread, DOMI_SPAN_EVENTS);
    if (manager->ready[DOMUS_CHANNELS].count != 0)
        domi_monitor_wake_if_resting(&thread->system->monitor);
    if (domi_manager_run_channels(manager) != 0)
        domi_thread_stamp(thread, DOMI_SPAN_CHANNELS);
    domi_system_check_not_forked(thread->system);
    uint32_t sends = domi_io_queue_sends(&thread->io);
    /* Answers leave before phase 3 if state actors are ready; otherwise they leave with the enter
     * that parks. */
    if (sends != 0 && manager->ready[DOMUS_STATE].count != 0 && domi_io_submit(&thread->io))
        domi_thread_stamp(thread, DOMI_SPAN_ENTER);
}

/* Returns when phase 3 has to end. The budget is at most maxBudget, however small io's share is,
 * because io and timers wait for the end of the phase. Time in which the thread lost its CPU counts
 * as io's time, too: with an ioRatio of 1 percent, 4 ms of that made timers 400 ms late. */
static uint64_t state_deadline(const domi_thread *thread)
{
    uint64_t ratio = thread->config->scheduler.io_ratio;

    /* A wake-up is not io: it brings messages, and these are handled in phase 3. */
    if (thread->brought == 0)
        return thread->stamp_ns + thread->config->scheduler.min_budget_ns;
    uint64_t io_ns = thread->stamp_ns - thread->io_start_ns;
    uint64_t budget_ns = io_ns * (100 - ratio) / ratio;
    if (budget_ns > thread->config->scheduler.max_budget_ns)
        budget_ns = thread->config->scheduler.max_budget_ns;
    if (budget_ns < thread->config->scheduler.min_budget_busy_ns)
        budget_ns = thread->config->scheduler.min_budget_busy_ns;
    return thread->stamp_ns + budget_ns;
}

/* The look between runs (M2): read the clock, take arrivals and returned loans, serve thieves, and
 * send home what was freed for others. */
static void look_between_runs(domi_thread *thread, domi_queue *queue, uint32_t houses)
{
    uint64_t before_ns = thread->stamp_ns;

    domi_thread_stamp(thread, DOMI_SPAN_STATE);
    domi_thread_note_runs(thread, houses, thread->stamp_ns - before_ns);
    domi_thread_publish_depth(thread, queue->count);
    (void)domi_manager_take_arrivals(&thread->manager);
    domi_manager_look_at_pressure(&thread->manager);
    domi_thread_share_houses(thread, queue);
    if (thread->manager.chained >= DOMI_CHAINED_MAX)
        domi_pool_flush_returns(&thread->manager);
}

#define MESSAGES_PER_LOOK 64u

/* Run from `queue` until it is empty or the deadline has passed. Returns how many houses have run
 * since the last look. */
static uint32_t run_state(domi_thread *thread, domi_queue *queue, uint64_t deadline_ns)
{
    uint32_t look_every = domi_thread_runs_before_first_look(thread, queue->count);
    uint32_t houses = 0;
    uint32_t messages = 0;

    for (domi_house *house = domi_queue_take(queue); house != NULL;
         house = domi_queue_take(queue)) {
        messages += domi_house_run(&thread->manager, house);
        if (++houses < look_every && messages < MESSAGES_PER_LOOK)
            continue;
        look_between_runs(thread, queue, houses);
        look_every = domi_thread_runs_before_next_look(thread, look_every);
        houses = messages = 0;
        if (thread->stamp_ns < deadline_ns || queue->count == 0)
            continue;
        domi_counter_add(&thread->counters.deadline_expiries, 1);
        domi_counter_add(&thread->counters.deadline_overrun_ns, thread->stamp_ns - deadline_ns);
        break;
    }
    return houses;
}

void domi_phase_state(domi_thread *thread)
{
    domi_queue *ready = &thread->manager.ready[DOMUS_STATE];
    uint32_t houses;

    if (ready->count == 0)
        domi_thread_share_houses(thread, ready);
    if (ready->count == 0) {
        /* Exposed houses that the last publication counted may have been taken since. Relaxed: only
         * this thread writes the word. */
        if (atomic_load_explicit(&thread->manager.readies, memory_order_relaxed) != 0)
            domi_thread_publish_depth(thread, 0);
        return;
    }
    domi_monitor_wake_if_resting(&thread->system->monitor);
    /* The first house runs at once, so only those behind it are published; the first look, which
     * publishes again, may be long after that. */
    domi_thread_publish_depth(thread, ready->count - 1);
    if (thread->config->scheduler.io_ratio == 100) {
        /* There is no deadline: each house that is ready now runs once, and houses that become
         * ready meanwhile wait. */
        domi_queue now = *ready;
        *ready = (domi_queue){.normal_every = now.normal_every, .high_takes = now.high_takes};
        houses = run_state(thread, &now, UINT64_MAX);
    } else {
        houses = run_state(thread, ready, state_deadline(thread));
    }
    look_between_runs(thread, ready, houses);
}

void domi_thread_loop(domi_thread *thread)
{
    while (thread->doing != DOMI_WANTED_END) {
        domi_phase_io(thread);
        domi_phase_channels(thread);
        domi_phase_state(thread);
        if (thread->doing != DOMI_WANTED_END)
            domi_thread_rest(thread);
    }
}
