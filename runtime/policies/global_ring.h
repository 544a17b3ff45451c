/* A queue of jobs for a whole pool, first in first out: a ring that grows.
 *
 * The ring begins with 64 places and doubles when it is full. If there is no memory for that, the
 * jobs that follow form a list behind the ring, through the link that each job has, so a put never
 * fails. Each take from the ring then makes room for the first job of the list. The ring tries to
 * grow again when the list is empty and the next put finds it full.
 *
 * Invariant, under the mutex: the first `capacity` jobs are in the ring, and all others in the
 * list. So the list is empty unless `count` is greater than `capacity`.
 *
 * Thread-safety: any thread. */
#ifndef DOMI_RUNTIME_POLICIES_GLOBAL_RING_H
#define DOMI_RUNTIME_POLICIES_GLOBAL_RING_H

#include "house/message/parts.h"

#include <domus/policy.h>

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

#define DOMI_GLOBAL_RING_PLACES 64u /* number of places that the ring has at first */

typedef struct domi_global_ring {
    /* Number of jobs in the ring and the list. Written under the mutex. Runners read it without the
     * mutex, which they need not lock while there are no jobs. */
    alignas(DOMI_LINES) _Atomic size_t count;
    alignas(DOMI_LINES) pthread_mutex_t mutex;
    domus_job **places;
    size_t capacity; /* number of the ring's places; a power of two */
    size_t first;    /* place of the job that is taken next */
    /* first job of the list behind the ring; undefined, as `list_last`, while the list is empty */
    domus_job *list_first;
    domus_job *list_last;
} domi_global_ring;

/* Make a ring without jobs. Returns 0, or a negative errno. Called before other threads use the
 * ring. */
int domi_global_ring_init(domi_global_ring *ring);
void domi_global_ring_destroy(domi_global_ring *ring);

/* Put a job behind all others in the ring or its list. The new count is stored by seq_cst
 * (parking.h). */
void domi_global_ring_put_job(domi_global_ring *ring, domus_job *job);

/* Take the first job of the ring. Returns NULL if there is none. */
domus_job *domi_global_ring_take_job(domi_global_ring *ring);

/* True if there is a job in the ring or its list. */
static inline bool domi_global_ring_has_jobs(domi_global_ring *ring)
{
    /* seq_cst: a runner that parks loads this count after it has said that it parks (parking.h). */
    return atomic_load_explicit(&ring->count, memory_order_seq_cst) != 0;
}

#endif
