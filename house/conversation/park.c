/* Parks conversations, and ends them.
 *
 * A parked stack is in the list of its house and waits for promises; turn.c resumes it. A stack
 * that ends gives up everything that it holds, and is freed as soon as no mailbox, no note and no
 * wheel holds a node of it. */
#include "base/check.h"
#include "house/conversation/asks.h"
#include "house/conversation/dead.h"
#include "house/conversation/stack.h"
#include "house/message/doors.h"
#include "house/message/owned.h"
#include "house/message/pool.h"

#include <errno.h>

static void unlink_parked_stack(domi_manager *manager, domi_house *house, domus_stack *stack)
{
    if (!stack->parked)
        return;
    stack->parked = false;
    if (stack->next != NULL)
        stack->next->previous = stack->previous;
    if (stack->previous != NULL)
        stack->previous->next = stack->next;
    else
        house->stacks = stack->next;
    house->parked -= DOMI_PARKED_STEP;
    if (domi_house_count_parked_conversations(house) < manager->limits.conversations_max)
        house->marks &= (uint16_t)~DOMI_MARK_SATURATED;
}

static void free_stack(domi_manager *manager, domus_stack *stack)
{
    /* Relaxed: another thread that walks a chain of asks only compares these two values and reads
     * nothing through them. */
    atomic_store_explicit(&stack->house, NULL, memory_order_relaxed);
    atomic_store_explicit(&stack->parent, NULL, memory_order_relaxed);
    domi_pool_free_object(manager, &stack->node);
}

void domi_stack_free_if_done(domi_manager *manager, domus_stack *stack)
{
    if (!stack->ended || stack->queued || stack->first.queued || stack->first.noted)
        return;
    if (DOMI_LIKELY(stack->away == 0)) {
        free_stack(manager, stack);
    } else if (stack->away == DOMI_STACK_COUNTED) {
        domi_house *house = domi_stack_get_house(stack);
        free_stack(manager, stack);
        manager->io_hooks.conversation_ended(manager, house);
    }
}

/* Throw away answers of a conversation that were never shown to a handler: they were not handled,
 * so they are dead letters. */
static void discard_unshown_answers(domi_manager *manager, domus_stack *stack)
{
    for (domi_promise *promise = stack->answers; promise != NULL;) {
        domi_promise *next = domi_promise_of_next_answer(promise);

        if (promise->message != NULL)
            domi_mailbox_end_unhandled_message(manager, domi_stack_get_house(stack),
                                               &promise->message->node, -ECANCELED);
        domi_promise_release(manager, promise);
        promise = next;
    }
    stack->answers = stack->answers_last = NULL;
}

/* Give up everything that the pooled stack of an ended conversation holds, and free the stack as
 * soon as none of its nodes is queued. */
static void end_and_free_pooled_stack(domi_manager *manager, domi_house *house, domus_stack *stack)
{
    while (stack->waiting != NULL)
        domi_promise_abandon(manager, stack->waiting);
    discard_unshown_answers(manager, stack);
    unlink_parked_stack(manager, house, stack);
    atomic_store_explicit(&stack->serial, domi_stack_serial(stack) + 1, memory_order_relaxed);
    stack->wait = DOMI_WAIT_NONE;
    stack->ended = true;
    domi_stack_free_if_done(manager, stack);
}

/* --- park ----------------------------------------------------------------------------------- */

static void lower_barrier_of_conversation(domi_house *house)
{
    house->marks &= (uint16_t)~DOMI_MARK_BARRIER;
}

/* Mark the actor as saturated, because it has `conversations_max` parked conversations. */
static void mark_actor_full_of_conversations(domi_manager *manager, domi_house *house)
{
    if ((house->marks & DOMI_MARK_SATURATED) != 0)
        return;
    house->marks |= DOMI_MARK_SATURATED;
    domi_counter_add(&manager->counters.conversations_full, 1);
    domi_manager_log_event_of_actor(manager, house, DOMI_IS_FULL, 0);
}

/* Link a parked stack at its house. The stack that holds the barrier comes first in the list, so
 * that an ask that waits for the barrier finds it at once. */
