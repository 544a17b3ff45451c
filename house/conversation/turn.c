/* Resumes parked conversations: an answer, or a node that stands for it, finds its promise. When
 * everything that the stack waits for is there, the function that the stack named is called.
 *
 * Mostly a stack waits for one ask, and its answer is shown in the envelope in which it came.
 * Answers that come before the stack waits for them are kept in the order in which they came. */
#include "house/conversation/turn.h"

#include "house/conversation/asks.h"
#include "house/conversation/dead.h"
#include "house/message/mailbox.h"
#include "house/message/owned.h"

#include <errno.h>

/* Release the answers that were shown to a resumed function, which has returned. */
static void free_shown_answers(domi_manager *manager, domi_promise *answers)
{
    while (answers != NULL) {
        domi_promise *promise = answers;

        answers = domi_promise_of_next_answer(promise);
        if (promise->message != NULL && promise->message->node.kind == DOMI_ASK)
            /* a receive took this ask, and nobody can answer it after a wait for all */
            domi_ask_fail(manager, promise->message, -ENOMSG);
        else if (promise->message != NULL)
            domi_answer_release_and_free(manager, promise->message);
        domi_promise_release(manager, promise);
    }
}

static void append_answer_to_stack(domus_stack *stack, domi_promise *promise)
{
    promise->answer.next = NULL;
    if (stack->answers == NULL)
        stack->answers = promise;
    else
        stack->answers_last->answer.next = &promise->answer;
    stack->answers_last = promise;
}

/* Take out the answers that the resumed function will be shown: the whole list if `one` is NULL
 * (DOMI_WAIT_ALL), else this one promise. */
static domi_promise *take_answers_to_show(domus_stack *stack, const domi_promise *one)
{
    domi_promise *first = stack->answers;
    domi_promise *before = NULL;
    domi_promise *promise = first;

    if (one == NULL) {
        stack->answers = stack->answers_last = NULL;
        return first;
    }
    for (; promise != one; promise = domi_promise_of_next_answer(promise))
        before = promise;
    domi_promise *next = domi_promise_of_next_answer(promise);
    if (before == NULL)
        stack->answers = next;
    else
        before->answer.next = promise->answer.next;
    if (next == NULL)
        stack->answers_last = before;
    promise->answer.next = NULL;
    return promise;
}

/* Begin a turn of the conversation: call its next function with `answer`. `handled` is the type of
 * the message that brought the answer; NULL: no message did. The caller ends the turn. */
DOMI_INLINE int call_next_function_with_answer(domi_manager *manager, domus_stack *stack,
                                               domi_envelope *message, const domus_type *handled,
                                               const domus_answer *answer)
{
    stack->manager = manager;
    stack->message = message;
    stack->wait = DOMI_WAIT_NONE;
    stack->awaited = NULL;
    domi_turn_begin(stack, handled);
    return stack->then(stack, domi_stack_get_house(stack)->self, answer);
}

/* Show a function one answer. The answer is copied to this C frame first, so that its promise is
 * already free for the next ask. */
static void resume_with_answer(domi_manager *manager, domus_stack *stack, domi_promise *promise)
{
    domus_answer answer = promise->answer;
    domi_envelope *message = promise->message;

    domi_promise_release(manager, promise);
    /* the verbs that answer or keep an ask look for it in `received` */
    if (message != NULL && message->node.kind == DOMI_ASK)
        stack->received = message;
    int result = call_next_function_with_answer(manager, stack, message, answer.type, &answer);
    if (message != NULL && stack->message == message && message->node.kind != DOMI_ASK)
        domi_answer_release_and_free(manager, message);
    domi_turn_end(stack, result);
}

static void resume_with_all_answers(domi_manager *manager, domus_stack *stack)
{
    static const domus_answer nothing = {0};
    domi_promise *answers = take_answers_to_show(stack, NULL);

    manager->shown.first = answers;
    const domus_answer *first = answers != NULL ? &answers->answer : &nothing;
    int result = call_next_function_with_answer(manager, stack, NULL, first->type, first);
    manager->shown.first = manager->shown.last = NULL;

    free_shown_answers(manager, answers);
    domi_turn_end(stack, result);
}

