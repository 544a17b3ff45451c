/* This file has the functions by which a policy asks its pool and its runners (domus/policy.h). */
#include "runtime/policies/pool.h"

#include <domus/pool_config.h>

const domus_pool_config *domus_pool_settings(const domus_pool *pool)
{
    return pool->settings;
}

void *domus_pool_data(domus_pool *pool)
{
    return pool->data;
}

void *domus_runner_data(domus_runner *runner)
{
    return runner->data;
}

uint32_t domus_pool_runners(const domus_pool *pool)
{
    return pool->count;
}

domus_runner *domus_pool_runner(domus_pool *pool, uint32_t number)
{
    return pool->runners[number];
}

domus_pool *domus_runner_pool(domus_runner *runner)
{
    return runner->pool;
}

uint32_t domus_runner_number(const domus_runner *runner)
{
    return runner->number;
}

bool domus_runner_is_called(const domus_runner *runner)
{
    /* seq_cst: a runner reads this after it has said that it waits, and a thread that calls the
     * runner looks for waiting runners after it has written this. So one of the two sees the
     * other. */
    return atomic_load_explicit((_Atomic bool *)(uintptr_t)&runner->called, memory_order_seq_cst);
}

uint32_t domus_runner_chance(domus_runner *runner, uint32_t below)
{
    return (uint32_t)domi_random_below(&runner->random, below);
}

/* The link of a job is not the house's field `next`: a slot whose actor has ended becomes a job
 * when late messages come, while `next` links it into a list of free slots. */
domus_job *domus_job_next(const domus_job *job)
{
    return atomic_load_explicit((_Atomic(domi_house *) *)(uintptr_t)&job->arrival_next,
                                memory_order_relaxed);
}

void domus_job_link(domus_job *job, domus_job *next)
{
    atomic_store_explicit(&job->arrival_next, next, memory_order_relaxed);
}

void domus_runner_count(domus_runner *runner, domus_runner_event what, uint32_t count)
{
    /* an atomic addition, because several thieves may count at the same runner at once */
    if (what == DOMUS_RUNNER_STOLEN)
        atomic_fetch_add_explicit(&runner->counters.events[what], count, memory_order_relaxed);
    else
        domi_counter_add(&runner->counters.events[what], count);
}

uint64_t domi_pool_count_queued_jobs(const domus_pool *pool)
{
    uint64_t takes = 0;
    uint64_t puts = 0;

    for (uint32_t i = 0; i < pool->count; i++)
        takes += domi_counter_read(&pool->runners[i]->counters.takes);
    for (uint32_t i = 0; i < pool->count; i++)
        puts += domi_counter_read(&pool->runners[i]->counters.puts);
    puts += domi_counter_read(&pool->puts);
    return puts > takes ? puts - takes : 0;
}

void domi_pool_call_all_runners(domus_pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++)
        atomic_store_explicit(&pool->runners[i]->called, true, memory_order_seq_cst);
    pool->policy->call(pool);
}
