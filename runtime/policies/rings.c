/* The policy `rings`: a ring of 256 places for each runner, and a growing global ring.
 *
 * It is the ready queue of GoAkt (its notes on the dispatcher, "Ready queue"). Jobs from the
 * runner's own actors go to its own ring, which is first in first out; jobs from outside, and jobs
 * for which the own ring is full, go to the global ring. A runner takes a job from its own ring
 * first, then from the global ring; then it steals half of the jobs of the first sibling that has
 * any; then it parks.
 *
 * A job that has used up its throughput goes to the end of the own ring, behind all other jobs of
 * its runner.
 *
 * Each ring has a spinlock, for which only thieves compete with its runner. The number of its jobs
 * is an atomic beside it, so that a sibling without jobs is passed without a lock. A thief locks
 * both rings in the order of their addresses, so two runners that steal from each other cannot wait
 * for each other.
 *
 * A put into the own ring wakes a parked runner only if the ring has more than one job then. The
 * first job is what the runner does next; if a woken runner took it while its sender waits for an
 * answer, as in a ping-pong, two runners would only take turns. */
#include "base/check.h"
#include "base/spinlock.h"
#include "runtime/policies/condition.h"
#include "runtime/policies/global_ring.h"
#include "runtime/policies/parking.h"

#include <assert.h>

#define PLACES 256u /* number of places in the ring of one runner */

/* In each 61st dequeue a runner looks into the global ring first. Otherwise, with jobs that resume
 * again and again, its own ring would never be empty, and jobs in the global ring would wait for
 * ever. The number is that of Go's scheduler: large enough to cost nothing, and a prime, so that it
 * does not fall into step with a pattern of the jobs. */
#define TURNS_TO_GLOBAL 61u

static_assert((PLACES & (PLACES - 1)) == 0, "a power of two, so that `first` may wrap");

typedef struct ring {
    alignas(DOMI_LINES) domi_spinlock lock;
    uint32_t first; /* place of the ring's job that is taken next, modulo PLACES */
    /* number of jobs in the ring; written under the lock, read by any runner */
    _Atomic uint32_t size;
    domus_job *places[PLACES];

    /* Only the runner to which this ring belongs uses the next two fields. */

    /* number of the runner's dequeues, modulo TURNS_TO_GLOBAL */
    alignas(DOMI_LINES) uint32_t turns;
    /* number of the runner from which the ring's own runner stole last */
    uint32_t victim;
} ring;

typedef struct rings {
    domi_global_ring global;
    domi_parking parking;
} rings;

static rings *get_pool_data_of_rings_policy(domus_runner *runner)
{
    return domus_pool_data(domus_runner_pool(runner));
}

static int rings_init_pool_data(domus_pool *pool)
{
    rings *all = domus_pool_data(pool);
    int error = domi_global_ring_init(&all->global);

    if (error != 0)
        return error;
    error = domi_parking_init(&all->parking);
    if (error != 0) {
        domi_global_ring_destroy(&all->global);
        return error;
    }
    for (uint32_t i = 0; i < domus_pool_runners(pool); i++) {
        ring *one = domus_runner_data(domus_pool_runner(pool, i));
        domi_spinlock_init(&one->lock);
        one->victim = i;
    }
    return 0;
}

static void rings_fini_pool_data(domus_pool *pool)
{
    rings *all = domus_pool_data(pool);

    domi_parking_destroy(&all->parking);
    domi_global_ring_destroy(&all->global);
}

/* --- operations on one ring, under its lock --------------------------------------------------- */

/* Returns the number of jobs in a ring. Relaxed: the lock is held, and no thread writes the number
 * without it. */
static uint32_t count_jobs_of_ring(const ring *one)
{
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&one->size, memory_order_relaxed);
}

static void append_job_to_ring(ring *one, domus_job *job)
{
    uint32_t size = count_jobs_of_ring(one);

    DOMI_CHECK(size < PLACES);
    one->places[(one->first + size) % PLACES] = job;
    /* seq_cst: the thread that puts the job looks for parked runners after this (parking.h). */
    atomic_store_explicit(&one->size, size + 1, memory_order_seq_cst);
}

static domus_job *take_first_job_of_ring(ring *one)
{
    uint32_t size = count_jobs_of_ring(one);

    if (size == 0)
        return NULL;
    domus_job *job = one->places[one->first % PLACES];
    one->first++;
    /* Relaxed: a runner that still reads the old size only takes the lock in vain. */
    atomic_store_explicit(&one->size, size - 1, memory_order_relaxed);
    return job;
}

/* --- put -------------------------------------------------------------------------------------- */

static void rings_central_enqueue_job(domus_pool *pool, domus_job *job)
{
    rings *all = domus_pool_data(pool);

    domi_global_ring_put_job(&all->global, job);
    domi_parking_wake_one_if_parked(&all->parking);
}

/* Put a job behind all other jobs of the runner, into its own ring, or, if that is full, into the
 * global ring. */
static void put_job_behind_jobs_of_runner(domus_runner *runner, domus_job *job)
{
    ring *own = domus_runner_data(runner);

    domi_spinlock_lock(&own->lock);
    uint32_t before = count_jobs_of_ring(own);
    if (before < PLACES)
        append_job_to_ring(own, job);
    domi_spinlock_unlock(&own->lock);

    if (before == PLACES)
        rings_central_enqueue_job(domus_runner_pool(runner), job);
    else if (before != 0)
        domi_parking_wake_one_if_parked(&get_pool_data_of_rings_policy(runner)->parking);
}

/* --- take ------------------------------------------------------------------------------------- */

