/* Ends conversations that wait. A cancel follows a chain of asks from the asker to the asked
 * actors; a wake ends a sleep. */
#include "house/conversation/asks.h"

#include "house/conversation/dead.h"
#include "house/conversation/holder.h"
#include "house/conversation/stack.h"
#include "house/message/family.h"
#include "house/message/mailbox.h"
#include "house/message/order.h"
#include "house/message/pool.h"
#include "house/message/types.h"

#include <domus/conversation.h>

#include <errno.h>
#include <string.h>

void domi_stack_cancel_conversation(domi_manager *manager, domus_stack *stack, int error)
{
    domi_counter_add(&manager->counters.cancels, 1);
    if (stack->wait == DOMI_WAIT_KEPT) {
        if (DOMI_UNLIKELY(domi_stack_get_house(stack) == manager->gateway))
            domi_ask_tell_gateway_of_cancel(manager,
                                            domi_house_get_address(domi_stack_get_house(stack)),
                                            (domus_kept){stack, domi_stack_serial(stack)});
        domi_ask_fail(manager, stack->ask, error);
        domi_stack_end_kept_ask(manager, stack);
        return;
    }
    stack->cancelled = true;
    for (domi_promise *promise = stack->waiting; promise != NULL; promise = promise->next) {
        if (promise->kind == DOMI_PROMISE_ASK)
            domi_ask_cancel_at_its_actor(manager, promise);
        if (promise->kind == DOMI_PROMISE_BLOCKING && manager->hooks.withdraw != NULL &&
            !manager->hooks.withdraw(manager, promise))
            /* the blocking work has begun and uses memory of the actor, so the cancelled
             * conversation waits for its end */
            continue;
        if (promise->state == DOMI_PROMISE_WAITING)
            domi_promise_fail(manager, promise, -ECANCELED);
    }
}

void domi_stack_cancel_kept_asks(domi_manager *manager, domus_stack *stack)
{
    if (stack->cancelled || stack->works)
        return;
    if (stack->wait == DOMI_WAIT_KEPT) {
        domi_stack_cancel_conversation(manager, stack, -ECANCELED);
        return;
    }
    for (const domi_promise *promise = stack->waiting; promise != NULL; promise = promise->next) {
        if (promise->kind == DOMI_PROMISE_ASK || promise->kind == DOMI_PROMISE_PEER)
            domi_ask_cancel_if_kept(manager, promise);
    }
}

void domi_stack_cancel_all_parked_of_house(domi_manager *manager, domi_house *house)
{
    domus_stack *next;

    for (domus_stack *stack = house->stacks; stack != NULL; stack = next) {
        next = stack->next;
        if (!stack->cancelled)
            domi_stack_cancel_conversation(manager, stack, -ESTALE);
    }
}

/* --- at the side that was asked -------------------------------------------------------------- */

/* Cancels come in crowds, because an asker that stops gives up all its asks, and each cancel may
 * concern any of thousands of conversations. So the cancels that lie directly behind one another in
 * the mailbox are collected in a batch, and one walk over the conversations serves them all. */
#define BATCH_MAX  512u
#define BATCH_FREE 0xffff /* value of a free entry of the batch's table `at` */
#define ROOM_FEW   128u   /* used entries of the table `at` if at most FEW events wait */
/* used entries of the table `at` if more events wait; both numbers are powers of two */
#define ROOM_CROWD 2048u
#define FEW        32u

typedef struct batch {
    /* the asks that are to be cancelled, each by its promise and serial */
    domi_return what[BATCH_MAX];
    /* hash table of the asks to be cancelled, by promise; each entry is an index in `what`, or
     * BATCH_FREE */
    uint16_t at[ROOM_CROWD];
    uint32_t room;  /* entries of the table `at` in use; a small table is cleared faster */
    uint32_t count; /* number of asks in `what` */
    uint32_t left;  /* number of asks in `what` that the search has not found yet */
} batch;

/* Returns the entry of the table `at` at which the search for a promise begins. */
static uint32_t get_first_batch_entry_for_promise(const batch *now, const domi_promise *promise)
{
    return (uint32_t)((uintptr_t)promise / sizeof(domi_promise) * UINT64_C(0x9e3779b97f4a7c15) >>
                      32) %
           now->room;
}

/* True if the cancel is meant for its ask only where an actor keeps the ask. */
static bool is_cancel_only_for_kept_asks(const domi_return *what)
{
    return what->note == DOMI_CANCEL_KEPT;
}

/* Add the ask that a cancel names to the batch. If two cancels name the same ask, the one that is
 * not for kept asks alone counts, because it reaches further. */
