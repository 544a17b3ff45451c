/* Jobs for the pool of helper threads. They wait at a gate that the test opens, so that it is known
 * which threads are busy and which jobs wait, and no result depends on speed. They run on threads
 * of the pool and count into atomics. Each test is a process of its own, so all counts start at
 * 0. */
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
/* numbers of the jobs in the order in which `count` saw them */
extern atomic_uint domt_order[DOMT_JOBS_MAX];

domi_workers *domt_workers(uint32_t least, uint32_t most, uint32_t queue_max, uint64_t expiry_ns);

/* Functions of jobs: the first returns the job's number at once, the second after it has waited at
 * the gate. domt_job_count() is the `done` of jobs. */
int domt_job_number(void *task_);
int domt_job_wait(void *task_);
void domt_job_count(domi_job *job);

/* Number the jobs from 0, and submit them; the second fails the test if one is refused. */
void domt_jobs_prepare(domt_task *tasks, uint32_t amount, int (*function)(void *));
void domt_jobs_submit(domi_workers *workers, domt_task *tasks, uint32_t amount);

uint64_t domt_workers_threads(const domi_workers *workers);

/* Returns how many threads of this process have the name of helpers. */
uint32_t domt_helpers(void);

/* Stop and free the pool, and check that no thread is left. */
void domt_workers_end(domi_workers *workers);

#endif
