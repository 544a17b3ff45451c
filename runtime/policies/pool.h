/* A pool: runner threads without rings that share a population of actors, and the policy by which
 * they do (domus/policy.h).
 *
 * All runners of a pool, and the policy's data of the pool and of each of them, are made when the
 * system starts, and live until it is freed. The threads of runners begin at the start; those of
 * spares when they are needed (spares.c).
 *
 * Thread-safety: constant while threads run, except the fields that say otherwise. */
#ifndef DOMI_RUNTIME_POLICIES_POOL_H
#define DOMI_RUNTIME_POLICIES_POOL_H

#include "base/random.h"
#include "house/message/pooled.h"
#include "runtime/system/stop_step.h"

#include <domus/policy.h>

#include <pthread.h>

struct domus_system;

#define DOMI_POOL_RUNNERS_MAX 128u /* runners of a pool, with its spares */

typedef struct domi_runner_counters {
    domi_counter turns;                       /* turns that were given to actors */
    domi_counter events[DOMUS_RUNNER_EVENTS]; /* what policies count; STOLEN by other runners */
    domi_counter run_ns;                      /* time in turns */
    domi_counter search_ns;                   /* time in looking for work, without sleep */
    domi_counter park_ns;                     /* time asleep */
} domi_runner_counters;

struct domus_runner {
    domi_manager manager; /* the home of nobody; what its turns send is of its memory */
    domus_pool *pool;
    uint32_t number;
    void *data;             /* the policy's */
    domi_random random;     /* its chance; the runner */
    pthread_t pthread;      /* set when `begun` */
    bool begun;             /* its thread was made; under the system's mutex */
    bool joined;            /* its thread has been joined; the thread that stops the system */
    uint32_t turns_to_look; /* turns until it looks at the clock, timers and memory */
    domi_runner_counters counters;
    _Atomic uint32_t stop_step; /* enum domi_stop_step, that it has begun */
    /* It is to return from `dequeue`. Whoever calls writes true, and the runner false. */
    alignas(DOMI_LINES) _Atomic bool called;
};

struct domus_pool {
    domi_pooled pooled; /* what house knows; its home is `home` */
    domi_manager home;  /* the home of the pool's actors, which no thread owns */
    struct domus_system *system;
    const domus_policy *policy;
    void *data;      /* the policy's */
    uint32_t number; /* the place of the pool in the system */
    uint32_t count;  /* entries of `runners`: runners, then spares */
    uint32_t usual;  /* runners that are no spares */
    domus_runner **runners;
    _Atomic uint32_t walked; /* a runner has begun to stop all actors */
};

/* Call every runner of the pool: each returns from `dequeue` once. Any thread. */
void domi_pool_call(domus_pool *pool);

#endif
