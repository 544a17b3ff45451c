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

#define PLACES 256u /* the number of places in the ring of a runner */

/* Each 61st dequeue looks into the global ring first. Otherwise, with jobs that resume again and
 * again, own rings would never be empty, and jobs in the global ring would wait for ever. The
 * number is that of Go's scheduler: large enough to cost nothing, and a prime, so that it does not
 * fall into step with a pattern of the jobs. */
#define TURNS_TO_GLOBAL 61u

static_assert((PLACES & (PLACES - 1)) == 0, "a power of two, so that `first` may wrap");

typedef struct ring {
    alignas(DOMI_LINES) domi_spinlock lock;
    uint32_t first;        /* place of the next job to be taken, modulo PLACES */
    _Atomic uint32_t size; /* number of jobs; written under the lock, read by any runner */
    domus_job *places[PLACES];

    /* Only the runner of this ring uses these fields. */
    alignas(DOMI_LINES) uint32_t turns; /* number of dequeues, modulo TURNS_TO_GLOBAL */
    uint32_t victim;                    /* number of the runner from which this one stole last */
} ring;

typedef struct rings {
    domi_global_ring global;
    domi_parking parking;
} rings;

static rings *get_rings(domus_runner *runner)
{
    return domus_pool_data(domus_runner_pool(runner));
}

static int rings_init(domus_pool *pool)
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

static void rings_fini(domus_pool *pool)
{
    rings *all = domus_pool_data(pool);

    domi_parking_destroy(&all->parking);
    domi_global_ring_destroy(&all->global);
}

/* --- operations on one ring, under its lock --------------------------------------------------- */

/* Relaxed: the lock is held, and no thread writes the size without it. */
static uint32_t get_ring_size(const ring *one)
{
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&one->size, memory_order_relaxed);
}

static void append_job(ring *one, domus_job *job)
{
    uint32_t size = get_ring_size(one);

    DOMI_CHECK(size < PLACES);
    one->places[(one->first + size) % PLACES] = job;
    /* seq_cst: the thread that puts looks for parked runners after this store (parking.h). */
    atomic_store_explicit(&one->size, size + 1, memory_order_seq_cst);
}

static domus_job *take_first_job(ring *one)
{
    uint32_t size = get_ring_size(one);

    if (size == 0)
        return NULL;
    domus_job *job = one->places[one->first % PLACES];
    one->first++;
    /* Relaxed: a runner that still sees the old size only takes the lock in vain. */
    atomic_store_explicit(&one->size, size - 1, memory_order_relaxed);
    return job;
}

/* --- put -------------------------------------------------------------------------------------- */

static void rings_central_enqueue(domus_pool *pool, domus_job *job)
{
    rings *all = domus_pool_data(pool);

    domi_global_ring_put(&all->global, job);
    domi_parking_wake_one(&all->parking);
}

/* Put a job behind all others of the runner. */
static void put_job_last(domus_runner *runner, domus_job *job)
{
    ring *own = domus_runner_data(runner);

    domi_spinlock_lock(&own->lock);
    uint32_t before = get_ring_size(own);
    if (before < PLACES)
        append_job(own, job);
    domi_spinlock_unlock(&own->lock);

    if (before == PLACES)
        rings_central_enqueue(domus_runner_pool(runner), job);
    else if (before != 0)
        domi_parking_wake_one(&get_rings(runner)->parking);
}

/* --- take ------------------------------------------------------------------------------------- */

static domus_job *take_own_job(ring *own)
{
    /* Relaxed: only the runner itself makes its ring grow, so 0 is never an old value. */
    if (atomic_load_explicit(&own->size, memory_order_relaxed) == 0)
        return NULL;
    domi_spinlock_lock(&own->lock);
    domus_job *job = take_first_job(own);
    domi_spinlock_unlock(&own->lock);
    return job;
}

