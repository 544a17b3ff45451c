/* The policy `deques`, after the scheduler of Wippy: each runner has a Chase-Lev deque, and the
 * pool has a queue for all.
 *
 * A runner takes its own newest job, which is what is in its cache. If it has none, it takes the
 * oldest job of the queue and moves up to 16 more to its deque, or half of the jobs of another
 * runner. If there is nothing at all, it looks a few times more, then yields its CPU between looks,
 * and then sleeps.
 *
 * Two things would starve jobs in a deque that gives the newest first. A job that has more to do
 * would get the next turn again and again, so resume_later() puts it to the end of the queue. And a
 * deque that is never empty would keep its runner from the queue, so each 61st look begins there
 * (61 as in Go's scheduler: a prime, so that it does not fall in step with what the actors do).
 *
 * No job is left while runners sleep (parking.h). A put stores a deque's bottom, or adds to the
 * queue's count, by seq_cst, before it looks for parked runners; a runner loads these by seq_cst
 * once more before it sleeps. A runner that moves several jobs holds them for a moment in which
 * nobody finds them, so it wakes another one, too, when it has put them into its deque. A steal
 * that is beaten by another one finds nothing though there may be something; so the last look is
 * whether there are jobs, and tries to take none.
 *
 * Thread-safety: as domus/policy.h says of each function. */
#include "base/check.h"
#include "base/spinlock.h"
#include "house/message/parts.h"
#include "runtime/policies/chase_lev.h"
#include "runtime/policies/condition.h"
#include "runtime/policies/parking.h"

#include <domus/policy.h>

#include <sched.h>

/* most jobs that a runner moves at once from the queue to its deque, besides the one that it
 * takes */
#define MOVED_MOST  16u
#define QUEUE_EVERY 61u /* in each 61st look for a job, a runner looks into the queue first */
/* number of rounds without a job up to which a runner looks again at once; after that it yields its
 * CPU between rounds */
#define TIGHT_ROUNDS 4u
#define SPIN_ROUNDS  16u /* number of rounds without a job after which a runner sleeps */

/* The queue of the whole pool, from which all runners take; first in, first out. */
typedef struct shared_queue {
    domi_spinlock lock;
    /* oldest job of the queue; jobs are linked by domus_job_link(); under `lock` */
    domus_job *first;
    domus_job *last; /* newest job of the queue; under `lock` */
    /* Number of jobs in the queue, which runners read so that they need not lock an empty queue.
     * Written under `lock`. */
    alignas(DOMI_LINES) _Atomic uint32_t count;
} shared_queue;

typedef struct pool_data {
    shared_queue queue;
    domi_parking parking;
} pool_data;

typedef struct runner_data {
    domi_chase_lev deque;
    /* number of the runner's looks for a job (calls of `dequeue`), modulo QUEUE_EVERY */
    alignas(DOMI_LINES) uint32_t looks;
} runner_data;

static_assert(MOVED_MOST <= DOMI_CHASE_LEV_START, "an empty deque has slots for what is moved");

/* --- the queue of the whole pool -------------------------------------------------------------- */

static void append_job_to_queue(shared_queue *queue, domus_job *job)
{
    domus_job_link(job, NULL);
    domi_spinlock_lock(&queue->lock);
    if (queue->last != NULL)
        domus_job_link(queue->last, job);
    else
        queue->first = job;
    queue->last = job;
    /* seq_cst: the thread that puts the job looks for parked runners after this (parking.h). */
    atomic_fetch_add_explicit(&queue->count, 1, memory_order_seq_cst);
    domi_spinlock_unlock(&queue->lock);
}

/* Take up to `most` jobs off the pool's queue, the oldest first. Returns how many were taken. */
static uint32_t take_oldest_jobs_of_queue(shared_queue *queue, domus_job **jobs, uint32_t most)
{
    uint32_t count = 0;

    /* Relaxed: a runner that reads an older count, and takes no job, looks again before it
     * sleeps. */
    if (atomic_load_explicit(&queue->count, memory_order_relaxed) == 0)
        return 0;
    domi_spinlock_lock(&queue->lock);
    for (; count < most && queue->first != NULL; count++) {
        jobs[count] = queue->first;
        queue->first = domus_job_next(jobs[count]);
    }
    if (queue->first == NULL)
        queue->last = NULL;
    /* Relaxed: a runner that reads an older count only looks in vain. */
    atomic_fetch_sub_explicit(&queue->count, count, memory_order_relaxed);
    domi_spinlock_unlock(&queue->lock);
    return count;
}

