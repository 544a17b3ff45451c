/* runtime/os/workers.c: the pool of helper threads is stopped, its jobs are freed or submitted
 * again, and many jobs come at once. */
#include "tests/runtime/jobs.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

/* --- Stopping --------------------------------------------------------------------------------- */

static void *open_gate_when_all_are_cancelled(void *unused)
{
    while (atomic_load(&domt_cancelled) != 3)
        domt_pause_ns(200000);
    domt_pause_ns(20 * DOMT_MS);
    atomic_store(&domt_gate, true);
    return unused;
}

DOMT_TEST(stop_cancels_what_waits_and_waits_for_what_runs)
{
    domt_task tasks[6];
    domi_workers *workers = domt_new_helper_pool(1, 2, 16, DOMT_LONG_NS);
    pthread_t opener;

    domt_jobs_prepare(tasks, 6, domt_job_wait_at_gate);
    domt_jobs_submit(workers, tasks, 5);
    DOMT_WAIT_FOR(10, atomic_load(&domt_begun) == 2);
    ck_assert_int_eq(pthread_create(&opener, NULL, open_gate_when_all_are_cancelled, NULL), 0);
    ck_assert_uint_eq(domi_workers_stop(workers, DOMT_LONG_NS), 0);
    ck_assert_uint_eq(atomic_load(&domt_begun), 2);
    ck_assert_uint_eq(atomic_load(&domt_finished), 5);
    ck_assert_uint_eq(atomic_load(&domt_cancelled), 3);
    for (uint32_t i = 0; i < 5; i++)
        ck_assert_int_eq(tasks[i].job.result, i < 2 ? (int)i : -ECANCELED);
    for (uint32_t i = 0; i < 3; i++) /* the three waiting jobs have ended first, in their order */
        ck_assert_uint_eq(atomic_load(&domt_order[i]), i + 2);
    ck_assert_int_eq(domi_workers_submit_job(workers, &tasks[5].job), -ESHUTDOWN);
    ck_assert_uint_eq(domt_count_helper_threads(), 0);
    domt_helper_pool_end(workers); /* here the pool is stopped a second time, which does nothing */
    pthread_join(opener, NULL);
}

/* The `done` of a job, called by the stop: open the gate, so that the only thread becomes free
 * while the stop still goes on. */
static void open_gate_in_done_of_job(domi_job *job)
{
    atomic_store(&domt_gate, true);
    domt_pause_ns(50 * DOMT_MS);
    domt_job_count_end(job);
}

DOMT_TEST(no_job_begins_once_stopping)
{
    domt_task tasks[3];
    domi_workers *workers = domt_new_helper_pool(0, 1, 16, DOMT_LONG_NS);

    domt_jobs_prepare(tasks, 3, domt_job_wait_at_gate);
    tasks[1].job.done = open_gate_in_done_of_job;
    domt_jobs_submit(workers, tasks, 3);
    DOMT_WAIT_FOR(10, atomic_load(&domt_begun) == 1);
    domt_helper_pool_end(workers);
    ck_assert_uint_eq(atomic_load(&domt_begun), 1);
    ck_assert_uint_eq(atomic_load(&domt_cancelled), 2);
}

DOMT_TEST(stop_ends_idle_threads_that_would_have_stayed)
{
    domt_task tasks[3];
    domi_workers *workers = domt_new_helper_pool(3, 3, 16, DOMT_LONG_NS);

    domt_jobs_prepare(tasks, 3, domt_job_return_number);
    domt_jobs_submit(workers, tasks, 3);
    DOMT_WAIT_FOR(10,
                  atomic_load(&domt_finished) == 3 && domt_helper_pool_count_threads(workers) == 3);
    uint64_t before_ns = domt_now_ns();
    domt_helper_pool_end(workers);
    ck_assert_uint_lt(domt_now_ns() - before_ns, 5000 * DOMT_MS);
    ck_assert_uint_eq(domt_count_helper_threads(), 0);
}

DOMT_TEST(free_stops_a_pool_that_was_not_stopped)
{
    domt_task tasks[3];
    domi_workers *workers = domt_new_helper_pool(1, 1, 16, DOMT_LONG_NS);

    domt_jobs_prepare(tasks, 3, domt_job_return_number);
    domt_jobs_submit(workers, tasks, 1);
    DOMT_WAIT_FOR(10, atomic_load(&domt_finished) == 1);
    domi_workers_free(workers);
    ck_assert_uint_eq(domt_count_helper_threads(), 0);

    workers = domt_new_helper_pool(0, 1, 16, DOMT_LONG_NS);
    tasks[1].job.function = domt_job_wait_at_gate;
    domt_jobs_submit(workers, &tasks[1], 2);
    DOMT_WAIT_FOR(10, atomic_load(&domt_begun) == 2);
    domi_workers_free(workers);
    ck_assert_uint_eq(atomic_load(&domt_cancelled), 1);
    ck_assert_int_eq(tasks[2].job.result, -ECANCELED);
    atomic_store(&domt_gate, true);
    DOMT_WAIT_FOR(10, domt_count_helper_threads() == 0);
    ck_assert_uint_eq(atomic_load(&domt_finished), 2);
}

