/* The policy `stealing`, CAF's default: each runner has a queue with two ends, and a runner without
 * jobs steals from the others, ever more slowly.
 *
 * A job from an actor goes to the head of its runner's queue, where the runner takes its jobs, so
 * the newest one comes first. A job from another thread goes to the tail of one runner's queue
 * after another, and so does a job that has more to do. A thief takes one job from the tail, which
 * is the oldest, of one other runner by chance.
 *
 * Nobody wakes a runner for a job: a runner knows its own queue only, so it polls, in three
 * intervals. In the first it does not sleep; in the second it sleeps for some time between two
 * attempts; in the third, in which it stays, for longer. A job may thus wait for as long as the
 * longest sleep while runners are idle. A sleep is a wait on a condition that only `call` signals,
 * so that a stop need not wait for it.
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

struct interval {
    uint32_t attempts;    /* attempts to find a job until the next interval; 0: no end */
    uint32_t steal_every; /* attempts of which one tries to steal */
    uint64_t sleep_ns;    /* sleep between two attempts */
};

/* The intervals in their order. The numbers are CAF's defaults. */
static const struct domi_stealing_intervals {
    struct interval aggressive;
    struct interval moderate;
    struct interval relaxed;
} intervals = {
    .aggressive = {.attempts = 100, .steal_every = 10, .sleep_ns = 0},
    .moderate = {.attempts = 500, .steal_every = 5, .sleep_ns = 50 * 1000},
    .relaxed = {.attempts = 0, .steal_every = 1, .sleep_ns = 10 * 1000 * 1000},
};

typedef struct pool_data {
    pthread_mutex_t mutex; /* of `called`; guards nothing else */
    pthread_cond_t called;
    alignas(DOMI_LINES) _Atomic uint32_t next; /* turns of the rotation that were given */
} pool_data;

typedef struct runner_data {
    domi_double_ended queue;
    alignas(DOMI_LINES) _Atomic bool has_begun; /* it has looked for jobs; the runner writes it */
} runner_data;

/* --- jobs ------------------------------------------------------------------------------------- */

/* Steal the oldest job of another runner, each of which is as likely. */
static domus_job *try_steal(domus_runner *runner)
{
    domus_pool *pool = domus_runner_pool(runner);
    uint32_t runners = domus_pool_runners(pool);

    if (runners < 2)
        return NULL;
    uint32_t number = domus_runner_chance(runner, runners - 1);
    if (number == domus_runner_number(runner))
        number = runners - 1;
    domus_runner *victim = domus_pool_runner(pool, number);
    runner_data *others = domus_runner_data(victim);
    domus_job *job = domi_double_ended_take_tail(&others->queue);
    if (job != NULL) {
        domus_runner_count(runner, DOMUS_RUNNER_STEALS, 1);
        domus_runner_count(victim, DOMUS_RUNNER_STOLEN, 1);
    }
    return job;
}

static domus_job *look(domus_runner *runner, bool steals)
{
    runner_data *own = domus_runner_data(runner);
    domus_job *job = domi_double_ended_take_head(&own->queue);

    return job == NULL && steals ? try_steal(runner) : job;
}

/* --- sleep ------------------------------------------------------------------------------------ */

/* Sleep for `sleep_ns`, but not longer than to `end`, nor when the runner is called. Returns false
 * if the time is `end`. */
static bool sleep_for(domus_runner *runner, uint64_t sleep_ns, struct timespec end)
{
    pool_data *data = domus_pool_data(domus_runner_pool(runner));
    struct timespec until = domi_condition_end(sleep_ns);
    bool is_last = domi_condition_is_before(end, until);

    if (is_last)
        until = end;
    pthread_mutex_lock(&data->mutex);
    /* `call` takes the mutex after the runner was called: it comes before this look, or finds the
     * runner asleep. A wait that ends too soon does no harm. */
    if (!domus_runner_is_called(runner)) {
        domus_runner_count(runner, DOMUS_RUNNER_PARKS, 1);
        (void)pthread_cond_timedwait(&data->called, &data->mutex, &until);
    }
    pthread_mutex_unlock(&data->mutex);
    return !is_last;
}

/* Poll as the interval says. Returns true if that is over: `ret_job` is the job that was found, or
 * NULL because the runner is called or the time is `end`. */