static void add_cancel_to_batch(batch *now, const domi_envelope *message)
{
    domi_return *what = &now->what[now->count];

    memcpy(what, message->payload, sizeof *what);
    uint32_t place = get_first_batch_entry_for_promise(now, what->promise);
    for (; now->at[place] != BATCH_FREE; place = (place + 1) % now->room) {
        domi_return *other = &now->what[now->at[place]];
        if (other->promise == what->promise && other->serial == what->serial) {
            if (!is_cancel_only_for_kept_asks(what))
                other->note = what->note;
            return;
        }
    }
    now->at[place] = (uint16_t)now->count;
    now->count++;
    now->left++;
}

/* Returns the entry of the batch that cancels this ask, and counts it as found; NULL: the ask is
 * not cancelled. */
static const domi_return *find_cancel_of_ask(batch *now, const domi_envelope *ask)
{
    const domi_return *back = domi_envelope_get_return_of_ask((domi_envelope *)(uintptr_t)ask);

    for (uint32_t place = get_first_batch_entry_for_promise(now, back->promise);
         now->at[place] != BATCH_FREE; place = (place + 1) % now->room) {
        const domi_return *what = &now->what[now->at[place]];
        if (what->promise == back->promise && what->serial == back->serial) {
            now->left--;
            return what;
        }
    }
    return NULL;
}

static void cancel_conversations_of_batch(domi_manager *manager, domi_house *house, batch *now)
{
    domus_stack *next;

    for (domus_stack *stack = house->stacks; stack != NULL && now->left != 0; stack = next) {
        /* `next` is read before the cancel, because a stack that only keeps its ask is freed with
         * it */
        next = stack->next;
        const domi_return *what = stack->ask != NULL ? find_cancel_of_ask(now, stack->ask) : NULL;
        if (what != NULL && is_cancel_only_for_kept_asks(what))
            domi_stack_cancel_kept_asks(manager, stack);
        else if (what != NULL && !stack->cancelled)
            domi_stack_cancel_conversation(manager, stack, -ECANCELED);
    }
}

/* Drop all asks of the batch from the mailbox list `tail`. Returns the number of dropped asks.
 * `mixed`, a constant in each call, says that notices are in the list, too. */
DOMI_INLINE uint32_t drop_cancelled_asks_from_list(domi_manager *manager, domi_house *house,
                                                   domi_node **tail, batch *now, bool mixed)
{
    domi_node *before = *tail;
    domi_node *last = before;
    bool more = before != NULL;
    uint32_t dropped = 0;

    while (more && now->left != 0) {
        domi_node *node = before->next;

        more = node != last;
        if (mixed && node->kind != DOMI_ASK) {
            before = node;
            continue;
        }
        const domi_return *what =
            find_cancel_of_ask(now, (const domi_envelope *)(const void *)node);
        if (what == NULL || is_cancel_only_for_kept_asks(what)) {
            before = node;
            continue;
        }
        domi_list_take_node_behind(tail, before);
        domi_counter_add(&manager->counters.cancels, 1);
        domi_mailbox_end_unhandled_message(manager, house, node, -ECANCELED);
        dropped++;
    }
    return dropped;
}

static uint32_t drop_cancelled_asks_from_mail(domi_manager *manager, domi_house *house,
                                              domi_node **tail, batch *now)
{
    return drop_cancelled_asks_from_list(manager, house, tail, now, false);
}

/* Drop all asks of the batch from the mail of an actor with an order. Returns the number of dropped
 * asks. */
static uint32_t drop_cancelled_sorted_asks(domi_manager *manager, domi_house *house, batch *now)
{
    domi_strand *strand;
    uint32_t dropped = 0;

    for (uint32_t i = 0; now->left != 0 && (strand = domi_order_get_strand(house, i)) != NULL;
         i++) {
        uint32_t count = drop_cancelled_asks_from_list(manager, house, &strand->tail, now, true);
        strand->count -= count;
        dropped += count;
    }
    if (dropped != 0)
        domi_order_correct_strands_after_walk(house);
    return dropped;
}

/* Drop the asks of the batch that a channel has not sent to its peer yet. An ask that was sent
 * stays in its list, because the next answer of the peer belongs to it. */
static void drop_cancelled_unsent_asks(domi_manager *manager, domi_house *house, batch *now)
{
    domi_node **list;
    uint32_t *count;

    for (uint32_t index = 0;
         now->left != 0 && manager->io_hooks.unsent_asks(house, index, &list, &count); index++)
        *count -= drop_cancelled_asks_from_mail(manager, house, list, now);
}

