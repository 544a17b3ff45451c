/* Searches waiting mail for receives. Each mailbox remembers up to which message all waiting
 * receives have looked. So a message that no receive takes is looked at once, and not again with
 * every message that comes after it. */
#include "house/conversation/receive.h"

#include "base/check.h"
#include "house/conversation/asks.h"
#include "house/conversation/holder.h"
#include "house/message/family.h"
#include "house/message/mailbox.h"
#include "house/message/order.h"
#include "house/message/owned.h"
#include "house/message/pool.h"
#include "house/message/stop.h"
#include "house/message/types.h"

#include <errno.h>

/* most messages that the receives of a house look at in one run; the rest of a long mailbox waits
 * for the next run */
#define LOOKS_MAX 4096u

/* Returns the time at which a receive ends without a message: its own time-out or the deadline of
 * the ask that the conversation handles, whichever comes first; 0: never. */
static uint64_t get_time_at_which_receive_ends(const domus_stack *stack, uint64_t within_ns)
{
    uint64_t deadline_ns = domi_stack_deadline_ns(stack);
    uint64_t until_ns = stack->manager->now_ns + within_ns;

    if (within_ns == DOMUS_FOR_EVER)
        return deadline_ns;
    if (until_ns < within_ns)
        until_ns = UINT64_MAX;
    return deadline_ns != 0 && deadline_ns < until_ns ? deadline_ns : until_ns;
}

static int make_promise_of_receive(domus_stack *stack, const domus_pattern *pattern,
                                   uint64_t within_ns, uint64_t tag, domi_promise **ret_promise)
{
    domi_manager *manager = stack->manager;
    domi_house *house = domi_stack_get_house(stack);
    domi_family *family = domi_family_get_or_make(house);
    domi_promise *promise;

    if (family == NULL)
        return -ENOMEM;
    int error = domi_stack_add_promise(stack, DOMI_PROMISE_RECEIVE, &promise);
    if (error != 0)
        return error;
    domi_promise_take_out_of_ask_count(promise);

    domi_promise **last = &family->receives;
    while (*last != NULL)
        last = &(*last)->next_receive;
    *last = promise;
    promise->pattern = pattern;
    promise->next_receive = NULL;
    promise->answer.tag = tag;
    promise->impatient = within_ns == 0;
    family->seen[0] = family->seen[1] = NULL;
    house->marks |= DOMI_MARK_RECEIVING | DOMI_MARK_FRESH;
    uint64_t until_ns = within_ns != 0 ? get_time_at_which_receive_ends(stack, within_ns) : 0;
    if (until_ns != 0)
        domi_promise_arm_deadline(manager, promise, until_ns);
    if (promise->impatient && (house->marks & (DOMI_MARK_BARRIER | DOMI_MARK_SUSPENDED)) != 0)
        /* a barrier or a suspension forbids to take waiting mail, so a receive that searches only
         * that ends now */
        domi_promise_fail(manager, promise, -ETIMEDOUT);
    *ret_promise = promise;
    return 0;
}

int domus_receive(domus_stack *stack, const domus_pattern *pattern, domus_resumed *then)
{
    return domus_receive_within(stack, pattern, DOMUS_FOR_EVER, then);
}

int domus_receive_within(domus_stack *stack, const domus_pattern *pattern, uint64_t within_ns,
                         domus_resumed *then)
{
    domi_promise *promise;
    int error = make_promise_of_receive(stack, pattern, within_ns, 0, &promise);

    if (error != 0)
        return error;
    domi_stack_set_wait(stack->pooled, DOMI_WAIT_ONE, promise, then);
    return DOMUS_PARKED;
}

int domus_receive_add(domus_stack *stack, const domus_pattern *pattern, uint64_t within_ns,
                      uint64_t tag)
{
    domi_promise *promise;

    return make_promise_of_receive(stack, pattern, within_ns, tag, &promise);
}

/* True if the pattern of the receive accepts the message. No pattern accepts the notice of
 * domus_stop_after_mail(). */
static bool does_pattern_accept(const domi_house *house, const domus_pattern *pattern,
                                const void *frame, domi_envelope *message)
{
    const domus_type *const *type = pattern->types;

    if (message->type == &domi_last_type)
        return false;
    while (type != NULL && *type != NULL && *type != message->type)
        type++;
    if (type != NULL && *type == NULL)
        return false;
    return pattern->matches == NULL ||
           pattern->matches(house->self, frame, message->type, domi_envelope_get_payload(message));
}