static bool has_pool_any_job(domus_runner *runner)
{
    domus_pool *pool = domus_runner_pool(runner);
    pool_data *data = domus_pool_data(pool);

    /* seq_cst: before this load the runner has said that it parks; the load of a deque's bottom is
     * seq_cst, too (parking.h). */
    if (atomic_load_explicit(&data->queue.count, memory_order_seq_cst) != 0)
        return true;
    for (uint32_t i = 0; i < domus_pool_runners(pool); i++) {
        const runner_data *other = domus_runner_data(domus_pool_runner(pool, i));
        if (!domi_chase_lev_is_empty(&other->deque))
            return true;
    }
    return false;
}

/* --- jobs ------------------------------------------------------------------------------------- */

/* Take the oldest job of the pool's queue, and move up to `moved` more to the runner's deque, which
 * is empty then unless `moved` is 0. The oldest of the moved jobs is pushed last, so that the
 * runner takes them in order. */
static domus_job *take_job_from_queue(domus_runner *runner, uint32_t moved)
{
    pool_data *data = domus_pool_data(domus_runner_pool(runner));
    runner_data *own = domus_runner_data(runner);
    domus_job *jobs[1 + MOVED_MOST];
    uint32_t count = take_oldest_jobs_of_queue(&data->queue, jobs, 1 + moved);

    if (count == 0)
        return NULL;
    for (uint32_t i = count - 1; i > 0; i--)
        DOMI_CHECK(domi_chase_lev_push_item(&own->deque, jobs[i]));
    if (count > 1)
        domi_parking_wake_one_if_parked(&data->parking);
    domus_runner_count(runner, DOMUS_RUNNER_GLOBAL, count);
    return jobs[0];
}

/* Steal half of the jobs of another runner: of a random one, or, if that has none, of the next one
 * that has any. */
static domus_job *steal_half_of_jobs(domus_runner *runner)
{
    domus_pool *pool = domus_runner_pool(runner);
    runner_data *own = domus_runner_data(runner);
    uint32_t runners = domus_pool_runners(pool);
    uint32_t first = domus_runner_chance(runner, runners);

    for (uint32_t i = 0; i < runners; i++) {
        domus_runner *victim = domus_pool_runner(pool, (first + i) % runners);
        runner_data *others = domus_runner_data(victim);
        uint32_t count;
        domus_job *job = victim == runner ? NULL
                                          : domi_chase_lev_steal_half_of_items(&others->deque,
                                                                               &own->deque, &count);
        if (job == NULL)
            continue;
        if (count > 1)
            domi_parking_wake_one_if_parked(&((pool_data *)domus_pool_data(pool))->parking);
        domus_runner_count(runner, DOMUS_RUNNER_STEALS, count);
        domus_runner_count(victim, DOMUS_RUNNER_STOLEN, count);
        return job;
    }
    return NULL;
}

/* Look once at each place that may have a job for the runner: its deque, the queue, the deques of
 * others. Returns NULL if there is none. */
static domus_job *find_job_in_any_deque_or_queue(domus_runner *runner)
{
    runner_data *own = domus_runner_data(runner);
    domus_job *job = domi_chase_lev_take_newest_item(&own->deque);

    if (job == NULL)
        job = take_job_from_queue(runner, MOVED_MOST);
    return job != NULL ? job : steal_half_of_jobs(runner);
}

static domus_job *find_job_in_deque_or_queue_first(domus_runner *runner)
{
    runner_data *own = domus_runner_data(runner);
    domus_job *job = NULL;

    if (++own->looks == QUEUE_EVERY) {
        own->looks = 0;
        job = take_job_from_queue(runner, 0);
    }
    return job != NULL ? job : find_job_in_any_deque_or_queue(runner);
}

