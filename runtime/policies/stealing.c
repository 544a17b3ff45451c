/* The policy `stealing`, CAF's default: each runner has a queue with two ends, and a runner without
 * jobs steals from the others, ever more slowly.
 *
 * A job from an actor goes to the head of its runner's queue, where the runner takes its jobs, so
 * the newest one comes first. A job from another thread goes to the tail of one runner's queue
 * after another, and so does a job that has more to do. A thief takes one job from the tail, which
 * is the oldest, of one other runner by chance.
 *
 * A runner that finds nothing polls, in three intervals. In the first it does not sleep; in the
 * second it sleeps for some time between two attempts; in the third, in which it stays, for longer.
 * A job from another thread wakes the runner whose queue it goes to. Nobody wakes a runner for a
 * job that it would have to steal, so that one may wait for as long as the longest sleep.
 *
 * A runner whose own jobs never end would never steal, and those behind a handler that blocks would
 * wait for as long as it does. So each 61st dequeue tries to steal first (61 as in Go's scheduler:
 * a prime, so that it falls into step with no pattern of the jobs). CAF does not do this.
 *
 * Spares that have not begun take no jobs, so none is given to them: a runner gets jobs from other
 * threads once it has looked for some.
 *
 * Thread-safety: as domus/policy.h says of each function. */
#include "base/spinlock.h"
#include "house/message/parts.h"
#include "runtime/policies/condition.h"
#include "runtime/policies/double_ended.h"

#include <domus/policy.h>
#include <domus/pool_config.h>

struct interval {
    /* number of attempts to find a job in this interval of polling; 0: without end */
    uint32_t attempts;
    uint32_t steal_every; /* number of attempts of the interval, of which one tries to steal */
    /* nanoseconds that the runner sleeps between two attempts of the interval */
    uint64_t sleep_ns;
};

#define INTERVALS 3u

#define DEQUEUES_TO_STEAL 61u

typedef struct pool_data {
    /* intervals of polling: aggressive, moderate and relaxed; constant */
    struct interval intervals[INTERVALS];
    /* number of jobs so far that were given to one runner after the other in turn */
    alignas(DOMI_LINES) _Atomic uint32_t next;
} pool_data;

typedef struct runner_data {
    domi_double_ended queue;
    /* true: the runner has looked for jobs; the runner itself writes this */
    alignas(DOMI_LINES) _Atomic bool has_begun;
    /* true: the runner waits on `wake`, or is about to; the runner itself writes this */
    _Atomic bool sleeps;
    /* number of the runner's dequeues, modulo DEQUEUES_TO_STEAL; only the runner uses it */
    uint32_t dequeues;
    pthread_mutex_t mutex; /* mutex of the condition `wake`; guards nothing else */
    pthread_cond_t wake;
} runner_data;

/* Returns whether a runner has begun to look for jobs. Relaxed: a job that is given to a runner
 * which has just begun or ended does no harm. */
static bool has_runner_begun(domus_runner *runner)
{
    runner_data *own = domus_runner_data(runner);

    return atomic_load_explicit(&own->has_begun, memory_order_relaxed);
}

/* --- jobs ------------------------------------------------------------------------------------- */

/* Returns a random runner of the pool to steal from. Spares that have not begun are left out: they
 * have no jobs, except for a moment when they end. */
static domus_runner *choose_runner_to_steal_from(domus_runner *runner)
{
    domus_pool *pool = domus_runner_pool(runner);
    uint32_t runners = domus_pool_runners(pool);
    uint32_t number = domus_runner_chance(runner, runners);

    for (uint32_t i = 0; i < runners; i++) {
        domus_runner *victim = domus_pool_runner(pool, (number + i) % runners);
        const runner_data *others = domus_runner_data(victim);
        if (victim != runner &&
            (domi_double_ended_has_jobs(&others->queue) || has_runner_begun(victim)))
            return victim;
    }
    return NULL;
}

/* Try to steal the oldest job of one other runner, which is chosen by chance. Returns NULL if that
 * has none. */
static domus_job *try_to_steal_oldest_job(domus_runner *runner)
{
    domus_runner *victim = choose_runner_to_steal_from(runner);

    if (victim == NULL)
        return NULL;
    runner_data *others = domus_runner_data(victim);
    domus_job *job = domi_double_ended_take_last_job(&others->queue);
    if (job != NULL) {
        domus_runner_count(runner, DOMUS_RUNNER_STEALS, 1);
        domus_runner_count(victim, DOMUS_RUNNER_STOLEN, 1);
    }
    return job;
}

