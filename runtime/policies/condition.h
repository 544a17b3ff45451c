/* Condition variables with the monotonic clock, on which the runners of a pool sleep for a limited
 * time. */
#ifndef DOMI_RUNTIME_POLICIES_CONDITION_H
#define DOMI_RUNTIME_POLICIES_CONDITION_H

#include "base/clock.h"

#include <errno.h>
#include <pthread.h>

/* The longest wait on a condition, a year in nanoseconds. With a longer one the time of its end
 * might overflow. */
#define DOMI_CONDITION_WAIT_MAX_NS (UINT64_C(365) * 24 * 3600 * 1000000000)

/* Returns the time at which a wait ends that begins now and lasts `wait_ns` at most. */
static inline struct timespec domi_condition_time_at_end_of_wait(uint64_t wait_ns)
{
    return domi_clock_deadline_after(
        wait_ns < DOMI_CONDITION_WAIT_MAX_NS ? wait_ns : DOMI_CONDITION_WAIT_MAX_NS);
}

static inline bool domi_condition_is_time_before(struct timespec one, struct timespec other)
{
    return one.tv_sec != other.tv_sec ? one.tv_sec < other.tv_sec : one.tv_nsec < other.tv_nsec;
}

/* True if the time at which a wait ends (`end`) has come. */
static inline bool domi_condition_is_wait_over(const struct timespec *end)
{
    return !domi_condition_is_time_before(domi_clock_deadline_after(0), *end);
}

/* Make a condition variable that uses the monotonic clock. Returns 0, or a negative errno. */
static inline int domi_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    int error = pthread_condattr_init(&attributes);

    if (error != 0)
        return -error;
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    error = pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
    return -error;
}

/* Sleep on a condition until it is signalled or the time `end` has come; the sleep may also end
 * without a reason. The caller has locked the mutex. Returns false if `end` has come. */
static inline bool domi_condition_sleep_until(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                              const struct timespec *end)
{
    return pthread_cond_timedwait(condition, mutex, end) != ETIMEDOUT;
}

#endif
