/* The simulator of threads decides which thread takes the next step, takes the step, and moves the
 * clock.
 *
 * A step is one phase of one thread, by the functions of the real loop (loop.c). The step of phase
 * 3 also begins the rest (park.c), and a thread that sleeps then ends its rest in its next step.
 * The park word is the real one, so a sender wakes a thread in the real way. Whenever no thread can
 * take a step, the kit checks for all sleeping threads that none of them has work (M3). Then time
 * moves to the next timer.
 *
 * The thread of a step is drawn with equal chances among the threads that can take one, except that
 * at times one thread is held back for some steps; otherwise races that need a slow thread would be
 * too rare. A loan (contract: Stealing) takes two steps of the thief: at the end of its step of
 * phase 3 the thief takes the house, and in a step of its own it runs the house and returns it. */
#include "runtime/testkit/parts.h"

#include "base/check.h"
#include "house/dispatch/invariants.h"
#include "house/dispatch/manage.h"
#include "io/completions/ring.h"
#include "io/completions/setup.h"
#include "runtime/loop/steal.h"
#include "runtime/loop/steps.h"
#include "runtime/network/parts.h"
#include "runtime/network/ring.h"
#include "runtime/outside/blocking.h"
#include "runtime/outside/detached.h"
#include "runtime/outside/resolver.h"
#include "runtime/pools/runners.h"
#include "runtime/system/logs.h"
#include "runtime/system/losses.h"
#include "runtime/system/manager_options.h"
#include "runtime/system/pressure.h"

#include <domus/blocking.h>
#include <domus/pool_config.h>
#include <errno.h>
#include <stdio.h>

/* average number of steps between two times at which one thread is held back */
#define LAG_EVERY     32u
#define LAG_STEPS_MAX 64u /* most steps for which one thread is held back */
/* The houses and the network are checked only when the number of steps taken is a multiple of
 * this. */
#define CHECK_HOUSES_EVERY 16u
#define NAMED_MAX          3u /* most ready actors of a thread that an error text names */

/* Returns how many threads and runners the kit has, which take steps. Runners have the indices
 * behind those of the threads. */
static uint32_t count_threads_and_runners(const domus_testkit *kit)
{
    return kit->system->count + kit->runner_count;
}

/* True if the simulated thread can take a step at this time. */
static bool can_thread_take_step(const domus_testkit *kit, uint32_t index, uint64_t now_ns)
{
    const domi_kit_thread *thread = &kit->threads[index];

    switch (thread->next) {
    case DOMI_STEP_SLEEP:
        return thread->woken || thread->refused || now_ns >= thread->until_ns ||
               domi_net_would_waiting_enter_return(kit->system->threads[index].io.ring);
    /* the actors of a thread are ended when all threads have left their loops, as in
     * thread_life.c */
    case DOMI_STEP_END:
        return kit->left_loops == kit->system->count && domi_kit_runners_have_left(kit);
    case DOMI_STEP_NONE:
        return false;
    default:
        return true;
    }
}

static bool can_thread_or_runner_take_step(const domus_testkit *kit, uint32_t index,
                                           uint64_t now_ns)
{
    return index < kit->system->count
               ? can_thread_take_step(kit, index, now_ns)
               : domi_kit_can_runner_take_step(kit, index - kit->system->count, now_ns);
}

/* Check for each sleeping thread that it has no work (M3): neither work that it overlooked when it
 * fell asleep, nor work that another thread gave it without waking it. */
static void check_sleeper_has_no_work(const domus_testkit *kit)
{
    for (uint32_t i = 0; i < kit->system->count; i++) {
        domi_thread *thread = &kit->system->threads[i];
        const domi_manager *manager = &thread->manager;

        if (kit->threads[i].next != DOMI_STEP_SLEEP)
            continue;
        DOMI_CHECK(manager->schedule.ready[DOMUS_STATE].count == 0);
        DOMI_CHECK(manager->schedule.ready[DOMUS_CHANNELS].count == 0);
        DOMI_CHECK(manager->schedule.mounting.head == NULL);
        /* a sleeping thread has sent back all objects of other threads that it has freed */
        DOMI_CHECK(manager->pool.chained == 0);
        /* while a thread sleeps its timers may be cancelled, but none is started that is due
         * sooner */
        DOMI_CHECK(domi_thread_time_of_next_timer(thread) >= kit->threads[i].until_ns);
        /* a sleeping thread has no arrival, no new step of a stop, and no completion */
        DOMI_CHECK(!domi_thread_has_work(thread));
        if (kit->steps % CHECK_HOUSES_EVERY == 0)
            domi_manager_check_houses(&kit->system->threads[i].manager);
    }
    if (kit->steps % CHECK_HOUSES_EVERY == 0)
        domi_net_check_that_counts_add_up(kit->net);
}

