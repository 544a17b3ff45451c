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
 * No job is left while runners sleep. Whoever puts a job does two things in this order, and so does
 * a runner that is about to sleep; all four are seq_cst, so they have one order that every thread
 * agrees on:
 *
 * 1. The thread puts the job: a store of the deque's bottom, or an increment of the queue's count.
 * 2. It reads `sleepers`. If that is not 0, it wakes one of them.
 * 3. The runner increments `sleepers`.
 * 4. It looks once more at the queue and at all deques. If it finds a job, it does not sleep.
 *
 * If 3 comes before 2, the thread wakes a runner. Else 1 comes before 2, 2 before 3 and 3 before 4,
 * so the runner finds the job, unless another one has taken it. With weaker orders each side could
 * read before its own write is visible to the other, and both would miss the other's. A runner that
 * moves several jobs holds them for a moment in which nobody finds them, so it does 2 after it has
 * put them into its deque, too. A steal that is beaten by another one finds nothing though there
 * may be something; so 4 looks whether there are jobs, and tries to take none.
 *
 * A thread that wakes a runner subtracts it from `sleepers` itself. So the next one that puts a job
 * wakes another runner, or nobody, and not the same one that has not got up yet.
 *
 * Thread-safety: as domus/policy.h says of each function. */
#include "base/check.h"
#include "base/spinlock.h"
#include "house/message/parts.h"
#include "runtime/policies/chase_lev.h"
#include "runtime/policies/timed.h"

#include <domus/policy.h>

#include <errno.h>
#include <sched.h>

#define MOVED_MOST                                                                                 \
    16u /* jobs that a runner moves from the queue to its deque, besides the first                 \
         */
#define QUEUE_EVERY  61u /* looks of which one begins at the queue */
#define TIGHT_ROUNDS 4u  /* rounds without a job that are followed by the next at once */
#define SPIN_ROUNDS  16u /* rounds without a job after which a runner sleeps */

/* The queue for all, first in first out. */
typedef struct shared_queue {
    domi_spinlock lock;
    domus_job *first; /* linked by domus_job_link(); under `lock` */
    domus_job *last;  /* under `lock` */
    /* Jobs in the queue, so that runners need not take the lock of an empty one. Written under
     * `lock`. */
    alignas(DOMI_LINES) _Atomic uint32_t count;
} shared_queue;

/* Where runners sleep. */
struct dormitory {
    pthread_mutex_t mutex;
    pthread_cond_t woken;
    uint32_t wakes; /* runners that were woken and have not got up yet; under `mutex` */
    /* Runners that sleep or are about to, and were not woken. Written under `mutex`. */
    alignas(DOMI_LINES) _Atomic uint32_t sleepers;
};

typedef struct pool_data {
    shared_queue queue;
    struct dormitory dormitory;
} pool_data;

typedef struct runner_data {
    domi_chase_lev deque;
    alignas(DOMI_LINES) uint32_t looks; /* calls of `dequeue`, modulo QUEUE_EVERY */
} runner_data;

static_assert(MOVED_MOST <= DOMI_CHASE_LEV_START, "an empty deque has slots for what is moved");

/* --- the queue for all ------------------------------------------------------------------------ */

static void append(shared_queue *queue, domus_job *job)
{
    domus_job_link(job, NULL);
    domi_spinlock_lock(&queue->lock);
    if (queue->last != NULL)
        domus_job_link(queue->last, job);
    else
        queue->first = job;
    queue->last = job;
    /* seq_cst: this is step 1 */
    atomic_fetch_add_explicit(&queue->count, 1, memory_order_seq_cst);
    domi_spinlock_unlock(&queue->lock);
}

/* Take up to `most` jobs, the oldest first. Returns how many they are. */
static uint32_t take_oldest(shared_queue *queue, domus_job **jobs, uint32_t most)
{
    uint32_t count = 0;

    /* Relaxed: a runner that reads an older count looks again before it sleeps. */
    if (atomic_load_explicit(&queue->count, memory_order_relaxed) == 0)
        return 0;
    domi_spinlock_lock(&queue->lock);
    for (; count < most && queue->first != NULL; count++) {
        jobs[count] = queue->first;
        queue->first = domus_job_next(jobs[count]);
    }
    if (queue->first == NULL)
        queue->last = NULL;
    /* Relaxed: it can only make a runner look in vain, or not at all when there is nothing. */
    atomic_fetch_sub_explicit(&queue->count, count, memory_order_relaxed);
    domi_spinlock_unlock(&queue->lock);
    return count;
}

/* --- sleep ------------------------------------------------------------------------------------ */