static void link_parked_stack(domi_manager *manager, domi_house *house, domus_stack *stack)
{
    domus_stack *head = house->stacks;

    if (head != NULL && head->barrier) {
        stack->previous = head;
        stack->next = head->next;
        head->next = stack;
    } else {
        stack->previous = NULL;
        stack->next = head;
        house->stacks = stack;
    }
    if (stack->next != NULL)
        stack->next->previous = stack;
    stack->parked = true;
    house->parked += DOMI_PARKED_STEP;
    if (domi_house_count_parked_conversations(house) >= manager->limits.conversations_max &&
        house != manager->gateway)
        mark_actor_full_of_conversations(manager, house);
}

/* Copy the fields of the stack in the run's C frame to its pooled stack, and link the pooled stack
 * at the house. */
static void park_conversation(domus_stack *stack)
{
    domi_manager *manager = stack->manager;
    domi_house *house = domi_stack_get_house(stack);
    domus_stack *pooled = stack->pooled;

    if (pooled != stack) {
        pooled->ask = stack->ask;
        pooled->answered = stack->answered;
        pooled->sender = stack->sender;
        pooled->barrier = stack->barrier;
        pooled->barrier_fresh = stack->barrier_fresh;
    }
    pooled->message = NULL;
    if (DOMI_LIKELY(pooled->parked && !pooled->barrier_fresh &&
                    !domi_stack_has_what_it_awaits(pooled)))
        return;
    if (pooled->barrier_fresh && pooled->parked)
        /* the stack is linked again below, now at the head of the house's list, as the holder of
         * the barrier */
        unlink_parked_stack(manager, house, pooled);
    if (!pooled->parked)
        link_parked_stack(manager, house, pooled);
    if (pooled->barrier_fresh) {
        pooled->barrier_fresh = false;
        domi_circle_fail_waiting_asks(manager, house, pooled);
    }
    if (domi_stack_has_what_it_awaits(pooled) && !pooled->queued) {
        pooled->queued = true;
        pooled->node.kind = DOMI_EXCEPTION;
        domi_list_append_node(&house->tails[DOMI_EXCEPTION], &pooled->node);
    }
}

/* True if `ask` is a request of the peer of the channel `house`. A mistake with such an ask is
 * reported by io, because only io knows whether the channel is being closed. */
static bool is_request_of_own_peer(const domi_house *house, const domi_envelope *ask)
{
    return ask->sender == house && house->behaviour->pipeline != NULL;
}

/* Log a mistake of the last function of a conversation that ends with a `result` that is not
 * negative, because nobody else would: the function let the conversation wait for nothing, its
 * result has no meaning, or the ask got no answer, for which its asker would be blamed. */
static void log_mistake_at_end_of_conversation(domi_manager *manager, domi_house *house,
                                               const domus_stack *stack, int result)
{
    const domus_stack *pooled = stack->pooled;
    const domus_type *handled = domi_manager_type_being_handled(manager);
    bool waits = pooled != NULL && pooled->wait != DOMI_WAIT_NONE;

    if (handled == NULL && pooled != NULL)
        handled = pooled->begun_by;
    if (waits) {
        domi_counter_add(&manager->counters.waits_lost, 1);
        domi_manager_report_mistake(manager, house, DOMI_WAIT_NOT_RETURNED, handled, result);
    }
    if (result > 0) {
        domi_counter_add(&manager->counters.results_unknown, 1);
        domi_manager_report_mistake(manager, house, DOMI_RESULT_UNKNOWN, handled, result);
    }
    if (stack->ask != NULL && result == 0 && !waits && !(pooled != NULL && pooled->cancelled) &&
        !is_request_of_own_peer(house, stack->ask))
        domi_manager_report_mistake(manager, house, DOMI_ASK_UNANSWERED, stack->ask->type, result);
}

/* End the conversation with `result`, which its last function returned. If it has not answered its
 * ask, the asker gets the result; otherwise a failure goes to the parent of the actor. */