static void draw_which_thread_is_held_back(domus_testkit *kit)
{
    if (kit->lag_steps != 0) {
        kit->lag_steps--;
    } else if (domi_random_below(&kit->random, LAG_EVERY) == 0) {
        kit->lagging = (uint32_t)domi_random_below(&kit->random, count_threads_and_runners(kit));
        kit->lag_steps = 1 + (uint32_t)domi_random_below(&kit->random, LAG_STEPS_MAX);
    }
}

/* Draw the thread or runner that takes the next step. Returns its index; UINT32_MAX if none can
 * take a step. */
static uint32_t draw_who_takes_next_step(domus_testkit *kit)
{
    uint64_t now_ns = domi_clock_now(&kit->system->clock);
    uint32_t lagging = UINT32_MAX;
    uint32_t count = 0;

    for (uint32_t i = 0; i < count_threads_and_runners(kit); i++)
        count += can_thread_or_runner_take_step(kit, i, now_ns);
    if (count == 0)
        return UINT32_MAX;
    draw_which_thread_is_held_back(kit);
    if (kit->lag_steps != 0 && count > 1 &&
        can_thread_or_runner_take_step(kit, kit->lagging, now_ns)) {
        lagging = kit->lagging;
        count--;
    }
    uint64_t drawn = domi_random_below(&kit->random, count);
    for (uint32_t i = 0;; i++) {
        if (i != lagging && can_thread_or_runner_take_step(kit, i, now_ns) && drawn-- == 0)
            return i;
    }
}

static void wake_sleeping_thread_for_step(domus_testkit *kit, uint32_t index)
{
    domi_net_ring_end_sleep(kit->system->threads[index].io.ring);
    domi_thread_end_rest(&kit->system->threads[index], kit->threads[index].until_ns);
    kit->threads[index].next = DOMI_STEP_IO;
}

/* Choose what a thread does after phase 3, as domi_thread_run_loop() does: leave the loop, sleep,
 * run a loan, or go on with phase 1. */
static void choose_step_after_phase_3(domus_testkit *kit, uint32_t index)
{
    domi_thread *thread = &kit->system->threads[index];
    domi_kit_thread *state = &kit->threads[index];
    uint64_t capped_ns;

    if (domi_thread_has_to_leave_loop(thread)) {
        state->next = DOMI_STEP_END;
        kit->left_loops++;
    } else if (domi_thread_begin_rest(thread, &capped_ns)) {
        state->next = DOMI_STEP_SLEEP;
        state->woken = false;
        /* a real thread also wakes after DOMI_PARK_CAP_NS, which a kit leaves out to save steps */
        state->until_ns = thread->until_ns = domi_thread_time_of_next_timer(thread);
        /* the enter of the ring in which the thread sleeps begins */
        domi_io_enter_ring(&thread->io, 0, 0);
        state->refused = thread->io.refusals != 0;
    } else {
        state->next = thread->stealing.loan != NULL ? DOMI_STEP_LOAN : DOMI_STEP_IO;
    }
}