/* A job was put: wake a runner, if one sleeps. */
static void wake_one(pool_data *data)
{
    struct dormitory *dormitory = &data->dormitory;

    /* seq_cst: this is step 2 */
    if (DOMI_LIKELY(atomic_load_explicit(&dormitory->sleepers, memory_order_seq_cst) == 0))
        return;
    pthread_mutex_lock(&dormitory->mutex);
    /* Relaxed: under the mutex. Another thread may have woken the last one meanwhile. */
    if (atomic_load_explicit(&dormitory->sleepers, memory_order_relaxed) != 0) {
        atomic_fetch_sub_explicit(&dormitory->sleepers, 1, memory_order_relaxed);
        dormitory->wakes++;
        pthread_cond_signal(&dormitory->woken);
    }
    pthread_mutex_unlock(&dormitory->mutex);
}

static bool has_jobs(domus_pool *pool)
{
    pool_data *data = domus_pool_data(pool);

    /* seq_cst: this is step 4, and so is the load of a deque's bottom */
    if (atomic_load_explicit(&data->queue.count, memory_order_seq_cst) != 0)
        return true;
    for (uint32_t i = 0; i < domus_pool_runners(pool); i++) {
        const runner_data *other = domus_runner_data(domus_pool_runner(pool, i));
        if (!domi_chase_lev_is_empty(&other->deque))
            return true;
    }
    return false;
}

/* Wait until somebody wakes this runner, it is called, or the time is `end`. Under the mutex.
 * Returns false if the time is over. */
static bool wait_for_wake(struct dormitory *dormitory, const domus_runner *runner,
                          const struct timespec *end)
{
    while (dormitory->wakes == 0 && !domus_runner_is_called(runner))
        if (pthread_cond_timedwait(&dormitory->woken, &dormitory->mutex, end) == ETIMEDOUT)
            return false;
    return true;
}

/* Sleep until there may be a job, the runner is called, or the time is `end`. Returns false if the
 * time is over. In each case the caller looks for a job after this, because the sleep may have been
 * ended for one. */
static bool sleep_until(domus_runner *runner, const struct timespec *end)
{
    domus_pool *pool = domus_runner_pool(runner);
    struct dormitory *dormitory = &((pool_data *)domus_pool_data(pool))->dormitory;
    bool in_time = true;

    pthread_mutex_lock(&dormitory->mutex);
    /* seq_cst: this is step 3. The look for calls comes after it, too; `call` takes the mutex, so
     * it comes before that look, or finds this runner asleep. */
    atomic_fetch_add_explicit(&dormitory->sleepers, 1, memory_order_seq_cst);
    if (!has_jobs(pool) && !domus_runner_is_called(runner)) {
        domus_runner_count(runner, DOMUS_RUNNER_PARKS, 1);
        in_time = wait_for_wake(dormitory, runner, end);
    }
    /* The runners here are `sleepers` and `wakes` together. One that gets up for another reason
     * takes a wake-up with it, if there is one: it does look for the job. */
    if (dormitory->wakes != 0)
        dormitory->wakes--;
    else
        atomic_fetch_sub_explicit(&dormitory->sleepers, 1, memory_order_relaxed);
    pthread_mutex_unlock(&dormitory->mutex);
    return in_time;
}

/* --- jobs ------------------------------------------------------------------------------------- */

/* Take the oldest job of the queue, and move up to `moved` more to the runner's deque. That is
 * empty then, or `moved` is 0. The oldest of them is pushed last, so that the runner keeps their
 * order. */
static domus_job *take_from_queue(domus_runner *runner, uint32_t moved)
{
    pool_data *data = domus_pool_data(domus_runner_pool(runner));
    runner_data *own = domus_runner_data(runner);
    domus_job *jobs[1 + MOVED_MOST];
    uint32_t count = take_oldest(&data->queue, jobs, 1 + moved);

    if (count == 0)
        return NULL;
    for (uint32_t i = count - 1; i > 0; i--)
        DOMI_CHECK(domi_chase_lev_push(&own->deque, jobs[i]));
    if (count > 1)
        wake_one(data);
    domus_runner_count(runner, DOMUS_RUNNER_GLOBAL, count);
    return jobs[0];
}

