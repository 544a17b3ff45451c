/* This file has the put, the take and the growth of the ring of jobs that a whole pool shares
 * (global_ring.h). */
#include "runtime/policies/global_ring.h"

#include "base/memory.h"

#include <assert.h>
#include <errno.h>

/* Most places that the ring may have; further jobs wait in the list behind it. */
#define PLACES_MAX ((size_t)1 << 30)

static_assert((DOMI_GLOBAL_RING_PLACES & (DOMI_GLOBAL_RING_PLACES - 1)) == 0, "a power of two");

int domi_global_ring_init(domi_global_ring *ring)
{
    ring->places = domi_memory_new_bytes(DOMI_GLOBAL_RING_PLACES * sizeof(domus_job *));
    if (ring->places == NULL)
        return -ENOMEM;
    int error = pthread_mutex_init(&ring->mutex, NULL);
    if (error != 0) {
        domi_memory_free(ring->places);
        return -error;
    }
    ring->capacity = DOMI_GLOBAL_RING_PLACES;
    return 0;
}

void domi_global_ring_destroy(domi_global_ring *ring)
{
    pthread_mutex_destroy(&ring->mutex);
    domi_memory_free(ring->places);
}

/* Returns the number of jobs in the ring and its list. The caller has locked the mutex. Relaxed: no
 * thread writes the number without the mutex. */
static size_t count_jobs_of_ring(const domi_global_ring *ring)
{
    return atomic_load_explicit((_Atomic size_t *)(uintptr_t)&ring->count, memory_order_relaxed);
}

/* Returns the place of the ring that is `steps` behind the place of the first job. */
static domus_job **get_place_behind_first(domi_global_ring *ring, size_t steps)
{
    return &ring->places[(ring->first + steps) & (ring->capacity - 1)];
}

/* Double the number of places of a full ring. If there is no memory, the ring stays as it is. */
static void grow_ring(domi_global_ring *ring)
{
    if (ring->capacity >= PLACES_MAX)
        return;
    domus_job **places = domi_memory_new_bytes(2 * ring->capacity * sizeof(domus_job *));
    if (places == NULL)
        return;
    for (size_t i = 0; i < ring->capacity; i++)
        places[i] = *get_place_behind_first(ring, i);
    domi_memory_free(ring->places);
    ring->places = places;
    ring->capacity *= 2;
    ring->first = 0;
}

static void append_job_to_list(domi_global_ring *ring, domus_job *job)
{
    domus_job_link(job, NULL);
    if (count_jobs_of_ring(ring) == ring->capacity)
        ring->list_first = job;
    else
        domus_job_link(ring->list_last, job);
    ring->list_last = job;
}

static domus_job *take_job_from_list(domi_global_ring *ring)
{
    domus_job *job = ring->list_first;

    ring->list_first = domus_job_next(job);
    domus_job_link(job, NULL);
    return job;
}

void domi_global_ring_put_job(domi_global_ring *ring, domus_job *job)
{
    pthread_mutex_lock(&ring->mutex);
    size_t count = count_jobs_of_ring(ring);

    if (count == ring->capacity)
        grow_ring(ring);
    if (count < ring->capacity)
        *get_place_behind_first(ring, count) = job;
    else
        append_job_to_list(ring, job);
    /* seq_cst: the thread that puts the job looks for parked runners after this (parking.h). */
    atomic_store_explicit(&ring->count, count + 1, memory_order_seq_cst);
    pthread_mutex_unlock(&ring->mutex);
}

domus_job *domi_global_ring_take_job(domi_global_ring *ring)
{
    domus_job *job = NULL;

    /* Relaxed: a runner that misses a job because it reads an old count looks again before it
     * sleeps. */
    if (atomic_load_explicit(&ring->count, memory_order_relaxed) == 0)
        return NULL;
    pthread_mutex_lock(&ring->mutex);
    size_t count = count_jobs_of_ring(ring);
    if (count != 0) {
        domus_job **place = get_place_behind_first(ring, 0);
        job = *place;
        /* The place that the first job has left becomes the last place of the ring, for the first
         * job of the list. */
        if (count > ring->capacity)
            *place = take_job_from_list(ring);
        ring->first = (ring->first + 1) & (ring->capacity - 1);
        /* Relaxed: a runner that still reads the old count only locks the mutex for nothing. */
        atomic_store_explicit(&ring->count, count - 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&ring->mutex);
    return job;
}
