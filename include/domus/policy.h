/* Policies: how the runners of a pool share its work.
 *
 * A pool has actors and runners, which are threads. An actor that has something to do is a *job*:
 * it is put into a queue, and a runner that takes it out gives the actor a turn. The policy of the
 * pool has the queues: what they are, who puts where, who takes from where and in which order, and
 * how a runner waits that has found nothing. A job is in one queue at most, so each job that was
 * put has to be taken once.
 *
 * The table is that of the C++ Actor Framework (its manual, "Scheduler"): a coordinator there is a
 * pool here, a worker a runner. Four policies come with the library, each after the text that it is
 * from:
 *
 *     rings     (GoAkt)  a ring of 256 places for each runner, first in first out, and one for all
 *     deques    (Wippy)  a Chase-Lev deque for each runner, last in first out, and a queue for all
 *     stealing  (CAF)    a deque with two spinlocks for each runner, and three intervals of polling
 *     sharing   (CAF)    one queue for all, with a mutex and a condition
 *
 * Thread-safety: each function says who calls it. */
#ifndef DOMUS_POLICY_H
#define DOMUS_POLICY_H

#include <domus/export.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct domus_pool_config;

typedef struct domi_house domus_job; /* a job: an actor of a pool that is to have a turn */
typedef struct domus_pool domus_pool;
typedef struct domus_runner domus_runner;

/* A policy: how the runners of a pool share its actors, and how they wait. */
typedef struct domus_policy {
    const char *name; /* name of the policy, as the key `policy` of a pool names it */

    /* Bytes of the data that the policy has for a pool, and for each runner; 0..1 MiB. The data is
     * zeroed before `init`, and aligned to 128 bytes. */
    size_t pool_size;
    size_t runner_size;

    /* Make the data of a pool and of its runners (`init`), and give it back (`fini`). Called once
     * each, while no runner runs. `init` returns 0, or a negative errno, with which the start of
     * the system fails. NULL: there is nothing to do. */
    int (*init)(domus_pool *pool);
    void (*fini)(domus_pool *pool);

    /* Queue a job that comes from a thread that is no runner of this pool. Called by any thread.
     * Not NULL. */
    void (*central_enqueue)(domus_pool *pool, domus_job *job);

    /* Queue a job for a runner, from any thread. The library never calls this; a policy's
     * `central_enqueue` may. NULL: the policy has no such way. */
    void (*external_enqueue)(domus_runner *runner, domus_job *job);

    /* Queue a job that comes from an actor that this runner runs. Called by the runner. Not
     * NULL. */
    void (*internal_enqueue)(domus_runner *runner, domus_job *job);

    /* Queue the job that the runner has just run again, because it has more to do. Called by the
     * runner. Not NULL. */
    void (*resume_later)(domus_runner *runner, domus_job *job);

    /* Take the next job. If there is none, wait for one, for about `wait_ns` (0: do not wait;
     * UINT64_MAX: no bound), and return NULL if none came, or as soon as domus_runner_is_called().
     * Called by the runner. Not NULL. */
    domus_job *(*dequeue)(domus_runner *runner, uint64_t wait_ns);

    /* Make every runner of the pool that waits in `dequeue` look at domus_runner_is_called(), also
     * one that is just about to wait. Called by any thread. Not NULL. */
    void (*call)(domus_pool *pool);

    /* Give the jobs of a runner's own queue to the others, because its thread, a spare, ends while
     * the pool goes on. The runner may begin again. NULL: the runner takes jobs until there are
     * none, and ends then. Called by the runner. */
    void (*leave)(domus_runner *runner);

    /* Hooks around a turn: the runner begins a turn of the job; it has ended the turn; the actor's
     * life has ended in that turn. A hook must not look into the job. NULL, each: nothing is done.
     * Called by the runner. */
    void (*before_run)(domus_runner *runner, domus_job *job);
    void (*after_run)(domus_runner *runner, domus_job *job);
    void (*after_completion)(domus_runner *runner, domus_job *job);
} domus_policy;

/* Functions that are called around each turn with any policy, inside those of the policy that have
 * the same names: to count, to trace, to set something of the thread. They do not send. NULL, each:
 * nothing is done. Called by the runner. */
typedef struct domus_pool_hooks {
    void (*before_run)(domus_runner *runner, domus_job *job);
    void (*after_run)(domus_runner *runner, domus_job *job);
    void (*after_completion)(domus_runner *runner, domus_job *job);
} domus_pool_hooks;

/* The four policies of the library. */
DOMUS_API extern const domus_policy domus_policy_rings;
DOMUS_API extern const domus_policy domus_policy_deques;
DOMUS_API extern const domus_policy domus_policy_stealing;
DOMUS_API extern const domus_policy domus_policy_sharing;

/* --- for policies ----------------------------------------------------------------------------- */

/* Return the data that the policy has for a pool, and for a runner. Any thread, as the policy sees
 * fit. */
DOMUS_API void *domus_pool_data(domus_pool *pool);
DOMUS_API void *domus_runner_data(domus_runner *runner);

/* Returns the section of the configuration that describes a pool (domus/pool_config.h). Constant
 * while the system lives. Any thread. */
DOMUS_API const struct domus_pool_config *domus_pool_settings(const domus_pool *pool);

/* Return the number of runners of a pool, with its spares (domus/config.h), and each runner by its
 * number, 0..count-1. Spares may not have begun, but their data is made. Constant. Any thread. */
DOMUS_API uint32_t domus_pool_runners(const domus_pool *pool);
DOMUS_API domus_runner *domus_pool_runner(domus_pool *pool, uint32_t number);
DOMUS_API domus_pool *domus_runner_pool(domus_runner *runner);
DOMUS_API uint32_t domus_runner_number(const domus_runner *runner);

/* Returns whether the runner is to return from `dequeue`: something is due, or the pool stops. The
 * value goes back to false when `dequeue` has returned. Any thread. */
DOMUS_API bool domus_runner_is_called(const domus_runner *runner);

/* Returns a random number for a policy, 0..below-1; `below` is not 0. In a test kit it follows from
 * the seed. Called by the runner. */
DOMUS_API uint32_t domus_runner_chance(domus_runner *runner, uint32_t below);

/* Get and set the one link that each job has, for queues that are lists. The link belongs to the
 * owner of the job: the queue that the job is in, or the thread that has taken it out. */
DOMUS_API domus_job *domus_job_next(const domus_job *job);
DOMUS_API void domus_job_link(domus_job *job, domus_job *next);

/* The events that the profile counts of a runner, which the runner counts when they happen. */
typedef enum domus_runner_event {
    DOMUS_RUNNER_STEALS, /* jobs that the runner has taken from other runners */
    /* jobs that other runners took from this runner; counted by the thief, for its victim */
    DOMUS_RUNNER_STOLEN,
    DOMUS_RUNNER_GLOBAL, /* jobs that the runner has taken from a queue of the whole pool */
    DOMUS_RUNNER_PARKS,  /* times at which the runner went to sleep, because it found no job */
    DOMUS_RUNNER_EVENTS,
} domus_runner_event;

DOMUS_API void domus_runner_count(domus_runner *runner, domus_runner_event what, uint32_t count);

#ifdef __cplusplus
}
#endif

#endif