/* Let a simulated thread do its next step. Returns the name of the step for the trace. */
static const char *carry_out_next_step_of_thread(domus_testkit *kit, uint32_t index)
{
    domi_thread *thread = &kit->system->threads[index];
    domi_kit_thread *state = &kit->threads[index];

    if (state->next == DOMI_STEP_SLEEP)
        wake_sleeping_thread_for_step(kit, index);
    switch (state->next) {
    case DOMI_STEP_IO:
        domi_thread_run_phase_io(thread);
        state->next = DOMI_STEP_CHANNELS;
        return "io";
    case DOMI_STEP_CHANNELS:
        domi_thread_run_phase_channels(thread);
        state->next = DOMI_STEP_STATE;
        return "channels";
    case DOMI_STEP_STATE:
        domi_trace_record_ready_actors(kit, index);
        domi_thread_run_phase_state(thread);
        choose_step_after_phase_3(kit, index);
        return "state";
    case DOMI_STEP_LOAN:
        domi_thread_run_borrowed_house(thread, false);
        state->next = DOMI_STEP_IO;
        return "loan";
    default:
        DOMI_CHECK(state->next == DOMI_STEP_END);
        domi_thread_stop_noting_sleepers(thread);
        domi_system_record_left_actors(kit->system, &thread->manager);
        domi_manager_end_actors(&thread->manager);
        domi_io_end_tries_and_connects(&thread->io);
        kit->system->ended++;
        state->next = DOMI_STEP_NONE;
        return "end";
    }
}

static void take_step_of_thread(domus_testkit *kit, uint32_t index)
{
    /* manager of the calling thread; not NULL if an actor of another system uses this kit */
    domi_manager *outer = domi_thread_manager;

    /* code of the step runs as if on the simulated thread */
    domi_thread_manager = &kit->system->threads[index].manager;
    /* the check of owners accepts the calling thread as the simulated thread */
    domi_manager_become_owner(domi_thread_manager);
    const char *phase = carry_out_next_step_of_thread(kit, index);
    domi_thread_manager = outer;
    domi_trace_record_step(kit, index, phase);
}

bool domi_testkit_take_step(domus_testkit *kit)
{
    if (kit->stepping)
        return false;
    domi_net_advance_time(kit->net, domi_clock_now(&kit->system->clock));
    uint32_t index = draw_who_takes_next_step(kit);
    if (index == UINT32_MAX) {
        check_sleeper_has_no_work(kit);
        return false;
    }
    kit->steps++;
    kit->steps_here++;
    kit->stepping = true;
    if (index < kit->system->count) {
        take_step_of_thread(kit, index);
    } else {
        domi_kit_take_runner_step(kit, index - kit->system->count);
        domi_trace_record_turn(kit, index - kit->system->count);
    }
    kit->stepping = false;
    return true;
}

/* --- moving the time ------------------------------------------------------------------------- */

uint64_t domi_testkit_time_of_next_event(const domus_testkit *kit)
{
    uint64_t net_ns = domi_net_time_of_next_event(kit->net);
    uint64_t due_ns = domi_kit_time_of_next_pool_timer(kit);

    if (net_ns < due_ns)
        due_ns = net_ns;
    for (uint32_t i = 0; i < kit->system->count; i++) {
        const domi_kit_thread *thread = &kit->threads[i];
        if (thread->next == DOMI_STEP_SLEEP && thread->until_ns < due_ns)
            due_ns = thread->until_ns;
    }
    return due_ns;
}

/* Append the names of the first ready actors of a thread to an error text that has `length` bytes
 * already. Returns the new length of the text. */
static size_t append_names_of_ready_actors(const domi_thread *thread, char *text, size_t size,
                                           size_t length)
{
    const domi_queue *queue = &thread->manager.schedule.ready[DOMUS_STATE];
    const domi_house *house = queue->high.head != NULL ? queue->high.head : queue->normal.head;
    const char *mark = ": ";

    if (queue->count == 0)
        return length;
    for (uint32_t i = 0; i < NAMED_MAX && house != NULL && length < size; i++) {
        const char *name = house->behaviour->name;
        length += (size_t)snprintf(text + length, size - length, "%s%s", mark,
                                   name != NULL ? name : "(no name)");
        mark = ", ";
        house = house->next;
    }
    if (queue->count > NAMED_MAX && length < size)
        length += (size_t)snprintf(text + length, size - length, ", ...");
    return length;
}

