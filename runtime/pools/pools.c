/* This file makes and ends the pools of a system, and finds them by their names.
 *
 * A pool has the manager that is the home of its actors, and one for each runner, behind all other
 * managers of the system. While runners run, no thread owns the home: its slots have a lock of
 * their own, its wheels are under the lock of the pool, and its other fields are not used. */
#include "runtime/pools/pools.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/conversation/stack.h"
#include "house/dispatch/dispatch.h"
#include "house/dispatch/incoming.h"
#include "house/dispatch/manage.h"
#include "house/dispatch/pooled_turn.h"
#include "house/family/slots.h"
#include "runtime/outside/detached.h"
#include "runtime/pools/policies.h"
#include "runtime/pools/runners.h"
#include "runtime/system/logs.h"
#include "runtime/system/losses.h"
#include "runtime/system/manager_options.h"
#include "runtime/system/pressure.h"

#include <domus/pools.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define THROUGHPUT_DEFAULT 64u

static uint32_t get_configured_number_of_runners(const domus_system *system,
                                                 const domus_pool_config *config)
{
    uint32_t threads = system->count < 64 ? system->count : 64;

    return config->runners != 0 ? config->runners : threads;
}

uint32_t domi_pools_count_managers(const domus_system *system)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < system->config.pool_count; i++)
        sum += 1 + get_configured_number_of_runners(system, &system->config.pools[i]) +
               system->config.pools[i].spares;
    return sum;
}

/* --- the hooks of a home ---------------------------------------------------------------------- */

static domus_pool *get_pool_of_pooled(domi_pooled *pooled)
{
    return (domus_pool *)(void *)pooled; /* `pooled` is the first field of domus_pool */
}

static domus_runner *get_runner_of_manager(domi_manager *manager)
{
    return (domus_runner *)(void *)manager; /* `manager` is the first field of domus_runner */
}

static void schedule_house_for_turn(domi_pooled *pooled, domi_manager *runner, domi_house *house)
{
    domus_pool *pool = get_pool_of_pooled(pooled);

    if (runner != NULL) {
        domi_counter_add(&get_runner_of_manager(runner)->counters.puts, 1);
        pool->policy->internal_enqueue(get_runner_of_manager(runner), house);
    } else {
        /* an atomic addition, because several foreign threads may count at once */
        atomic_fetch_add_explicit(&pool->puts, 1, memory_order_relaxed);
        pool->policy->central_enqueue(pool, house);
    }
}

static void call_all_runners_of_pool(domi_pooled *pooled)
{
    domi_pool_call_all_runners(get_pool_of_pooled(pooled));
}

/* Schedule the houses of a pool's home for which messages have arrived. It is called as the wake
 * hook of the home: the park word of a home always says that the home sleeps, so each thread that
 * has put a message calls this, and the queues of the policy then wake a runner. */
static void schedule_houses_with_arrivals(domi_manager *home)
{
    /* seq_cst: the park word is SLEEPING again before the arrivals are looked at, so that a put
     * that this look misses finds it SLEEPING, and calls the wake hook. */
    atomic_store_explicit(&home->park, DOMI_PARK_SLEEPING, memory_order_seq_cst);
    domi_pooled_schedule_arrivals(home->pooled);
}

static const domi_runtime_hooks hooks_of_homes = {
    .wake = schedule_houses_with_arrivals,
    .log = domi_log_what_happened_to_actor,
    .warn = domi_log_mistake_of_user,
    .say = domi_log_text_for_manager,
    .spawn_detached = domi_detached_spawn_actor,
    .read_memory = domi_pressure_read_levels,
};

/* --- making ----------------------------------------------------------------------------------- */

/* Make memory for the data that a policy has for a pool or a runner; `size` may be 0. Returns false
 * if there is no memory. */
static bool make_data_of_policy(size_t size, void **ret_data)
{
    *ret_data = size != 0 ? domi_memory_map_pages(size) : NULL;
    return size == 0 || *ret_data != NULL;
}

static void free_data_of_policy(void *data, size_t size)
{
    if (data != NULL)
        domi_memory_unmap_pages(data, size);
}

static void free_runner_of_pool(domus_pool *pool, domus_runner *runner)
{
    if (runner == NULL)
        return;
    domi_manager_become_owner(&runner->manager);
    domi_manager_fini(&runner->manager);
    free_data_of_policy(runner->data, pool->policy->runner_size);
    domi_memory_unmap_pages(runner, sizeof *runner);
}

