/* runtime/os/workers.c: in which order the jobs of the pool of helper threads run, on how many
 * threads, and which jobs are refused. */
#include "tests/runtime/jobs.h"

#include "base/memory.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>

/* --- Order, threads, bound -------------------------------------------------------------------- */

DOMT_TEST(jobs_begin_in_the_order_in_which_they_came)
{
    static domt_task tasks[DOMT_JOBS_MAX];
    domi_workers *workers = domt_new_helper_pool(0, 1, DOMT_JOBS_MAX, DOMT_LONG_NS);
    uint32_t wrong = 0;

    domt_jobs_prepare(tasks, DOMT_JOBS_MAX, domt_job_return_number);
    tasks[0].job.function = domt_job_wait_at_gate;
    domt_jobs_submit(workers, tasks, DOMT_JOBS_MAX);
    DOMT_WAIT_FOR(10, atomic_load(&domt_begun) == 1);
    ck_assert_uint_eq(domi_counter_read(&workers->counters.queued), DOMT_JOBS_MAX - 1);
    domt_pause_ns(20 * DOMT_MS);
    atomic_store(&domt_gate, true);
    DOMT_WAIT_FOR(10, atomic_load(&domt_finished) == DOMT_JOBS_MAX);
    for (uint32_t i = 0; i < DOMT_JOBS_MAX; i++)
        wrong += atomic_load(&domt_order[i]) != i || tasks[i].job.result != (int)i;
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_eq(domi_counter_read(&workers->counters.jobs), DOMT_JOBS_MAX);
    ck_assert_uint_ge(domi_counter_read(&workers->counters.wait_max_ns), 20 * DOMT_MS);
    domt_helper_pool_end(workers);
}

static bool is_some_worker_idle(domi_workers *workers)
{
    pthread_mutex_lock(&workers->mutex);
    bool idle = workers->idle != NULL;
    pthread_mutex_unlock(&workers->mutex);
    return idle;
}

DOMT_TEST(threads_are_made_when_a_job_finds_none_free)
{
    domt_task tasks[5];
    domi_workers *workers = domt_new_helper_pool(0, 3, 16, DOMT_LONG_NS);

    ck_assert_uint_eq(domt_count_helper_threads(), 0);
    domt_jobs_prepare(tasks, 5, domt_job_return_number);
    /* each job is submitted when the one before has finished, so one thread is enough */
    for (uint32_t i = 0; i < 3; i++) {
        domt_jobs_submit(workers, &tasks[i], 1);
        DOMT_WAIT_FOR(10, is_some_worker_idle(workers) && atomic_load(&domt_finished) == i + 1);
    }
    ck_assert_uint_eq(domt_helper_pool_count_threads(workers), 1);

    domt_jobs_prepare(tasks, 5, domt_job_wait_at_gate);
    domt_jobs_submit(workers, tasks, 5);
    DOMT_WAIT_FOR(10, domi_counter_read(&workers->counters.running) == 3);
    ck_assert_uint_eq(domi_counter_read(&workers->counters.queued), 2);
    ck_assert_uint_eq(domt_helper_pool_count_threads(workers), 3);
    ck_assert_uint_eq(domt_count_helper_threads(), 3);
    atomic_store(&domt_gate, true);
    DOMT_WAIT_FOR(10, atomic_load(&domt_finished) == 8);
    domt_helper_pool_end(workers);
    ck_assert_uint_eq(domt_count_helper_threads(), 0);
}

/* The result does not depend on how fast threads start, because a job for which a thread is being
 * made does not count as queued. */
DOMT_TEST(full_queue_of_jobs_refuses)
{
    domt_task tasks[8];
    domi_workers *workers = domt_new_helper_pool(0, 2, 3, DOMT_LONG_NS);

    domt_jobs_prepare(tasks, 8, domt_job_wait_at_gate);
    domt_jobs_submit(workers, tasks, 5);
    ck_assert_int_eq(domi_workers_submit_job(workers, &tasks[5].job), -EAGAIN);
    ck_assert_int_eq(tasks[5].job.state, DOMI_JOB_IDLE);
    DOMT_WAIT_FOR(10, atomic_load(&domt_begun) == 2);
    ck_assert_int_eq(domi_workers_submit_job(workers, &tasks[6].job), -EAGAIN);
    ck_assert_uint_eq(domi_counter_read(&workers->counters.refused), 2);
    ck_assert(domi_workers_withdraw_job(workers, &tasks[3].job));
    ck_assert_int_eq(domi_workers_submit_job(workers, &tasks[5].job), 0);
    ck_assert_int_eq(domi_workers_submit_job(workers, &tasks[6].job), -EAGAIN);
    atomic_store(&domt_gate, true);
    DOMT_WAIT_FOR(10, atomic_load(&domt_finished) == 5);
    ck_assert_int_eq(domi_workers_submit_job(workers, &tasks[6].job), 0);
    DOMT_WAIT_FOR(10, atomic_load(&domt_finished) == 6);
    domt_helper_pool_end(workers);
}

