/* Helper threads run work that blocks, so that the pinned threads never block.
 *
 * A job is embedded in an object of the caller. Jobs wait in one queue and begin in the order in
 * which they came. A thread is made if a job finds no free one, up to `threads_max`; a thread that
 * has had nothing to do for `idle_expiry_ns` ends, down to `threads_min`. The pool knows nothing of
 * actors; the function `done` of a job does what the caller needs.
 *
 * A job that blocks takes one thread from the others. If `threads_max` of them block, later jobs
 * wait in order, and beyond `queue_max` they are refused, until one of the blocked jobs returns;
 * nothing else in the process waits for it. So fewer than `threads_max` jobs may wait for one
 * another, or they wait for ever.
 *
 * A function that has begun cannot be ended by another thread. domi_workers_stop() returns how
 * many still run when its time is over, and abandons them: their `done` is never called, and the
 * pool does not read their job again. So the job may be freed, but not what its function uses.
 * Only the threads of abandoned jobs outlive domi_workers_free(); the last of them that returns
 * frees the pool. */
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
    DOMI_JOB_IDLE, /* state of a job that belongs to the caller, who may submit or free it */
    DOMI_JOB_QUEUED,
    DOMI_JOB_RUNNING,
} domi_job_state;

/* A job for a helper thread. The caller sets `function`, `argument` and `done`, and everything else
 * to zero. */
struct domi_job {
    /* Function that does the job's work. It has to return, and to leave its thread as it found
     * it. */
    int (*function)(void *argument);
    void *argument; /* argument that the job's function gets */
    /* Called after the job's function has returned, on the helper thread without a lock; or, if
     * domi_workers_stop() cancels the job, on the thread that stops the pool. The pool does not use
     * the job any more, so `done` may free it or submit it again. It must not block. */
    void (*done)(domi_job *job);
    /* result of the job's function, for `done`; -ECANCELED: the function was not called */
    int result;

    /* state of the job, a domi_job_state; this field and those below belong to the pool, under
     * its mutex */
    domi_job_state state;
    uint64_t queued_ns; /* time at which the job was submitted, in nanoseconds */
    domi_job *next;     /* next job in the pool's queue */
    domi_job *previous; /* previous job in the pool's queue */
};

typedef struct domi_workers_limits {
    /* number of helper threads that do not end when they are idle, 0 to `threads_max`; made with
     * the first job */
    uint32_t threads_min;
    /* most helper threads that the pool may have, 1 to DOMI_WORKERS_THREADS_MAX */
    uint32_t threads_max;
    /* most jobs that may wait, at least 1; jobs for which a thread was just woken or made do not
     * count */
    uint32_t queue_max;
    uint64_t idle_expiry_ns; /* nanoseconds without a job after which a helper thread ends */
} domi_workers_limits;

#define DOMI_WORKERS_THREADS_MAX 1024u /* greatest value that `threads_max` may have */

/* Longest wait of a thread of the pool: a year in nanoseconds, so that no sum of times
 * overflows. */
#define DOMI_WORKERS_WAIT_MAX_NS UINT64_C(31536000000000000)

/* Number of cpu_set_t in an affinity mask of helpers: together they have 8,192 CPUs, more than
 * any Linux has. */
#define DOMI_WORKERS_CPU_SETS 8

/* Counters of a pool of helper threads. They are written under the mutex, and any thread may
 * read them. The last three also decrease. */
typedef struct domi_workers_counters {
    domi_counter jobs;        /* number of jobs that the pool has accepted */
    domi_counter refused;     /* number of jobs that the pool has refused with -EAGAIN or -ENOMEM */
    domi_counter withdrawn;   /* number of jobs that were withdrawn before they began */
    domi_counter unmade;      /* number of helper threads that the kernel refused to make */
    domi_counter wait_max_ns; /* longest time that a job waited before it began, in nanoseconds */
    domi_counter queued;      /* number of jobs that wait in the queue now */
    domi_counter running;     /* number of jobs that helpers run now */
    domi_counter threads;     /* number of helper threads that exist now */
} domi_workers_counters;

typedef struct domi_workers {
    domi_workers_limits limits; /* limits of the pool of helpers, constant */
    /* Makes a thread that calls run(argument), and returns 0 or a positive errno. A test may set
     * its own function in this field before the first job. */
    int (*make)(pthread_t *ret_thread, void *(*run)(void *argument), void *argument);
    cpu_set_t cpus[DOMI_WORKERS_CPU_SETS]; /* CPUs on which the helper threads may run */

    pthread_mutex_t mutex; /* protects all fields of the pool below */
    pthread_cond_t left;   /* signalled when a helper thread has ended, to domi_workers_stop() */
    domi_job *first;       /* oldest job of the queue, which runs next */
    domi_job *last;        /* newest job of the queue, which runs last */
    /* stack of idle helpers: the one that was busy last is woken first, so that the others can
     * end */
    domi_helper *idle;
    /* number of helper threads that were made or woken and have not looked at the queue yet */
    uint32_t coming;
    bool stopping; /* true: domi_workers_stop() was called, and no job is accepted any more */
    /* true: running jobs were abandoned, and a helper that returns from one only ends */
    bool abandoned;
    bool owned; /* true: domi_workers_free() was not called yet */
    /* true: `ended` is a helper thread that was not joined yet; the next helper that ends joins
     * it */
    bool has_ended;
    /* ended thread that has to be joined, valid while `has_ended` */
    pthread_t ended;
    /* counters of the pool, written under the mutex and read by any thread */
    domi_workers_counters counters;
} domi_workers;

/* Make a pool of helper threads, at first without any thread. Its helpers may use the CPUs that
 * the calling thread may use. Returns 0; -ENOMEM. */
int domi_workers_new(const domi_workers_limits *limits, domi_workers **ret_workers);

/* Free a pool of helper threads. If it was not stopped, domi_workers_stop() with a time-out of 0
 * comes first: jobs that wait are cancelled, and functions that still run are abandoned. Only
 * the threads of abandoned functions outlive this call. NULL is allowed. */
void domi_workers_free(domi_workers *workers);

/* Queue `job`. Waking a thread takes about 5 us, making one 20 to 50 us, so never call this under a
 * spinlock.
 *
 * Ownership:     the pool's until `done` is called or the job was withdrawn; if this fails, the
 *                caller's.
 * Thread-safety: any thread, also in a function and in `done`.
 * Returns 0; -EAGAIN at queue_max; -ESHUTDOWN if the pool is stopping; -EAGAIN or -ENOMEM if there
 * is no thread and none can be made (if there is one, the job waits for it). */
int domi_workers_submit_job(domi_workers *workers, domi_job *job);

/* Withdraw a job that no helper has begun. Returns true if it was withdrawn; then `done` is not
 * called. Returns false if the job runs or is not in the pool. Thread-safety: any thread, while the
 * job exists. */
bool domi_workers_withdraw_job(domi_workers *workers, domi_job *job);

/* Stop the pool: accept no more jobs, call `done` with -ECANCELED on the calling thread, in order,
 * for the jobs that have not begun, and wait up to `timeout_ns` for the running functions. The end
 * of a `done` that has begun is waited for in any case.
 *
 * Returns how many functions still run; these are abandoned (see the top of this file). A further
 * call waits for them again. Thread-safety: any thread but the pool's own. */
uint32_t domi_workers_stop(domi_workers *workers, uint64_t timeout_ns);

/* True if the calling thread is a helper thread of this pool, which therefore must not stop the
 * pool. */
bool domi_workers_is_helper(const domi_workers *workers);

#endif