static bool poll_in(const struct interval *interval, domus_runner *runner, struct timespec end,
                    domus_job **ret_job)
{
    for (uint32_t i = 0; interval->attempts == 0 || i < interval->attempts; i++) {
        *ret_job = look(runner, i % interval->steal_every == 0);
        if (*ret_job != NULL || domus_runner_is_called(runner))
            return true;
        if (interval->sleep_ns == 0)
            domi_pause();
        else if (!sleep_for(runner, interval->sleep_ns, end))
            return true;
    }
    return false;
}

/* --- the policy ------------------------------------------------------------------------------- */

static int stealing_init(domus_pool *pool)
{
    pool_data *data = domus_pool_data(pool);
    int error = domi_condition_init(&data->called);

    if (error != 0)
        return error;
    pthread_mutex_init(&data->mutex, NULL);
    for (uint32_t i = 0; i < domus_pool_runners(pool); i++) {
        runner_data *own = domus_runner_data(domus_pool_runner(pool, i));
        domi_double_ended_init(&own->queue);
    }
    return 0;
}

static void stealing_fini(domus_pool *pool)
{
    pool_data *data = domus_pool_data(pool);

    pthread_mutex_destroy(&data->mutex);
    pthread_cond_destroy(&data->called);
}

static void stealing_external_enqueue(domus_runner *runner, domus_job *job)
{
    runner_data *data = domus_runner_data(runner);

    domi_double_ended_append(&data->queue, job);
}

/* The next runner of the rotation that has begun; the first one, which begins with the system, if
 * none has. */
static domus_runner *next_runner(domus_pool *pool)
{
    pool_data *data = domus_pool_data(pool);
    uint32_t runners = domus_pool_runners(pool);
    /* Relaxed, as `has_begun`: a number that another thread has, too, or a job for another runner,
     * does no harm. */
    uint32_t next = atomic_fetch_add_explicit(&data->next, 1, memory_order_relaxed);

    for (uint32_t i = 0; i < runners; i++) {
        domus_runner *runner = domus_pool_runner(pool, (next + i) % runners);
        runner_data *own = domus_runner_data(runner);
        if (atomic_load_explicit(&own->has_begun, memory_order_relaxed))
            return runner;
    }
    return domus_pool_runner(pool, 0);
}

static void stealing_central_enqueue(domus_pool *pool, domus_job *job)
{
    stealing_external_enqueue(next_runner(pool), job);
}

static void stealing_internal_enqueue(domus_runner *runner, domus_job *job)
{
    runner_data *own = domus_runner_data(runner);

    domi_double_ended_prepend(&own->queue, job);
}

/* The job goes behind all others of the runner, so that these get their turns. */
static void stealing_resume_later(domus_runner *runner, domus_job *job)
{
    stealing_external_enqueue(runner, job);
}

static domus_job *stealing_dequeue(domus_runner *runner, uint64_t wait_ns)
{
    runner_data *own = domus_runner_data(runner);
    domus_job *job;

    if (!atomic_load_explicit(&own->has_begun, memory_order_relaxed))
        atomic_store_explicit(&own->has_begun, true, memory_order_relaxed);
    job = look(runner, true);
    if (job != NULL || wait_ns == 0)
        return job;
    struct timespec end = domi_condition_end(wait_ns);
    if (poll_in(&intervals.aggressive, runner, end, &job) ||
        poll_in(&intervals.moderate, runner, end, &job))
        return job;
    (void)poll_in(&intervals.relaxed, runner, end, &job);
    return job;
}

static void stealing_call(domus_pool *pool)
{
    pool_data *data = domus_pool_data(pool);

    pthread_mutex_lock(&data->mutex);
    pthread_cond_broadcast(&data->called);
    pthread_mutex_unlock(&data->mutex);
}

const domus_policy domus_policy_stealing = {
    .name = "stealing",
    .pool_size = sizeof(pool_data),
    .runner_size = sizeof(runner_data),
    .init = stealing_init,
    .fini = stealing_fini,
    .central_enqueue = stealing_central_enqueue,
    .external_enqueue = stealing_external_enqueue,
    .internal_enqueue = stealing_internal_enqueue,
    .resume_later = stealing_resume_later,
    .dequeue = stealing_dequeue,
    .call = stealing_call,
};