/* --- Expiry ----------------------------------------------------------------------------------- */

DOMT_TEST(idle_threads_end_after_their_expiry)
{
    domt_task tasks[4];
    domi_workers *workers = domt_new_helper_pool(0, 4, 16, 20 * DOMT_MS);

    for (uint32_t round = 0; round < 2; round++) {
        atomic_store(&domt_gate, false);
        atomic_store(&domt_begun, 0);
        domt_jobs_prepare(tasks, 4, domt_job_wait_at_gate);
        domt_jobs_submit(workers, tasks, 4);
        DOMT_WAIT_FOR(10, atomic_load(&domt_begun) == 4);
        ck_assert_uint_eq(domt_helper_pool_count_threads(workers), 4);
        atomic_store(&domt_gate, true);
        DOMT_WAIT_FOR(10, atomic_load(&domt_finished) == 4 * (round + 1));
        DOMT_WAIT_FOR(10, domt_helper_pool_count_threads(workers) == 0 &&
                              domt_count_helper_threads() == 0);
    }
    ck_assert_uint_eq(atomic_load(&domt_finished), 8);
    domt_helper_pool_end(workers);
}

DOMT_TEST(least_number_of_threads_comes_with_the_first_job_and_stays)
{
    domt_task tasks[4];
    domi_workers *workers = domt_new_helper_pool(2, 4, 16, 10 * DOMT_MS);

    ck_assert_uint_eq(domt_helper_pool_count_threads(workers), 0);
    domt_jobs_prepare(tasks, 4, domt_job_return_number);
    domt_jobs_submit(workers, tasks, 1);
    DOMT_WAIT_FOR(10,
                  domt_helper_pool_count_threads(workers) == 2 && atomic_load(&domt_finished) == 1);
    domt_jobs_prepare(tasks, 4, domt_job_wait_at_gate);
    atomic_store(&domt_begun, 0);
    domt_jobs_submit(workers, tasks, 4);
    DOMT_WAIT_FOR(10, atomic_load(&domt_begun) == 4);
    ck_assert_uint_eq(domt_helper_pool_count_threads(workers), 4);
    atomic_store(&domt_gate, true);
    DOMT_WAIT_FOR(10, domt_helper_pool_count_threads(workers) == 2);
    domt_pause_ns(60 * DOMT_MS);
    ck_assert_uint_eq(domt_helper_pool_count_threads(workers), 2);
    ck_assert_uint_eq(domt_count_helper_threads(), 2);
    domt_helper_pool_end(workers);
}

DOMT_TEST(surplus_expires_although_a_little_work_keeps_coming)
{
    static domt_task tasks[500];
    domi_workers *workers = domt_new_helper_pool(0, 4, 16, 200 * DOMT_MS);
    uint32_t i = 0;

    domt_jobs_prepare(tasks, 4, domt_job_wait_at_gate);
    domt_jobs_submit(workers, tasks, 4);
    DOMT_WAIT_FOR(10, atomic_load(&domt_begun) == 4);
    atomic_store(&domt_gate, true);
    DOMT_WAIT_FOR(10, atomic_load(&domt_finished) == 4);
    domt_jobs_prepare(tasks, 500, domt_job_return_number);
    for (; i < 500 && domt_helper_pool_count_threads(workers) > 1; i++) {
        domt_jobs_submit(workers, &tasks[i], 1);
        domt_pause_ns(10 * DOMT_MS);
    }
    ck_assert_uint_eq(domt_helper_pool_count_threads(workers), 1);
    domt_helper_pool_end(workers);
}

/* --- Withdrawing ------------------------------------------------------------------------------ */