/* The function keeps using memory of its caller after the job and the pool are gone. */
DOMT_TEST(function_that_takes_too_long_is_abandoned)
{
    static domt_task kept[2];
    domt_task *tasks = calloc(2, sizeof *tasks);
    domi_workers *workers = domt_new_helper_pool(0, 2, 16, DOMT_LONG_NS);

    domt_jobs_prepare(kept, 2, domt_job_wait_at_gate);
    for (uint32_t i = 0; i < 2; i++)
        tasks[i].job = kept[i].job;
    domt_jobs_submit(workers, tasks, 2);
    DOMT_WAIT_FOR(10, atomic_load(&domt_begun) == 2);
    ck_assert_uint_eq(domi_workers_stop(workers, 20 * DOMT_MS), 2);
    ck_assert_uint_eq(domt_helper_pool_count_threads(workers), 2);
    domi_workers_free(workers);
    memset(tasks, 0xff, 2 * sizeof *tasks);
    free(tasks);
    ck_assert_uint_eq(domt_count_helper_threads(), 2);
    atomic_store(&domt_gate, true);
    DOMT_WAIT_FOR(10, domt_count_helper_threads() == 0);
    ck_assert_uint_eq(atomic_load(&domt_finished), 0);
}

/* A second stop waits for the abandoned functions, or they return before the pool is freed. */
DOMT_TEST(abandoned_functions_leave_nothing_when_they_return)
{
    static domt_task tasks[2];

    for (int waits = 0; waits < 2; waits++) {
        domi_workers *workers = domt_new_helper_pool(0, 2, 16, DOMT_LONG_NS);
        atomic_store(&domt_gate, false);
        atomic_store(&domt_begun, 0);
        domt_jobs_prepare(tasks, 2, domt_job_wait_at_gate);
        domt_jobs_submit(workers, tasks, 2);
        DOMT_WAIT_FOR(10, atomic_load(&domt_begun) == 2);
        ck_assert_uint_eq(domi_workers_stop(workers, 0), 2);
        atomic_store(&domt_gate, true);
        if (waits) {
            domt_helper_pool_end(workers);
        } else {
            DOMT_WAIT_FOR(10, domt_helper_pool_count_threads(workers) == 0);
            domi_workers_free(workers);
        }
        ck_assert_uint_eq(domt_count_helper_threads(), 0);
        ck_assert_uint_eq(atomic_load(&domt_finished), 0);
    }
}

static void count_job_slowly(domi_job *job)
{
    atomic_fetch_add(&domt_begun, 1);
    domt_pause_ns(100 * DOMT_MS);
    domt_job_count_end(job);
}

DOMT_TEST(stop_waits_for_done_with_any_timeout)
{
    domt_task tasks[1];
    domi_workers *workers = domt_new_helper_pool(0, 1, 1, DOMT_LONG_NS);

    domt_jobs_prepare(tasks, 1, domt_job_return_number);
    tasks[0].job.done = count_job_slowly;
    domt_jobs_submit(workers, tasks, 1);
    DOMT_WAIT_FOR(10, atomic_load(&domt_begun) == 2);
    ck_assert_uint_eq(domi_workers_stop(workers, 0), 0);
    ck_assert_uint_eq(atomic_load(&domt_finished), 1);
    domi_workers_free(workers);
}

/* --- Who owns a job --------------------------------------------------------------------------- */

static domi_workers *chained;

static void submit_same_job_again(domi_job *job)
{
    domt_task *own = job->argument;
    if (++own->number == 1000)
        atomic_fetch_add(&domt_finished, 1);
    else if (domi_workers_submit_job(chained, job) != 0)
        atomic_fetch_add(&domt_cancelled, 1);
}

DOMT_TEST(done_callback_may_submit_its_job_again)
{
    domt_task tasks[1];

    chained = domt_new_helper_pool(0, 2, 4, DOMT_LONG_NS);
    domt_jobs_prepare(tasks, 1, domt_job_return_number);
    tasks[0].job.done = submit_same_job_again;
    domt_jobs_submit(chained, tasks, 1);
    DOMT_WAIT_FOR(20, atomic_load(&domt_finished) + atomic_load(&domt_cancelled) != 0);
    ck_assert_uint_eq(atomic_load(&domt_begun), 1000);
    ck_assert_uint_eq(atomic_load(&domt_cancelled), 0);
    domt_helper_pool_end(chained);
}

static void overwrite_and_free_job(domi_job *job)
{
    memset(job, 0xff, sizeof *job);
    free(job);
    atomic_fetch_add(&domt_finished, 1);
}