static domus_job *take_global_job(domus_runner *runner)
{
    domus_job *job = domi_global_ring_take(&get_rings(runner)->global);

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

/* Steal half of the victim's jobs, rounded up. Returns the oldest one, and puts the others into the
 * empty ring of the thief in their order. Returns NULL if the victim has none. */
static domus_job *steal_half_of_jobs(domus_runner *thief, domus_runner *victim)
{
    ring *to = domus_runner_data(thief);
    ring *from = domus_runner_data(victim);

    /* Relaxed: the size is only a hint, by which empty rings are passed without a lock. */
    if (atomic_load_explicit(&from->size, memory_order_relaxed) == 0)
        return NULL;
    lock_both_rings(to, from);
    uint32_t half = (get_ring_size(from) + 1) / 2;
    domus_job *job = take_first_job(from);
    for (uint32_t i = 1; i < half; i++)
        append_job(to, take_first_job(from));
    domi_spinlock_unlock(&to->lock);
    domi_spinlock_unlock(&from->lock);

    if (job != NULL) {
        domus_runner_count(thief, DOMUS_RUNNER_STEALS, half);
        domus_runner_count(victim, DOMUS_RUNNER_STOLEN, half);
    }
    return job;
}

/* Steal from the first sibling that has jobs. The rotation begins behind the last victim, so that
 * all siblings are victims equally often. */
static domus_job *steal_from_sibling(domus_runner *runner)
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

static domus_job *take_next_job(domus_runner *runner)
{
    ring *own = domus_runner_data(runner);
    domus_job *job = NULL;

    if (++own->turns == TURNS_TO_GLOBAL) {
        own->turns = 0;
        job = take_global_job(runner);
    }
    if (job == NULL)
        job = take_own_job(own);
    if (job == NULL)
        job = take_global_job(runner);
    if (job == NULL)
        job = steal_from_sibling(runner);
    return job;
}

static bool has_jobs(domus_runner *runner)
{
    domus_pool *pool = domus_runner_pool(runner);

    if (domi_global_ring_has_jobs(&get_rings(runner)->global))
        return true;
    for (uint32_t i = 0; i < domus_pool_runners(pool); i++) {
        ring *one = domus_runner_data(domus_pool_runner(pool, i));
        /* seq_cst: the runner has said that it parks before this load (parking.h). */
        if (atomic_load_explicit(&one->size, memory_order_seq_cst) != 0)
            return true;
    }
    return false;
}

static domus_job *rings_dequeue(domus_runner *runner, uint64_t wait_ns)
{
    rings *all = get_rings(runner);

    if (domus_runner_is_called(runner))
        return NULL;
    domus_job *job = take_next_job(runner);
    if (job != NULL || wait_ns == 0)
        return job;

    struct timespec end = domi_condition_end(wait_ns);
    do {
        domi_parking_park(&all->parking, runner, has_jobs, wait_ns == UINT64_MAX ? NULL : &end);
        if (domus_runner_is_called(runner))
            return NULL;
        job = take_next_job(runner);
    } while (job == NULL && (wait_ns == UINT64_MAX || !domi_condition_is_over(&end)));
    return job;
}

/* Move all jobs of the runner's ring to the global ring. */
static void rings_leave(domus_runner *runner)
{
    ring *own = domus_runner_data(runner);

    for (domus_job *job = take_own_job(own); job != NULL; job = take_own_job(own))
        rings_central_enqueue(domus_runner_pool(runner), job);
}

static void rings_call(domus_pool *pool)
{
    rings *all = domus_pool_data(pool);

    domi_parking_call_runners(&all->parking);
}

const domus_policy domus_policy_rings = {
    .name = "rings",
    .pool_size = sizeof(rings),
    .runner_size = sizeof(ring),
    .init = rings_init,
    .fini = rings_fini,
    .central_enqueue = rings_central_enqueue,
    .internal_enqueue = put_job_last,
    .resume_later = put_job_last,
    .dequeue = rings_dequeue,
    .call = rings_call,
    .leave = rings_leave,
};
