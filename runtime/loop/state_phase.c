/* Phase 3: state actors run until a deadline, which gives io its share of the CPU
 * (scheduler.ioRatio). Now and then, between two runs, the thread looks at what others want of it
 * (M2). A thread that spins runs this phase, too, when all that has come are messages (spin.c). */
#include "runtime/loop/steps.h"

#include "house/dispatch/dispatch.h"
#include "house/dispatch/loan.h"
#include "house/dispatch/phases.h"
#include "house/message/observer.h"
#include "house/message/pool.h"
#include "io/completions/tick.h"
#include "runtime/loop/auto_ratio.h"
#include "runtime/loop/steal.h"
#include "runtime/system/monitor.h"
#include "runtime/system/system.h"

/* Returns the time at which phase 3 has to end. The budget is at most maxBudget, however small
 * io's share is, because io and timers wait for the end of the phase. Time in which the thread
 * lost its CPU counts as time of io, and would else make the budget huge: with an ioRatio of 1
 * percent, 4 ms made timers 400 ms late. */
static uint64_t deadline_of_state_phase(const domi_thread *thread)
{
    uint64_t ratio = thread->config->scheduler.io_ratio;

    /* phase 1 has brought nothing but a wake-up, which is not io: it brings messages, which phase 3
     * handles */
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

/* The look of home between two runs (M2): read the clock, take arrivals and returned loans,
 * serve thieves, and send freed objects back to their owners. */
static void look_between_runs(domi_thread *thread, domi_queue *queue, uint32_t houses)
{
    uint64_t before_ns = thread->stamp_ns;

    domi_thread_stamp_time(thread, DOMI_SPAN_STATE);
    domi_counter_add(&thread->counters.ready_ns,
                     thread->waiting_houses * (thread->stamp_ns - before_ns));
    thread->waiting_houses = queue->count;
    domi_thread_add_runs_to_average(thread, houses, thread->stamp_ns - before_ns);
    domi_thread_publish_ready_count(thread, queue->count);
    (void)domi_manager_take_arrivals(&thread->manager);
    domi_manager_reread_memory_level(&thread->manager);
    domi_thread_expose_or_take_back_houses(thread, queue);
    if (thread->manager.pool.chained >= DOMI_CHAINED_MAX)
        domi_pool_push_chains_to_owners(&thread->manager);
    domi_thread_wake_or_replace_sleepers(thread, queue->count == 0);
}

/* With an ioRatio of `auto`, put the deadline of phase 3 off when it is reached. Returns false
 * if the phase has to end, because another phase has something to do or maxBudget is over. */
static bool try_to_extend_deadline(domi_thread *thread, uint64_t *deadline_ns)
{
    const domi_manager *manager = &thread->manager;
    const domi_io *io = &thread->io;

    if (DOMI_LIKELY(thread->config->scheduler.io_ratio != DOMUS_IO_RATIO_AUTO))
        return false;
    if (thread->stamp_ns - thread->auto_ratio.phase_from_ns >=
            thread->config->scheduler.max_budget_ns ||
        thread->stamp_ns >= thread->next_tick_ns ||
        manager->schedule.ready[DOMUS_CHANNELS].count != 0 ||
        manager->schedule.mounting.head != NULL || domi_io_has_work_before_park(io) ||
        domi_thread_has_orders_to_follow(thread, memory_order_relaxed) ||
        io->backend->pending(io->ring))
        return false;
    *deadline_ns = thread->stamp_ns + thread->config->scheduler.min_budget_busy_ns;
    return true;
}

/* most messages that state actors handle between two looks for new work */
#define MESSAGES_PER_LOOK 64u

/* Run houses from `queue` until it is empty or the deadline has passed. Returns how many houses
 * have run since the last look. It is inlined, so that without an observer no run asks whether
 * there is one. */
DOMI_INLINE uint32_t run_state_actors_with_function(domi_thread *thread, domi_queue *queue,
                                                    uint64_t deadline_ns, domi_run_house *run,
                                                    bool is_observed)
{
    uint32_t look_every = domi_thread_count_runs_before_first_look(thread, queue->count);
    uint32_t houses = 0;
    uint32_t messages = 0;

    for (domi_house *house = domi_queue_take_house(queue); house != NULL;
         house = domi_queue_take_house(queue)) {
        messages += run(&thread->manager, house);
        if (++houses < look_every && messages < MESSAGES_PER_LOOK)
            continue;
        look_between_runs(thread, queue, houses);
        look_every = domi_thread_count_runs_before_next_look(thread, look_every);
        if (is_observed)
            run = thread->manager.observer->choose(&thread->manager);
        houses = messages = 0;
        if (thread->stamp_ns < deadline_ns || queue->count == 0)
            continue;
        if (try_to_extend_deadline(thread, &deadline_ns))
            continue;
        domi_counter_add(&thread->counters.deadline_expiries, 1);
        domi_counter_add(&thread->counters.deadline_overrun_ns, thread->stamp_ns - deadline_ns);
        break;
    }
    return houses;
}

static uint32_t run_state_actors(domi_thread *thread, domi_queue *queue, uint64_t deadline_ns)
{
    if (DOMI_UNLIKELY(thread->manager.observer != NULL))
        return run_state_actors_with_function(
            thread, queue, deadline_ns, thread->manager.observer->choose(&thread->manager), true);
    return run_state_actors_with_function(thread, queue, deadline_ns, domi_house_run_and_settle,
                                          false);
}

static uint32_t run_state_actors_with_auto_ratio(domi_thread *thread, domi_queue *ready)
{
    const domi_auto_bounds bounds = {
        .least_ns = thread->config->scheduler.min_budget_busy_ns,
        .most_ns = thread->config->scheduler.max_budget_ns,
        .wait_ns = thread->config->scheduler.wait_max_ns,
    };
    const domi_counter *runs = &thread->manager.counters.runs;
    uint64_t before = domi_counter_read(runs);
    uint64_t budget_ns = domi_auto_ratio_begin_state_phase(&thread->auto_ratio, &bounds,
                                                           thread->stamp_ns, ready->count);
    uint32_t houses = run_state_actors(thread, ready, thread->stamp_ns + budget_ns);

    domi_auto_ratio_end_state_phase(&thread->auto_ratio, &bounds, thread->stamp_ns,
                                    domi_counter_read(runs) - before, ready->count);
    return houses;
}

/* Run each house that is ready now once, without a deadline, as an ioRatio of 100 demands;
 * houses that become ready meanwhile wait for the next phase 3. */
static uint32_t run_each_state_actor_once(domi_thread *thread, domi_queue *ready)
{
    domi_queue now = *ready;

    *ready = (domi_queue){.normal_every = now.normal_every, .high_takes = now.high_takes};
    return run_state_actors(thread, &now, UINT64_MAX);
}

void domi_thread_run_phase_state(domi_thread *thread)
{
    domi_queue *ready = &thread->manager.schedule.ready[DOMUS_STATE];
    uint64_t from_ns = thread->stamp_ns;
    uint32_t houses;

    if (ready->count == 0 && domi_loans_count_shared_houses(&thread->manager) != 0)
        /* The thread has nothing else to run, so it may take back houses that it has exposed. */
        domi_thread_expose_or_take_back_houses(thread, ready);
    if (ready->count == 0) {
        /* The published count may still have exposed houses that thieves have taken since, so it
         * is set to 0. Relaxed: only this thread writes the word. */
        if (atomic_load_explicit(&thread->manager.loans.readies, memory_order_relaxed) != 0)
            domi_thread_publish_ready_count(thread, 0);
        domi_thread_wake_or_replace_sleepers(thread, true);
        return;
    }
    domi_monitor_wake_if_resting(&thread->system->monitor);
    /* The first house runs at once, so only the houses behind it are published for thieves.
     * look_between_runs() publishes the number anew, but that may be much later. */
    thread->waiting_houses = ready->count - 1;
    domi_thread_publish_ready_count(thread, thread->waiting_houses);
    uint32_t ratio = thread->config->scheduler.io_ratio;
    if (DOMI_LIKELY(ratio < 100))
        houses = run_state_actors(thread, ready, deadline_of_state_phase(thread));
    else
        houses = (ratio == 100 ? run_each_state_actor_once
                               : run_state_actors_with_auto_ratio)(thread, ready);
    look_between_runs(thread, ready, houses);
    thread->state_took_ns = thread->stamp_ns - from_ns;
}