/* --- the policy ------------------------------------------------------------------------------- */

static void deques_fini_pool_data(domus_pool *pool)
{
    pool_data *data = domus_pool_data(pool);

    for (uint32_t i = 0; i < domus_pool_runners(pool); i++) {
        runner_data *own = domus_runner_data(domus_pool_runner(pool, i));
        domi_chase_lev_fini(&own->deque);
    }
    domi_parking_destroy(&data->parking);
}

static int deques_init_pool_data(domus_pool *pool)
{
    pool_data *data = domus_pool_data(pool);
    int error = domi_parking_init(&data->parking);

    if (error != 0)
        return error;
    domi_spinlock_init(&data->queue.lock);
    for (uint32_t i = 0; i < domus_pool_runners(pool) && error == 0; i++) {
        runner_data *own = domus_runner_data(domus_pool_runner(pool, i));
        error = domi_chase_lev_init(&own->deque);
    }
    if (error != 0)
        deques_fini_pool_data(pool);
    return error;
}

static void deques_central_enqueue_job(domus_pool *pool, domus_job *job)
{
    pool_data *data = domus_pool_data(pool);

    append_job_to_queue(&data->queue, job);
    domi_parking_wake_one_if_parked(&data->parking);
}

/* Put a job into its runner's own deque. If the deque cannot grow, the job goes to the pool's
 * queue, which needs no memory. */
static void deques_internal_enqueue_job(domus_runner *runner, domus_job *job)
{
    pool_data *data = domus_pool_data(domus_runner_pool(runner));
    runner_data *own = domus_runner_data(runner);

    if (DOMI_UNLIKELY(!domi_chase_lev_push_item(&own->deque, job)))
        append_job_to_queue(&data->queue, job);
    domi_parking_wake_one_if_parked(&data->parking);
}

static void deques_resume_job_later(domus_runner *runner, domus_job *job)
{
    deques_central_enqueue_job(domus_runner_pool(runner), job);
}

static domus_job *deques_dequeue_job(domus_runner *runner, uint64_t wait_ns)
{
    pool_data *data = domus_pool_data(domus_runner_pool(runner));
    domus_job *job = find_job_in_deque_or_queue_first(runner);
    struct timespec end;
    bool has_end = false;
    bool in_time = wait_ns != 0;

    for (uint32_t round = 0; job == NULL && in_time && !domus_runner_is_called(runner); round++) {
        if (round >= SPIN_ROUNDS) {
            if (!has_end)
                end = domi_condition_time_at_end_of_wait(wait_ns);
            has_end = true;
            domi_parking_park_runner(&data->parking, runner, has_pool_any_job, &end);
            in_time = !domi_condition_is_wait_over(&end);
            round = 0;
        } else if (round >= TIGHT_ROUNDS) {
            sched_yield();
        }
        job = find_job_in_any_deque_or_queue(runner);
    }
    return job;
}

/* Move all jobs of a runner that ends from its deque to the pool's queue. */
static void deques_leave_jobs_to_others(domus_runner *runner)
{
    runner_data *own = domus_runner_data(runner);
    domus_job *job;

    while ((job = domi_chase_lev_take_newest_item(&own->deque)) != NULL)
        deques_central_enqueue_job(domus_runner_pool(runner), job);
}

static void deques_call_runners(domus_pool *pool)
{
    pool_data *data = domus_pool_data(pool);

    domi_parking_call_runners(&data->parking);
}

const domus_policy domus_policy_deques = {
    .name = "deques",
    .pool_size = sizeof(pool_data),
    .runner_size = sizeof(runner_data),
    .init = deques_init_pool_data,
    .fini = deques_fini_pool_data,
    .central_enqueue = deques_central_enqueue_job,
    .internal_enqueue = deques_internal_enqueue_job,
    .resume_later = deques_resume_job_later,
    .dequeue = deques_dequeue_job,
    .call = deques_call_runners,
    .leave = deques_leave_jobs_to_others,
};
