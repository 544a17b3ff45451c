/* A runner gives turns to the actors of its pool, until the system stops or, if it is a spare,
 * until it is not needed any more.
 *
 * At times, between two turns, it looks at everything that does not come by a queue: the clock,
 * timers that are due, memory, and the stop. */
#include "runtime/pools/runners.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/dispatch/dispatch.h"
#include "house/dispatch/manage.h"
#include "house/dispatch/pooled_turn.h"
#include "house/family/memory_watch.h"
#include "house/family/slots.h"
#include "house/message/pool.h"
#include "house/message/stop.h"
#include "house/message/trim.h"
#include "runtime/os/threads.h"
#include "runtime/outside/blocking.h"
#include "runtime/outside/detached.h"
#include "runtime/outside/visit.h"
#include "runtime/system/crash.h"
#include "runtime/system/live_copy.h"
#include "runtime/system/logs.h"
#include "runtime/system/monitor.h"
#include "runtime/system/pressure.h"

#include <domus/blocking.h>
#include <stdio.h>

/* most turns that a runner gives between two looks at the clock, timers and memory */
#define TURNS_TO_LOOK 16u

const domi_runtime_hooks domi_hooks_of_runners = {
    .log = domi_log_what_happened_to_actor,
    .warn = domi_log_mistake_of_user,
    .say = domi_log_text_for_manager,
    .spawn_detached = domi_detached_spawn_actor,
    .withdraw = domi_blocking_withdraw_work,
    .block = domus_blocking,
    .read_memory = domi_pressure_read_levels,
};

/* --- looks ------------------------------------------------------------------------------------ */

uint64_t domi_runner_count_life_beats(const domus_runner *runner)
{
    const domi_counters *counters = &runner->manager.counters;
    uint64_t sum = domi_counter_read(&runner->counters.takes) +
                   domi_counter_read(&runner->counters.puts) + domi_counter_read(&counters->spawns);

    for (int i = 0; i < DOMI_MAILBOXES; i++)
        sum += domi_counter_read(&counters->handled[i]);
    return sum;
}

uint64_t domi_runner_count_turn_changes(const domus_runner *runner)
{
    return domi_counter_read(&runner->counters.takes) + domi_counter_read(&runner->counters.turns);
}

static void ask_parentless_actor_to_stop(void *house_, void *manager)
{
    domi_house *house = house_;
    /* acquire: pairs with the store that publishes a new actor, so the actor's parent is seen. */
    uint64_t life = atomic_load_explicit(&house->life, memory_order_acquire);

    if ((life & DOMI_LIFE_CLOSED) == 0 && domi_house_get_parent(house) == NULL)
        (void)domi_house_ask_to_stop(manager, (domus_address){house, DOMI_LIFE_LEASE(life)});
}

/* Let the runner use the newest configuration, except for the length of a run, for which its pool
 * has a limit of its own. */
static void follow_change_of_config(domus_runner *runner)
{
    uint32_t throughput = runner->manager.limits.messages_per_run_max;

    domi_live_update_config_of_manager(runner->pool->system, &runner->manager);
    domi_manager_set_messages_per_run(&runner->manager, throughput);
}

/* Let the runner follow the orders of the system. Returns true if the runner has to end. */
static bool follow_orders_of_system(domus_runner *runner)
{
    domus_pool *pool = runner->pool;
    /* acquire: pairs with the store in domi_system_set_stop_step(), so what that thread has written
     * before is seen. */
    uint32_t orders = atomic_load_explicit(&pool->system->orders, memory_order_acquire);
    uint32_t followed = atomic_load_explicit(&runner->orders, memory_order_relaxed);
    domi_stop_step wanted = domi_orders_get_stop_step(orders);

    if (orders == followed)
        return wanted == DOMI_STOP_END;
    if (domi_orders_differ_in_config_change(followed, orders))
        follow_change_of_config(runner);
    if (wanted >= DOMI_STOP_CLOSE)
        runner->manager.ending.closing = true;
    /* Only one runner of the pool walks over all actors and stops them. */
    if (wanted == DOMI_STOP_ACTORS && domi_orders_get_stop_step(followed) != wanted &&
        atomic_exchange_explicit(&pool->walked, 1, memory_order_relaxed) == 0)
        domi_slots_visit_while_others_spawn(&pool->home, ask_parentless_actor_to_stop,
                                            &runner->manager);
    /* release: a thread that reads this sees what the runner did when it began to follow these
     * orders. */
    atomic_store_explicit(&runner->orders, orders, memory_order_release);
    return wanted == DOMI_STOP_END;
}

