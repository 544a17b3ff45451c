/* The policy `sharing`: one queue for all runners of a pool, with a mutex and a condition.
 *
 * It is the work sharing of the C++ Actor Framework (its manual, "Work Sharing"). Each job goes
 * behind all others, wherever it comes from, and the first one is taken next. Few runners can use
 * one mutex well, but none of them polls: a runner that finds no job sleeps on the condition until
 * a job comes.
 *
 * Invariants, under the mutex: a sleeping runner is counted in `sleeping`; a put signals if this
 * count is not 0. A runner looks at the queue and at domus_runner_is_called() after it has locked
 * the mutex and before it sleeps, and both a put and a call lock the mutex before they signal. So
 * neither can happen between the look and the sleep. */
#include "runtime/policies/condition.h"

#include <domus/policy.h>

typedef struct sharing {
    pthread_mutex_t mutex;
    /* condition on which runners sleep: signalled when a job comes, broadcast when runners are
     * called */
    pthread_cond_t filled;
    domus_job *first;  /* first job of the queue, which is taken next; NULL: the queue is empty */
    domus_job *last;   /* last job of the queue; undefined while the queue is empty */
    uint32_t sleeping; /* number of runners that sleep on the condition `filled` */
} sharing;

static int sharing_init_pool_data(domus_pool *pool)
{
    sharing *all = domus_pool_data(pool);
    int error = pthread_mutex_init(&all->mutex, NULL);

    if (error != 0)
        return -error;
    error = domi_condition_init(&all->filled);
    if (error != 0)
        pthread_mutex_destroy(&all->mutex);
    return error;
}

static void sharing_fini_pool_data(domus_pool *pool)
{
    sharing *all = domus_pool_data(pool);

    pthread_cond_destroy(&all->filled);
    pthread_mutex_destroy(&all->mutex);
}

static void append_job_to_queue(sharing *all, domus_job *job)
{
    domus_job_link(job, NULL);
    if (all->first == NULL)
        all->first = job;
    else
        domus_job_link(all->last, job);
    all->last = job;
}

static void sharing_enqueue_job(domus_pool *pool, domus_job *job)
{
    sharing *all = domus_pool_data(pool);

    pthread_mutex_lock(&all->mutex);
    append_job_to_queue(all, job);
    bool is_awaited = all->sleeping != 0;
    pthread_mutex_unlock(&all->mutex);
    /* Signalled after the mutex was unlocked, so that the runner that wakes can lock it at once. */
    if (is_awaited)
        pthread_cond_signal(&all->filled);
}

static void sharing_enqueue_job_of_runner(domus_runner *runner, domus_job *job)
{
    sharing_enqueue_job(domus_runner_pool(runner), job);
}

/* Let the runner sleep until there is a job, the runner is called, or its time is over. The caller
 * has locked the mutex. */
static void sleep_until_job_or_call(domus_runner *runner, sharing *all, uint64_t wait_ns)
{
    struct timespec end = domi_condition_time_at_end_of_wait(wait_ns);
    bool has_time = true;

    domus_runner_count(runner, DOMUS_RUNNER_PARKS, 1);
    all->sleeping++;
    while (has_time && all->first == NULL && !domus_runner_is_called(runner)) {
        if (wait_ns == UINT64_MAX)
            pthread_cond_wait(&all->filled, &all->mutex);
        else
            has_time = domi_condition_sleep_until(&all->filled, &all->mutex, &end);
    }
    all->sleeping--;
}

/* Take the first job of the queue, or return NULL if there is none or the runner is called. A
 * called runner may have got the signal of a job, and leaves that job in the queue; whoever called
 * it broadcasts, so another sleeper takes the job, or this runner does when it comes back. */
static domus_job *take_first_job_unless_called(domus_runner *runner, sharing *all)
{
    domus_job *job = all->first;

    if (job == NULL || domus_runner_is_called(runner))
        return NULL;
    all->first = domus_job_next(job);
    domus_job_link(job, NULL);
    domus_runner_count(runner, DOMUS_RUNNER_GLOBAL, 1);
    return job;
}

static domus_job *sharing_dequeue_job(domus_runner *runner, uint64_t wait_ns)
{
    sharing *all = domus_pool_data(domus_runner_pool(runner));

    pthread_mutex_lock(&all->mutex);
    if (wait_ns != 0 && all->first == NULL && !domus_runner_is_called(runner))
        sleep_until_job_or_call(runner, all, wait_ns);
    domus_job *job = take_first_job_unless_called(runner, all);
    pthread_mutex_unlock(&all->mutex);
    return job;
}

/* Nothing is to be done when a runner of this policy ends: it has no jobs of its own that it could
 * leave to others. */
static void sharing_leave_jobs_to_others(domus_runner *runner)
{
    (void)runner;
}

static void sharing_call_runners(domus_pool *pool)
{
    sharing *all = domus_pool_data(pool);

    /* A runner that does not see yet that it is called is asleep, or will still look under the
     * mutex before it sleeps, because it does not hold the mutex now. */
    pthread_mutex_lock(&all->mutex);
    pthread_cond_broadcast(&all->filled);
    pthread_mutex_unlock(&all->mutex);
}

const domus_policy domus_policy_sharing = {
    .name = "sharing",
    .pool_size = sizeof(sharing),
    .init = sharing_init_pool_data,
    .fini = sharing_fini_pool_data,
    .central_enqueue = sharing_enqueue_job,
    .internal_enqueue = sharing_enqueue_job_of_runner,
    .resume_later = sharing_enqueue_job_of_runner,
    .dequeue = sharing_dequeue_job,
    .call = sharing_call_runners,
    .leave = sharing_leave_jobs_to_others,
};
