/* The place where the runners of a pool sleep that have found no job in any queue.
 *
 * No wake-up is lost, because both sides write before they look, and all four accesses are seq_cst:
 *
 *     a thread that puts                     a runner that parks
 *     1. stores the new size of a queue      1. adds itself to `parked`
 *     2. loads `parked`                      2. loads the sizes of all queues
 *
 * In the one order of all seq_cst accesses one of the two first steps comes first, and the other
 * side's second step sees it. So either the runner finds the job, or the put finds the runner. In
 * the latter case it locks the mutex, which the runner holds from before its first step until it
 * sleeps.
 *
 * A put that finds a parked runner makes one wake-up and takes one runner out of `parked`. So a
 * burst of puts signals each sleeper once, and costs one load per put from then on. Any runner may
 * use the wake-up, also one that only comes to park; it looks at all queues afterwards.
 *
 * Invariant, under the mutex: `parked` and `wakes` add up to the runners in
 * domi_parking_park_runner(). */
#ifndef DOMI_RUNTIME_POLICIES_PARKING_H
#define DOMI_RUNTIME_POLICIES_PARKING_H

#include "house/message/parts.h"

#include <domus/policy.h>

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <time.h>

typedef struct domi_parking {
    /* Number of runners in domi_parking_park_runner() for which no wake-up was made. Written under
     * the mutex. It has a cache line of its own, because each put reads it. */
    alignas(DOMI_LINES) _Atomic uint32_t parked;
    alignas(DOMI_LINES) pthread_mutex_t mutex;
    /* signalled for each wake-up of one runner; broadcast when runners are called */
    pthread_cond_t wake;
    /* number of wake-ups that were made and no runner has used yet; under the mutex */
    uint32_t wakes;
} domi_parking;

/* Make the place where the runners of a pool park. Returns 0, or a negative errno. Called before
 * the runners run. */
int domi_parking_init(domi_parking *parking);
void domi_parking_destroy(domi_parking *parking);

/* Let a runner sleep until a put wakes it, it is called, or `end` has come (NULL: no bound); return
 * at once if `has_jobs` says that a queue has a job. `has_jobs` is called under the mutex, locks
 * nothing, and loads the sizes of the queues by seq_cst. After this function the runner looks for a
 * job, unless it is called. Called by the runner itself. */
void domi_parking_park_runner(domi_parking *parking, domus_runner *runner,
                              bool (*has_jobs)(domus_runner *runner), const struct timespec *end);

/* Wake all parked runners, so that each of them sees that it is called (domus_runner_is_called()).
 * Any thread may call this. */
void domi_parking_call_runners(domi_parking *parking);

/* Make a wake-up for one parked runner. Called by domi_parking_wake_one_if_parked(), which has seen
 * a parked runner. Any thread may call this. */
void domi_parking_wake_one_parked_runner(domi_parking *parking);

/* Wake one parked runner, if any is parked. Called by a thread that has just put a job and stored
 * the size of its queue by seq_cst. Any thread may call this. */
static inline void domi_parking_wake_one_if_parked(domi_parking *parking)
{
    /* seq_cst: pairs with the addition to `parked` in domi_parking_park_runner(), as told at the
     * top of this header. */
    if (atomic_load_explicit(&parking->parked, memory_order_seq_cst) != 0)
        domi_parking_wake_one_parked_runner(parking);
}

#endif
