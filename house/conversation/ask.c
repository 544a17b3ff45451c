/* Implements the verbs of domus/conversation.h: ask, sleep, wait, answer, keep, barrier. */
#include "house/conversation/asks.h"

#include "base/check.h"
#include "house/conversation/ask_make.h"
#include "house/conversation/holder.h"
#include "house/conversation/owed.h"
#include "house/conversation/stack.h"
#include "house/message/mailbox.h"
#include "house/message/owned.h"

#include <domus/conversation.h>

#include <errno.h>
#include <string.h>

/* --- ask ------------------------------------------------------------------------------------ */

DOMI_INLINE int put_ask_unless_mailbox_is_full(domi_manager *manager, domus_address to,
                                               domi_node *node, void *unused)
{
    (void)unused;
    return domi_mailbox_put(manager, to, node, DOMI_ASK);
}

DOMI_INLINE int put_ask_despite_full_mailbox(domi_manager *manager, domus_address to,
                                             domi_node *node, void *unused)
{
    (void)unused;
    return domi_mailbox_put_despite_bound(manager, to, node, DOMI_ASK);
}

/* Make an ask and put it to another actor. With `owed` a full mailbox does not refuse the ask. This
 * function is inlined into the verbs, as domi_ask_make_and_put() is. */
DOMI_INLINE int make_and_put_ask(domus_stack *stack, domus_address to, const domus_type *type,
                                 const void *payload, uint64_t timeout_ns, uint64_t tag, bool owed,
                                 domi_promise **ret_promise)
{
    return domi_ask_make_and_put(
        stack, to, type, payload, timeout_ns, tag,
        owed ? put_ask_despite_full_mailbox : put_ask_unless_mailbox_is_full, NULL, ret_promise);
}

/* Make an ask and let the conversation wait for its answer. This function is inlined into the
 * verbs, too. */
DOMI_INLINE int ask_and_wait_for_answer(domus_stack *stack, domus_address to,
                                        const domus_type *type, const void *payload,
                                        uint64_t timeout_ns, bool owed, domus_resumed *then)
{
    domi_promise *promise = NULL;
    int error = make_and_put_ask(stack, to, type, payload, timeout_ns, 0, owed, &promise);

    if (DOMI_UNLIKELY(error != 0))
        return error;
    domi_stack_set_wait(stack->pooled, DOMI_WAIT_ONE, promise, then);
    return DOMUS_PARKED;
}

int domus_ask_within(domus_stack *stack, domus_address to, const domus_type *type,
                     const void *payload, uint64_t timeout_ns, domus_resumed *then)
{
    return ask_and_wait_for_answer(stack, to, type, payload, timeout_ns, false, then);
}

int domi_ask_by_slow_path(domus_stack *stack, domus_address to, const domus_type *type,
                          const void *payload, domus_resumed *then)
{
    return ask_and_wait_for_answer(stack, to, type, payload, 0, false, then);
}

int domus_ask_add(domus_stack *stack, domus_address to, const domus_type *type, const void *payload,
                  uint64_t timeout_ns, uint64_t tag)
{
    domi_promise *promise;

    return make_and_put_ask(stack, to, type, payload, timeout_ns, tag, false, &promise);
}

int domi_ask_add_for_earlier_work(domus_stack *stack, domus_address to, const domus_type *type,
                                  const void *payload, uint64_t tag)
{
    domi_promise *promise;

    return make_and_put_ask(stack, to, type, payload, 0, tag, true, &promise);
}

int domi_ask_for_earlier_work(domus_stack *stack, domus_address to, const domus_type *type,
                              const void *payload, domus_resumed *then)
{
    return ask_and_wait_for_answer(stack, to, type, payload, 0, true, then);
}

int domi_ask_put_first_part_and_wait(domus_stack *stack, domus_address to, const domus_type *type,
                                     const void *payload, domi_begin *begin, uint64_t timeout_ns,
                                     domus_resumed *then)
{
    domi_promise *first = NULL, *whole = NULL;
    int error = domi_stack_add_promise(stack, DOMI_PROMISE_BEGIN, &first);

    if (error != 0)
        return error;
    domi_promise_take_out_of_ask_count(first);
    *begin = (domi_begin){
        .back = {.promise = first, .serial = domi_promise_serial(first)},
        .stack = stack->pooled,
        .serial = domi_stack_serial(stack->pooled),
    };
    error = make_and_put_ask(stack, to, type, payload, timeout_ns, 0, false, &whole);
    if (error != 0) {
        domi_promise_abandon(stack->manager, first);
        return error;
    }
    first->whole = whole;
    domi_stack_set_wait(stack->pooled, DOMI_WAIT_ONE, first, then);
    return DOMUS_PARKED;
}