DOMT_TEST(withdrawn_job_never_runs_and_the_others_keep_their_order)
{
    domt_task tasks[7];
    const uint32_t rest[] = {0, 2, 4, 5, 1};
    domi_workers *workers = domt_new_helper_pool(0, 1, 16, DOMT_LONG_NS);

    domt_jobs_prepare(tasks, 7, domt_job_return_number);
    tasks[0].job.function = domt_job_wait_at_gate;
    ck_assert(!domi_workers_withdraw_job(workers, &tasks[0].job));
    domt_jobs_submit(workers, tasks, 7);
    DOMT_WAIT_FOR(10, atomic_load(&domt_begun) == 1);
    /* too late to withdraw, because the job is running */
    ck_assert(!domi_workers_withdraw_job(workers, &tasks[0].job));
    /* this job is the first one in the queue */
    ck_assert(domi_workers_withdraw_job(workers, &tasks[1].job));
    ck_assert(domi_workers_withdraw_job(workers, &tasks[3].job));
    /* this job is the last one in the queue */
    ck_assert(domi_workers_withdraw_job(workers, &tasks[6].job));
    ck_assert(!domi_workers_withdraw_job(workers, &tasks[6].job));
    ck_assert_uint_eq(domi_counter_read(&workers->counters.queued), 3);
    ck_assert_uint_eq(domi_counter_read(&workers->counters.withdrawn), 3);
    /* a withdrawn job may be submitted again, and is then the newest */
    domt_jobs_submit(workers, &tasks[1], 1);
    atomic_store(&domt_gate, true);
    DOMT_WAIT_FOR(10, atomic_load(&domt_finished) == 5);
    for (uint32_t i = 0; i < 5; i++)
        ck_assert_uint_eq(atomic_load(&domt_order[i]), rest[i]);
    /* too late to withdraw, because the job has run */
    ck_assert(!domi_workers_withdraw_job(workers, &tasks[0].job));
    domt_helper_pool_end(workers);
    ck_assert_uint_eq(atomic_load(&domt_finished), 5);
}

/* --- Making threads --------------------------------------------------------------------------- */

static atomic_uint makes;
static uint32_t makes_max; /* number of threads that can be made; to make more fails */
static int make_error;

typedef struct start {
    void *(*run)(void *argument);
    void *argument;
} start;

static void *run_thread_behind_gate(void *start_)
{
    start *own = start_;
    while (!atomic_load(&domt_gate))
        domt_pause_ns(200000);
    start copy = *own;
    free(own);
    return copy.run(copy.argument);
}

static int make_threads_up_to_max(pthread_t *ret_thread, void *(*run)(void *argument),
                                  void *argument)
{
    if (atomic_fetch_add(&makes, 1) >= makes_max)
        return make_error;
    return pthread_create(ret_thread, NULL, run, argument);
}

static int make_thread_that_begins_late(pthread_t *ret_thread, void *(*run)(void *argument),
                                        void *argument)
{
    start *own = malloc(sizeof *own);
    *own = (start){run, argument};
    atomic_fetch_add(&makes, 1);
    return pthread_create(ret_thread, NULL, run_thread_behind_gate, own);
}

DOMT_TEST(thread_on_its_way_serves_the_next_when_its_job_was_withdrawn)
{
    domt_task tasks[3];
    domi_workers *workers = domt_new_helper_pool(0, 8, 16, DOMT_LONG_NS);

    workers->make = make_thread_that_begins_late;
    domt_jobs_prepare(tasks, 3, domt_job_return_number);
    domt_jobs_submit(workers, tasks, 1);
    ck_assert(domi_workers_withdraw_job(workers, &tasks[0].job));
    domt_jobs_submit(workers, &tasks[1], 1);
    ck_assert_uint_eq(atomic_load(&makes), 1);
    /* no thread is free for this job, so one more is made */
    domt_jobs_submit(workers, &tasks[2], 1);
    ck_assert_uint_eq(atomic_load(&makes), 2);
    atomic_store(&domt_gate, true);
    DOMT_WAIT_FOR(10, atomic_load(&domt_finished) == 2);
    domt_helper_pool_end(workers);
}