void domi_ask_carry_out_cancels_in_row(domi_manager *manager, domi_house *house,
                                       const domi_envelope *first)
{
    domi_node **events = &house->tails[DOMI_EVENT];
    bool is_crowd = *events != NULL && domi_house_count_events(house) > FEW;
    uint32_t max = is_crowd ? BATCH_MAX : FEW;
    batch now;

    now.count = 0;
    now.left = 0;
    now.room = is_crowd ? ROOM_CROWD : ROOM_FEW;
    memset(now.at, 0xff, now.room * sizeof now.at[0]);
    add_cancel_to_batch(&now, first);
    while (*events != NULL && now.count < max) {
        domi_envelope *message = (domi_envelope *)(void *)(*events)->next;
        if (domi_node_is_embedded(&message->node) || message->type != &domi_cancel_type)
            break;
        add_cancel_to_batch(&now, message);
        domi_pool_free_object(manager, domi_list_take_first_node(events));
        house->events -= DOMI_EVENT_STEP;
    }
    cancel_conversations_of_batch(manager, house, &now);
    uint32_t dropped = drop_cancelled_asks_from_mail(manager, house, &house->tails[DOMI_ASK], &now);
    if (domi_house_is_ordered(house))
        dropped += drop_cancelled_sorted_asks(manager, house, &now);
    house->mail -= dropped;
    if (dropped != 0)
        domi_mailbox_let_receives_look_again(house);
    if (house->family != NULL)
        house->family->stashed -=
            drop_cancelled_asks_from_mail(manager, house, &house->family->stash[0], &now);
    if (house->behaviour->kind == DOMUS_CHANNELS)
        drop_cancelled_unsent_asks(manager, house, &now);
}

bool domi_ask_carry_out_waiting_cancels(domi_manager *manager, domi_house *house)
{
    domi_node *events = house->tails[DOMI_EVENT];
    bool any = false;

    /* The event mailbox is emptied into a list of its own before
     * domi_ask_carry_out_cancels_in_row() is called, so each call handles one cancel, and no cancel
     * is handled twice. */
    house->tails[DOMI_EVENT] = NULL;
    while (events != NULL) {
        domi_node *node = domi_list_take_first_node(&events);
        domi_envelope *message = (domi_envelope *)(void *)node;
        if (domi_node_is_embedded(node) || message->type != &domi_cancel_type) {
            domi_list_append_node(&house->tails[DOMI_EVENT], node);
            continue;
        }
        house->events -= DOMI_EVENT_STEP;
        any = true;
        domi_node *others = house->tails[DOMI_EVENT];
        house->tails[DOMI_EVENT] = NULL;
        domi_ask_carry_out_cancels_in_row(manager, house, message);
        /* A cancelled conversation may have asked this actor itself; its end then puts another
         * cancel into this mailbox, which is handled in this loop, too. */
        while (house->tails[DOMI_EVENT] != NULL)
            domi_list_append_node(&events, domi_list_take_first_node(&house->tails[DOMI_EVENT]));
        house->tails[DOMI_EVENT] = others;
        domi_pool_free_object(manager, node);
    }
    return any;
}

/* --- verbs ------------------------------------------------------------------------------------ */

/* Returns 0 if this conversation of the actor waits and was not cancelled; -ENOENT if there is no
 * such conversation; -EALREADY if it was cancelled. */
static int check_conversation_still_waits(const domus_stack *stack, domus_conversation conversation)
{
    const domus_stack *other = conversation.stack;

    if (other == NULL || domi_stack_serial(other) != conversation.serial ||
        domi_stack_get_house(other) != domi_stack_get_house(stack) || !other->parked ||
        other->wait == DOMI_WAIT_NONE)
        return -ENOENT;
    return other->cancelled ? -EALREADY : 0;
}

int domus_cancel(domus_stack *stack, domus_conversation conversation)
{
    int error = check_conversation_still_waits(stack, conversation);

    if (error == 0)
        domi_stack_cancel_conversation(stack->manager, conversation.stack, -ECANCELED);
    return error;
}

int domus_wake(domus_stack *stack, domus_conversation conversation)
{
    int error = check_conversation_still_waits(stack, conversation);

    for (domi_promise *one = error == 0 ? conversation.stack->waiting : NULL; one != NULL;
         one = one->next)
        if (one->kind == DOMI_PROMISE_SLEEP && one->state == DOMI_PROMISE_WAITING)
            domi_promise_fail(stack->manager, one, 0);
    return error;
}