static domus_job *find_own_job_or_steal(domus_runner *runner, bool steals)
{
    runner_data *own = domus_runner_data(runner);
    domus_job *job = domi_double_ended_take_first_job(&own->queue);

    return job == NULL && steals ? try_to_steal_oldest_job(runner) : job;
}

/* --- sleep ------------------------------------------------------------------------------------ */

/* Let the runner sleep for `sleep_ns`, but at most until `end`, and only until a job comes or the
 * runner is called. Returns false if the time `end` has come. */
static bool sleep_until_job(domus_runner *runner, uint64_t sleep_ns, struct timespec end)
{
    runner_data *own = domus_runner_data(runner);
    struct timespec until = domi_condition_time_at_end_of_wait(sleep_ns);
    bool is_last = domi_condition_is_time_before(end, until);

    if (is_last)
        until = end;
    pthread_mutex_lock(&own->mutex);
    /* seq_cst, as the loads that follow: a thread that puts a job or calls the runner writes that
     * first, and then reads `sleeps`. */
    atomic_store_explicit(&own->sleeps, true, memory_order_seq_cst);
    if (!domus_runner_is_called(runner) && !domi_double_ended_has_jobs(&own->queue)) {
        domus_runner_count(runner, DOMUS_RUNNER_PARKS, 1);
        /* This wait may end too soon, which does no harm, because the runner then looks for a job
         * again. */
        (void)pthread_cond_timedwait(&own->wake, &own->mutex, &until);
    }
    atomic_store_explicit(&own->sleeps, false, memory_order_relaxed);
    pthread_mutex_unlock(&own->mutex);
    return !is_last;
}

/* Wake a runner if it sleeps. Before, the caller has written the reason (a job, a call) by
 * seq_cst. */
static void wake_runner_if_asleep(domus_runner *runner)
{
    runner_data *own = domus_runner_data(runner);

    if (!atomic_load_explicit(&own->sleeps, memory_order_seq_cst))
        return;
    /* The runner holds the mutex from its write of `sleeps` until it sleeps. So when this thread
     * has locked the mutex, the runner is asleep, or awake again. */
    pthread_mutex_lock(&own->mutex);
    pthread_cond_signal(&own->wake);
    pthread_mutex_unlock(&own->mutex);
}

/* Poll for a job in one interval of polling. Returns true if polling is over: `ret_job` is the job
 * that was found, or NULL because the runner is called or the time `end` has come. */
static bool poll_for_job_in_interval(const struct interval *interval, domus_runner *runner,
                                     struct timespec end, domus_job **ret_job)
{
    for (uint32_t i = 0; interval->attempts == 0 || i < interval->attempts; i++) {
        *ret_job = find_own_job_or_steal(runner, i % interval->steal_every == 0);
        if (*ret_job != NULL || domus_runner_is_called(runner))
            return true;
        if (interval->sleep_ns == 0)
            domi_pause();
        else if (!sleep_until_job(runner, interval->sleep_ns, end))
            return true;
    }
    return false;
}

/* --- the policy ------------------------------------------------------------------------------- */

static void set_intervals_of_polling(pool_data *data, const domus_pool_config *config)
{
    data->intervals[0] = (struct interval){
        .attempts =
            config->stealing.aggressive_attempts != 0 ? config->stealing.aggressive_attempts : 100,
        .steal_every = config->stealing.aggressive_steal_every != 0
                           ? config->stealing.aggressive_steal_every
                           : 10,
    };
    data->intervals[1] = (struct interval){
        .attempts =
            config->stealing.moderate_attempts != 0 ? config->stealing.moderate_attempts : 500,
        .steal_every =
            config->stealing.moderate_steal_every != 0 ? config->stealing.moderate_steal_every : 5,
        .sleep_ns = config->stealing.moderate_sleep_ns != 0 ? config->stealing.moderate_sleep_ns
                                                            : 50 * 1000,
    };
    data->intervals[2] = (struct interval){
        .steal_every =
            config->stealing.relaxed_steal_every != 0 ? config->stealing.relaxed_steal_every : 1,
        .sleep_ns = config->stealing.relaxed_sleep_ns != 0 ? config->stealing.relaxed_sleep_ns
                                                           : 10 * 1000 * 1000,
    };
}

static void destroy_conditions_of_runners(domus_pool *pool, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        runner_data *own = domus_runner_data(domus_pool_runner(pool, i));
        pthread_mutex_destroy(&own->mutex);
        pthread_cond_destroy(&own->wake);
    }
}

