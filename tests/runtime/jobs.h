/* Jobs for tests of the pool of helper threads. A job can wait at a gate until the test opens it,
 * so the test knows which threads are busy and which jobs wait, and no result depends on speed.
 *
 * Jobs run on threads of the pool and count into atomics. Each test is a process of its own, so all
 * counts start at 0. */
#ifndef DOMT_JOBS_H
#define DOMT_JOBS_H

#include "runtime/os/workers.h"
#include "tests/runtime/running.h"

#define DOMT_LONG_NS  (20 * 1000 * DOMT_MS)
#define DOMT_JOBS_MAX 1024u

typedef struct domt_task {
    domi_job job;
    uint32_t number;
} domt_task;

extern atomic_bool domt_gate;
extern atomic_uint domt_begun, domt_finished, domt_cancelled;
/* numbers of the jobs in the order in which domt_job_count_end() saw them */
extern atomic_uint domt_order[DOMT_JOBS_MAX];

domi_workers *domt_new_helper_pool(uint32_t least, uint32_t most, uint32_t queue_max,
                                   uint64_t expiry_ns);

/* Functions of jobs: domt_job_return_number() returns the job's number at once, and
 * domt_job_wait_at_gate() after it has waited at the gate. domt_job_count_end() counts a job that
 * is done or cancelled (its `done`). */
int domt_job_return_number(void *task_);
int domt_job_wait_at_gate(void *task_);
void domt_job_count_end(domi_job *job);

/* Give `amount` jobs this function, and the numbers from 0 on. */
void domt_jobs_prepare(domt_task *tasks, uint32_t amount, int (*function)(void *));

/* Submit `amount` jobs to the pool of helper threads; a refused job fails the test. */
void domt_jobs_submit(domi_workers *workers, domt_task *tasks, uint32_t amount);

uint64_t domt_helper_pool_count_threads(const domi_workers *workers);

/* Returns how many threads of this process have the name that helper threads have. */
uint32_t domt_count_helper_threads(void);

/* Stop and free the pool of helper threads, and check that none of its threads is left. */
void domt_helper_pool_end(domi_workers *workers);

#endif