static int set_wait_of_pooled_stack(domus_stack *stack, domi_wait wait, domus_resumed *then)
{
    int error = domi_stack_check_may_wait(stack);

    if (error != 0)
        return error;
    domus_stack *pooled = domi_stack_get_or_make_pooled(stack);
    if (pooled == NULL)
        return -ENOMEM;
    domi_stack_set_wait(pooled, wait, NULL, then);
    return DOMUS_PARKED;
}

int domus_wait_all(domus_stack *stack, domus_resumed *then)
{
    return set_wait_of_pooled_stack(stack, DOMI_WAIT_ALL, then);
}

int domus_wait_first(domus_stack *stack, domus_resumed *then)
{
    return set_wait_of_pooled_stack(stack, DOMI_WAIT_FIRST, then);
}

uint32_t domus_pending(const domus_stack *stack)
{
    return stack->pooled != NULL ? stack->pooled->pending : 0;
}

static int make_promise_of_sleep(domus_stack *stack, uint64_t time_ns, uint64_t tag,
                                 domi_promise **ret_promise)
{
    domi_manager *manager = stack->manager;
    domi_promise *promise;
    int error = domi_stack_add_promise(stack, DOMI_PROMISE_SLEEP, &promise);

    if (error != 0)
        return error;
    domi_promise_take_out_of_ask_count(promise);
    uint64_t until_ns = manager->now_ns + time_ns;
    promise->answer.tag = tag;
    domi_promise_arm_deadline(manager, promise, until_ns < time_ns ? UINT64_MAX : until_ns);
    *ret_promise = promise;
    return 0;
}

int domus_sleep(domus_stack *stack, uint64_t time_ns, domus_resumed *then)
{
    domi_promise *promise;
    int error = make_promise_of_sleep(stack, time_ns, 0, &promise);

    if (error != 0)
        return error;
    domi_stack_set_wait(stack->pooled, DOMI_WAIT_ONE, promise, then);
    return DOMUS_PARKED;
}

int domus_sleep_add(domus_stack *stack, uint64_t time_ns, uint64_t tag)
{
    domi_promise *promise;

    return make_promise_of_sleep(stack, time_ns, tag, &promise);
}

uint64_t domus_deadline_ns(const domus_stack *stack)
{
    return domi_stack_deadline_ns(stack);
}

const void *domus_asked(const domus_stack *stack, const domus_type *type)
{
    return stack->ask != NULL && stack->ask->type == type ? domi_envelope_get_payload(stack->ask)
                                                          : NULL;
}

/* --- answer --------------------------------------------------------------------------------- */

/* Returns the ask that a verb of this conversation answers or keeps: the one that was received
 * last, else the one that began the conversation; NULL: there is none. */
static domi_envelope *find_current_ask(const domus_stack *stack)
{
    if (DOMI_UNLIKELY(stack->received != NULL) && stack->received->node.kind == DOMI_ASK)
        return stack->received;
    return stack->ask;
}

/* Returns the error of a verb that finds no ask in its conversation: -EALREADY if the ask was
 * answered before, else -EINVAL. */
static int get_error_of_missing_ask(const domus_stack *stack)
{
    return stack->answered ? -EALREADY : -EINVAL;
}

/* Let an ask leave its conversation, with its envelope: the stack no longer points to it. */
static void take_ask_off_conversation(domus_stack *stack, const domi_envelope *ask)
{
    if (stack->received != ask) {
        domi_stack_let_ask_leave(stack, ask);
        return;
    }
    stack->received = NULL;
    stack->answered = true;
    domi_stack_let_message_leave(stack, ask);
}

int domi_reply_by_slow_path(domus_stack *stack, const domus_type *type, const void *payload)
{
    domi_envelope *ask = find_current_ask(stack);

    if (DOMI_UNLIKELY(ask == NULL))
        return get_error_of_missing_ask(stack);
    if (DOMI_UNLIKELY(type->size > DOMUS_PAYLOAD_MAX))
        return -EMSGSIZE;
    take_ask_off_conversation(stack, ask);
    domi_ask_answer_for_house(stack->manager, domi_stack_get_house(stack), ask, type, payload);
    return 0;
}

int domus_fail(domus_stack *stack, int error)
{
    domi_envelope *ask = find_current_ask(stack);

    if (ask == NULL)
        return get_error_of_missing_ask(stack);
    take_ask_off_conversation(stack, ask);
    domi_ask_fail(stack->manager, ask, error < 0 ? error : -EINVAL);
    return 0;
}

/* Prepare a message to leave the actor: a message of a channel's peer borrows bytes, so they are
 * copied first. Returns 0; -ENOMEM. */