static domus_job *take_job_of_own_ring(ring *own)
{
    /* Relaxed: only the runner itself puts jobs into its ring, so a size of 0 is never an old
     * value. */
    if (atomic_load_explicit(&own->size, memory_order_relaxed) == 0)
        return NULL;
    domi_spinlock_lock(&own->lock);
    domus_job *job = take_first_job_of_ring(own);
    domi_spinlock_unlock(&own->lock);
    return job;
}

static domus_job *take_job_of_global_ring(domus_runner *runner)
{
    domus_job *job = domi_global_ring_take_job(&get_pool_data_of_rings_policy(runner)->global);

    if (job != NULL)
        domus_runner_count(runner, DOMUS_RUNNER_GLOBAL, 1);
    return job;
}

static void lock_both_rings(ring *a, ring *b)
{
    bool is_a_first = (uintptr_t)a < (uintptr_t)b;

    domi_spinlock_lock(is_a_first ? &a->lock : &b->lock);
    domi_spinlock_lock(is_a_first ? &b->lock : &a->lock);
}

/* Steal half of the victim's jobs, rounded up. Returns the oldest one, and puts the others, in
 * their order, into the thief's ring, which is empty. Returns NULL if the victim has none. */
static domus_job *steal_half_of_jobs(domus_runner *thief, domus_runner *victim)
{
    ring *to = domus_runner_data(thief);
    ring *from = domus_runner_data(victim);

    /* Relaxed: the size is only a hint, by which a thief passes empty rings without locking
     * them. */
    if (atomic_load_explicit(&from->size, memory_order_relaxed) == 0)
        return NULL;
    lock_both_rings(to, from);
    uint32_t half = (count_jobs_of_ring(from) + 1) / 2;
    domus_job *job = take_first_job_of_ring(from);
    for (uint32_t i = 1; i < half; i++)
        append_job_to_ring(to, take_first_job_of_ring(from));
    domi_spinlock_unlock(&to->lock);
    domi_spinlock_unlock(&from->lock);

    if (job != NULL) {
        domus_runner_count(thief, DOMUS_RUNNER_STEALS, half);
        domus_runner_count(victim, DOMUS_RUNNER_STOLEN, half);
    }
    return job;
}

/* Steal jobs of the first other runner of the pool that has any. The search begins behind the last
 * victim, so that all runners are victims equally often. */
static domus_job *steal_jobs_of_other_runner(domus_runner *runner)
{
    ring *own = domus_runner_data(runner);
    domus_pool *pool = domus_runner_pool(runner);
    uint32_t count = domus_pool_runners(pool);
    uint32_t number = own->victim;

    for (uint32_t i = 0; i < count; i++) {
        number = number + 1 < count ? number + 1 : 0;
        if (number == domus_runner_number(runner))
            continue;
        domus_job *job = steal_half_of_jobs(runner, domus_pool_runner(pool, number));
        if (job != NULL) {
            own->victim = number;
            return job;
        }
    }
    return NULL;
}

static domus_job *take_own_global_or_stolen_job(domus_runner *runner)
{
    ring *own = domus_runner_data(runner);
    domus_job *job = NULL;

    if (++own->turns == TURNS_TO_GLOBAL) {
        own->turns = 0;
        job = take_job_of_global_ring(runner);
    }
    if (job == NULL)
        job = take_job_of_own_ring(own);
    if (job == NULL)
        job = take_job_of_global_ring(runner);
    if (job == NULL)
        job = steal_jobs_of_other_runner(runner);
    return job;
}

static bool has_pool_any_job(domus_runner *runner)
{
    domus_pool *pool = domus_runner_pool(runner);

    if (domi_global_ring_has_jobs(&get_pool_data_of_rings_policy(runner)->global))
        return true;
    for (uint32_t i = 0; i < domus_pool_runners(pool); i++) {
        ring *one = domus_runner_data(domus_pool_runner(pool, i));
        /* seq_cst: before this load the runner has said that it parks (parking.h). */
        if (atomic_load_explicit(&one->size, memory_order_seq_cst) != 0)
            return true;
    }
    return false;
}

static domus_job *rings_dequeue_job(domus_runner *runner, uint64_t wait_ns)
{
    rings *all = get_pool_data_of_rings_policy(runner);

    if (domus_runner_is_called(runner))
        return NULL;
    domus_job *job = take_own_global_or_stolen_job(runner);
    if (job != NULL || wait_ns == 0)
        return job;

    struct timespec end = domi_condition_time_at_end_of_wait(wait_ns);
    do {
        domi_parking_park_runner(&all->parking, runner, has_pool_any_job,
                                 wait_ns == UINT64_MAX ? NULL : &end);
        if (domus_runner_is_called(runner))
            return NULL;
        job = take_own_global_or_stolen_job(runner);
    } while (job == NULL && (wait_ns == UINT64_MAX || !domi_condition_is_wait_over(&end)));
    return job;
}

/* Move all jobs of a runner that ends from its ring to the global ring. */
static void rings_leave_jobs_to_others(domus_runner *runner)
{
    ring *own = domus_runner_data(runner);

    for (domus_job *job = take_job_of_own_ring(own); job != NULL; job = take_job_of_own_ring(own))
        rings_central_enqueue_job(domus_runner_pool(runner), job);
}

static void rings_call_runners(domus_pool *pool)
{
    rings *all = domus_pool_data(pool);

    domi_parking_call_runners(&all->parking);
}

const domus_policy domus_policy_rings = {
    .name = "rings",
    .pool_size = sizeof(rings),
    .runner_size = sizeof(ring),
    .init = rings_init_pool_data,
    .fini = rings_fini_pool_data,
    .central_enqueue = rings_central_enqueue_job,
    .internal_enqueue = put_job_behind_jobs_of_runner,
    .resume_later = put_job_behind_jobs_of_runner,
    .dequeue = rings_dequeue_job,
    .call = rings_call_runners,
    .leave = rings_leave_jobs_to_others,
};