static int make_runner_of_pool(domus_pool *pool, uint32_t number, uint32_t throughput,
                               uint32_t index)
{
    domus_system *system = pool->system;
    domus_runner *runner = domi_memory_map_pages(sizeof *runner);
    domi_manager_options options =
        domi_system_make_manager_options(system, index, domi_clock_now(&system->clock));

    if (runner == NULL)
        return -ENOMEM;
    options.hooks = &domi_hooks_of_runners;
    if (!make_data_of_policy(pool->policy->runner_size, &runner->data) ||
        domi_manager_init(&runner->manager, &options) != 0) {
        free_data_of_policy(runner->data, pool->policy->runner_size);
        domi_memory_unmap_pages(runner, sizeof *runner);
        return -ENOMEM;
    }
    domi_manager_set_messages_per_run(&runner->manager, throughput);
    runner->manager.pooled = &pool->pooled;
    runner->manager.mail.links.gathering = true;
    runner->pool = pool;
    runner->number = number;
    /* a number that no look finds, so the monitor's first look sees a life-beat */
    runner->pulse.beat = UINT64_MAX;
    domi_random_init(&runner->random, ((uint64_t)pool->number << 32) + number + 1);
    pool->runners[number] = runner;
    system->managers[index] = &runner->manager;
    return 0;
}

static void free_pool_and_runners(domus_pool *pool, bool has_begun)
{
    if (has_begun && pool->policy->fini != NULL)
        pool->policy->fini(pool);
    for (uint32_t i = 0; i < pool->count; i++)
        free_runner_of_pool(pool, pool->runners[i]);
    domi_manager_become_owner(&pool->home);
    domi_manager_fini(&pool->home);
    free_data_of_policy(pool->data, pool->policy->pool_size);
    domi_memory_free(pool->runners);
    domi_memory_unmap_pages(pool, sizeof *pool);
}

/* Make a pool, but not its runners. Returns NULL if there is no memory. */
static domus_pool *make_pool_without_runners(domus_system *system, uint32_t number,
                                             const domus_pool_config *config, uint32_t index)
{
    domi_manager_options options =
        domi_system_make_manager_options(system, index, domi_clock_now(&system->clock));
    domus_pool *pool = domi_memory_map_pages(sizeof *pool);

    if (pool == NULL)
        return NULL;
    pool->system = system;
    pool->settings = config;
    pool->policy = domi_policy_find_for_pool(config);
    pool->hooked = config->hooks != NULL || pool->policy->before_run != NULL ||
                   pool->policy->after_run != NULL || pool->policy->after_completion != NULL;
    pool->number = number;
    pool->usual = get_configured_number_of_runners(system, config);
    pool->count = pool->usual + config->spares;
    pool->pooled.home = &pool->home;
    pool->pooled.number = number;
    pool->pooled.name = config->name;
    domi_spinlock_init(&pool->pooled.members_lock);
    pool->pooled.schedule = schedule_house_for_turn;
    pool->pooled.call = call_all_runners_of_pool;
    domi_spinlock_init(&pool->pooled.lock);
    pool->runners = domi_memory_new(pool->count * sizeof(domus_runner *));
    options.hooks = &hooks_of_homes;
    if (pool->runners == NULL || !make_data_of_policy(pool->policy->pool_size, &pool->data) ||
        domi_manager_init(&pool->home, &options) != 0) {
        free_data_of_policy(pool->data, pool->policy->pool_size);
        domi_memory_free(pool->runners);
        domi_memory_unmap_pages(pool, sizeof *pool);
        return NULL;
    }
    pool->home.pooled = &pool->pooled;
    atomic_store_explicit(&pool->home.park, DOMI_PARK_SLEEPING, memory_order_relaxed);
    system->managers[index] = &pool->home;
    return pool;
}

static int make_pool_with_runners(domus_system *system, uint32_t number, uint32_t *index)
{
    const domus_pool_config *config = &system->config.pools[number];
    uint32_t throughput = config->throughput != 0 ? config->throughput : THROUGHPUT_DEFAULT;
    domus_pool *pool = make_pool_without_runners(system, number, config, (*index)++);
    int result = 0;

    if (pool == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < pool->count && result == 0; i++)
        result = make_runner_of_pool(pool, i, throughput, (*index)++);
    if (result == 0 && pool->policy->init != NULL) {
        result = pool->policy->init(pool);
        if (result != 0)
            snprintf(system->error, sizeof system->error, "pool %.63s: policy %.63s: %s",
                     config->name, pool->policy->name, strerror(-result));
    }
    if (result != 0) {
        free_pool_and_runners(pool, false);
        return result;
    }
    system->pools[system->pool_count++] = pool;
    return 0;
}

int domi_pools_init(domus_system *system)
{
    uint32_t index = system->count + 1 + system->config.detached.threads_max;
    uint32_t count = (uint32_t)system->config.pool_count;
    int result = 0;

    if (count == 0)
        return 0;
    system->pools = domi_memory_new(count * sizeof(domus_pool *));
    if (system->pools == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < count && result == 0; i++)
        result = make_pool_with_runners(system, i, &index);
    if (result != 0)
        domi_pools_fini(system);
    else
        system->monitor.pools = &domi_spares_watch;
    return result;
}

int domi_pools_start_runner_threads(domus_system *system)
{
    int result = 0;

    pthread_mutex_lock(&system->mutex);
    for (uint32_t i = 0; i < system->pool_count; i++) {
        domus_pool *pool = system->pools[i];
        for (uint32_t j = 0; j < pool->usual && result == 0; j++)
            result = domi_runner_start_thread(pool->runners[j]);
    }
    pthread_mutex_unlock(&system->mutex);
    if (result != 0)
        snprintf(system->error, sizeof system->error, "a runner's thread cannot be made: %s",
                 strerror(-result));
    return result;
}

