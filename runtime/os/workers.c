/* A pool has one mutex, one queue of jobs, and a condition variable for each thread (helper), on
 * which it sleeps while it has nothing to do.
 *
 * A submit wakes one helper, or makes one, unless one that was woken or made before has not looked
 * at the queue yet (`coming`). A helper takes jobs until the queue is empty, then sleeps on the
 * stack of idle ones. So:
 *
 *     queue not empty  =>  a thread is busy or on its way
 *
 * because a helper looks at the queue under the mutex before it sleeps or ends, and a job is
 * refused if there is no thread at all. The helper that became idle last is woken first, because
 * its cache is warm, and because the others can then expire although a little work keeps coming.
 *
 * A helper that ends joins the one that ended before it, and stop and free join the last one. So
 * ended threads do not pile up, no thread waits long for another, and a library that is unloaded
 * after free leaves no thread behind in its code. */
#include "runtime/os/workers.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/memory.h"
#include "runtime/os/threads.h"

#include <errno.h>
#include <string.h>

struct domi_helper {
    domi_helper *below;  /* next helper in the stack of idle helper threads */
    pthread_cond_t wake; /* signalled when `called` becomes true, to wake the helper */
    bool called;         /* true: the helper was woken, and has to look for a job, or to end */
};

static _Thread_local const domi_workers *helping;