/* Returns the oldest receive whose pattern accepts this message; NULL: none does. */
static domi_promise *find_receive_for_message(const domi_house *house, domi_envelope *message)
{
    domi_promise *promise = house->family->receives;

    while (promise != NULL &&
           !does_pattern_accept(house, promise->pattern,
                                domi_stack_get_frame(domi_promise_get_stack(promise)), message))
        promise = promise->next_receive;
    return promise;
}

/* Take the notice that ends the actor (domus_stop_after_mail()) out of its mailbox. Returns NULL if
 * another message comes before it, or if no such notice waits. */
static domi_node *take_notice_that_ends_actor(domi_house *house)
{
    domi_node **notices = &house->tails[DOMI_NOTICE];

    if (house->tails[DOMI_ASK] != NULL || *notices == NULL ||
        ((domi_envelope *)(void *)(*notices)->next)->type != &domi_last_type)
        return NULL;
    return domi_list_take_first_node(notices);
}

/* Stop the actor if the message of domus_stop_after_mail() is next. `ordered` is a constant in some
 * calls, so that actors without an order pay for no test of it. */
DOMI_INLINE bool stop_actor_if_last_notice_is_next(domi_manager *manager, domi_house *house,
                                                   bool ordered)
{
    domi_node *last =
        ordered ? domi_order_take_ending_notice(house) : take_notice_that_ends_actor(house);

    if (last == NULL)
        return false;
    if (house->family != NULL)
        /* `seen` of the family may point to the notice, which is freed next */
        house->family->seen[1] = NULL;
    domi_pool_free_object(manager, last);
    house->mail--;
    (void)domi_house_ask_to_stop(manager, domi_house_get_address(house));
    return true;
}

bool domi_receive_stop_if_last_notice_is_next(domi_manager *manager, domi_house *house)
{
    return stop_actor_if_last_notice_is_next(manager, house, domi_house_is_ordered(house));
}

/* Take the next message of `kind` that a receive accepts out of its mailbox. Returns NULL if there
 * is none, or if `looks` messages were looked at. */
static domi_envelope *search_mailbox_for_receives(domi_manager *manager, domi_house *house,
                                                  uint32_t kind, uint32_t *looks,
                                                  domi_promise **ret_promise)
{
    domi_family *family = house->family;
    domi_node **tail = &house->tails[kind];
    domi_node **seen = &family->seen[kind == DOMI_NOTICE];
    domi_node *before = *seen != NULL ? *seen : *tail;

    while (*tail != NULL && *seen != *tail && *looks != 0) {
        domi_envelope *message = (domi_envelope *)(void *)before->next;
        bool expired = kind == DOMI_ASK && domi_ask_is_expired(manager, message);
        domi_promise *promise = expired ? NULL : find_receive_for_message(house, message);

        --*looks;
        if (promise == NULL && !expired) {
            before = *seen = &message->node;
            continue;
        }
        domi_list_take_node_behind(tail, before);
        house->mail--;
        if (expired) {
            domi_ask_drop_expired(manager, message);
            continue;
        }
        *ret_promise = promise;
        return message;
    }
    return NULL;
}

/* Begin to search the mail of an actor with an order. `seen` is as in
 * search_mailbox_for_receives(), but says only whether any mail counts as looked at; then it points
 * at the house's own node. */
static void begin_search_of_ordered_mail(domi_house *house, domi_node **seen)
{
    if (*seen == NULL)
        domi_order_make_seen_mail_unseen(house);
    *seen = &house->node;
}

/* Search for a receive's message as search_mailbox_for_receives() does, in both mailboxes of an
 * actor with an order. */
static domi_envelope *search_ordered_mail_for_receives(domi_manager *manager, domi_house *house,
                                                       uint32_t *looks, domi_promise **ret_promise)
{
    begin_search_of_ordered_mail(house, &house->family->seen[0]);
    while (*looks != 0) {
        domi_node *node = domi_order_take_unseen_message(house);
        if (node == NULL)
            break;
        domi_envelope *message = (domi_envelope *)(void *)node;
        --*looks;
        if (node->kind == DOMI_ASK && domi_ask_is_expired(manager, message)) {
            house->mail--;
            domi_ask_drop_expired(manager, message);
            continue;
        }
        *ret_promise = find_receive_for_message(house, message);
        if (*ret_promise == NULL) {
            domi_order_move_node_to_seen_mail(house, node);
            continue;
        }
        house->mail--;
        return message;
    }
    return NULL;
}