static int prepare_message_to_leave_actor(domi_manager *manager, domi_house *house,
                                          domi_envelope *message)
{
    if (DOMI_LIKELY(message->sender != house))
        return 0;
    return manager->io_hooks.release_message(manager, house, message, true);
}

int domus_forward(domus_stack *stack, domus_address to)
{
    domi_envelope *shown = stack->received != NULL ? stack->received : stack->message;
    bool is_notice = shown != NULL && shown->node.kind == DOMI_NOTICE;
    domi_envelope *message = is_notice ? shown : find_current_ask(stack);
    bool is_ask = !is_notice;

    if (message == NULL)
        return get_error_of_missing_ask(stack);
    if (domi_envelope_is_payload_taken(message))
        return -EALREADY;
    int error =
        prepare_message_to_leave_actor(stack->manager, domi_stack_get_house(stack), message);
    if (error != 0)
        return error;
    if (is_ask)
        domi_ask_mark_passed_on(stack, message);
    const domi_envelope head = *message;
    error = domi_mailbox_put_passed_on(stack->manager, to, &message->node,
                                       is_ask ? DOMI_ASK : DOMI_NOTICE);
    if (error != 0) {
        message->node = head.node;
        return error;
    }
    if (is_ask)
        domi_ask_record_new_holder(stack, &head, to);
    if (is_ask && stack->received != message)
        domi_stack_forget_ask_that_began_it(stack);
    stack->received = NULL;
    stack->answered = is_ask || stack->answered;
    if (stack->message == message) {
        stack->message = NULL;
        stack->sender = (domus_address){head.sender, head.sender_lease};
    }
    return 0;
}

int domi_stack_find_request_of_peer(const domus_stack *stack, domus_address *ret_channel,
                                    uint32_t *ret_number)
{
    domi_envelope *ask = find_current_ask(stack);

    return ask != NULL ? domi_ask_find_request_of_peer(ask, ret_channel, ret_number)
                       : get_error_of_missing_ask(stack);
}

/* --- keep ----------------------------------------------------------------------------------- */

/* Arm the deadline of a kept ask. Behind its deadline nobody waits for the answer, so the ask fails
 * then (domi_stack_complete_promise()): otherwise an actor that forgets its kept asks would hold
 * them for ever, and handle no more messages at scheduler.conversationsMax. The promise that stands
 * for this wait is the first one of the stack, so it needs no memory. */
static void arm_deadline_of_kept_ask(domus_stack *kept)
{
    uint64_t deadline_ns = domi_stack_deadline_ns(kept);

    if (deadline_ns == 0)
        return;
    domi_promise *promise = domi_promise_new(kept->manager, kept, DOMI_PROMISE_SLEEP);
    domi_promise_take_out_of_ask_count(promise);
    domi_promise_arm_deadline(kept->manager, promise, deadline_ns);
}

int domus_keep(domus_stack *stack, domus_kept *ret_kept)
{
    domi_envelope *ask = find_current_ask(stack);

    if (ask == NULL)
        return get_error_of_missing_ask(stack);
    /* A stop or restart of the actor has already cancelled its kept asks, and would not see an ask
     * that is kept now, so this ask cannot be kept. */
    if ((domi_stack_get_house(stack)->marks & (DOMI_MARK_STOPPING | DOMI_MARK_RESTART)) != 0)
        return -ECANCELED;
    domus_stack *kept = domi_stack_new(stack->manager, domi_stack_get_house(stack), 0);
    if (kept == NULL)
        return -ENOMEM;
    take_ask_off_conversation(stack, ask);
    kept->ask = ask;
    kept->begun_by = ask->type;
    kept->outlives = stack->pooled != NULL && stack->pooled->outlives;
    domi_stack_set_wait(kept, DOMI_WAIT_KEPT, NULL, NULL);
    domi_ask_record_hold_beyond_turn(stack->manager, domi_stack_get_house(stack), ask);
    arm_deadline_of_kept_ask(kept);
    domi_stack_park_or_end(kept, DOMUS_PARKED);
    *ret_kept = (domus_kept){kept, domi_stack_serial(kept)};
    return 0;
}

int domus_keep_working(domus_stack *stack, domus_kept *ret_kept)
{
    int error = domus_keep(stack, ret_kept);

    if (error == 0)
        ret_kept->stack->works = true;
    return error;
}

/* Cancel an ask that this actor keeps, because its asker no longer waits; no cancel of the asker
 * has come to this actor yet. */