static void resume_stack_that_has_its_answers(domi_manager *manager, domus_stack *stack)
{
    if (stack->wait == DOMI_WAIT_ONE)
        resume_with_answer(manager, stack, take_answers_to_show(stack, stack->awaited));
    else if (stack->wait == DOMI_WAIT_FIRST && stack->answers != NULL)
        resume_with_answer(manager, stack, take_answers_to_show(stack, stack->answers));
    else
        resume_with_all_answers(manager, stack);
}

/* Handle the end of the wait for the start of an ask that leaves in parts. If `promise` is that of
 * the whole ask, the ask is over and will not begin, so the stack gets this answer. */
static void drop_start_promise_if_ask_has_ended(domi_manager *manager, domus_stack *stack,
                                                domi_promise *promise)
{
    domi_promise *begin = stack->awaited;

    if (begin == promise || begin->whole != promise || !domi_promise_is_awaited(begin))
        return;
    stack->awaited = promise;
    domi_promise_abandon(manager, begin);
}

/* True if an ask that leaves in parts was answered before its first part was taken: the asked actor
 * has a row for every type, and knows no parts. */
static bool is_ask_answered_before_start(const domus_stack *stack, const domi_promise *promise,
                                         const domi_envelope *message)
{
    const domi_promise *begin = stack->awaited;

    return stack->wait == DOMI_WAIT_ONE && begin->kind == DOMI_PROMISE_BEGIN &&
           begin->whole == promise && domi_promise_is_awaited(begin) && message != NULL &&
           message->node.kind == DOMI_REPLY;
}

/* Let a kept ask fail at its deadline. The stack that holds the ask has one promise, which is that
 * deadline. */
static void fail_kept_ask_at_deadline(domi_manager *manager, domus_stack *kept,
                                      domi_promise *promise)
{
    domi_envelope *ask = kept->ask;

    domi_promise_finish(manager, promise, NULL);
    domi_promise_release(manager, promise);
    domi_stack_end_kept_ask(manager, kept);
    domi_ask_drop_expired(manager, ask);
}

void domi_stack_complete_promise(domi_manager *manager, domi_promise *promise,
                                 domi_envelope *message)
{
    domus_stack *stack = domi_promise_get_stack(promise);

    if (DOMI_UNLIKELY(stack->wait == DOMI_WAIT_KEPT)) {
        fail_kept_ask_at_deadline(manager, stack, promise);
        return;
    }
    if (DOMI_UNLIKELY(stack->wait == DOMI_WAIT_PEER)) {
        uint64_t number = promise->answer.tag;
        int error = promise->answer.error;

        domi_promise_finish(manager, promise, NULL);
        domi_promise_release(manager, promise);
        manager->io_hooks.answer_peer(manager, domi_stack_get_house(stack), (uint32_t)number, error,
                                      message);
        return;
    }
    if (DOMI_UNLIKELY(is_ask_answered_before_start(stack, promise, message))) {
        domi_answer_release_and_free(manager, message);
        promise->answer.error = -EOPNOTSUPP;
        message = NULL;
    }
    domi_promise_finish(manager, promise, message);
    append_answer_to_stack(stack, promise);
    if (stack->wait == DOMI_WAIT_ONE && stack->awaited->kind == DOMI_PROMISE_BEGIN)
        drop_start_promise_if_ask_has_ended(manager, stack, promise);
    if (!stack->queued && domi_stack_has_what_it_awaits(stack))
        resume_stack_that_has_its_answers(manager, stack);
}

/* Resume a stack at once as resume_stack_with_its_only_answer() does, for an exception from the
 * asked actor: it has no payload to show or to release. */
__attribute__((noinline)) static void resume_with_exception(domi_manager *manager,
                                                            domus_stack *stack,
                                                            domi_promise *promise,
                                                            domi_envelope *message)
{
    const domus_answer answer = {.error = message->error, .tag = promise->answer.tag};

    domi_promise_finish_and_release(manager, promise);
    int result = call_next_function_with_answer(manager, stack, message, NULL, &answer);
    if (stack->message == message)
        domi_pool_free_object(manager, &message->node);
    domi_turn_end(stack, result);
}