static uint64_t read_monotonic_ns(void)
{
    struct timespec now = domi_clock_deadline_after(0);

    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Returns the time of CLOCK_MONOTONIC at which a wait of `wait_ns` nanoseconds ends. */
static struct timespec time_at_end_of_wait(uint64_t wait_ns)
{
    return domi_clock_deadline_after(wait_ns < DOMI_WORKERS_WAIT_MAX_NS ? wait_ns
                                                                        : DOMI_WORKERS_WAIT_MAX_NS);
}

static void init_monotonic_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* Subtract 1 from a counter of the pool that goes up and down. */
static void decrement_counter_of_pool(domi_counter *gauge)
{
    uint64_t value = domi_counter_read(gauge);

    DOMI_CHECK(value != 0);
    /* the load and the store need not be one operation, because only the thread that holds the
     * mutex writes */
    atomic_store_explicit(gauge, value - 1, memory_order_relaxed);
}

/* --- The queue, under the mutex --------------------------------------------------------------- */

static void append_job_to_queue(domi_workers *workers, domi_job *job)
{
    job->state = DOMI_JOB_QUEUED;
    job->queued_ns = read_monotonic_ns();
    job->next = NULL;
    job->previous = workers->last;
    *(workers->last != NULL ? &workers->last->next : &workers->first) = job;
    workers->last = job;
    domi_counter_add(&workers->counters.queued, 1);
}

static void unlink_job_from_queue(domi_workers *workers, domi_job *job)
{
    DOMI_CHECK(job->state == DOMI_JOB_QUEUED);
    *(job->previous != NULL ? &job->previous->next : &workers->first) = job->next;
    *(job->next != NULL ? &job->next->previous : &workers->last) = job->previous;
    job->next = job->previous = NULL;
    job->state = DOMI_JOB_IDLE;
    decrement_counter_of_pool(&workers->counters.queued);
}

/* --- A helper --------------------------------------------------------------------------------- */

static void remove_helper_from_idle_stack(domi_workers *workers, const domi_helper *helper)
{
    domi_helper **place = &workers->idle;

    while (*place != helper)
        place = &(*place)->below;
    *place = helper->below;
}

/* Sleep as an idle helper until a submit or a stop wakes this one. Returns true if it was woken;
 * false if it was idle for too long and more than `threads_min` threads exist, so that it may
 * end. */
static bool sleep_until_job_or_end(domi_workers *workers, domi_helper *helper)
{
    struct timespec until = time_at_end_of_wait(workers->limits.idle_expiry_ns);
    bool expired = false;

    helper->called = false;
    helper->below = workers->idle;
    workers->idle = helper;
    while (!helper->called && !expired) {
        /* The last `threads_min` helpers sleep without a time-out, so an idle pool of helpers
         * costs no CPU. */
        if (domi_counter_read(&workers->counters.threads) <= workers->limits.threads_min)
            pthread_cond_wait(&helper->wake, &workers->mutex);
        else
            expired = pthread_cond_timedwait(&helper->wake, &workers->mutex, &until) == ETIMEDOUT &&
                      domi_counter_read(&workers->counters.threads) > workers->limits.threads_min;
    }
    if (helper->called)
        return true;
    remove_helper_from_idle_stack(workers, helper);
    return false;
}

/* Run the oldest job of the queue. The mutex is held at the call and at the return, but not
 * while the job runs. Returns false if the job was abandoned meanwhile; then it may be freed
 * already. */
static bool run_oldest_job(domi_workers *workers)
{
    domi_workers_counters *counters = &workers->counters;
    domi_job *job = workers->first;
    int (*function)(void *) = job->function;
    void *argument = job->argument;

    unlink_job_from_queue(workers, job);
    job->state = DOMI_JOB_RUNNING;
    uint64_t waited_ns = read_monotonic_ns() - job->queued_ns;
    if (waited_ns > domi_counter_read(&counters->wait_max_ns))
        atomic_store_explicit(&counters->wait_max_ns, waited_ns, memory_order_relaxed);
    domi_counter_add(&counters->running, 1);
    pthread_mutex_unlock(&workers->mutex);

    int result = function(argument);

    pthread_mutex_lock(&workers->mutex);
    decrement_counter_of_pool(&counters->running);
    if (workers->abandoned)
        return false;
    job->result = result;
    job->state = DOMI_JOB_IDLE;
    pthread_mutex_unlock(&workers->mutex);
    job->done(job);
    pthread_mutex_lock(&workers->mutex);
    return true;
}

static int make_helper(domi_workers *workers);

/* Run jobs of the queue until this helper thread has to end. Returns with the mutex held. */
static void run_jobs_until_end(domi_workers *workers, domi_helper *helper)
{
    pthread_mutex_lock(&workers->mutex);
    workers->coming--;
    /* Each new helper makes the next one up to `threads_min`, so a thread that submits a job
     * makes at most one. */
    if (domi_counter_read(&workers->counters.threads) < workers->limits.threads_min)
        (void)make_helper(workers);
    for (;;) {
        /* Once the pool is stopping, the queue belongs to the thread that cancels the jobs in
         * it. */
        while (workers->first != NULL && !workers->stopping) {
            if (!run_oldest_job(workers))
                return;
        }
        if (workers->stopping || !sleep_until_job_or_end(workers, helper))
            return;
        workers->coming--;
    }
}

/* Free the pool of helpers, which no thread uses any more. */
static void free_pool_of_helpers(domi_workers *workers)
{
    DOMI_CHECK(workers->first == NULL && workers->idle == NULL);
    pthread_cond_destroy(&workers->left);
    pthread_mutex_destroy(&workers->mutex);
    domi_memory_free(workers);
}

/* Take the helper thread that has ended and was not joined yet. Returns false if there is none.
 * Called under the mutex; the caller joins the thread after it has unlocked the mutex. */
static bool take_ended_thread_to_join(domi_workers *workers, pthread_t *ret_thread)
{
    bool has = workers->has_ended;

    *ret_thread = workers->ended;
    workers->has_ended = false;
    return has;
}

/* Let the calling helper thread leave the pool. It holds the mutex, which this function unlocks.
 * After that the pool may be freed: by its owner, or, if the owner has already called
 * domi_workers_free(), by the last helper that leaves. */
static void unlock_and_leave_pool_of_helpers(domi_workers *workers)
{
    pthread_t previous;
    bool has_previous = take_ended_thread_to_join(workers, &previous);

    workers->ended = pthread_self();
    workers->has_ended = true;
    decrement_counter_of_pool(&workers->counters.threads);
    bool is_last = !workers->owned && domi_counter_read(&workers->counters.threads) == 0;
    pthread_cond_broadcast(&workers->left);
    pthread_mutex_unlock(&workers->mutex);
    if (has_previous)
        pthread_join(previous, NULL);
    if (is_last) {
        /* detached, because no other thread is left to join this one */
        pthread_detach(pthread_self());
        free_pool_of_helpers(workers);
    }
}

static void *run_helper_thread(void *workers_)
{
    domi_workers *workers = workers_;
    domi_helper helper = {.called = false};
    /* alternate stack of the helper, because a job is a function of the user and may overflow
     * the helper's own stack */
    domi_alternate_stack stack;

    helping = workers;
    domi_alternate_stack_begin_if_wanted(&stack);
    (void)pthread_setname_np(pthread_self(), "domus-blocking");
    /* A helper may run on any CPU of the process, but it has inherited the affinity mask of the
     * thread that made it, which may be pinned. */
    (void)sched_setaffinity(0, sizeof workers->cpus, workers->cpus);
    init_monotonic_condition(&helper.wake);
    run_jobs_until_end(workers, &helper);
    pthread_cond_destroy(&helper.wake);
    domi_alternate_stack_end(&stack);
    unlock_and_leave_pool_of_helpers(workers);
    return NULL;
}

static int make_os_thread(pthread_t *ret_thread, void *(*run)(void *argument), void *argument)
{
    sigset_t before;

    domi_signals_block_for_new_thread(&before);
    int result = pthread_create(ret_thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

/* Make one helper thread. The mutex stays locked meanwhile, because a job that another thread
 * submits must not rely on a helper that is then not made. Returns 0; -EAGAIN; -ENOMEM. */
static int make_helper(domi_workers *workers)
{
    pthread_t thread;

    if (workers->stopping ||
        domi_counter_read(&workers->counters.threads) >= workers->limits.threads_max)
        return -EAGAIN;
    int result = workers->make(&thread, run_helper_thread, workers);
    if (result != 0) {
        domi_counter_add(&workers->counters.unmade, 1);
        return result == ENOMEM ? -ENOMEM : -EAGAIN;
    }
    domi_counter_add(&workers->counters.threads, 1);
    workers->coming++;
    return 0;
}

/* Wake the helper that became idle last. It is signalled under the mutex, because once the mutex
 * is free the helper may end and destroy its condition variable. */
static void wake_newest_idle_helper(domi_workers *workers)
{
    domi_helper *helper = workers->idle;

    workers->idle = helper->below;
    helper->called = true;
    workers->coming++;
    pthread_cond_signal(&helper->wake);
}

/* --- The pool --------------------------------------------------------------------------------- */

int domi_workers_new(const domi_workers_limits *limits, domi_workers **ret_workers)
{
    DOMI_CHECK(limits->threads_max >= 1 && limits->threads_max <= DOMI_WORKERS_THREADS_MAX);
    DOMI_CHECK(limits->threads_min <= limits->threads_max && limits->queue_max >= 1);
    domi_workers *workers = domi_memory_new(sizeof *workers);
    if (workers == NULL)
        return -ENOMEM;
    /* if a system call filter refuses the call, helpers may run on all CPUs */
    if (sched_getaffinity(0, sizeof workers->cpus, workers->cpus) != 0)
        memset(workers->cpus, 0xff, sizeof workers->cpus);
    workers->limits = *limits;
    workers->make = make_os_thread;
    workers->owned = true;
    pthread_mutex_init(&workers->mutex, NULL);
    init_monotonic_condition(&workers->left);
    *ret_workers = workers;
    return 0;
}

void domi_workers_free(domi_workers *workers)
{
    pthread_t ended;

    if (workers == NULL)
        return;
    pthread_mutex_lock(&workers->mutex);
    bool stopped = workers->stopping;
    pthread_mutex_unlock(&workers->mutex);
    if (!stopped)
        (void)domi_workers_stop(workers, 0);
    pthread_mutex_lock(&workers->mutex);
    workers->owned = false;
    bool is_last = domi_counter_read(&workers->counters.threads) == 0;
    bool has_ended = take_ended_thread_to_join(workers, &ended);
    pthread_mutex_unlock(&workers->mutex);
    if (has_ended)
        pthread_join(ended, NULL);
    if (is_last)
        free_pool_of_helpers(workers);
}

/* Make sure that a helper will take one more job: one that was woken or made already and will
 * find no other job, an idle one, or a new one. Returns 0; the negative errno of make_helper()
 * if no thread could be made. */
static int provide_helper_for_job(domi_workers *workers)
{
    if (workers->coming > domi_counter_read(&workers->counters.queued))
        return 0;
    if (workers->idle == NULL)
        return make_helper(workers);
    wake_newest_idle_helper(workers);
    return 0;
}

/* True if the queue has room for one more job, which waits until a busy helper is free. */
static bool has_queue_room_for_job(const domi_workers *workers)
{
    uint64_t waiting = domi_counter_read(&workers->counters.queued) - workers->coming;

    return domi_counter_read(&workers->counters.threads) != 0 &&
           waiting < workers->limits.queue_max;
}

int domi_workers_submit_job(domi_workers *workers, domi_job *job)
{
    int result = -ESHUTDOWN;

    pthread_mutex_lock(&workers->mutex);
    DOMI_CHECK(job->state == DOMI_JOB_IDLE && job->function != NULL && job->done != NULL);
    if (!workers->stopping) {
        result = provide_helper_for_job(workers);
        if (result != 0 && has_queue_room_for_job(workers))
            result = 0;
        domi_counter_add(result == 0 ? &workers->counters.jobs : &workers->counters.refused, 1);
    }
    if (result == 0)
        append_job_to_queue(workers, job);
    pthread_mutex_unlock(&workers->mutex);
    return result;
}

bool domi_workers_withdraw_job(domi_workers *workers, domi_job *job)
{
    pthread_mutex_lock(&workers->mutex);
    bool is_queued = job->state == DOMI_JOB_QUEUED;
    if (is_queued) {
        unlink_job_from_queue(workers, job);
        domi_counter_add(&workers->counters.withdrawn, 1);
    }
    pthread_mutex_unlock(&workers->mutex);
    return is_queued;
}

/* End all queued jobs with -ECANCELED. The mutex is locked at the call, and unlocked around each
 * `done`. Meanwhile no job is accepted or begun, because the pool is stopping, but other threads
 * may withdraw jobs. */
static void cancel_queued_jobs(domi_workers *workers)
{
    while (workers->first != NULL) {
        domi_job *job = workers->first;
        unlink_job_from_queue(workers, job);
        job->result = -ECANCELED;
        pthread_mutex_unlock(&workers->mutex);
        job->done(job);
        pthread_mutex_lock(&workers->mutex);
    }
}

uint32_t domi_workers_stop(domi_workers *workers, uint64_t timeout_ns)
{
    const domi_counter *running = &workers->counters.running;
    struct timespec until = time_at_end_of_wait(timeout_ns);
    pthread_t ended;
    int result = 0;

    DOMI_CHECK(!domi_workers_is_helper(workers));
    pthread_mutex_lock(&workers->mutex);
    workers->stopping = true;
    cancel_queued_jobs(workers);
    while (workers->idle != NULL)
        wake_newest_idle_helper(workers);
    while (domi_counter_read(running) != 0 && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&workers->left, &workers->mutex, &until);
    workers->abandoned = workers->abandoned || domi_counter_read(running) != 0;
    /* Wait for all helpers that do not run a job's function: they call `done`, or are about to
     * leave the pool. */
    while (domi_counter_read(&workers->counters.threads) > domi_counter_read(running))
        pthread_cond_wait(&workers->left, &workers->mutex);
    uint32_t left = (uint32_t)domi_counter_read(running);
    bool has_ended = take_ended_thread_to_join(workers, &ended);
    pthread_mutex_unlock(&workers->mutex);
    if (has_ended)
        pthread_join(ended, NULL);
    return left;
}

bool domi_workers_is_helper(const domi_workers *workers)
{
    return helping == workers;
}