/* Take the next ask or notice that a receive accepts out of the mailboxes. Returns NULL if there is
 * none, or if `looks` messages were looked at. */
DOMI_INLINE domi_envelope *search_all_mail_for_receives(domi_manager *manager, domi_house *house,
                                                        uint32_t *looks, domi_promise **ret_promise,
                                                        bool ordered)
{
    if (ordered)
        return search_ordered_mail_for_receives(manager, house, looks, ret_promise);
    domi_envelope *message =
        search_mailbox_for_receives(manager, house, DOMI_ASK, looks, ret_promise);
    if (message == NULL && *looks != 0)
        message = search_mailbox_for_receives(manager, house, DOMI_NOTICE, looks, ret_promise);
    return message;
}

/* Returns the oldest receive that searches only the mail that waits already; NULL: none. */
static domi_promise *find_receive_limited_to_waiting_mail(const domi_family *family)
{
    domi_promise *promise = family->receives;

    while (promise != NULL && !promise->impatient)
        promise = promise->next_receive;
    return promise;
}

/* End the receives that search only waiting mail, because all mail was looked at. */
static void end_receives_limited_to_waiting_mail(domi_manager *manager, domi_house *house)
{
    domi_promise *promise;

    house->marks &= (uint16_t)~DOMI_MARK_FRESH;
    while ((promise = find_receive_limited_to_waiting_mail(house->family)) != NULL)
        /* domi_promise_fail() takes the receive out of its house's list, so the loop ends. */
        domi_promise_fail(manager, promise, -ETIMEDOUT);
}

/* True if a receive has mail to look at, and the actor has an order if and only if `ordered` says
 * so: a conversation that was resumed may have changed that. */
DOMI_INLINE bool has_receive_mail_to_look_at(const domi_house *house, bool ordered)
{
    return domi_house_has_receive_to_search(house) &&
           (house->marks & DOMI_MARK_ORDERED) == (ordered ? DOMI_MARK_ORDERED : 0);
}

DOMI_INLINE uint32_t resume_receives_with_mail(domi_manager *manager, domi_house *house,
                                               uint32_t budget, bool ordered)
{
    uint32_t looks = LOOKS_MAX;
    uint32_t handled = 0;

    /* A conversation that was resumed with the last received message may have stopped the actor. */
    while (handled < budget && has_receive_mail_to_look_at(house, ordered) &&
           !domi_house_is_asked_to_stop(house)) {
        domi_promise *promise = NULL;
        if (stop_actor_if_last_notice_is_next(manager, house, ordered))
            return handled + 1;
        domi_envelope *message =
            search_all_mail_for_receives(manager, house, &looks, &promise, ordered);
        if (message == NULL) {
            if (looks != 0)
                end_receives_limited_to_waiting_mail(manager, house);
            break;
        }
        handled++;
        domi_promise_remove_from_receives(promise);
        promise->answer.error = 0;
        promise->answer.type = message->type;
        promise->answer.payload = domi_envelope_get_payload(message);
        domi_stack_complete_promise(manager, promise, message);
    }
    return handled;
}

uint32_t domi_receive_search_new_mail(domi_manager *manager, domi_house *house, uint32_t budget)
{
    return resume_receives_with_mail(manager, house, budget, false);
}

uint32_t domi_receive_search_new_ordered_mail(domi_manager *manager, domi_house *house,
                                              uint32_t budget)
{
    return resume_receives_with_mail(manager, house, budget, true);
}

static domi_envelope *take_message_for_pattern(domi_manager *manager, domi_house *house,
                                               uint32_t kind, const domus_pattern *pattern,
                                               const void *frame, domi_node **seen)
{
    domi_node **tail = &house->tails[kind];
    domi_node *before = *seen != NULL ? *seen : *tail;

    while (*tail != NULL && *seen != *tail) {
        domi_envelope *message = (domi_envelope *)(void *)before->next;
        bool expired = kind == DOMI_ASK && domi_ask_is_expired(manager, message);

        if (!expired && !does_pattern_accept(house, pattern, frame, message)) {
            before = *seen = &message->node;
            continue;
        }
        domi_list_take_node_behind(tail, before);
        house->mail--;
        /* `seen` of the family may point to this message, up to which waiting receives have looked,
         * so all mail counts as not looked at again */
        if (house->family != NULL)
            house->family->seen[kind == DOMI_NOTICE] = NULL;
        if (!expired)
            return message;
        domi_ask_drop_expired(manager, message);
    }
    return NULL;
}

