/* This file carries an operation from its start to its answer.
 *
 *     begin ---> in the ring of the thread ---> answered, by that thread
 *       |               | cannot be done at once
 *       |               v
 *       +------> with a helper thread --------> answered, by that thread, as from outside
 *       |
 *       +------> done in the call (test kit) -> answered, by the same thread
 *
 * The operation lies in the envelope of its answer, as blocking work does, so its end allocates
 * nothing. Everything that it reads and writes belongs to the operation until the answer is put. So
 * a conversation that is cancelled, or whose time is over, can be resumed at once. The answer then
 * comes late, and is dropped with what it owns. The actor waits by the same promise as for an ask,
 * but no receiver has to be told when it gives up. */
#include "runtime/files/operation.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/page.h"
#include "house/conversation/dead.h"
#include "house/conversation/ringless.h"
#include "house/conversation/stack.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "runtime/outside/visit.h"

#include <errno.h>
#include <string.h>

static_assert(offsetof(domi_file_operation, answer) == 0, "the payload of the answer comes first");

static domi_file_operation *get_operation_of_envelope(domi_envelope *envelope)
{
    return (domi_file_operation *)(void *)((char *)envelope + DOMI_ASK_HEAD);
}

/* --- end of an operation ---------------------------------------------------------------------- */

/* True if the conversation does not wait for this operation any more, because its promise has
 * failed. Any thread may ask. The result may be out of date at once; then the operation is done
 * in vain. */
static bool has_asker_given_up(domi_file_operation *operation)
{
    const domi_return *back = domi_envelope_get_return_of_ask(operation->envelope);

    return domi_promise_serial(back->promise) != back->serial;
}

/* Release what the operation holds (handles, its page, its bytes), except what its answer owns. */
static void release_resources_of_operation(domi_file_operation *operation)
{
    domus_file_close(operation->file);
    domus_file_close(operation->to_file);
    domus_file_close(operation->opened);
    if (operation->page != NULL)
        domi_page_drop_owner(operation->page);
    domus_slice_free(operation->bytes);
    operation->file = operation->to_file = operation->opened = NULL;
    operation->page = NULL;
    operation->bytes = (domus_slice){NULL, 0, 0};
}

/* Turn the operation's envelope into the answer to the conversation that waits. Returns the kind
 * of the answer: a reply, or an exception with `error`. */
static uint32_t turn_operation_into_answer(domi_file_operation *operation, int error)
{
    domi_envelope *envelope = operation->envelope;
    uint32_t kind = DOMI_REPLY;

    if (error == 0 && operation->verb->fill != NULL)
        operation->verb->fill(operation);
    release_resources_of_operation(operation);
    if (error != 0) {
        envelope->type = NULL;
        envelope->error = error;
        kind = DOMI_EXCEPTION;
    } else {
        envelope->type = operation->verb->reply;
    }
    envelope->node.kind = (uint8_t)kind;
    return kind;
}

static void put_answer_to_asker(domi_manager *manager, domi_envelope *envelope, domus_address asker,
                                uint32_t kind)
{
    if (domi_mailbox_put(manager, asker, &envelope->node, kind) != 0)
        domi_mailbox_end_unhandled_message(manager, asker.house, &envelope->node, -ESTALE);
}

/* End an operation on a thread of the system, and put its answer to the actor that waits. */
static void end_operation_on_system_thread(domi_file_operation *operation, domi_manager *manager,
                                           int error)
{
    uint32_t kind = turn_operation_into_answer(operation, error);

    put_answer_to_asker(manager, operation->envelope, operation->asker, kind);
}

/* --- operations on a helper thread ------------------------------------------------------------ */

static int carry_out_operation_on_helper(void *operation_)
{
    domi_file_operation *operation = operation_;

    return has_asker_given_up(operation) ? -ECANCELED : operation->verb->work(operation);
}

/* End an operation on the helper thread that has done it, or, if it was cancelled, on the thread
 * that stops the helpers. Meanwhile this thread has the allocator and the meter of the system. */
static void end_operation_on_helper(domi_job *job)
{
    domi_file_operation *operation =
        (domi_file_operation *)(void *)((char *)job - offsetof(domi_file_operation, job));
    domus_system *system = operation->system;
    domi_envelope *envelope = operation->envelope;
    domus_address asker = operation->asker;
    const domus_allocator *before = domi_memory_set_allocator(system->hooks.allocator);
    domi_meter *counted = domi_memory_set_meter(&system->pressure.meter);

    domi_file_left_remove_work_that_ended(system->files, &operation->left);
    uint32_t kind = turn_operation_into_answer(operation, job->result);
    domi_outside_lock(system);
    put_answer_to_asker(&system->outside, envelope, asker, kind);
    domi_pool_push_chains_to_owners(&system->outside);
    domi_outside_unlock(system);
    (void)domi_memory_set_meter(counted);
    (void)domi_memory_set_allocator(before);
}

/* Free an operation whose work was abandoned at the end of the system; its conversation gets no
 * answer. */
static void drop_abandoned_operation(domi_file_left *left)
{
    domi_file_operation *operation =
        (domi_file_operation *)(void *)((char *)left - offsetof(domi_file_operation, left));
    domus_system *system = operation->system;

    release_resources_of_operation(operation);
    domi_outside_lock(system);
    domi_pool_free_object(&system->outside, &operation->envelope->node);
    domi_pool_push_chains_to_owners(&system->outside);
    domi_outside_unlock(system);
}

/* Let a helper thread do the rest of the operation. Returns 0; a negative errno if no helper
 * thread takes the job. */
