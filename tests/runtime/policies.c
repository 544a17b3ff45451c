/* The pool by hand, its runners and its jobs, with which policies are tested
 * (tests/runtime/policies.h). */
#include "tests/runtime/policies.h"

#include "base/spinlock.h"

#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ALIGNMENT 128

/* The link of a job that is in no queue: a policy that follows this link crashes. */
#define NO_LINK ((domus_job *)(uintptr_t)16)

static void *new_zeroed_memory(size_t bytes)
{
    size_t rounded = (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    void *memory = aligned_alloc(ALIGNMENT, rounded);
    ck_assert_ptr_nonnull(memory);
    memset(memory, 0, rounded);
    return memory;
}

void domt_stand_make_pool(domt_stand *stand, const domus_policy *policy, uint32_t runners,
                          uint32_t jobs, uint32_t groups)
{
    memset(stand, 0, sizeof *stand);
    domus_pool *pool = stand->pool = new_zeroed_memory(sizeof *pool);
    static const domus_pool_config settings = {.name = "test"};

    pool->settings = &settings;
    pool->policy = policy;
    pool->count = pool->usual = runners;
    pool->data = new_zeroed_memory(policy->pool_size);
    pool->runners = new_zeroed_memory(runners * sizeof(domus_runner *));
    for (uint32_t i = 0; i < runners; i++) {
        domus_runner *runner = pool->runners[i] = new_zeroed_memory(sizeof *runner);
        runner->pool = pool;
        runner->number = i;
        runner->data = new_zeroed_memory(policy->runner_size);
        domi_random_init(&runner->random, i + 1);
    }
    stand->jobs = new_zeroed_memory(jobs * sizeof(domt_job));
    stand->jobs_count = jobs;
    for (uint32_t i = 0; i < jobs; i++) {
        stand->jobs[i].number = i;
        stand->jobs[i].group = i % groups;
    }
    if (policy->init != NULL)
        ck_assert_int_eq(policy->init(pool), 0);
}

void domt_stand_free_pool(domt_stand *stand)
{
    domus_pool *pool = stand->pool;

    if (pool->policy->fini != NULL)
        pool->policy->fini(pool);
    for (uint32_t i = 0; i < pool->count; i++) {
        free(pool->runners[i]->data);
        free(pool->runners[i]);
    }
    free(pool->runners);
    free(pool->data);
    free(pool);
    free(stand->jobs);
}

typedef struct started {
    domt_stand *stand;
    domus_runner *runner;
} started;

/* Return a random time that a runner waits for a job: one wait of four has a time limit, so that
 * its end meets signals that come just then. */
static uint64_t random_wait_ns(domus_runner *runner)
{
    if (domus_runner_chance(runner, 4) != 0)
        return UINT64_MAX;
    return 1000 * domus_runner_chance(runner, 100);
}

static void *run_runner_of_stand(void *started_)
{
    domt_stand *stand = ((started *)started_)->stand;
    domus_runner *runner = ((started *)started_)->runner;

    free(started_);
    for (;;) {
        uint64_t wait_ns = random_wait_ns(runner);
        domt_job *job = domt_job_take(stand, runner, wait_ns);
        if (job != NULL) {
            stand->turn(stand, runner, job);
            continue;
        }
        if (!domus_runner_is_called(runner)) {
            stand->bare += wait_ns == UINT64_MAX;
            continue;
        }
        atomic_store(&runner->called, false);
        stand->returns[runner->number]++;
        if (stand->stops)
            return NULL;
    }
}

void domt_stand_start_runners(domt_stand *stand)
{
    for (uint32_t i = 0; i < stand->pool->count; i++) {
        started *begin = malloc(sizeof *begin);
        ck_assert_ptr_nonnull(begin);
        *begin = (started){stand, stand->pool->runners[i]};
        ck_assert_int_eq(pthread_create(&stand->threads[i], NULL, run_runner_of_stand, begin), 0);
    }
}

void domt_stand_stop_runners(domt_stand *stand)
{
    stand->stops = true;
    domi_pool_call_all_runners(stand->pool);
    for (uint32_t i = 0; i < stand->pool->count; i++)
        ck_assert_int_eq(pthread_join(stand->threads[i], NULL), 0);
}

domus_runner *domt_stand_runner(const domt_stand *stand, uint32_t number)
{
    return stand->pool->runners[number];
}

uint64_t domt_stand_count_of_event(const domt_stand *stand, uint32_t runner,
                                   domus_runner_event what)
{
    return domi_counter_read(&stand->pool->runners[runner]->counters.events[what]);
}

bool domt_job_claim(domt_job *job)
{
    uint32_t idle = DOMT_JOB_IDLE;
    /* acquire: pairs with domt_job_end_turn(), so the caller sees all that the job's last turn has
     * done on another thread. */
    return atomic_compare_exchange_strong_explicit(&job->state, &idle, DOMT_JOB_QUEUED,
                                                   memory_order_acquire, memory_order_relaxed);
}

static void prepare_and_count_put_job(domt_stand *stand, domt_job *job)
{
    domus_job_link(&job->house, NO_LINK);
    atomic_fetch_add_explicit(&stand->puts, 1, memory_order_relaxed);
}

void domt_job_put_central(domt_stand *stand, domt_job *job)
{
    prepare_and_count_put_job(stand, job);
    stand->pool->policy->central_enqueue(stand->pool, &job->house);
}

void domt_job_put_internal(domt_stand *stand, domus_runner *runner, domt_job *job)
{
    prepare_and_count_put_job(stand, job);
    stand->pool->policy->internal_enqueue(runner, &job->house);
}

void domt_job_put_resumed(domt_stand *stand, domus_runner *runner, domt_job *job)
{
    prepare_and_count_put_job(stand, job);
    atomic_store_explicit(&job->state, DOMT_JOB_QUEUED, memory_order_relaxed);
    stand->pool->policy->resume_later(runner, &job->house);
}

domt_job *domt_job_take(domt_stand *stand, domus_runner *runner, uint64_t wait_ns)
{
    domt_job *job = (domt_job *)(void *)stand->pool->policy->dequeue(runner, wait_ns);

    if (job == NULL)
        return NULL;
    domus_job_link(&job->house, NO_LINK);
    atomic_fetch_add_explicit(&stand->taken, 1, memory_order_relaxed);
    /* Relaxed: only the policy itself must order the take of a job behind its put. */
    if (atomic_exchange_explicit(&job->state, DOMT_JOB_RUN, memory_order_relaxed) !=
        DOMT_JOB_QUEUED)
        atomic_fetch_add_explicit(&stand->doubled, 1, memory_order_relaxed);
    job->turns++;
    return job;
}

void domt_job_end_turn(domt_job *job)
{
    atomic_store_explicit(&job->state, DOMT_JOB_IDLE, memory_order_release);
}

double domt_policies_now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void domt_policies_wait_a_little(uint32_t tries)
{
    if (tries < 300)
        domi_pause();
    else if (tries < 320)
        sched_yield();
    else
        usleep(50);
}

void domt_policies_spin(uint32_t pauses)
{
    for (uint32_t i = 0; i < pauses; i++)
        domi_pause();
}
