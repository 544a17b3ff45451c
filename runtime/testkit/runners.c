/* This file simulates the runners of pools in a test kit; parts.h says how. */
#include "runtime/testkit/parts.h"

#include "base/memory.h"
#include "house/dispatch/manage.h"
#include "house/dispatch/pooled_turn.h"
#include "house/message/pool.h"
#include "runtime/pools/runners.h"

#include <errno.h>

int domi_kit_runners_begin(domus_testkit *kit, uint64_t seed)
{
    domus_system *system = kit->system;
    uint32_t count = 0;

    for (uint32_t i = 0; i < system->pool_count; i++)
        count += system->pools[i]->usual;
    if (count == 0)
        return 0;
    kit->runners = domi_memory_new(count * sizeof kit->runners[0]);
    if (kit->runners == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < system->pool_count; i++) {
        domus_pool *pool = system->pools[i];
        for (uint32_t j = 0; j < pool->usual; j++) {
            domus_runner *runner = pool->runners[j];
            domi_random_init(&runner->random, seed ^ ((uint64_t)i << 40) ^ ((uint64_t)j + 1) << 20);
            /* a simulated runner counts as joined, because it has no thread */
            runner->begun = runner->joined = true;
            system->runners_begun++;
            domi_span_begin_life_of_runner(runner);
            kit->runners[kit->runner_count++].runner = runner;
        }
    }
    return 0;
}

static bool has_runner_new_orders(const domus_runner *runner)
{
    return atomic_load_explicit(&runner->pool->system->orders, memory_order_relaxed) !=
           atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&runner->orders,
                                memory_order_relaxed);
}

bool domi_kit_can_runner_take_step(const domus_testkit *kit, uint32_t index, uint64_t now_ns)
{
    const domi_kit_runner *one = &kit->runners[index];
    domus_pool *pool = one->runner->pool;

    return !one->left &&
           (has_runner_new_orders(one->runner) || domi_pool_count_queued_jobs(pool) != 0 ||
            domi_pooled_next_due_ns(&pool->pooled) <= now_ns);
}

void domi_kit_take_runner_step(domus_testkit *kit, uint32_t index)
{
    domi_kit_runner *one = &kit->runners[index];
    domi_manager *outer = domi_thread_manager;

    domi_thread_manager = &one->runner->manager;
    domi_manager_become_owner(domi_thread_manager);
    /* the count is set to 0, so that the runner looks at its timers in each step */
    one->runner->turns_to_look = 0;
    if (!domi_runner_take_step(one->runner, false)) {
        domi_pool_push_chains_to_owners(&one->runner->manager);
        domi_span_end_life_of_runner(one->runner);
        one->left = one->runner->left = true;
        kit->system->runners_left++;
    }
    domi_thread_manager = outer;
}

uint64_t domi_kit_time_of_next_pool_timer(const domus_testkit *kit)
{
    uint64_t due_ns = UINT64_MAX;

    for (uint32_t i = 0; i < kit->runner_count; i++) {
        uint64_t its_ns = domi_pooled_next_due_ns(&kit->runners[i].runner->pool->pooled);
        if (!kit->runners[i].left && its_ns < due_ns)
            due_ns = its_ns;
    }
    return due_ns;
}

bool domi_kit_runners_have_left(const domus_testkit *kit)
{
    for (uint32_t i = 0; i < kit->runner_count; i++) {
        if (!kit->runners[i].left)
            return false;
    }
    return true;
}