static void update_time_of_runner(domus_runner *runner)
{
    runner->manager.now_ns = domi_clock_now(&runner->pool->system->clock);
}

/* Returns the number of turns until the runner's next look, if there were `turns` in the
 * `passed_ns` between the last two looks. If turns are long, the number gets small, because timers
 * wait for the look; if turns are short again, it is doubled each time. */
static uint32_t count_turns_until_next_look(uint32_t turns, uint64_t passed_ns)
{
    if (passed_ns >= DOMI_WHEEL_TICK_NS)
        return (uint32_t)(turns * DOMI_WHEEL_TICK_NS / passed_ns);
    return 2 * turns < TURNS_TO_LOOK ? 2 * turns + 1 : TURNS_TO_LOOK;
}

static void look_between_turns(domus_runner *runner)
{
    domi_manager *manager = &runner->manager;
    uint64_t before_ns = manager->now_ns;

    update_time_of_runner(runner);
    runner->turns_between =
        count_turns_until_next_look(runner->turns_between, manager->now_ns - before_ns);
    runner->turns_to_look = runner->turns_between;
    domi_manager_reread_memory_level(manager);
    domi_memory_watches_put_events(manager, manager->pooled->home);
    while (domi_pooled_next_due_ns(&runner->pool->pooled) <= manager->now_ns) {
        if (domi_pooled_fire_due_timers(manager) == 0)
            break;
    }
    if (manager->pool.chained >= DOMI_CHAINED_MAX)
        domi_pool_push_chains_to_owners(manager);
}

/* --- a step of a runner ----------------------------------------------------------------------- */

/* Record that the runner does not rest any more, and wake the monitor if that sleeps. */
static void end_rest_of_runner(domus_runner *runner)
{
    /* seq_cst: pairs with the load of `rests` by the monitor (spares.c), so either the monitor sees
     * this or this thread wakes it. */
    atomic_store_explicit(&runner->rests, false, memory_order_seq_cst);
    domi_monitor_wake_if_resting(&runner->pool->system->monitor);
}

typedef void hook(domus_runner *runner, domus_job *job);

static void call_hook_around_turn(hook *function, domus_runner *runner, domus_job *job)
{
    if (function != NULL)
        function(runner, job);
}

/* Give an actor a turn, and call the hooks of the policy and the program before and after it. */
static domi_pooled_left run_turn_with_hooks(domus_runner *runner, domus_job *job)
{
    static const domus_pool_hooks none = {0};
    const domus_policy *policy = runner->pool->policy;
    const domus_pool_hooks *hooks = runner->pool->settings->hooks;

    if (hooks == NULL)
        hooks = &none;
    call_hook_around_turn(policy->before_run, runner, job);
    call_hook_around_turn(hooks->before_run, runner, job);
    domi_pooled_left left = domi_pooled_run_turn_of_house(&runner->manager, job);
    call_hook_around_turn(hooks->after_run, runner, job);
    call_hook_around_turn(policy->after_run, runner, job);
    if (left == DOMI_POOLED_ENDED) {
        call_hook_around_turn(hooks->after_completion, runner, job);
        call_hook_around_turn(policy->after_completion, runner, job);
    }
    return left;
}

static void give_turn_to_actor(domus_runner *runner, domus_job *job)
{
    domi_counter_add(&runner->counters.takes, 1);
    if (atomic_load_explicit(&runner->rests, memory_order_relaxed))
        end_rest_of_runner(runner);
    domi_pooled_left left = DOMI_UNLIKELY(runner->pool->hooked)
                                ? run_turn_with_hooks(runner, job)
                                : domi_pooled_run_turn_of_house(&runner->manager, job);
    domi_counter_add(&runner->counters.turns, 1);
    if (left == DOMI_POOLED_MORE) {
        domi_counter_add(&runner->counters.puts, 1);
        runner->pool->policy->resume_later(runner, job);
    }
}

/* Returns how long the runner may sleep at most. The sleep is bounded only if actors watch memory,
 * because the runner then looks at memory for them. */
static uint64_t longest_sleep_of_runner(const domus_runner *runner)
{
    bool looks = domi_memory_is_watched(&runner->pool->home);

    return looks ? DOMI_PARK_CAP_NS : 10 * DOMI_PARK_CAP_NS;
}

/* Let the runner wait for a job, because the queues are empty. Before that, it returns the memory
 * that it has freed for others. */