static int hand_operation_to_helper(domi_file_operation *operation)
{
    domus_system *system = operation->system;

    if (system->workers == NULL)
        return -EOPNOTSUPP;
    operation->job = (domi_job){.function = carry_out_operation_on_helper,
                                .argument = operation,
                                .done = end_operation_on_helper};
    operation->left.drop = drop_abandoned_operation;
    domi_file_left_add_work_under_way(system->files, &operation->left);
    int result = domi_workers_submit_job(system->workers, &operation->job);
    if (result != 0)
        domi_file_left_remove_work_that_ended(system->files, &operation->left);
    return result;
}

/* --- tries in the ring ------------------------------------------------------------------------ */

/* Handle the result of a try in the ring: the operation is done, tried again, or given to a
 * helper thread. It is called as domi_file_try.ended. */
static void on_try_ended_finish_or_use_helper(domi_io *io, domi_file_try *attempt, int result)
{
    domi_file_operation *operation =
        (domi_file_operation *)(void *)((char *)attempt - offsetof(domi_file_operation, attempt));
    int verdict = operation->verb->judge(operation, result, io->failed != 0);

    if (verdict > 0 && has_asker_given_up(operation)) {
        verdict = -ECANCELED;
    } else if (verdict == DOMI_FILE_TRY_AGAIN) {
        if (operation->verb->try(operation, io))
            return;
        verdict = DOMI_FILE_TRY_ELSEWHERE;
    }
    if (verdict == DOMI_FILE_TRY_ELSEWHERE) {
        verdict = hand_operation_to_helper(operation);
        if (verdict == 0)
            return;
    }
    end_operation_on_system_thread(operation, io->manager, verdict);
}

/* --- start of an operation -------------------------------------------------------------------- */

/* Start a new operation. Returns 0; a negative errno if it cannot start, and then the caller
 * still owns the operation and resumes the conversation with that errno. */
static int start_file_operation(domus_stack *stack, domi_file_operation *operation)
{
    domi_manager *manager = stack->manager;
    const domi_file_verb *verb = operation->verb;
    int result = verb->prepare != NULL ? verb->prepare(operation, manager) : 0;

    if (result < 0)
        return result;
    if (result > 0 || operation->system->simulator != NULL) {
        end_operation_on_system_thread(operation, manager, result > 0 ? 0 : verb->work(operation));
        return 0;
    }
    if (verb->try != NULL && verb->try(operation, manager->io))
        return 0;
    return hand_operation_to_helper(operation);
}

/* Copy the paths of `what` into the operation's own text, because the user's texts may go. */
static void copy_paths_into_operation(domi_file_operation *operation,
                                      const domi_file_operation *what, size_t path_size,
                                      size_t to_size)
{
    if (path_size != 0)
        operation->path = memcpy(operation->text, what->path, path_size);
    if (to_size != 0)
        operation->to = memcpy(operation->text + path_size, what->to, to_size);
}

static domi_file_operation *make_file_operation(domi_envelope *envelope, domus_stack *stack,
                                                const domi_file_verb *verb,
                                                const domi_file_operation *what)
{
    domi_house *house = domi_stack_get_house(stack);
    domi_file_operation *operation = get_operation_of_envelope(envelope);

    envelope->type = verb->reply;
    /* the answer has no sender: with the actor as its sender it would be taken for a request of a
     * channel's peer */
    envelope->sender = NULL;
    envelope->sender_lease = 0;
    *operation = *what;
    operation->verb = verb;
    operation->asker = domi_house_get_address(house);
    operation->system = stack->manager->system;
    operation->envelope = envelope;
    operation->attempt.ended = on_try_ended_finish_or_use_helper;
    if (operation->file != NULL)
        (void)domus_file_keep(operation->file);
    if (operation->to_file != NULL)
        (void)domus_file_keep(operation->to_file);
    return operation;
}

int domi_file_begin_operation(domus_stack *stack, const domi_file_verb *verb,
                              const domi_file_operation *what, uint64_t tag, domus_resumed *then)
{
    domi_manager *manager = stack->manager;
    size_t path_size = what->path_size != 0 ? what->path_size
                       : what->path != NULL ? strlen(what->path) + 1
                                            : 0;
    size_t to_size = what->to != NULL ? strlen(what->to) + 1 : 0;
    domi_promise *promise;

    if (manager->pooled != NULL)
        return domi_refuse_verb_without_ring(stack);
    domi_envelope *envelope = domi_message_new(
        manager, DOMI_ASK_HEAD + sizeof(domi_file_operation) + path_size + to_size);
    if (envelope == NULL)
        return domi_message_error_of_failed_new(manager);
    int error = domi_stack_add_promise(stack, DOMI_PROMISE_ASK, &promise);
    if (error != 0) {
        domi_pool_free_object(manager, &envelope->node);
        return error;
    }
    uint64_t deadline_ns = domi_stack_deadline_ns(stack);
    promise->answer.tag = tag;
    promise->wait.asked = &verb->waits;
    promise->target = (domus_address){NULL, 0};
    if (deadline_ns != 0)
        domi_promise_arm_deadline(manager, promise, deadline_ns);
    if (then != NULL)
        domi_stack_set_wait(stack->pooled, DOMI_WAIT_ONE, promise, then);

    domi_file_operation *operation = make_file_operation(envelope, stack, verb, what);
    *domi_envelope_get_return_of_ask(envelope) = (domi_return){
        .promise = promise,
        .serial = domi_promise_serial(promise),
        .until = deadline_ns,
    };
    copy_paths_into_operation(operation, what, path_size, to_size);
    error = start_file_operation(stack, operation);
    if (error != 0) {
        release_resources_of_operation(operation);
        domi_pool_free_object(manager, &envelope->node);
        domi_promise_fail(manager, promise, error);
    }
    return then != NULL ? DOMUS_PARKED : 0;
}