static void cancel_kept_ask(domi_manager *manager, domus_stack *kept)
{
    domi_envelope *ask = kept->ask;

    domi_counter_add(&manager->counters.cancels, 1);
    domi_stack_end_kept_ask(manager, kept);
    domi_ask_fail(manager, ask, -ECANCELED);
}

/* True if this actor still keeps the ask. */
static bool does_actor_keep_ask(const domus_stack *stack, domus_kept kept)
{
    return kept.stack != NULL && domi_stack_serial(kept.stack) == kept.serial &&
           domi_stack_get_house(kept.stack) == domi_stack_get_house(stack) &&
           kept.stack->wait == DOMI_WAIT_KEPT;
}

/* True if nobody waits for the answer of a kept ask any more; false for a request that outlives its
 * connection. */
static bool has_asker_given_up_kept_ask(domus_kept kept)
{
    return !kept.stack->outlives && domi_ask_is_given_up(kept.stack->ask);
}

/* Returns the stack that holds a kept ask; NULL if this actor never kept the ask or no longer keeps
 * it, or if nobody waits for its answer: then this function cancels the ask. */
static domus_stack *find_stack_of_kept_ask(const domus_stack *stack, domus_kept kept)
{
    if (!does_actor_keep_ask(stack, kept))
        return NULL;
    if (DOMI_UNLIKELY(has_asker_given_up_kept_ask(kept))) {
        cancel_kept_ask(stack->manager, kept.stack);
        return NULL;
    }
    return kept.stack;
}

bool domus_kept_is_wanted(const domus_stack *stack, domus_kept kept)
{
    return does_actor_keep_ask(stack, kept) && !has_asker_given_up_kept_ask(kept);
}

int domus_kept_reply(domus_stack *stack, domus_kept kept, const domus_type *type,
                     const void *payload)
{
    domus_stack *held = find_stack_of_kept_ask(stack, kept);

    if (held == NULL)
        return -ENOENT;
    if (type->size > DOMUS_PAYLOAD_MAX)
        return -EMSGSIZE;
    domi_envelope *ask = held->ask;
    domi_stack_end_kept_ask(stack->manager, held);
    domi_ask_answer_for_house(stack->manager, domi_stack_get_house(stack), ask, type, payload);
    return 0;
}

int domi_kept_find_request_of_peer(const domus_stack *stack, domus_kept kept,
                                   domus_address *ret_channel, uint32_t *ret_number)
{
    const domus_stack *held = find_stack_of_kept_ask(stack, kept);

    return held != NULL ? domi_ask_find_request_of_peer(held->ask, ret_channel, ret_number)
                        : -ENOENT;
}

int domus_kept_fail(domus_stack *stack, domus_kept kept, int error)
{
    domus_stack *held = find_stack_of_kept_ask(stack, kept);

    if (held == NULL)
        return -ENOENT;
    domi_envelope *ask = held->ask;
    domi_stack_end_kept_ask(stack->manager, held);
    domi_ask_fail(stack->manager, ask, error < 0 ? error : -EINVAL);
    return 0;
}

int domus_kept_forward(domus_stack *stack, domus_kept kept, domus_address to)
{
    domus_stack *held = find_stack_of_kept_ask(stack, kept);

    if (held == NULL)
        return -ENOENT;
    if (domi_envelope_is_payload_taken(held->ask))
        return -EALREADY;
    int error =
        prepare_message_to_leave_actor(stack->manager, domi_stack_get_house(stack), held->ask);
    if (error != 0)
        return error;
    domi_ask_mark_passed_on(held, held->ask);
    const domi_envelope head = *held->ask;
    error = domi_mailbox_put_passed_on(stack->manager, to, &held->ask->node, DOMI_ASK);
    if (error != 0) {
        held->ask->node = head.node;
        return error;
    }
    domi_ask_record_new_holder(held, &head, to);
    domi_stack_end_kept_ask(stack->manager, held);
    return 0;
}

/* --- barrier, cancel ------------------------------------------------------------------------ */

int domus_barrier(domus_stack *stack)
{
    domi_house *house = domi_stack_get_house(stack);

    if ((house->marks & DOMI_MARK_BARRIER) != 0)
        return stack->barrier ? -EALREADY : -EBUSY;
    stack->barrier = stack->barrier_fresh = true;
    /* the end of this turn lowers the barrier, unless the conversation has parked by then */
    stack->end_acts = true;
    house->marks |= DOMI_MARK_BARRIER;
    return 0;
}

int domus_conversation_of(domus_stack *stack, domus_conversation *ret_conversation)
{
    domus_stack *pooled = domi_stack_get_or_make_pooled(stack);

    if (pooled == NULL)
        return -ENOMEM;
    *ret_conversation = (domus_conversation){pooled, domi_stack_serial(pooled)};
    return 0;
}
