/* Helper threads for work that blocks, so that the pinned threads never do.
 *
 * A job is embedded in an object of the caller and waits in one queue, first come, first begun. A
 * thread is made when a job finds none free, up to `threads_max`; one that has had nothing to do
 * for `idle_expiry_ns` ends, down to `threads_min`. Knows nothing of actors: what `done` does is
 * the caller's business.
 *
 * What a job that blocks costs the others: one thread. When `threads_max` of them block, all that
 * comes later waits in order, and beyond `queue_max` is refused, until one of them returns; nothing
 * else in the process waits for it. So jobs that wait for one another must be fewer than
 * `threads_max`, or they wait for ever.
 *
 * A function that has begun cannot be ended from outside. domi_workers_stop() says how many still
 * run when its time is over, and abandons them: their `done` is never called and their job is not
 * looked at again, so the job may be freed, but not what the function uses. Those threads, and they
 * alone, outlive domi_workers_free(); the last of them to return frees the pool. */
#ifndef DOMI_RUNTIME_OS_WORKERS_H
#define DOMI_RUNTIME_OS_WORKERS_H

#include "base/counter.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct domi_job domi_job;
typedef struct domi_helper domi_helper;

typedef enum domi_job_state {
    DOMI_JOB_IDLE, /* not the pool's: it may be submitted, or freed */
    DOMI_JOB_QUEUED,
    DOMI_JOB_RUNNING,
} domi_job_state;

/* All zero but `function`, `argument` and `done`. */
struct domi_job {
    int (*function)(void *argument); /* returns, and leaves its thread as it found it */
    void *argument;
    /* Called without a lock when the function has returned, on the helper thread; by
     * domi_workers_stop() for what it cancels. The pool does not look at the job any more: it may
     * be freed or submitted again in it. Must not block. */
    void (*done)(domi_job *job);
    int result; /* for `done`: what the function returned; -ECANCELED: it was not called */

    domi_job_state state; /* from here on the pool's, under its mutex */
    uint64_t queued_ns;
    domi_job *next;
    domi_job *previous;
};

typedef struct domi_workers_limits {
    uint32_t threads_min; /* 0..threads_max; made with the first job, then kept */
    uint32_t threads_max; /* 1..DOMI_WORKERS_THREADS_MAX */
    uint32_t queue_max;   /* at least 1: jobs for which no thread is on its way */
    uint64_t idle_expiry_ns;
} domi_workers_limits;

#define DOMI_WORKERS_THREADS_MAX 1024u

/* No wait is longer, so that no sum overflows: a year. */
#define DOMI_WORKERS_WAIT_MAX_NS UINT64_C(31536000000000000)

/* CPU numbers that an affinity mask is read for: 8,192, more than any Linux has. */
#define DOMI_WORKERS_CPU_SETS 8

/* Written under the mutex; anyone may read them. The last three also go down. */
typedef struct domi_workers_counters {
    domi_counter jobs;        /* taken in */
    domi_counter refused;     /* -EAGAIN and -ENOMEM */
    domi_counter withdrawn;   /* taken back before they began */
    domi_counter unmade;      /* threads that the kernel refused */
    domi_counter wait_max_ns; /* the longest that a job waited before it began */
    domi_counter queued;      /* jobs that wait */
    domi_counter running;     /* jobs in their function */
    domi_counter threads;
} domi_workers_counters;

typedef struct domi_workers {
    domi_workers_limits limits;
    /* Make a thread that calls run(argument). Returns 0; a positive errno. Tests put theirs here
     * before the first job. */
    int (*make)(pthread_t *ret_thread, void *(*run)(void *argument), void *argument);
    cpu_set_t cpus[DOMI_WORKERS_CPU_SETS]; /* what the process may use */

    pthread_mutex_t mutex; /* over all that follows */
    pthread_cond_t left;   /* a thread ended */
    domi_job *first;       /* the queue, oldest first */
    domi_job *last;
    domi_helper *idle; /* a stack: who was busy last is called first, so that the others expire */
    uint32_t coming;   /* helpers made or called that have not looked at the queue yet */
    bool stopping;
    bool abandoned; /* who returns from its function ends, and does nothing else */
    bool owned;     /* not freed yet */
    bool has_ended; /* `ended` is a thread that nobody has joined yet: the next to end does */
    pthread_t ended;
    domi_workers_counters counters;
} domi_workers;

/* Makes no thread. The CPUs are those that the calling thread may use.
 * Returns 0; -ENOMEM; a negative errno when the kernel does not tell the CPUs. */
int domi_workers_new(const domi_workers_limits *limits, domi_workers **ret_workers);

/* Stops first, without waiting, if nobody has. When every thread has ended, nothing of the pool
 * runs any more when this returns; else see above. NULL is taken. */
void domi_workers_free(domi_workers *workers);

/* Queue `job`. Waking a thread takes some 5 us, making one 20 to 50 us: never under a spinlock.
 *
 * Ownership:     the pool's until `done` is called or it was withdrawn; when this fails, the
 *                caller's.
 * Thread-safety: any thread, also in a function and in `done`.
 * Returns 0; -EAGAIN at queue_max; -ESHUTDOWN when stopping; -EAGAIN or -ENOMEM when there is no
 * thread and none can be made (while there is one, the job waits for it). */
int domi_workers_submit(domi_workers *workers, domi_job *job);

/* Take back a job that has not begun: true, and `done` is not called. False: it runs, or is not in
 * the pool. Thread-safety: any thread, while the job exists. */
bool domi_workers_withdraw(domi_workers *workers, domi_job *job);

/* Take no more jobs, call `done` with -ECANCELED for those that have not begun, here and in order,
 * and wait up to `timeout_ns` for those that run. What is in `done` is waited for in any case.
 *
 * Returns how many functions still run: they are abandoned (see above). Called again, it waits for
 * them again. Thread-safety: any thread but the pool's own. */
uint32_t domi_workers_stop(domi_workers *workers, uint64_t timeout_ns);

/* The calling thread is one of the pool's: it may not stop it. */
bool domi_workers_is_helper(const domi_workers *workers);

#endif
