/* A pool: runner threads without rings that share a population of actors, and the policy by which
 * they share them (domus/policy.h).
 *
 * All runners of a pool, and the policy's data of the pool and of each runner, are made when the
 * system starts, and live until the system is freed. The threads of runners begin at the start; the
 * threads of spares begin when they are needed (spares.c).
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

#define DOMI_POOL_RUNNERS_MAX 128u /* the most runners of a pool, its spares included */

typedef struct domi_runner_counters {
    domi_counter turns; /* turns that were given to actors */
    domi_counter puts;  /* jobs that this runner has put into the queues */
    domi_counter takes; /* jobs that this runner has taken from the queues */
    /* counts of the policy (domus_runner_count()); other runners add to DOMUS_RUNNER_STOLEN */
    domi_counter events[DOMUS_RUNNER_EVENTS];
    domi_counter begun; /* how often the runner's thread was begun */
    domi_stall_counts stalls;
    /* The times below belong together while `stamp_ns` is not DOMI_RUNNER_MOVING, and does not
     * change. All are 0 if times are not measured. */
    /* when the runner last began to wait or went on, or began to live; 0: it does not live */
    domi_counter stamp_ns;
    domi_counter waits;     /* 1: the runner waits since `stamp_ns` */
    domi_counter lived_ns;  /* life of the runner in ns up to `stamp_ns` */
    domi_counter search_ns; /* CPU time of the runner while it waited, in ns */
    domi_counter park_ns;   /* time without the CPU while the runner waited, in ns */
} domi_runner_counters;

#define DOMI_RUNNER_MOVING UINT64_MAX

/* The monitor's notes about a runner (spares.c). Only the monitor's thread uses them. */
typedef struct domi_pulse {
    uint64_t beat;         /* the sum of the runner's life-beats at the last look */
    uint64_t beat_ns;      /* when the monitor first saw the sum in `beat` */
    bool is_stalled;       /* the present turn is a stall, which was counted (stalled.c) */
    uint64_t stall_number; /* number of that stall in the history; 0: the stall was not reported */
} domi_pulse;

struct domus_runner {
    /* manager of the runner's turns, with the memory for their messages; no actor has it as its
     * home */
    domi_manager manager;
    domus_pool *pool;
    uint32_t number;
    void *data;           /* data of the policy for this runner */
    domi_random random;   /* random numbers; used by the runner alone */
    pthread_t pthread;    /* the runner's thread; valid if `begun` */
    bool begun;           /* the thread of the runner was made; under the system's mutex */
    bool left;            /* the thread of a spare has left its loop; under the system's mutex */
    bool joined;          /* the thread was joined; used by the thread that stops the system */
    uint64_t wait_cpu_ns; /* the runner's CPU time when its wait began; used by the runner alone */
    uint32_t turns_to_look; /* turns until the runner looks at the clock, timers and memory */
    uint32_t turns_between; /* turns from one look to the next; 0..16 */
    domi_runner_counters counters;
    domi_pulse pulse;
    domi_sampled sampled;    /* lets a CPU profile sample the thread; the runner writes it */
    _Atomic uint32_t orders; /* the orders that the runner has followed (runtime/system/orders.h) */
    /* The runner found no job when it looked last, and sleeps, or is about to look again. The
     * runner writes this. */
    _Atomic bool rests;
    _Atomic bool retires; /* this spare is not needed any more; the monitor writes true */
    /* The runner has to return from `dequeue`. A thread that calls the runner writes true, and the
     * runner writes false. */
    alignas(DOMI_LINES) _Atomic bool called;
};

/* The monitor's notes about a pool (spares.c). Only the monitor's thread uses them. */
typedef struct domi_watched {
    uint64_t crowded_ns;    /* time since when too many runners are at work; 0: not too many are */
    uint64_t stall_told_ns; /* when a stall in this pool was last logged; 0: never */
    uint32_t stalls_untold; /* number of stalls since `stall_told_ns`, which were not logged */
    bool told_full;         /* it was logged that all spares are blocked, too */
    bool told_refused;      /* it was logged that a spare's thread could not be made */
    uint32_t spares;        /* number of spares whose threads are not joined yet */
} domi_watched;

struct domus_pool {
    domi_pooled pooled; /* the part of the pool that house/ knows */
    domi_manager home;  /* the home of the pool's actors, which no thread owns */
    struct domus_system *system;
    const struct domus_pool_config *settings; /* the pool's part of the system's configuration */
    const domus_policy *policy;
    bool hooked;     /* the policy or the program has hooks around a turn */
    void *data;      /* data of the policy for this pool */
    uint32_t number; /* index of the pool in the system */
    uint32_t count;  /* entries of `runners`: runners, then spares */
    uint32_t usual;  /* number of runners that are no spares */
    domus_runner **runners;
    _Atomic uint32_t walked; /* not 0: a runner has begun to stop all actors */
    domi_watched watched;
    /* Number of jobs that were put by threads other than the pool's runners. */
    alignas(DOMI_LINES) domi_counter puts;
};

/* Returns the number of jobs in the queues. The counts of takes are read before those of puts, so
 * that a job that comes and goes meanwhile does not make the number smaller. Any thread may call
 * this. */
uint64_t domi_pool_count_queued(const domus_pool *pool);

/* Call every runner of the pool: each runner returns from `dequeue` once. Any thread may call
 * this. */
void domi_pool_call(domus_pool *pool);

#endif
