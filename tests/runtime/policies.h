/* A pool made by hand, with jobs that are no actors, for tests of policies (domus/policy.h).
 *
 * A job is idle, in a queue, or run. Each put and each take changes this state and is counted, so a
 * job that is taken twice for one put, or never, shows. The state is no barrier between a put and
 * the take: ThreadSanitizer sees if a policy has none of its own. */
#ifndef DOMT_POLICIES_H
#define DOMT_POLICIES_H

#include "runtime/policies/pool.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#define DOMT_PATIENCE_S 10 /* seconds within which each job that was put must be taken */

/* The policies that policies_test.c tests. */
#define DOMT_POLICIES 4u
extern const domus_policy *const domt_policies[DOMT_POLICIES];

typedef enum domt_job_state { DOMT_JOB_IDLE, DOMT_JOB_QUEUED, DOMT_JOB_RUN } domt_job_state;

typedef struct domt_job {
    domi_house house; /* the first member; policies use only its link */
    _Atomic uint32_t state;
    uint32_t number;
    uint32_t group; /* group of producers that the job belongs to */
    /* turns that may still follow from this one; changed by the thread that has the job */
    uint32_t energy;
    uint64_t turns; /* turns that the job has had; changed by the thread that has the job */
} domt_job;

typedef struct domt_stand domt_stand;

struct domt_stand {
    domus_pool *pool;
    domt_job *jobs;
    uint32_t jobs_count;
    _Atomic uint64_t puts;
    _Atomic uint64_t taken;
    _Atomic uint64_t doubled; /* jobs that were taken although they were in no queue */
    /* waits without a bound that ended without a job and without a call */
    _Atomic uint64_t bare;
    _Atomic bool stops; /* runners end when they are called */
    void (*turn)(domt_stand *stand, domus_runner *runner, domt_job *job);
    pthread_t threads[DOMI_POOL_RUNNERS_MAX];
    /* number of times that a called runner has returned */
    _Atomic uint32_t returns[DOMI_POOL_RUNNERS_MAX];
};

/* Make a pool of so many runners, without threads, and so many idle jobs. The jobs belong to
 * `groups` groups in turn. */
void domt_stand_make(domt_stand *stand, const domus_policy *policy, uint32_t runners, uint32_t jobs,
                     uint32_t groups);
void domt_stand_free(domt_stand *stand);

/* Begin a thread for each runner, which gives jobs turns by `turn`; and end these threads. */
void domt_stand_start(domt_stand *stand);
void domt_stand_stop(domt_stand *stand);

domus_runner *domt_stand_runner(const domt_stand *stand, uint32_t number);

/* Returns how many times the runner has counted this event. */
uint64_t domt_stand_events(const domt_stand *stand, uint32_t runner, domus_runner_event what);

/* Claim an idle job for the caller, which has to put it. Returns false if the job is not idle. */
bool domt_job_claim(domt_job *job);

/* Put a job: one that was claimed or, with the last function, one that has its turn. */
void domt_put_central(domt_stand *stand, domt_job *job);
void domt_put_internal(domt_stand *stand, domus_runner *runner, domt_job *job);
void domt_put_resumed(domt_stand *stand, domus_runner *runner, domt_job *job);

/* Take a job, which then has its turn. Returns NULL if there is none. */
domt_job *domt_take(domt_stand *stand, domus_runner *runner, uint64_t wait_ns);

/* End the turn of a job that is not put again. */
void domt_job_end(domt_job *job);

/* Returns the monotonic time in seconds. */
double domt_policies_now(void);

/* Wait a little for another thread. The first tries stay on the CPU, so that the caller is as fast
 * as a runner that goes back to wait, and meets it just before it does. */
void domt_policies_pause(uint32_t tries);

/* Spin for so many pauses of the CPU, each of which takes some 20 to 50 ns. */
void domt_policies_spin(uint32_t pauses);

#endif
