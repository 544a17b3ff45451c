/* Runs the pieces of a job: after each piece its conversation sleeps for a moment, behind a
 * barrier. */
#include "job.h"

#include "observed.h"
#include "wait.h"

#include <errno.h>
#include <stdlib.h>

#define MOMENT_NS             UINT64_C(1000000)
#define PIECES_OF_TRANSACTION 64u

static int continue_job(domus_stack *stack, void *self, const domus_answer *answer);

static int run_piece_of_job(struct kv_call *call, struct kv_job *job)
{
    job->cost = 0;
    return job->piece(call, job);
}

/* End a job that was parked. */
static int finish_and_free_parked_job(struct kv_call *call, struct kv_job *job, int error)
{
    struct kv_store *store = call->store;

    store->job = NULL;
    int result = job->finish(call, job, error);
    /* Note the change now: when the command was parked, it had not changed anything yet. */
    if (store->observed != NULL) {
        kv_mark_key_if_command_changed_it(store, call->hash, call->key);
        kv_serve_clients_that_wait_at_changed(call->stack, store);
    }
    domus_resp_command_type.release(&job->command);
    free(job);
    return result;
}

static int continue_job(domus_stack *stack, void *self, const domus_answer *answer)
{
    struct kv_store *store = self;
    struct kv_job *job = store->job;
    struct kv_call call = {.stack = stack,
                           .store = store,
                           .command = &job->command,
                           .key = job->key,
                           .hash = job->hash};
    int result = answer->error;

    if (result == 0)
        result = run_piece_of_job(&call, job);
    if (result > 0)
        result = domus_sleep(stack, MOMENT_NS, continue_job);
    return result == DOMUS_PARKED ? result : finish_and_free_parked_job(&call, job, result);
}

/* Park the conversation with a copy of the job, to continue later. */
static int copy_and_park_job(struct kv_call *call, const struct kv_job *begun)
{
    struct kv_job *job = malloc(sizeof *job);
    int error = job != NULL ? kv_keep_command_without_copy(call->command, &job->command) : -ENOMEM;

    if (error != 0) {
        struct kv_job failed = *begun;
        free(job);
        return failed.finish(call, &failed, error);
    }
    const domus_resp_command command = job->command;
    *job = *begun;
    job->command = command;
    job->key = domus_resp_argument(&job->command, 1);
    job->hash = call->hash;
    call->store->job = job;
    struct kv_call later = *call;
    later.command = &job->command;
    later.key = job->key;
    int result = domus_barrier(call->stack);
    if (result == 0)
        result = domus_sleep(call->stack, MOMENT_NS, continue_job);
    return result == DOMUS_PARKED ? result : finish_and_free_parked_job(&later, job, result);
}

int kv_run_job_and_park_if_long(struct kv_call *call, const struct kv_job *begun)
{
    struct kv_job job = *begun;
    int result = run_piece_of_job(call, &job);

    for (uint32_t i = 0; result > 0 && kv_are_answers_gathered(); i++)
        result = i < PIECES_OF_TRANSACTION ? run_piece_of_job(call, &job) : -EMSGSIZE;
    return result > 0 ? copy_and_park_job(call, &job) : job.finish(call, &job, result);
}
