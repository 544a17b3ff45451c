/* A pool of runners that a test makes by hand, with jobs in place of actors, for tests of policies
 * (domus/policy.h).
 *
 * A job is idle, in a queue, or run. Each put and each take changes this state and is counted, so
 * the test sees a job that is taken twice for one put, or never. The state is no memory barrier
 * between a put and the take, so ThreadSanitizer reports a policy that has no barrier itself. */
#ifndef DOMT_POLICIES_H
#define DOMT_POLICIES_H

#include "runtime/policies/pool.h"
#include "tests/runtime/pooled.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#define DOMT_PATIENCE_S 10 /* seconds within which a runner must take each job that was put */

typedef enum domt_job_state { DOMT_JOB_IDLE, DOMT_JOB_QUEUED, DOMT_JOB_RUN } domt_job_state;

typedef struct domt_job {
    /* house that stands for an actor; it is the first member, and policies use only its link */
    domi_house house;
    _Atomic uint32_t state;
    uint32_t number;
    uint32_t group; /* number of the group of producers to which the job belongs */
    /* turns of other jobs that may still follow from this job; changed by the thread that has the
     * job */
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
    _Atomic uint64_t doubled; /* number of jobs that a runner took although they were in no queue */
    /* number of waits without a time limit that ended without a job and without a call of the
     * runner */
    _Atomic uint64_t bare;
    _Atomic bool stops; /* true: the runners end when they are called */
    void (*turn)(domt_stand *stand, domus_runner *runner, domt_job *job);
    pthread_t threads[DOMI_POOL_RUNNERS_MAX];
    /* for each runner, how many times it was called and has returned without a job */
    _Atomic uint32_t returns[DOMI_POOL_RUNNERS_MAX];
};

/* Make a pool of `runners` runners without threads, and `jobs` idle jobs, which belong to `groups`
 * groups in turn. */
void domt_stand_make_pool(domt_stand *stand, const domus_policy *policy, uint32_t runners,
                          uint32_t jobs, uint32_t groups);
void domt_stand_free_pool(domt_stand *stand);

/* Start a thread for each runner of the pool, which takes jobs and calls `turn` for each; or end
 * these threads. */
void domt_stand_start_runners(domt_stand *stand);
void domt_stand_stop_runners(domt_stand *stand);

domus_runner *domt_stand_runner(const domt_stand *stand, uint32_t number);

/* Returns how many times a runner of the pool has counted the event `what`. */
uint64_t domt_stand_count_of_event(const domt_stand *stand, uint32_t runner,
                                   domus_runner_event what);

/* Claim an idle job for the calling thread, which then has to put it into a queue. Returns false if
 * the job is not idle. */
bool domt_job_claim(domt_job *job);

/* Put a job into a queue of the policy: central and internal take a job that was claimed, resumed
 * takes a job that has its turn. */
void domt_job_put_central(domt_stand *stand, domt_job *job);
void domt_job_put_internal(domt_stand *stand, domus_runner *runner, domt_job *job);
void domt_job_put_resumed(domt_stand *stand, domus_runner *runner, domt_job *job);

/* Take a job from the queues of the policy for `runner`; the job then has its turn. Returns NULL if
 * no job has come within `wait_ns`. */
domt_job *domt_job_take(domt_stand *stand, domus_runner *runner, uint64_t wait_ns);

/* End the turn of a job without putting it again; the job is then idle. */
void domt_job_end_turn(domt_job *job);

/* Returns the monotonic time in seconds. */
double domt_policies_now_seconds(void);

/* Wait a little for another thread, the longer the more `tries` there were. The first tries stay on
 * the CPU, so that the caller is as fast as a runner that goes back to wait, and meets it just
 * before it does. */
void domt_policies_wait_a_little(uint32_t tries);

/* Spin on the CPU for `pauses` pause instructions, each of which takes some 20 to 50 ns. */
void domt_policies_spin(uint32_t pauses);

#endif
