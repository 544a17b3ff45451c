/* This file lets helper threads do blocking work; domus/blocking.h is the manual.
 *
 * The job lies in the envelope in which its answer will travel. That envelope is allocated when the
 * work is asked for, so the end of the work allocates nothing, and the job exists until its answer
 * was handled. The helper thread puts the answer as any foreign thread would. */
#include "runtime/outside/blocking.h"

#include "runtime/outside/visit.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/conversation/dead.h"
#include "house/conversation/stack.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "house/message/sign.h"

#include <domus/blocking.h>

#include <errno.h>

const domus_type domus_blocking_type = {.name = "blocking", .size = sizeof(int)};

typedef struct work {
    /* result of the work, which is the answer's payload; must be the first field */
    int result;
    domus_address asker;     /* address of the actor that waits for the result */
    domus_system *system;    /* system whose helper threads run the job */
    domi_envelope *envelope; /* envelope of the work, which becomes the answer */
    domi_job job;            /* job by which a helper thread does the work */
} work;

/* Returns the blocking work that is the payload of the envelope. */
static work *get_work_of_envelope(domi_envelope *envelope)
{
    return (work *)(void *)((char *)envelope + DOMI_ASK_HEAD);
}

/* Send the answer to a conversation whose blocking work has ended or was cancelled. Called on a
 * helper thread, or on the thread that stops the helpers. */
static void send_answer_of_blocking_work(domi_job *job)
{
    work *ended = (work *)(void *)((char *)job - offsetof(work, job));
    domus_system *system = ended->system;
    domi_envelope *envelope = ended->envelope;
    uint32_t kind = DOMI_REPLY;

    /* the process is checked, because the user's function may have forked and have returned in the
     * child */
    domi_system_check_not_forked(system);
    ended->result = job->result;
    if (job->result < 0) {
        envelope->type = NULL;
        envelope->error = job->result;
        kind = DOMI_EXCEPTION;
    }
    const domus_allocator *before = domi_memory_set_allocator(system->hooks.allocator);
    domi_outside_lock(system);
    envelope->node.kind = (uint8_t)kind;
    if (domi_mailbox_put(&system->outside, ended->asker, &envelope->node, kind) != 0)
        domi_mailbox_end_unhandled_message(&system->outside, ended->asker.house, &envelope->node,
                                           -ESTALE);
    domi_pool_push_chains_to_owners(&system->outside);
    domi_outside_unlock(system);
    (void)domi_memory_set_allocator(before);
}

static domi_envelope *make_blocking_work(domus_stack *stack, int (*function)(void *argument),
                                         void *argument)
{
    domi_house *house = domi_stack_get_house(stack);
    domi_envelope *envelope = domi_envelope_new(stack->manager, DOMI_ASK_HEAD + sizeof(work));

    if (envelope == NULL)
        return NULL;
    domi_envelope_set_type_and_sender(envelope, &domus_blocking_type, house);
    *get_work_of_envelope(envelope) = (work){
        .asker = domi_house_get_address(house),
        .system = stack->manager->system,
        .envelope = envelope,
        .job = {.function = function, .argument = argument, .done = send_answer_of_blocking_work},
    };
    return envelope;
}

int domus_blocking(domus_stack *stack, int (*function)(void *argument), void *argument,
                   domus_resumed *then)
{
    domi_manager *manager = stack->manager;
    domus_system *system = manager->system;
    domi_promise *promise;
    int result = domi_stack_add_promise(stack, DOMI_PROMISE_BLOCKING, &promise);

    if (result != 0)
        return result;
    domi_promise_take_out_of_ask_count(promise);
    promise->work = NULL;
    domi_stack_set_wait(stack->pooled, DOMI_WAIT_ONE, promise, then);
    domi_envelope *envelope = make_blocking_work(stack, function, argument);
    if (envelope == NULL) {
        domi_promise_fail(manager, promise, -ENOMEM);
        return DOMUS_PARKED;
    }
    *domi_envelope_get_return_of_ask(envelope) = (domi_return){
        .promise = promise,
        .serial = domi_promise_serial(promise),
    };
    promise->work = envelope;
    result = system->workers != NULL
                 ? domi_workers_submit_job(system->workers, &get_work_of_envelope(envelope)->job)
                 : -EOPNOTSUPP;
    if (result != 0) {
        promise->work = NULL;
        domi_pool_free_object(manager, &envelope->node);
        domi_promise_fail(manager, promise, result);
    }
    return DOMUS_PARKED;
}

bool domi_blocking_withdraw_work(domi_manager *manager, struct domi_promise *promise)
{
    const domus_system *system = manager->system;
    domi_envelope *envelope = promise->work;

    if (envelope == NULL)
        /* there is no work to withdraw: no helper took it, and its promise ends with another
         * error */
        return true;
    if (!domi_workers_withdraw_job(system->workers, &get_work_of_envelope(envelope)->job))
        return false;
    promise->work = NULL;
    domi_pool_free_object(manager, &envelope->node);
    return true;
}