static domi_envelope *take_ordered_message_for_pattern(domi_manager *manager, domi_house *house,
                                                       const domus_pattern *pattern,
                                                       const void *frame, domi_node **seen)
{
    domi_envelope *found = NULL;

    begin_search_of_ordered_mail(house, seen);
    while (found == NULL) {
        domi_node *node = domi_order_take_unseen_message(house);
        if (node == NULL)
            break;
        domi_envelope *message = (domi_envelope *)(void *)node;
        if (node->kind == DOMI_ASK && domi_ask_is_expired(manager, message)) {
            house->mail--;
            domi_ask_drop_expired(manager, message);
        } else if (does_pattern_accept(house, pattern, frame, message)) {
            house->mail--;
            found = message;
        } else {
            domi_order_move_node_to_seen_mail(house, node);
        }
    }
    /* The receives of conversations have not looked at the messages that this search has set aside,
     * so these count as not looked at again. */
    if ((house->marks & DOMI_MARK_RECEIVING) != 0)
        *seen = NULL;
    domi_mailbox_let_receives_look_again(house);
    return found;
}

domi_envelope *domi_receive_take_matching_message(domi_manager *manager, domi_house *house,
                                                  const domus_pattern *pattern, const void *frame,
                                                  domi_node *seen[2])
{
    if (domi_house_is_ordered(house))
        return take_ordered_message_for_pattern(manager, house, pattern, frame, &seen[0]);
    domi_envelope *message =
        take_message_for_pattern(manager, house, DOMI_ASK, pattern, frame, &seen[0]);

    if (message != NULL)
        return message;
    return take_message_for_pattern(manager, house, DOMI_NOTICE, pattern, frame, &seen[1]);
}

/* --- stash ---------------------------------------------------------------------------------- */

int domus_stash(domus_stack *stack)
{
    domi_house *house = domi_stack_get_house(stack);
    domi_envelope *message = stack->received != NULL ? stack->received : stack->message;

    if (message == NULL)
        return stack->answered ? -EALREADY : -EINVAL;
    bool is_ask = message->node.kind == DOMI_ASK;
    if (!is_ask && message->node.kind != DOMI_NOTICE)
        return -EINVAL;
    if (domi_envelope_is_payload_taken(message))
        return -EALREADY;
    if (message->sender == house && (!is_ask || domi_ask_is_of_peer(message, house)) &&
        domi_house_is_channel(house))
        /* a message of the channel's peer never was in a mailbox, and could not go back into one */
        return -EOPNOTSUPP;
    domi_family *family = domi_family_get_or_make(house);
    if (family == NULL)
        return -ENOMEM;
    if (family->stashed >= stack->manager->limits.mailbox_max)
        return -ENOBUFS;
    if (is_ask)
        domi_ask_record_hold_beyond_turn(stack->manager, house, message);
    domi_list_append_node(&family->stash[is_ask ? 0 : 1], &message->node);
    family->stashed++;
    if (stack->received == message)
        stack->received = NULL;
    else if (is_ask)
        domi_stack_forget_ask_that_began_it(stack);
    stack->answered = is_ask || stack->answered;
    /* the message is the shown one only in a plain handler; a receive that returns to its caller
     * (detached.h) leaves `stack->message` as it was */
    if (stack->message == message) {
        stack->message = NULL;
        stack->sender = (domus_address){message->sender, message->sender_lease};
    }
    return 0;
}

void domi_house_put_stash_back(domi_house *house)
{
    domi_family *family = house->family;

    if (family == NULL || family->stashed == 0)
        return;
    if (domi_house_is_ordered(house)) {
        domi_order_put_stashed_back(house, family->stash[1]);
        domi_order_put_stashed_back(house, family->stash[0]);
    } else {
        domi_list_prepend_list(&house->tails[DOMI_ASK], family->stash[0]);
        domi_list_prepend_list(&house->tails[DOMI_NOTICE], family->stash[1]);
    }
    family->stash[0] = family->stash[1] = NULL;
    house->mail += family->stashed;
    family->stashed = 0;
    domi_mailbox_let_receives_look_again(house);
}

void domus_unstash(domus_stack *stack)
{
    domi_house_put_stash_back(domi_stack_get_house(stack));
}