DOMT_TEST(job_without_any_thread_is_refused_with_the_reason)
{
    domt_task tasks[1];
    domi_workers *workers = domt_new_helper_pool(0, 4, 16, DOMT_LONG_NS);

    workers->make = make_threads_up_to_max;
    make_error = EAGAIN;
    domt_jobs_prepare(tasks, 1, domt_job_return_number);
    ck_assert_int_eq(domi_workers_submit_job(workers, &tasks[0].job), -EAGAIN);
    make_error = ENOMEM;
    ck_assert_int_eq(domi_workers_submit_job(workers, &tasks[0].job), -ENOMEM);
    ck_assert_uint_eq(domi_counter_read(&workers->counters.refused), 2);
    ck_assert_uint_eq(domi_counter_read(&workers->counters.unmade), 2);
    ck_assert_uint_eq(domi_counter_read(&workers->counters.queued), 0);
    makes_max = UINT32_MAX;
    ck_assert_int_eq(domi_workers_submit_job(workers, &tasks[0].job), 0);
    DOMT_WAIT_FOR(10, atomic_load(&domt_finished) == 1);
    domt_helper_pool_end(workers);
}

DOMT_TEST(job_waits_for_the_threads_that_there_are)
{
    domt_task tasks[6];
    domi_workers *workers = domt_new_helper_pool(0, 4, 3, DOMT_LONG_NS);

    workers->make = make_threads_up_to_max;
    makes_max = 2;
    make_error = EAGAIN;
    domt_jobs_prepare(tasks, 6, domt_job_wait_at_gate);
    domt_jobs_submit(workers, tasks, 5);
    /* this job is one more than the queue may hold */
    ck_assert_int_eq(domi_workers_submit_job(workers, &tasks[5].job), -EAGAIN);
    ck_assert_uint_eq(domt_helper_pool_count_threads(workers), 2);
    ck_assert_uint_eq(domi_counter_read(&workers->counters.unmade), 4);
    atomic_store(&domt_gate, true);
    DOMT_WAIT_FOR(10, atomic_load(&domt_finished) == 5);
    domt_helper_pool_end(workers);
}

DOMT_TEST(pool_without_memory_is_not_made)
{
    const domi_workers_limits limits = {0, 1, 1, 0};
    domi_workers *workers = NULL;

    domi_memory_fail_allocation_after(0, 0);
    ck_assert_int_eq(domi_workers_new(&limits, &workers), -ENOMEM);
    ck_assert_ptr_null(workers);
    domi_memory_fail_allocation_after(-1, 0);
    domi_workers_free(NULL);
}

static domi_workers *asked;
static atomic_bool was_helper, had_signal;
static char seen_name[16];
static cpu_set_t seen_cpus;

static int record_mask_and_name_of_worker(void *task_)
{
    sigset_t signals;

    pthread_sigmask(SIG_BLOCK, NULL, &signals);
    atomic_store(&had_signal, sigismember(&signals, SIGTERM) == 0 ||
                                  sigismember(&signals, SIGCHLD) == 0 ||
                                  sigismember(&signals, SIGSEGV) != 0);
    atomic_store(&was_helper, domi_workers_is_helper(asked));
    pthread_getname_np(pthread_self(), seen_name, sizeof seen_name);
    return sched_getaffinity(0, sizeof seen_cpus, &seen_cpus);
}

DOMT_TEST(helper_has_a_name_no_signals_and_all_cpus)
{
    domt_task tasks[1];
    domi_workers *workers = domt_new_helper_pool(0, 1, 1, DOMT_LONG_NS);
    cpu_set_t all, one;
    size_t cpu = 0;

    asked = workers;
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    /* pin this thread, as a thread of a system may be pinned; a helper must not inherit that */
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    domt_jobs_prepare(tasks, 1, record_mask_and_name_of_worker);
    domt_jobs_submit(workers, tasks, 1);
    DOMT_WAIT_FOR(10, atomic_load(&domt_finished) == 1);
    ck_assert_int_eq(tasks[0].job.result, 0);
    ck_assert_str_eq(seen_name, "domus-blocking");
    ck_assert(CPU_EQUAL(&seen_cpus, &all));
    ck_assert(!atomic_load(&had_signal));
    ck_assert(atomic_load(&was_helper));
    ck_assert(!domi_workers_is_helper(workers));
    sigset_t mine;
    pthread_sigmask(SIG_BLOCK, NULL, &mine);
    /* the thread that has made the helpers has its own signal mask again */
    ck_assert_int_eq(sigismember(&mine, SIGTERM), 0);
    domt_helper_pool_end(workers);
}

DOMT_SUITE(120)