/* Resume a stack in the common case: it waits for one answer, and the one that came is it. Nothing
 * is kept or linked. */
static void resume_stack_with_its_only_answer(domi_manager *manager, domus_stack *stack,
                                              domi_promise *promise, domi_envelope *message)
{
    if (DOMI_UNLIKELY(message->node.kind == DOMI_EXCEPTION)) {
        resume_with_exception(manager, stack, promise, message);
        return;
    }
    const domus_answer answer = {
        .type = message->type,
        .payload = domi_envelope_payload_by_kind(message, DOMI_REPLY),
        .tag = promise->answer.tag,
    };

    domi_promise_finish_and_release(manager, promise);
    int result = call_next_function_with_answer(manager, stack, message, answer.type, &answer);
    if (stack->message == message)
        domi_envelope_release_and_free(manager, message);
    if (DOMI_LIKELY(domi_stack_goes_on_waiting(stack, result)))
        stack->message = NULL;
    else
        domi_turn_end(stack, result);
}

DOMI_NO_CANARY void domi_stack_handle_answer(domi_manager *manager, domi_house *house,
                                             domi_envelope *message)
{
    const domi_return *back = domi_envelope_get_return_of_ask(message);
    domi_promise *promise = back->promise;

    if (domi_promise_serial(promise) != back->serial) {
        domi_counter_add(&manager->counters.late_replies, 1);
        domi_mailbox_end_unhandled_message(manager, house, &message->node, -ETIMEDOUT);
        return;
    }
    domus_stack *stack = domi_promise_get_stack(promise);
    DOMI_CHECK(domi_stack_get_house(stack) == house);
    if (DOMI_LIKELY(stack->awaited == promise && !stack->queued &&
                    promise->state == DOMI_PROMISE_WAITING)) {
        resume_stack_with_its_only_answer(manager, stack, promise, message);
        return;
    }
    if (message->node.kind == DOMI_EXCEPTION) {
        domi_promise_set_answer_to_error(promise, message->error);
    } else {
        /* Clear the error, because a failure of the promise may have been queued before this answer
         * came. */
        promise->answer.error = 0;
        promise->answer.type = message->type;
        promise->answer.payload = domi_envelope_get_payload(message);
    }
    domi_stack_complete_promise(manager, promise, message);
}

/* --- nodes of the exception mailbox ---------------------------------------------------------- */

/* Record that the node of a stack or a promise has left the exception mailbox. Returns true if the
 * node still has to be handled. */
static bool record_node_left_mailbox(domi_manager *manager, domi_node *node)
{
    domi_promise *promise = (domi_promise *)(void *)node;
    domus_stack *stack =
        domi_node_is_stack(node) ? (domus_stack *)(void *)node : domi_promise_get_stack(promise);
    bool alive;
    bool held = true; /* if false, the stack of the promise may be freed already */

    if (domi_node_is_stack(node)) {
        stack->queued = false;
        alive = !stack->ended;
    } else {
        promise->queued = false;
        alive = promise->state == DOMI_PROMISE_FAILED;
        held = node->slab != DOMI_SLAB_PROMISE || promise->timed;
        if (promise->state == DOMI_PROMISE_DEAD)
            domi_promise_release(manager, promise);
    }
    if (held)
        domi_stack_free_if_done(manager, stack);
    return alive;
}

void domi_stack_handle_exception_node(domi_manager *manager, domi_node *node)
{
    if (!record_node_left_mailbox(manager, node)) {
        domi_counter_add(&manager->counters.late_replies, 1);
        return;
    }
    if (domi_node_is_stack(node))
        resume_stack_that_has_its_answers(manager, (domus_stack *)(void *)node);
    else
        domi_stack_complete_promise(manager, (domi_promise *)(void *)node, NULL);
}

void domi_stack_drop_exception_node(domi_manager *manager, domi_node *node)
{
    domi_promise *promise = (domi_promise *)(void *)node;

    /* Abandon the promise while `queued` is still set: then it is DEAD, and
     * record_node_left_mailbox() frees it. */
    if (domi_node_is_promise(node) && promise->state == DOMI_PROMISE_FAILED)
        domi_promise_abandon(manager, promise);
    (void)record_node_left_mailbox(manager, node);
}