DOMT_TEST(done_callback_may_free_its_job)
{
    domi_workers *workers = domt_new_helper_pool(0, 2, 1000, DOMT_LONG_NS);

    for (uint32_t i = 0; i < 1000; i++) {
        domt_task *own = malloc(sizeof *own);
        domt_jobs_prepare(own, 1, domt_job_return_number);
        own->job.done = overwrite_and_free_job;
        ck_assert_int_eq(domi_workers_submit_job(workers, &own->job), 0);
    }
    ck_assert_uint_eq(domi_workers_stop(workers, DOMT_LONG_NS), 0);
    ck_assert_uint_eq(atomic_load(&domt_finished), 1000);
    domi_workers_free(workers);
}

/* --- Many at once ----------------------------------------------------------------------------- */

#define SUBMITTERS 4
#define JOBS_EACH  25000u

typedef struct submitter {
    domi_workers *workers;
    domt_task *tasks;
    bool withdraws;
    uint64_t refused;
    uint64_t withdrawn; /* sum of the numbers of the jobs that this thread has withdrawn */
    uint64_t unwanted;  /* sum of the numbers of the jobs that were refused with -ESHUTDOWN */
} submitter;

static _Atomic uint64_t sum, sum_cancelled;

static void count_job_or_cancelled(domi_job *job)
{
    uint32_t number = ((domt_task *)job->argument)->number;
    if (job->result == -ECANCELED)
        atomic_fetch_add(&domt_cancelled, 1);
    atomic_fetch_add(job->result == -ECANCELED ? &sum_cancelled : &sum, number);
    atomic_fetch_add(&domt_finished, 1);
}

static void *submit_many_jobs(void *own_)
{
    submitter *own = own_;

    for (uint32_t i = 0; i < JOBS_EACH; i++) {
        domi_job *job = &own->tasks[i].job;
        int result = domi_workers_submit_job(own->workers, job);
        if (result == -EAGAIN) {
            own->refused++;
            i--;
            sched_yield();
        } else if (result == -ESHUTDOWN) {
            own->unwanted += own->tasks[i].number;
        } else if (own->withdraws && i % 3 == 0 && domi_workers_withdraw_job(own->workers, job)) {
            own->withdrawn += own->tasks[i].number;
        }
    }
    return NULL;
}

/* Submit all jobs from four threads. If `stop_at` is not 0, some jobs are withdrawn, and the pool
 * is stopped when so many jobs have finished. Returns the sum of the numbers of all jobs. */
static uint64_t submit_jobs_from_four_threads(domi_workers *workers, submitter *own,
                                              uint32_t stop_at)
{
    domt_task *tasks = calloc(SUBMITTERS * JOBS_EACH, sizeof *tasks);
    pthread_t threads[SUBMITTERS];

    ck_assert_ptr_nonnull(tasks);
    domt_jobs_prepare(tasks, SUBMITTERS * JOBS_EACH, domt_job_return_number);
    for (uint32_t i = 0; i < SUBMITTERS * JOBS_EACH; i++)
        tasks[i].job.done = count_job_or_cancelled;
    for (uint32_t i = 0; i < SUBMITTERS; i++) {
        own[i] = (submitter){
            .workers = workers, .tasks = &tasks[i * JOBS_EACH], .withdraws = stop_at != 0};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, submit_many_jobs, &own[i]), 0);
    }
    if (stop_at != 0) {
        DOMT_WAIT_FOR(60, atomic_load(&domt_finished) >= stop_at);
        ck_assert_uint_eq(domi_workers_stop(workers, DOMT_LONG_NS), 0);
    }
    for (uint32_t i = 0; i < SUBMITTERS; i++)
        pthread_join(threads[i], NULL);
    if (stop_at == 0)
        DOMT_WAIT_FOR(60, atomic_load(&domt_finished) == SUBMITTERS * JOBS_EACH);
    domt_helper_pool_end(workers);
    free(tasks);
    uint64_t last = SUBMITTERS * JOBS_EACH - 1;
    return last * (last + 1) / 2;
}

DOMT_TEST(hundred_thousand_jobs_of_four_threads_run_once_each)
{
    domi_workers *workers = domt_new_helper_pool(1, 4, 64, DOMT_MS);
    submitter own[SUBMITTERS];
    ck_assert_uint_eq(submit_jobs_from_four_threads(workers, own, 0), atomic_load(&sum));
    ck_assert_uint_eq(atomic_load(&domt_begun), SUBMITTERS * JOBS_EACH);
    ck_assert_uint_eq(atomic_load(&sum_cancelled), 0);
}

DOMT_TEST(withdrawn_cancelled_and_run_jobs_add_up)
{
    domi_workers *workers = domt_new_helper_pool(0, 4, 64, 0);
    submitter own[SUBMITTERS];
    uint64_t all = submit_jobs_from_four_threads(workers, own, 10000);
    uint64_t found = atomic_load(&sum) + atomic_load(&sum_cancelled);

    for (uint32_t i = 0; i < SUBMITTERS; i++)
        found += own[i].withdrawn + own[i].unwanted;
    ck_assert_uint_eq(found, all);
    ck_assert_uint_eq(atomic_load(&domt_begun),
                      atomic_load(&domt_finished) - atomic_load(&domt_cancelled));
}

DOMT_SUITE(120)