static domus_job *let_runner_wait_for_job(domus_runner *runner)
{
    domus_pool *pool = runner->pool;
    domi_manager *manager = &runner->manager;
    uint64_t wait_ns = longest_sleep_of_runner(runner);

    domi_pool_push_chains_to_owners(manager);
    look_between_turns(runner);
    uint64_t due_ns = domi_pooled_next_due_ns_before_sleep(&pool->pooled);
    if (due_ns <= manager->now_ns)
        return NULL;
    if (due_ns - manager->now_ns < wait_ns)
        wait_ns = due_ns - manager->now_ns;
    /* Relaxed: if the monitor sees this late, it only stays awake for longer. */
    atomic_store_explicit(&runner->rests, true, memory_order_relaxed);
    domi_span_begin_wait_of_runner(runner);
    domus_job *job = pool->policy->dequeue(runner, wait_ns);
    update_time_of_runner(runner);
    domi_span_end_wait_of_runner(runner);
    runner->turns_to_look = runner->turns_between;
    return job;
}

static bool is_runner_retiring(const domus_runner *runner)
{
    return atomic_load_explicit((_Atomic bool *)(uintptr_t)&runner->retires, memory_order_relaxed);
}

/* Answer that the runner was called. Returns true if it is a spare that has to end and has left its
 * jobs to others. */
static bool clear_call_and_leave_jobs_if_retiring(domus_runner *runner)
{
    const domus_policy *policy = runner->pool->policy;

    /* seq_cst: whoever calls a runner writes the reason first, so the reason is seen after this
     * exchange. */
    (void)atomic_exchange_explicit(&runner->called, false, memory_order_seq_cst);
    if (!is_runner_retiring(runner) || policy->leave == NULL)
        return false;
    policy->leave(runner);
    return true;
}

bool domi_runner_take_step(domus_runner *runner, bool may_wait)
{
    if (atomic_load_explicit(&runner->called, memory_order_relaxed) &&
        clear_call_and_leave_jobs_if_retiring(runner))
        return false;
    if (follow_orders_of_system(runner))
        return false;
    if (runner->turns_to_look-- == 0)
        look_between_turns(runner);
    domus_job *job = runner->pool->policy->dequeue(runner, 0);
    if (job == NULL && is_runner_retiring(runner))
        return false;
    if (job == NULL && may_wait)
        job = let_runner_wait_for_job(runner);
    if (job != NULL)
        give_turn_to_actor(runner, job);
    return true;
}

/* --- the thread of a runner ------------------------------------------------------------------- */

static void *run_runner_thread(void *runner_)
{
    domus_runner *runner = runner_;
    domus_system *system = runner->pool->system;

    domi_thread_manager = &runner->manager;
    domi_manager_become_owner(&runner->manager);
    (void)domi_memory_set_allocator(system->hooks.allocator);
    (void)domi_memory_set_meter(&system->pressure.meter);
    domi_samples_enable_thread(&runner->sampled, &runner->manager);
    domi_crash_prepare_thread(NULL);
    update_time_of_runner(runner);
    domi_span_begin_life_of_runner(runner);
    while (domi_runner_take_step(runner, true))
        ;
    domi_span_end_life_of_runner(runner);
    domi_samples_disable_thread(&runner->sampled);
    domi_pool_push_chains_to_owners(&runner->manager);
    (void)domi_memory_set_meter(NULL);
    domi_crash_unprepare_thread();
    pthread_mutex_lock(&system->mutex);
    system->runners_left++;
    runner->left = true;
    pthread_cond_broadcast(&system->changed);
    pthread_mutex_unlock(&system->mutex);
    return NULL;
}

/* Returns the CPUs on which a runner may run: those without a thread of the loop, if there is such
 * a CPU for each runner of the pool, so that handlers that compute do not slow the loop; otherwise
 * all CPUs. */
static cpu_set_t choose_cpus_of_runner(const domus_runner *runner)
{
    const domus_system *system = runner->pool->system;
    cpu_set_t free_cpus = system->all_cpus;

    for (uint32_t i = 0; i < system->count; i++) {
        int cpu = system->threads[i].cpu;
        if (cpu >= 0 && cpu < CPU_SETSIZE)
            CPU_CLR((size_t)cpu, &free_cpus);
    }
    return (uint32_t)CPU_COUNT(&free_cpus) >= runner->pool->usual ? free_cpus : system->all_cpus;
}

int domi_runner_start_thread(domus_runner *runner)
{
    domus_system *system = runner->pool->system;
    const cpu_set_t cpus = choose_cpus_of_runner(runner);
    char name[16];

    snprintf(name, sizeof name, "domus-r%u.%u", runner->pool->number % 100, runner->number % 1000);
    int result =
        domi_unpinned_start_thread(&runner->pthread, run_runner_thread, runner, name, &cpus);
    if (result != 0)
        return result;
    runner->begun = true;
    system->runners_begun++;
    return 0;
}