/* Steal half of the jobs of another runner: of one by chance, or of the next one that has any. */
static domus_job *steal(domus_runner *runner)
{
    domus_pool *pool = domus_runner_pool(runner);
    runner_data *own = domus_runner_data(runner);
    uint32_t runners = domus_pool_runners(pool);
    uint32_t first = domus_runner_chance(runner, runners);

    for (uint32_t i = 0; i < runners; i++) {
        domus_runner *victim = domus_pool_runner(pool, (first + i) % runners);
        runner_data *others = domus_runner_data(victim);
        uint32_t count;
        domus_job *job = victim == runner
                             ? NULL
                             : domi_chase_lev_steal_half(&others->deque, &own->deque, &count);
        if (job == NULL)
            continue;
        if (count > 1)
            wake_one(domus_pool_data(pool));
        domus_runner_count(runner, DOMUS_RUNNER_STEALS, count);
        domus_runner_count(victim, DOMUS_RUNNER_STOLEN, count);
        return job;
    }
    return NULL;
}

/* Look at all places once. */
static domus_job *look(domus_runner *runner)
{
    runner_data *own = domus_runner_data(runner);
    domus_job *job = domi_chase_lev_take(&own->deque);

    if (job == NULL)
        job = take_from_queue(runner, MOVED_MOST);
    return job != NULL ? job : steal(runner);
}

static domus_job *look_and_count(domus_runner *runner)
{
    runner_data *own = domus_runner_data(runner);
    domus_job *job = NULL;

    if (++own->looks == QUEUE_EVERY) {
        own->looks = 0;
        job = take_from_queue(runner, 0);
    }
    return job != NULL ? job : look(runner);
}

/* --- the policy ------------------------------------------------------------------------------- */

static void deques_fini(domus_pool *pool)
{
    struct dormitory *dormitory = &((pool_data *)domus_pool_data(pool))->dormitory;

    for (uint32_t i = 0; i < domus_pool_runners(pool); i++) {
        runner_data *data = domus_runner_data(domus_pool_runner(pool, i));
        domi_chase_lev_fini(&data->deque);
    }
    pthread_cond_destroy(&dormitory->woken);
    pthread_mutex_destroy(&dormitory->mutex);
}

static int deques_init(domus_pool *pool)
{
    pool_data *data = domus_pool_data(pool);
    int error = domi_timed_init(&data->dormitory.woken);

    if (error != 0)
        return error;
    pthread_mutex_init(&data->dormitory.mutex, NULL);
    domi_spinlock_init(&data->queue.lock);
    for (uint32_t i = 0; i < domus_pool_runners(pool) && error == 0; i++) {
        runner_data *own = domus_runner_data(domus_pool_runner(pool, i));
        error = domi_chase_lev_init(&own->deque);
    }
    if (error != 0)
        deques_fini(pool);
    return error;
}

static void deques_central_enqueue(domus_pool *pool, domus_job *job)
{
    pool_data *data = domus_pool_data(pool);

    append(&data->queue, job);
    wake_one(data);
}

/* A deque that cannot grow gives the job to the queue, which needs no memory. */
static void deques_internal_enqueue(domus_runner *runner, domus_job *job)
{
    pool_data *data = domus_pool_data(domus_runner_pool(runner));
    runner_data *own = domus_runner_data(runner);

    if (DOMI_UNLIKELY(!domi_chase_lev_push(&own->deque, job)))
        append(&data->queue, job);
    wake_one(data);
}

static void deques_resume_later(domus_runner *runner, domus_job *job)
{
    deques_central_enqueue(domus_runner_pool(runner), job);
}

static domus_job *deques_dequeue(domus_runner *runner, uint64_t wait_ns)
{
    domus_job *job = look_and_count(runner);
    struct timespec end;
    bool has_end = false;
    bool in_time = wait_ns != 0;

    for (uint32_t round = 0; job == NULL && in_time && !domus_runner_is_called(runner); round++) {
        if (round >= SPIN_ROUNDS) {
            if (!has_end)
                end = domi_timed_end(wait_ns);
            has_end = true;
            in_time = sleep_until(runner, &end);
            round = 0;
        } else if (round >= TIGHT_ROUNDS) {
            sched_yield();
        }
        job = look(runner);
    }
    return job;
}

static void deques_call(domus_pool *pool)
{
    struct dormitory *dormitory = &((pool_data *)domus_pool_data(pool))->dormitory;

    pthread_mutex_lock(&dormitory->mutex);
    pthread_cond_broadcast(&dormitory->woken);
    pthread_mutex_unlock(&dormitory->mutex);
}

const domus_policy domus_policy_deques = {
    .name = "deques",
    .pool_size = sizeof(pool_data),
    .runner_size = sizeof(runner_data),
    .init = deques_init,
    .fini = deques_fini,
    .central_enqueue = deques_central_enqueue,
    .internal_enqueue = deques_internal_enqueue,
    .resume_later = deques_resume_later,
    .dequeue = deques_dequeue,
    .call = deques_call,
};
