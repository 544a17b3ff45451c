/* A runner gives turns to the actors of its pool, until the system stops.
 *
 * Between two turns it looks, at most so often, at what does not come by a queue: the clock, timers
 * that are due, memory, and the stop. */
#include "runtime/pools/runner.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/dispatch/manage.h"
#include "house/dispatch/pooled_turn.h"
#include "house/family/slots.h"
#include "house/message/pool.h"
#include "house/message/stop.h"
#include "house/message/trim.h"
#include "runtime/os/unpinned.h"
#include "runtime/outside/blocking.h"
#include "runtime/outside/detached.h"
#include "runtime/outside/visit.h"
#include "runtime/system/log.h"
#include "runtime/system/pressure.h"

#include <domus/blocking.h>
#include <stdio.h>

#define TURNS_TO_LOOK 16u /* turns between two looks; a turn is at most `throughput` messages */

const domi_runtime_hooks domi_hooks_of_runners = {
    .log = domi_log_happening,
    .warn = domi_log_mistake,
    .say = domi_log_text,
    .spawn_detached = domi_detached_spawn,
    .withdraw = domi_blocking_withdraw,
    .block = domus_blocking,
    .read_memory = domi_pressure_read,
};

/* --- looks ------------------------------------------------------------------------------------ */

static void stop_house(void *house_, void *manager)
{
    domi_house *house = house_;
    /* acquire: pairs with the store that publishes a new actor, so its parent is seen. */
    uint64_t life = atomic_load_explicit(&house->life, memory_order_acquire);

    if ((life & DOMI_LIFE_CLOSED) == 0 && domi_house_parent(house) == NULL)
        (void)domi_house_stop(manager, (domus_address){house, DOMI_LIFE_LEASE(life)});
}

/* Follow the stop of the system. Returns true if the runner has to end. */
static bool follow_stop(domus_runner *runner)
{
    domus_pool *pool = runner->pool;
    /* acquire: pairs with the store in domi_system_set_stop_step(). */
    uint32_t wanted = atomic_load_explicit(&pool->system->stop_step, memory_order_acquire);
    uint32_t begun = atomic_load_explicit(&runner->stop_step, memory_order_relaxed);

    if (wanted == begun)
        return wanted == DOMI_STOP_END;
    if (wanted >= DOMI_STOP_CLOSE)
        runner->manager.ending.closing = true;
    /* One of them is enough. */
    if (wanted == DOMI_STOP_ACTORS &&
        atomic_exchange_explicit(&pool->walked, 1, memory_order_relaxed) == 0)
        domi_slots_walk_shared(&pool->home, stop_house, &runner->manager);
    /* release: a thread that reads this also sees what this runner began to do. */
    atomic_store_explicit(&runner->stop_step, wanted, memory_order_release);
    return wanted == DOMI_STOP_END;
}

static void look_at_clock(domus_runner *runner)
{
    runner->manager.now_ns = domi_clock_now(&runner->pool->system->clock);
}

static void look(domus_runner *runner)
{
    domi_manager *manager = &runner->manager;

    runner->turns_to_look = TURNS_TO_LOOK;
    look_at_clock(runner);
    domi_manager_look_at_pressure(manager);
    while (domi_pooled_due_ns(&runner->pool->pooled) <= manager->now_ns) {
        if (domi_pooled_fire(manager) == 0)
            break;
    }
    if (manager->pool.chained >= DOMI_CHAINED_MAX)
        domi_pool_flush_returns(manager);
}

/* --- a step ----------------------------------------------------------------------------------- */

static void give_turn(domus_runner *runner, domus_job *job)
{
    const domus_policy *policy = runner->pool->policy;

    if (policy->before_run != NULL)
        policy->before_run(runner, job);
    domi_pooled_left left = domi_pooled_run(&runner->manager, job);
    domi_counter_add(&runner->counters.turns, 1);
    if (policy->after_run != NULL)
        policy->after_run(runner, job);
    if (left == DOMI_POOLED_MORE)
        policy->resume_later(runner, job);
    else if (left == DOMI_POOLED_ENDED && policy->after_completion != NULL)
        policy->after_completion(runner, job);
}

/* The queues are empty: see that nothing of this runner waits for it while it sleeps, and take a
 * job that comes in time. */
static domus_job *wait_for_job(domus_runner *runner, uint64_t wait_ns)
{
    domus_pool *pool = runner->pool;
    domi_manager *manager = &runner->manager;

    domi_pool_flush_returns(manager);
    look(runner);
    uint64_t due_ns = domi_pooled_rest(&pool->pooled);
    if (due_ns <= manager->now_ns)
        return NULL;
    if (due_ns - manager->now_ns < wait_ns)
        wait_ns = due_ns - manager->now_ns;
    domus_job *job = pool->policy->dequeue(runner, wait_ns);
    look_at_clock(runner);
    runner->turns_to_look = TURNS_TO_LOOK;
    return job;
}

bool domi_runner_step(domus_runner *runner, uint64_t wait_ns)
{
    /* seq_cst: who calls writes what is to be seen before this. */
    if (atomic_load_explicit(&runner->called, memory_order_relaxed))
        (void)atomic_exchange_explicit(&runner->called, false, memory_order_seq_cst);
    if (follow_stop(runner))
        return false;
    if (runner->turns_to_look-- == 0)
        look(runner);
    domus_job *job = runner->pool->policy->dequeue(runner, 0);
    if (job == NULL && wait_ns != 0)
        job = wait_for_job(runner, wait_ns);
    if (job != NULL)
        give_turn(runner, job);
    return true;
}

/* --- its thread ------------------------------------------------------------------------------- */

static void *run(void *runner_)
{
    domus_runner *runner = runner_;
    domus_system *system = runner->pool->system;

    domi_thread_manager = &runner->manager;
    domi_manager_own(&runner->manager);
    (void)domi_memory_set_allocator(system->hooks.allocator);
    (void)domi_memory_set_meter(&system->pressure.meter);
    look_at_clock(runner);
    while (domi_runner_step(runner, DOMI_PARK_CAP_NS))
        ;
    (void)domi_memory_set_meter(NULL);
    pthread_mutex_lock(&system->mutex);
    system->runners_left++;
    pthread_cond_broadcast(&system->changed);
    pthread_mutex_unlock(&system->mutex);
    return NULL;
}

int domi_runner_start(domus_runner *runner)
{
    domus_system *system = runner->pool->system;
    char name[16];

    snprintf(name, sizeof name, "domus-r%u.%u", runner->pool->number % 100, runner->number % 1000);
    int result = domi_unpinned_start(&runner->pthread, run, runner, name, &system->all_cpus);
    if (result != 0)
        return result;
    runner->begun = true;
    system->runners_begun++;
    return 0;
}