/* --- the stop --------------------------------------------------------------------------------- */

void domi_pools_call_all_runners(domus_system *system)
{
    for (uint32_t i = 0; i < system->pool_count; i++)
        domi_pool_call_all_runners(system->pools[i]);
}

bool domi_pools_have_runners_begun_stop_step(const domus_system *system, domi_stop_step step)
{
    for (uint32_t i = 0; i < system->pool_count; i++) {
        const domus_pool *pool = system->pools[i];
        for (uint32_t j = 0; j < pool->count; j++) {
            /* acquire: pairs with the store in follow_orders_of_system(), so what the runner did
             * when it began the step is seen. */
            if (pool->runners[j]->begun && !pool->runners[j]->left &&
                atomic_load_explicit(&pool->runners[j]->orders, memory_order_acquire) <
                    domi_orders_of_stop(step))
                return false;
        }
    }
    return true;
}

/* Returns how many actors live in a pool. An actor may begin on one runner and end on another, so
 * only the sum over all runners is right. */
static uint64_t count_houses_of_pool(const domus_pool *pool)
{
    uint64_t sum = domi_counter_read(&pool->home.births.houses);

    for (uint32_t i = 0; i < pool->count; i++)
        sum += domi_counter_read(&pool->runners[i]->manager.births.houses);
    return sum;
}

uint64_t domi_pools_count_houses(const domus_system *system)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < system->pool_count; i++)
        sum += count_houses_of_pool(system->pools[i]);
    return sum;
}

bool domi_pools_have_ended(const domus_system *system)
{
    return system->runners_left == system->runners_begun;
}

void domi_pools_record_stuck_handlers(domus_system *system)
{
    for (uint32_t i = 0; i < system->pool_count; i++) {
        for (uint32_t j = 0; j < system->pools[i]->count; j++)
            domi_system_record_running_actor(system, &system->pools[i]->runners[j]->manager);
    }
}

static void sort_and_clear_inbox_of_pooled_house(void *house_, void *home)
{
    domi_house *house = house_;

    domi_mailbox_sort_inbox_of_pooled(home, house);
    atomic_store_explicit(&house->inbox, 0, memory_order_relaxed);
}

/* End the actors that are left in a pool whose runners have ended, by the home's manager. */
static void end_actors_left_in_pool(domus_pool *pool)
{
    domi_manager *home = &pool->home;
    domi_manager *outer = domi_thread_manager;

    for (uint32_t i = 0; i < pool->count; i++) {
        domi_manager *runner = &pool->runners[i]->manager;
        domi_manager_become_owner(runner);
        domi_counter_add(&home->births.houses, domi_counter_read(&runner->births.houses));
        domi_counter_add(&runner->births.houses, -domi_counter_read(&runner->births.houses));
    }
    domi_manager_become_owner(home);
    domi_system_record_left_actors(pool->system, home);
    domi_thread_manager = home;
    home->ending.has_stopped = true;
    /* sorts the messages that were put late, and that no runner has taken */
    domi_slots_visit_all(home, sort_and_clear_inbox_of_pooled_house, home);
    domi_manager_end_actors(home);
    /* sorts the messages that the on_stop of an actor has sent meanwhile */
    domi_slots_visit_all(home, sort_and_clear_inbox_of_pooled_house, home);
    domi_thread_manager = outer;
}

void domi_pools_join_and_end_actors(domus_system *system)
{
    for (uint32_t i = 0; i < system->pool_count; i++) {
        domus_pool *pool = system->pools[i];
        for (uint32_t j = 0; j < pool->count; j++) {
            if (pool->runners[j]->begun && !pool->runners[j]->joined)
                pthread_join(pool->runners[j]->pthread, NULL);
            pool->runners[j]->joined = true;
        }
        end_actors_left_in_pool(pool);
    }
}

void domi_pools_end_abandoned_actors(domus_system *system)
{
    for (uint32_t i = 0; i < system->pool_count; i++) {
        domi_manager *home = &system->pools[i]->home;
        domi_manager_become_owner(home);
        home->ending.work_over = true;
        domi_manager_end_actors(home);
    }
}

void domi_pools_fini(domus_system *system)
{
    for (uint32_t i = 0; i < system->pool_count; i++)
        free_pool_and_runners(system->pools[i], true);
    domi_memory_free(system->pools);
    system->pools = NULL;
    system->pool_count = 0;
    system->monitor.pools = NULL;
}

/* --- names ------------------------------------------------------------------------------------ */

static const domus_pool *find_pool_by_name(const domus_system *system, const char *name)
{
    for (uint32_t i = 0; i < system->pool_count; i++) {
        if (strcmp(system->config.pools[i].name, name) == 0)
            return system->pools[i];
    }
    return NULL;
}

const domus_pool *domus_pool_find(domus_stack *stack, const char *name)
{
    return find_pool_by_name(stack->manager->system, name);
}

const domus_pool *domus_outside_pool_find(domus_system *system, const char *name)
{
    return find_pool_by_name(system, name);
}
