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
    DOMI_JOB_IDLE, /* the caller's: it may submit or free the job */
    DOMI_JOB_QUEUED,
    DOMI_JOB_RUNNING,
} domi_job_state;

/* The caller sets `function`, `argument` and `done`; everything else is zero. */
struct domi_job {
    /* The function has to return, and to leave its thread as it found it. */
    int (*function)(void *argument);
    void *argument; /* handed to `function` */
    /* Called without a lock on the helper thread after the function has returned. If
     * domi_workers_stop() cancels the job, it calls this on its own thread. The pool does not read
     * the job any more, so `done` may free it or submit it again. It must not block. */
    void (*done)(domi_job *job);
    int result; /* for `done`: the result of the function; -ECANCELED: it was not called */

    domi_job_state state; /* the state and the fields below belong to the pool, under its mutex */
    uint64_t queued_ns;   /* when the job was submitted */
    domi_job *next;       /* links in the queue */
    domi_job *previous;   /* links the queue backwards */
};

typedef struct domi_workers_limits {
    uint32_t threads_min; /* 0 to threads_max; made with the first job, then kept */
    uint32_t threads_max; /* 1..DOMI_WORKERS_THREADS_MAX */
    /* at least 1: how many jobs may wait, beyond those for which a thread was just woken or made */
    uint32_t queue_max;
    uint64_t idle_expiry_ns; /* a helper without a job for this time ends */
} domi_workers_limits;

#define DOMI_WORKERS_THREADS_MAX 1024u /* most helper threads */

/* The longest wait is a year, so no sum of times overflows. */
#define DOMI_WORKERS_WAIT_MAX_NS UINT64_C(31536000000000000)

/* An affinity mask is an array of this many cpu_set_t: 8,192 CPUs, which no Linux exceeds. */
#define DOMI_WORKERS_CPU_SETS 8

/* These counters are written under the mutex, and any thread may read them. The last three
 * also decrease. */
typedef struct domi_workers_counters {
    domi_counter jobs;        /* jobs accepted */
    domi_counter refused;     /* jobs refused with -EAGAIN or -ENOMEM */
    domi_counter withdrawn;   /* jobs taken back before they began */
    domi_counter unmade;      /* threads that the kernel refused to make */
    domi_counter wait_max_ns; /* the longest time that a job waited before it began */
    domi_counter queued;      /* jobs that wait */
    domi_counter running;     /* jobs whose function runs */
    domi_counter threads;     /* helper threads now */
} domi_workers_counters;

typedef struct domi_workers {
    domi_workers_limits limits; /* constant */
    /* Make a thread that calls run(argument). Returns 0 or a positive errno. A test may set its own
     * function here before the first job. */
    int (*make)(pthread_t *ret_thread, void *(*run)(void *argument), void *argument);
    cpu_set_t cpus[DOMI_WORKERS_CPU_SETS]; /* CPUs that the process may use */

    pthread_mutex_t mutex; /* protects all that follows */
    pthread_cond_t left;   /* signalled when a thread has ended */
    domi_job *first;       /* the queue, oldest first */
    domi_job *last;        /* the newest job of the queue */
    /* a stack: the helper that was busy last is woken first, so that the others expire */
    domi_helper *idle;
    uint32_t coming; /* helpers that were made or woken and have not looked at the queue yet */
    bool stopping;   /* domi_workers_stop() was called: no job is taken any more */
    bool abandoned;  /* a helper that returns from its function ends, and does nothing else */
    bool owned;      /* domi_workers_free() was not called yet */
    /* `ended` is a thread that was not joined yet; the next one that ends joins it */
    bool has_ended;
    pthread_t ended;                /* the thread to join, if `has_ended` */
    domi_workers_counters counters; /* written under the mutex, read by any thread */
} domi_workers;

/* Make a pool, without any thread. Helpers may use the CPUs that the calling thread may use.
 * Returns 0; -ENOMEM; a negative errno if the kernel does not tell the CPUs. */
int domi_workers_new(const domi_workers_limits *limits, domi_workers **ret_workers);

/* Free the pool. If it was not stopped, domi_workers_stop() with a time-out of 0 comes first: jobs
 * that wait are cancelled, and functions that still run are abandoned. Only the threads of
 * abandoned functions live on when this returns. NULL is taken. */
void domi_workers_free(domi_workers *workers);

/* Queue `job`. Waking a thread takes about 5 us, making one 20 to 50 us, so never call this under a
 * spinlock.
 *
 * Ownership:     the pool's until `done` is called or the job was withdrawn; if this fails, the
 *                caller's.
 * Thread-safety: any thread, also in a function and in `done`.
 * Returns 0; -EAGAIN at queue_max; -ESHUTDOWN if the pool is stopping; -EAGAIN or -ENOMEM if there
 * is no thread and none can be made (if there is one, the job waits for it). */
int domi_workers_submit(domi_workers *workers, domi_job *job);

/* Take back a job that has not begun. Returns true if it was taken back; then `done` is not
 * called. Returns false if the job runs or is not in the pool. Thread-safety: any thread, while
 * the job exists. */
bool domi_workers_withdraw(domi_workers *workers, domi_job *job);

/* Accept no more jobs, call `done` with -ECANCELED on the calling thread, in order, for the jobs
 * that have not begun, and wait up to `timeout_ns` for those that run. A `done` that has begun is
 * waited for in any case.
 *
 * Returns how many functions still run; they are abandoned (see the top). If this is called again,
 * it waits for them again. Thread-safety: any thread but the pool's own. */
uint32_t domi_workers_stop(domi_workers *workers, uint64_t timeout_ns);

/* True if the calling thread is one of the pool's. Then it must not stop the pool. */
bool domi_workers_is_helper(const domi_workers *workers);

#endif