static void write_error_of_endless_run(domus_testkit *kit)
{
    uint64_t now_ns = domi_clock_now(&kit->system->clock);
    size_t size = sizeof kit->error;
    size_t length =
        (size_t)snprintf(kit->error, size, "%u steps and no end;", DOMUS_TESTKIT_STEPS_MAX);

    for (uint32_t i = 0; i < kit->system->count && length < size; i++) {
        if (!can_thread_or_runner_take_step(kit, i, now_ns))
            continue;
        length += (size_t)snprintf(kit->error + length, size - length, " thread %u runs", i);
        if (length < size)
            length =
                append_names_of_ready_actors(&kit->system->threads[i], kit->error, size, length);
        if (length < size)
            length += (size_t)snprintf(kit->error + length, size - length, ";");
    }
    for (uint32_t i = 0; i < kit->system->pool_count && length < size; i++) {
        const domus_pool *pool = kit->system->pools[i];
        if (domi_pool_count_queued_jobs(pool) != 0)
            length += (size_t)snprintf(kit->error + length, size - length, " pool %s runs;",
                                       pool->settings->name);
    }
}

int domi_testkit_run_until(domus_testkit *kit, bool (*is_done)(const void *context),
                           const void *context, uint64_t until_ns)
{
    domi_clock *clock = &kit->system->clock;

    kit->steps_here = 0;
    for (;;) {
        domi_net_advance_time(kit->net, domi_clock_now(clock));
        if (is_done != NULL && is_done(context))
            return 0;
        if (domi_testkit_take_step(kit)) {
            if (kit->steps_here <= DOMUS_TESTKIT_STEPS_MAX)
                continue;
            write_error_of_endless_run(kit);
            return -ETIMEDOUT;
        }
        uint64_t now_ns = domi_clock_now(clock);
        uint64_t due_ns = domi_testkit_time_of_next_event(kit);
        if (now_ns >= until_ns || (due_ns == UINT64_MAX && until_ns == UINT64_MAX))
            return -ETIME;
        domi_clock_advance_virtual(clock, (due_ns < until_ns ? due_ns : until_ns) - now_ns);
        kit->steps_here = 0;
    }
}

void domi_testkit_wake_thread_for_test(domus_testkit *kit, const domi_manager *manager)
{
    domi_manager_become_owner(&kit->system->threads[manager->index].manager);
    if (kit->threads[manager->index].next != DOMI_STEP_SLEEP)
        return;
    wake_sleeping_thread_for_step(kit, manager->index);
    /* the mark is cleared, because the test has woken the thread, and that wake-up need not have
     * found work */
    kit->system->threads[manager->index].judge_wakeup = false;
}

/* Wake a simulated thread. It is called as domi_runtime_hooks.wake. */
static void wake_simulated_thread(domi_manager *manager)
{
    const domi_thread *thread = manager->thread;
    domus_testkit *kit = (domus_testkit *)(void *)thread->system->simulator;
    domi_kit_thread *state = &kit->threads[manager->index];

    /* M12: a thread that sleeps and was not woken yet, because one wake-up ends one sleep */
    DOMI_CHECK(state->next == DOMI_STEP_SLEEP && !state->woken);
    state->woken = true;
}

const domi_runtime_hooks domi_hooks_of_testkit = {
    .wake = wake_simulated_thread,
    .log = domi_log_what_happened_to_actor,
    .warn = domi_log_mistake_of_user,
    .say = domi_log_text_for_manager,
    /* this function returns an error, because a kit has no detached actors */
    .spawn_detached = domi_detached_spawn_actor,
    .withdraw = domi_blocking_withdraw_work,
    .block = domus_blocking,
    .resolve = domi_resolver_begin_lookup,
    .unresolve = domi_resolver_withdraw_lookup,
    .read_memory = domi_pressure_read_levels,
    .read_clock = domi_system_read_clock,
};

struct condition {
    /* function that returns true when the awaited condition holds */
    bool (*is_done)(const domus_system *system);
    const domus_system *system; /* system for which the condition is awaited */
};

static bool is_awaited_condition_met(const void *condition_)
{
    const struct condition *condition = condition_;

    return condition->is_done(condition->system);
}

bool domi_testkit_run_until_condition(domi_simulator *simulator,
                                      bool (*is_done)(const domus_system *system),
                                      uint64_t until_ns)
{
    domus_testkit *kit = (domus_testkit *)(void *)simulator;
    struct condition condition = {.is_done = is_done, .system = kit->system};

    return domi_testkit_run_until(kit, is_awaited_condition_met, &condition, until_ns) == 0;
}