static void end_conversation(domus_stack *stack, int result)
{
    domi_manager *manager = stack->manager;
    domi_house *house = domi_stack_get_house(stack);
    domus_stack *pooled = stack->pooled;

    if (result >= 0)
        log_mistake_at_end_of_conversation(manager, house, stack, result);
    if (stack->ask != NULL) {
        /* A conversation that the actor's stop has cancelled fails with -ESTALE, because its asker
         * has cancelled nothing. */
        if (result == -ECANCELED && (house->marks & DOMI_MARK_STOPPING) != 0)
            result = -ESTALE;
        domi_ask_fail(manager, stack->ask, result < 0 ? result : -ENOMSG);
        stack->ask = NULL;
    } else if (result < 0 && !(pooled != NULL && pooled->cancelled)) {
        domi_doors.handle_failure(manager, house, result, pooled != NULL ? pooled->begun_by : NULL);
    }
    if (stack->barrier)
        lower_barrier_of_conversation(house);
    if (pooled != NULL)
        end_and_free_pooled_stack(manager, house, pooled);
}

void domi_stack_end_received_message(domus_stack *stack, int error)
{
    domi_envelope *message = stack->received;

    stack->received = NULL;
    /* The function that was resumed with the received message may still run, because it receives
     * again; from here on it cannot use the message. */
    if (message != NULL && stack->message == message) {
        stack->message = NULL;
        stack->sender = (domus_address){message->sender, message->sender_lease};
    }
    if (message != NULL && message->node.kind == DOMI_ASK && error == -ENOMSG)
        domi_manager_report_mistake(stack->manager, domi_stack_get_house(stack),
                                    DOMI_ASK_UNANSWERED, message->type, 0);
    if (message != NULL && message->node.kind == DOMI_ASK)
        domi_ask_fail(stack->manager, message, error);
    else if (message != NULL)
        domi_envelope_release_and_free(stack->manager, message);
}

void domi_stack_park_or_end(domus_stack *stack, int result)
{
    domus_stack *pooled = stack->pooled;

    if (stack->received != NULL)
        domi_stack_end_received_message(stack, result < 0 ? result : -ENOMSG);
    if (result != DOMUS_PARKED)
        end_conversation(stack, result);
    else if (pooled == NULL || pooled->wait == DOMI_WAIT_NONE)
        /* the handler returned DOMUS_PARKED, but waits for nothing */
        end_conversation(stack, -EINVAL);
    else
        park_conversation(stack);
}

/* --- the end ---------------------------------------------------------------------------------- */

void domi_stack_end_kept_ask(domi_manager *manager, domus_stack *kept)
{
    kept->ask = NULL;
    end_and_free_pooled_stack(manager, domi_stack_get_house(kept), kept);
}

void domi_stack_cancel_asks_promised_to_peer(domi_manager *manager, domus_stack *holder)
{
    if (holder == NULL)
        return;
    for (const domi_promise *promise = holder->waiting; promise != NULL; promise = promise->next)
        domi_ask_cancel_at_its_actor(manager, promise);
    end_and_free_pooled_stack(manager, domi_stack_get_house(holder), holder);
}

void domi_stack_free_all_of_house(domi_manager *manager, domi_house *house)
{
    while (house->stacks != NULL) {
        domus_stack *stack = house->stacks;

        if (stack->ask != NULL)
            domi_ask_fail(manager, stack->ask, -ESTALE);
        stack->ask = NULL;
        end_and_free_pooled_stack(manager, house, stack);
    }
    DOMI_CHECK(house->asks == 0);
    lower_barrier_of_conversation(house);
}

/* True if the answer of the promise waits in a mailbox of the house already. */
static bool is_promise_answered(const domi_house *house, const domi_promise *promise)
{
    for (uint32_t kind = DOMI_REPLY; kind <= DOMI_EXCEPTION; kind++) {
        domi_node *last = house->tails[kind];
        domi_node *node = last;
        while (node != NULL) {
            node = node->next;
            if (!domi_node_is_embedded(node) &&
                domi_envelope_get_return_of_ask((domi_envelope *)(void *)node)->promise == promise)
                return true;
            if (node == last)
                break;
        }
    }
    return false;
}

bool domi_stack_has_blocking_work(const domi_house *house)
{
    for (const domus_stack *stack = house->stacks; stack != NULL; stack = stack->next) {
        for (const domi_promise *promise = stack->waiting; promise != NULL;
             promise = promise->next) {
            if (promise->kind == DOMI_PROMISE_BLOCKING && promise->work != NULL &&
                !is_promise_answered(house, promise))
                return true;
        }
    }
    return false;
}
