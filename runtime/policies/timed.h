/* Conditions of CLOCK_MONOTONIC, on which runners wait with a bound. */
#ifndef DOMI_RUNTIME_POLICIES_TIMED_H
#define DOMI_RUNTIME_POLICIES_TIMED_H

#include "base/clock.h"

#include <pthread.h>
#include <stdbool.h>

/* A wait ends after a day by itself, also one without a bound, so that times do not overflow. */
#define DOMI_TIMED_NS_MAX ((uint64_t)24 * 60 * 60 * 1000000000u)

/* Make a condition. Returns 0; a negative errno. */
static inline int domi_timed_init(pthread_cond_t *condition)
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

/* The time at which a wait of `wait_ns` from now on ends. */
static inline struct timespec domi_timed_end(uint64_t wait_ns)
{
    return domi_clock_deadline_after(wait_ns < DOMI_TIMED_NS_MAX ? wait_ns : DOMI_TIMED_NS_MAX);
}

static inline bool domi_timed_is_before(struct timespec one, struct timespec other)
{
    return one.tv_sec != other.tv_sec ? one.tv_sec < other.tv_sec : one.tv_nsec < other.tv_nsec;
}

#endif