static int stealing_init_pool_data(domus_pool *pool)
{
    set_intervals_of_polling(domus_pool_data(pool), domus_pool_settings(pool));
    for (uint32_t i = 0; i < domus_pool_runners(pool); i++) {
        runner_data *own = domus_runner_data(domus_pool_runner(pool, i));
        int error = domi_condition_init(&own->wake);
        if (error != 0) {
            destroy_conditions_of_runners(pool, i);
            return error;
        }
        pthread_mutex_init(&own->mutex, NULL);
        domi_double_ended_init(&own->queue);
    }
    return 0;
}

static void stealing_fini_pool_data(domus_pool *pool)
{
    destroy_conditions_of_runners(pool, domus_pool_runners(pool));
}

static void stealing_external_enqueue_job(domus_runner *runner, domus_job *job)
{
    runner_data *data = domus_runner_data(runner);

    domi_double_ended_append_job(&data->queue, job);
    wake_runner_if_asleep(runner);
}

/* Returns the next runner in turn whose thread has begun. If none has, this is the first runner,
 * whose thread begins with the system. */
static domus_runner *next_runner_in_turn(domus_pool *pool)
{
    pool_data *data = domus_pool_data(pool);
    uint32_t runners = domus_pool_runners(pool);
    /* Relaxed: it does no harm if two threads get the same number. */
    uint32_t next = atomic_fetch_add_explicit(&data->next, 1, memory_order_relaxed);

    for (uint32_t i = 0; i < runners; i++) {
        domus_runner *runner = domus_pool_runner(pool, (next + i) % runners);
        if (has_runner_begun(runner))
            return runner;
    }
    return domus_pool_runner(pool, 0);
}

static void stealing_central_enqueue_job(domus_pool *pool, domus_job *job)
{
    stealing_external_enqueue_job(next_runner_in_turn(pool), job);
}

static void stealing_internal_enqueue_job(domus_runner *runner, domus_job *job)
{
    runner_data *own = domus_runner_data(runner);

    domi_double_ended_prepend_job(&own->queue, job);
}

/* Put a job that has more to do behind all other jobs of its runner, so that these get their
 * turns. */
static void stealing_resume_job_later(domus_runner *runner, domus_job *job)
{
    runner_data *own = domus_runner_data(runner);

    domi_double_ended_append_job(&own->queue, job);
}

static domus_job *find_job_or_steal_in_turn(domus_runner *runner)
{
    runner_data *own = domus_runner_data(runner);
    domus_job *job = NULL;

    if (++own->dequeues == DEQUEUES_TO_STEAL) {
        own->dequeues = 0;
        job = try_to_steal_oldest_job(runner);
    }
    return job != NULL ? job : find_own_job_or_steal(runner, true);
}

static domus_job *stealing_dequeue_job(domus_runner *runner, uint64_t wait_ns)
{
    const pool_data *data = domus_pool_data(domus_runner_pool(runner));
    runner_data *own = domus_runner_data(runner);

    if (!has_runner_begun(runner))
        atomic_store_explicit(&own->has_begun, true, memory_order_relaxed);
    domus_job *job = find_job_or_steal_in_turn(runner);
    if (job != NULL || wait_ns == 0)
        return job;
    struct timespec end = domi_condition_time_at_end_of_wait(wait_ns);
    for (uint32_t i = 0; i < INTERVALS; i++) {
        if (poll_for_job_in_interval(&data->intervals[i], runner, end, &job))
            break;
    }
    return job;
}

/* Move all jobs of a runner that ends to runners that have begun. A thread that has read
 * `has_runner_begun` a moment ago may still put a job here; another runner steals it later. */
static void stealing_leave_jobs_to_others(domus_runner *runner)
{
    runner_data *own = domus_runner_data(runner);
    domus_job *job;

    atomic_store_explicit(&own->has_begun, false, memory_order_relaxed);
    while ((job = domi_double_ended_take_first_job(&own->queue)) != NULL)
        stealing_central_enqueue_job(domus_runner_pool(runner), job);
}

static void stealing_call_runners(domus_pool *pool)
{
    for (uint32_t i = 0; i < domus_pool_runners(pool); i++)
        wake_runner_if_asleep(domus_pool_runner(pool, i));
}

const domus_policy domus_policy_stealing = {
    .name = "stealing",
    .pool_size = sizeof(pool_data),
    .runner_size = sizeof(runner_data),
    .init = stealing_init_pool_data,
    .fini = stealing_fini_pool_data,
    .central_enqueue = stealing_central_enqueue_job,
    .external_enqueue = stealing_external_enqueue_job,
    .internal_enqueue = stealing_internal_enqueue_job,
    .resume_later = stealing_resume_job_later,
    .dequeue = stealing_dequeue_job,
    .call = stealing_call_runners,
    .leave = stealing_leave_jobs_to_others,
};
