/* This file has the sleep and wake-up of runners (parking.h). */
#include "runtime/policies/parking.h"

#include "runtime/policies/condition.h"

int domi_parking_init(domi_parking *parking)
{
    int error = pthread_mutex_init(&parking->mutex, NULL);

    if (error != 0)
        return -error;
    error = domi_condition_init(&parking->wake);
    if (error != 0)
        pthread_mutex_destroy(&parking->mutex);
    return error;
}

void domi_parking_destroy(domi_parking *parking)
{
    pthread_cond_destroy(&parking->wake);
    pthread_mutex_destroy(&parking->mutex);
}

static uint32_t get_parked_count(const domi_parking *parking)
{
    /* Relaxed: the mutex is locked, and no thread writes `parked` without it. */
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&parking->parked,
                                memory_order_relaxed);
}

/* Sleep once. The caller has locked the mutex. Returns false if `end` has come. */
static bool sleep_until(domi_parking *parking, const struct timespec *end)
{
    if (end != NULL)
        return domi_condition_wait(&parking->wake, &parking->mutex, end);
    pthread_cond_wait(&parking->wake, &parking->mutex);
    return true;
}

/* Let the runner leave the parked ones, and use a wake-up if there is one. A runner that is called
 * will not look for a job now, so it leaves the wake-up to another runner; the signal of that
 * wake-up may have come to this runner, so it signals again. The caller has locked the mutex. */
static void leave_parked_list(domi_parking *parking, domus_runner *runner)
{
    bool leaves_wake_up = domus_runner_is_called(runner) && get_parked_count(parking) != 0;

    if (parking->wakes != 0 && !leaves_wake_up) {
        parking->wakes--;
        return;
    }
    /* Relaxed: a put that still sees the runner locks the mutex and then finds that the runner has
     * left. The runner is awake, and looks at the queues by seq_cst before it sleeps again. */
    atomic_fetch_sub_explicit(&parking->parked, 1, memory_order_relaxed);
    if (parking->wakes != 0)
        pthread_cond_signal(&parking->wake);
}

void domi_parking_park(domi_parking *parking, domus_runner *runner,
                       bool (*has_jobs)(domus_runner *runner), const struct timespec *end)
{
    bool has_time = true;

    pthread_mutex_lock(&parking->mutex);
    /* seq_cst: pairs with domi_parking_wake_one() as parking.h tells. */
    atomic_fetch_add_explicit(&parking->parked, 1, memory_order_seq_cst);
    if (!has_jobs(runner)) {
        domus_runner_count(runner, DOMUS_RUNNER_PARKS, 1);
        while (has_time && parking->wakes == 0 && !domus_runner_is_called(runner))
            has_time = sleep_until(parking, end);
    }
    leave_parked_list(parking, runner);
    pthread_mutex_unlock(&parking->mutex);
}

void domi_parking_call_runners(domi_parking *parking)
{
    /* A runner that does not see yet that it is called either has its look, under the mutex, still
     * before it, or is asleep. */
    pthread_mutex_lock(&parking->mutex);
    pthread_cond_broadcast(&parking->wake);
    pthread_mutex_unlock(&parking->mutex);
}

void domi_parking_wake_parked(domi_parking *parking)
{
    pthread_mutex_lock(&parking->mutex);
    bool is_parked = get_parked_count(parking) != 0;
    if (is_parked) {
        /* Relaxed: a later put that sees no parked runner leaves its job to the runner that uses
         * this wake-up, which looks at the queues by seq_cst before it sleeps again. */
        atomic_fetch_sub_explicit(&parking->parked, 1, memory_order_relaxed);
        parking->wakes++;
    }
    pthread_mutex_unlock(&parking->mutex);
    /* The signal comes after the mutex is unlocked, so that the runner that wakes can lock it at
     * once. */
    if (is_parked)
        pthread_cond_signal(&parking->wake);
}
