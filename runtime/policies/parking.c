/* This file lets the runners of a pool sleep, and wakes them (parking.h). */
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

static uint32_t count_parked_runners(const domi_parking *parking)
{
    /* Relaxed: the mutex is locked, and no thread writes `parked` without it. */
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&parking->parked,
                                memory_order_relaxed);
}

/* Let the calling runner sleep until it is signalled. The caller has locked the mutex. Returns
 * false if the time `end` has come. */
static bool sleep_until_signal(domi_parking *parking, const struct timespec *end)
{
    if (end != NULL)
        return domi_condition_sleep_until(&parking->wake, &parking->mutex, end);
    pthread_cond_wait(&parking->wake, &parking->mutex);
    return true;
}

/* Let a runner leave the parked ones, and use a wake-up if there is one. A runner that is called
 * will not look for a job now, so it leaves the wake-up to another runner; because this runner may
 * have got the signal of that wake-up, it signals again. The caller has locked the mutex. */
static void take_runner_off_parked_ones(domi_parking *parking, domus_runner *runner)
{
    bool leaves_wake_up = domus_runner_is_called(runner) && count_parked_runners(parking) != 0;

    if (parking->wakes != 0 && !leaves_wake_up) {
        parking->wakes--;
        return;
    }
    /* Relaxed: a thread that puts a job and still counts this runner locks the mutex, and then
     * finds that the runner has left. The runner is awake, and looks at the queues by seq_cst
     * before it sleeps again. */
    atomic_fetch_sub_explicit(&parking->parked, 1, memory_order_relaxed);
    if (parking->wakes != 0)
        pthread_cond_signal(&parking->wake);
}

void domi_parking_park_runner(domi_parking *parking, domus_runner *runner,
                              bool (*has_jobs)(domus_runner *runner), const struct timespec *end)
{
    bool has_time = true;

    pthread_mutex_lock(&parking->mutex);
    /* seq_cst: pairs with the load of `parked` in domi_parking_wake_one_if_parked(), as parking.h
     * tells. */
    atomic_fetch_add_explicit(&parking->parked, 1, memory_order_seq_cst);
    if (!has_jobs(runner)) {
        domus_runner_count(runner, DOMUS_RUNNER_PARKS, 1);
        while (has_time && parking->wakes == 0 && !domus_runner_is_called(runner))
            has_time = sleep_until_signal(parking, end);
    }
    take_runner_off_parked_ones(parking, runner);
    pthread_mutex_unlock(&parking->mutex);
}

void domi_parking_call_runners(domi_parking *parking)
{
    /* A runner that does not see yet that it is called is asleep, or will still look under the
     * mutex before it sleeps. */
    pthread_mutex_lock(&parking->mutex);
    pthread_cond_broadcast(&parking->wake);
    pthread_mutex_unlock(&parking->mutex);
}

void domi_parking_wake_one_parked_runner(domi_parking *parking)
{
    pthread_mutex_lock(&parking->mutex);
    bool is_parked = count_parked_runners(parking) != 0;
    if (is_parked) {
        /* Relaxed: a later put that counts no parked runner leaves its job to the runner that uses
         * this wake-up, and that looks at the queues by seq_cst before it sleeps again. */
        atomic_fetch_sub_explicit(&parking->parked, 1, memory_order_relaxed);
        parking->wakes++;
    }
    pthread_mutex_unlock(&parking->mutex);
    /* Signalled after the mutex was unlocked, so that the runner that wakes can lock it at once. */
    if (is_parked)
        pthread_cond_signal(&parking->wake);
}
