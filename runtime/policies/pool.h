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
#include "runtime/system/backtrace_samples.h"
#include "runtime/system/orders.h"
#include "runtime/system/stall_counts.h"

#include <domus/policy.h>
#include <domus/profile.h>

#include <pthread.h>

struct domus_system;

#define DOMI_POOL_RUNNERS_MAX 128u /* runners of a pool, with its spares */

typedef struct domi_runner_counters {
    domi_counter turns;                       /* turns that were given to actors */
    domi_counter puts;                        /* jobs that this runner has put into the queues */
    domi_counter takes;                       /* jobs that it has taken from them */
    domi_counter events[DOMUS_RUNNER_EVENTS]; /* what policies count; STOLEN by other runners */
    domi_counter begun;                       /* how often its thread has begun */
    domi_stall_counts stalls;
    /* The times below belong together while `stamp_ns` is not DOMI_RUNNER_MOVING, and does not
     * change. All are 0 if times are not measured. */
    domi_counter stamp_ns;  /* when the runner began to wait, or its life; 0: it does not live */
    domi_counter waits;     /* 1: it waits since the stamp */
    domi_counter lived_ns;  /* time up to the stamp */
    domi_counter search_ns; /* CPU time in waits */
    domi_counter park_ns;   /* the rest of the time in waits */
} domi_runner_counters;

#define DOMI_RUNNER_MOVING UINT64_MAX

/* The monitor's notes of a runner (spares.c). Only its thread uses this. */
typedef struct domi_pulse {
    uint64_t beat;         /* the sum of what the runner has done, at the last look */
    uint64_t beat_ns;      /* when the monitor first saw this sum */
    bool is_stalled;       /* the present turn is a stall, which was counted (stalled.c) */
    uint64_t stall_number; /* its number in the history; 0: it was not reported */
} domi_pulse;

struct domus_runner {
    domi_manager manager; /* the home of nobody; what its turns send is of its memory */
    domus_pool *pool;
    uint32_t number;
    void *data;           /* the policy's */
    domi_random random;   /* random numbers; used by the runner alone */
    pthread_t pthread;    /* set when `begun` */
    bool begun;           /* the thread of the runner was made; under the system's mutex */
    bool left;            /* the thread of a spare has left its loop; under the same mutex */
    bool joined;          /* the thread was joined; used by the thread that stops the system */
    uint64_t wait_cpu_ns; /* the runner's CPU time when its wait began; used by the runner alone */
    uint32_t turns_to_look; /* turns until it looks at the clock, timers and memory */
    uint32_t turns_between; /* turns from one look to the next; 0..16 */
    domi_runner_counters counters;
    domi_pulse pulse;
    domi_sampled sampled;    /* how a CPU profile samples it; the runner */
    _Atomic uint32_t orders; /* the orders that the runner has followed (runtime/system/orders.h) */
    /* The runner found no job when it looked last, and sleeps, or is about to look again. The
     * runner writes this. */
    _Atomic bool rests;
    _Atomic bool retires; /* this spare is not needed any more; the monitor writes true */
    /* The runner has to return from `dequeue`. A thread that calls the runner writes true, and the
     * runner writes false. */
    alignas(DOMI_LINES) _Atomic bool called;
};

/* The monitor's notes of a pool (spares.c). Only its thread uses this. */
typedef struct domi_watched {
    uint64_t crowded_ns; /* since when more runners are at work than are usual; 0: they are not */
    uint64_t stall_told_ns; /* when the log last told of a stall; 0: never */
    uint32_t stalls_untold; /* stalls since then */
    bool told_full;         /* the log knows that all spares of this spell are blocked, too */
    bool told_refused;      /* the log knows that a spare's thread could not be made */
    uint32_t spares;        /* spares whose threads are not joined yet */
} domi_watched;

struct domus_pool {
    domi_pooled pooled; /* the part that house/ knows; its home is `home` */
    domi_manager home;  /* the home of the pool's actors, which no thread owns */
    struct domus_system *system;
    const struct domus_pool_config *settings; /* in the system's configuration */
    const domus_policy *policy;
    bool hooked;     /* the policy or the program has functions around a turn */
    void *data;      /* the policy's */
    uint32_t number; /* the place of the pool in the system */
    uint32_t count;  /* entries of `runners`: runners, then spares */
    uint32_t usual;  /* runners that are no spares */
    domus_runner **runners;
    _Atomic uint32_t walked; /* a runner has begun to stop all actors */
    domi_watched watched;
    /* Jobs that threads have put which are not runners of this pool. */
    alignas(DOMI_LINES) domi_counter puts;
};

/* Returns the number of jobs in the queues. The takes are read first, so that a job that comes and
 * goes meanwhile makes the number no smaller. Any thread. */
uint64_t domi_pool_count_queued(const domus_pool *pool);

/* Call every runner of the pool: each returns from `dequeue` once. Any thread. */
void domi_pool_call(domus_pool *pool);

#endif
