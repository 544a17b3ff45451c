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

#define DOMI_POOL_RUNNERS_MAX 128u /* most runners that a pool may have, its spares included */

typedef struct domi_runner_counters {
    domi_counter turns; /* number of turns that the runner has given to actors */
    domi_counter puts;  /* number of jobs that this runner has put into the queues */
    domi_counter takes; /* number of jobs that this runner has taken from the queues */
    /* counts that the policy makes (domus_runner_count()); other runners add to
     * DOMUS_RUNNER_STOLEN */
    domi_counter events[DOMUS_RUNNER_EVENTS];
    domi_counter begun; /* number of times that a thread of this runner was begun */
    domi_stall_counts stalls;
    /* The times of a runner, from the next field to `park_ns`, belong together while `stamp_ns` is
     * not DOMI_RUNNER_MOVING and does not change. All are 0 if times are not measured. */

    /* time at which the runner last began to wait, or went on, or began to live; 0: it does not
     * live */
    domi_counter stamp_ns;
    domi_counter waits;    /* 1: the runner has waited since `stamp_ns`; 0: it has worked */
    domi_counter lived_ns; /* nanoseconds that the runner had lived at `stamp_ns` */
    /* CPU time that the runner has used while it waited for jobs, in nanoseconds */
    domi_counter search_ns;
    /* time that the runner has waited for jobs without using the CPU, in nanoseconds */
    domi_counter park_ns;
} domi_runner_counters;

#define DOMI_RUNNER_MOVING UINT64_MAX

/* The monitor's notes about one runner of a pool (spares.c). Only the monitor's thread uses
 * them. */
typedef struct domi_pulse {
    uint64_t beat;    /* sum of the runner's life-beats when the monitor looked last */
    uint64_t beat_ns; /* time at which the monitor first saw the sum that is in `beat` */
    /* true: the runner's present turn is a stall, which was counted (stalled.c) */
    bool is_stalled;
    /* number of the present stall in the history of stalls; 0: it was not reported */
    uint64_t stall_number;
} domi_pulse;

struct domus_runner {
    /* manager of the turns that the runner gives, with the memory for their messages; no actor has
     * it as its home */
    domi_manager manager;
    domus_pool *pool;
    uint32_t number;
    void *data;         /* data that the pool's policy has for this runner */
    domi_random random; /* source of the runner's random numbers; used by the runner alone */
    pthread_t pthread;  /* handle of the runner's thread; valid if `begun` */
    bool begun;         /* true: a thread of the runner was made; under the system's mutex */
    /* true: the thread of this spare has left its loop; under the system's mutex */
    bool left;
    /* true: the runner's thread was joined; used only by the thread that stops the system */
    bool joined;
    /* CPU time of the runner's thread when its wait began; used by the runner alone */
    uint64_t wait_cpu_ns;
    /* number of turns until the runner looks at the clock, timers and memory again */
    uint32_t turns_to_look;
    uint32_t turns_between; /* number of turns from one such look to the next; 0..16 */
    domi_runner_counters counters;
    domi_pulse pulse;
    /* lets a CPU profile sample the runner's thread; the runner writes it */
    domi_sampled sampled;
    /* orders of the system that the runner has followed (runtime/system/orders.h) */
    _Atomic uint32_t orders;
    /* True if the runner found no job when it looked last, and sleeps, or is about to look again.
     * The runner writes this. */
    _Atomic bool rests;
    /* true: this spare is not needed any more and has to end; the monitor writes this */
    _Atomic bool retires;
    /* True if the runner is called: it has to return from `dequeue`. A thread that calls the runner
     * writes true, and the runner writes false. */
    alignas(DOMI_LINES) _Atomic bool called;
};

/* The monitor's notes about a pool of runners (spares.c). Only the monitor's thread uses them. */
typedef struct domi_watched {
    /* time since when too many runners of the pool have been at work; 0: not too many are */
    uint64_t crowded_ns;
    uint64_t stall_told_ns; /* time at which a stall in this pool was last logged; 0: never */
    /* number of stalls in the pool since `stall_told_ns`, which were not logged */
    uint32_t stalls_untold;
    bool told_full;    /* true: it was logged that all spares of the pool are blocked, too */
    bool told_refused; /* true: it was logged that the thread of a spare could not be made */
    uint32_t spares;   /* number of the pool's spares whose threads are not joined yet */
} domi_watched;

struct domus_pool {
    domi_pooled pooled; /* part of the pool that house/ knows */
    domi_manager home;  /* manager that is the home of the pool's actors, and that no thread owns */
    struct domus_system *system;
    /* section of this pool in the system's configuration */
    const struct domus_pool_config *settings;
    const domus_policy *policy;
    /* true: the policy or the program has hooks that are called around each turn */
    bool hooked;
    void *data;      /* data that the policy has for the whole pool */
    uint32_t number; /* index of the pool among the pools of the system */
    uint32_t count;  /* number of entries of `runners`: first the usual runners, then the spares */
    uint32_t usual;  /* number of the pool's runners that are no spares */
    domus_runner **runners;
    /* not 0: a runner has begun the walk that stops all actors of the pool */
    _Atomic uint32_t walked;
    domi_watched watched;
    /* Number of jobs that threads other than the pool's runners have put into the queues. */
    alignas(DOMI_LINES) domi_counter puts;
};

/* Returns how many jobs wait in the queues of a pool. The counts of takes are read before those of
 * puts, so that a job that comes and goes meanwhile does not make the number smaller. Any thread
 * may call this. */
uint64_t domi_pool_count_queued_jobs(const domus_pool *pool);

/* Call all runners of a pool: each of them returns once from `dequeue`. Any thread may call
 * this. */
void domi_pool_call_all_runners(domus_pool *pool);

#endif
