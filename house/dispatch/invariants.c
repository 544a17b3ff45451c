/* Checks of houses and promises in each of their states. house.c draws the states of a house,
 * promise.c those of a promise. */
#include "house/dispatch/invariants.h"

#include "base/check.h"
#include "house/conversation/stack.h"
#include "house/directory/router_check.h"
#include "house/family/family.h"
#include "house/family/slots.h"
#include "house/message/order.h"
#include "house/message/pooled.h"

/* the lists of a house are checked at every 64th run; a power of two */
#define WALK_EVERY 64u

/* True if this mark of the house is set. */
static bool has_house_mark(const domi_house *house, uint32_t mark)
{
    return (house->marks & mark) != 0;
}

/* True unless the condition `when` holds and the condition `then` does not. */
static bool implies(bool when, bool then)
{
    return !when || then;
}

/* --- a house ---------------------------------------------------------------------------------- */

/* Check that a slot without an actor has nothing left of the last one. */
static void check_slot_without_actor(const domi_house *house)
{
    DOMI_CHECK((house->marks & ~DOMI_MARK_DEAD) == 0);
    DOMI_CHECK(house->mail == 0 && domi_house_count_events(house) == 0 && house->replies == 0);
    DOMI_CHECK(house->stacks == NULL && domi_house_count_parked_conversations(house) == 0 &&
               house->attached == NULL);
    DOMI_CHECK(house->family == NULL);
}

/* Check that each count in a house that stands beside a list is zero if and only if the list is
 * empty. */
static void check_counts_against_their_lists(const domi_house *house)
{
    DOMI_CHECK((house->mail == 0) ==
               (house->tails[DOMI_ASK] == NULL && house->tails[DOMI_NOTICE] == NULL &&
                domi_order_count_mail(house) == 0));
    DOMI_CHECK((house->replies == 0) == (house->tails[DOMI_REPLY] == NULL));
    DOMI_CHECK((domi_house_count_events(house) == 0) == (house->tails[DOMI_EVENT] == NULL));
    DOMI_CHECK((domi_house_count_parked_conversations(house) == 0) == (house->stacks == NULL));
}

/* Check that each mark of a house agrees with the field that it stands for. */
static void check_marks_against_fields(const domi_manager *home, const domi_house *house)
{
    bool receives = house->family != NULL && house->family->receives != NULL;
    bool has_holder = house->stacks != NULL && house->stacks->barrier;

    DOMI_CHECK(has_house_mark(house, DOMI_MARK_BARRIER) == has_holder);
    DOMI_CHECK(has_house_mark(house, DOMI_MARK_SATURATED) ==
               (domi_house_count_parked_conversations(house) >= home->limits.conversations_max &&
                house != home->gateway));
    DOMI_CHECK(has_house_mark(house, DOMI_MARK_RECEIVING) == receives);
    DOMI_CHECK(implies(has_house_mark(house, DOMI_MARK_FRESH),
                       has_house_mark(house, DOMI_MARK_RECEIVING)));
    DOMI_CHECK(implies(has_house_mark(house, DOMI_MARK_FATAL),
                       has_house_mark(house, DOMI_MARK_SUSPENDED)));
    DOMI_CHECK(
        implies(has_house_mark(house, DOMI_MARK_STOPPING), domi_house_is_asked_to_stop(house)));
    DOMI_CHECK(implies(has_house_mark(house, DOMI_MARK_STOPPING), house->mail == 0));
    DOMI_CHECK(implies(has_house_mark(house, DOMI_MARK_PASSIVATES), house->family != NULL));
    DOMI_CHECK(implies(has_house_mark(house, DOMI_MARK_ROUTEE),
                       house->family != NULL && house->family->load != NULL));
    DOMI_CHECK(implies(has_house_mark(house, DOMI_MARK_GONE), domi_house_is_channel(house)));
    DOMI_CHECK(implies(domi_house_has_outlived_channel(house), domi_house_is_asked_to_stop(house)));
    /* ORDERED shares its bit with DEAD, which is set only in a slot that is CREATED again. */
    DOMI_CHECK(has_house_mark(house, DOMI_MARK_ORDERED) == (house->behaviour->order != NULL));
    DOMI_CHECK(implies(has_house_mark(house, DOMI_MARK_ORDERED),
                       house->family != NULL && house->family->order));
}

/* Check a house in which an actor lives whose mount is over. If it is WAITING, it must have nothing
 * to run. */
static void check_house_with_living_actor(const domi_manager *home, const domi_house *house)
{
    DOMI_CHECK((domi_house_life_word(house) & DOMI_LIFE_CLOSED) == 0);
    DOMI_CHECK(house->behaviour != NULL && house->self != NULL);
    check_counts_against_their_lists(house);
    check_marks_against_fields(home, house);
    DOMI_CHECK(implies(house->state == DOMI_WAITING, !domi_house_is_runnable(house)));
}

void domi_house_check_fields(const domi_manager *home, const domi_house *house)
{
    DOMI_CHECK(house->home == home || domi_house_is_pooled(house));
    switch (house->state) {
    case DOMI_CREATED:
        check_slot_without_actor(house);
        break;
    case DOMI_MOUNTING:
        DOMI_CHECK(house->stacks == NULL && !has_house_mark(house, DOMI_MARK_STOPPING));
        check_counts_against_their_lists(house);
        break;
    case DOMI_WAITING:
    case DOMI_READY:
        check_house_with_living_actor(home, house);
        break;
    default:
        DOMI_NEVER("a house is SCHEDULED or RUNNING between runs");
    }
}

/* --- its lists -------------------------------------------------------------------------------- */

/* Check that each node of a mailbox is of the mailbox's kind. Returns the number of nodes. */
static uint32_t check_nodes_of_mailbox(const domi_house *house, uint32_t kind)
{
    const domi_node *last = house->tails[kind];
    uint32_t count = 0;

    if (last == NULL)
        return 0;
    const domi_node *node = last;
    do {
        node = node->next;
        DOMI_CHECK(node->kind == kind);
        count++;
    } while (node != last);
    return count;
}

/* Check that all sorted mail of a house is asks and notices, and that its count is right. Returns
 * their number. */
static uint32_t check_sorted_mail(const domi_house *house)
{
    const domi_strand *strand;
    uint32_t count = 0;

    for (uint32_t i = 0; (strand = domi_order_get_strand(house, i)) != NULL; i++) {
        DOMI_CHECK(strand->tail != NULL);
        uint32_t nodes = 0;
        const domi_node *node = strand->tail;
        do {
            node = node->next;
            DOMI_CHECK(domi_node_is_user_mail(node));
            nodes++;
        } while (node != strand->tail);
        DOMI_CHECK(nodes == strand->count);
        count += nodes;
    }
    DOMI_CHECK(count == domi_order_count_mail(house));
    if (count != 0)
        DOMI_CHECK(house->family->order->waiting.ranked == house->family->order->waiting.count &&
                   house->family->order->seen.ranked == house->family->order->seen.count);
    DOMI_CHECK(implies(!has_house_mark(house, DOMI_MARK_ORDERED), count == 0));
    return count;
}

/* Check a parked conversation: it belongs to this house, and each of its promises belongs to it.
 * Returns the number of its asks under way. */
static uint32_t check_parked_stack(const domi_house *house, const domus_stack *stack)
{
    const domi_promise *previous = NULL;
    uint32_t pending = 0;
    uint32_t asks = 0;

    DOMI_CHECK(stack->parked && !stack->ended && stack->pooled == stack);
    DOMI_CHECK(domi_stack_get_house(stack) == house);
    for (const domi_promise *promise = stack->waiting; promise != NULL; promise = promise->next) {
        DOMI_CHECK(domi_promise_is_awaited(promise) && promise->previous == previous);
        DOMI_CHECK(domi_promise_get_stack(promise) == stack);
        domi_promise_check_fields(promise);
        asks += promise->kind == DOMI_PROMISE_ASK;
        pending++;
        previous = promise;
    }
    for (const domi_promise *promise = stack->answers; promise != NULL;
         promise = domi_promise_of_next_answer(promise)) {
        DOMI_CHECK(promise->state == DOMI_PROMISE_DONE && domi_promise_get_stack(promise) == stack);
        domi_promise_check_fields(promise);
    }
    DOMI_CHECK(pending == stack->pending);
    return asks;
}

static void check_parked_stacks(const domi_house *house)
{
    const domus_stack *previous = NULL;
    uint32_t count = 0;
    uint32_t asks = 0;

    for (const domus_stack *stack = house->stacks; stack != NULL; stack = stack->next) {
        DOMI_CHECK(stack->previous == previous);
        /* the conversation that holds the barrier is the first one in the list */
        DOMI_CHECK(implies(stack->barrier, previous == NULL));
        asks += check_parked_stack(house, stack);
        count++;
        previous = stack;
    }
    DOMI_CHECK(count == domi_house_count_parked_conversations(house));
    DOMI_CHECK(asks == house->asks);
}

void domi_house_check_lists(const domi_manager *home, const domi_house *house)
{
    domi_house_check_fields(home, house);
    if (house->state == DOMI_CREATED)
        return;
    DOMI_CHECK(check_nodes_of_mailbox(house, DOMI_ASK) +
                   check_nodes_of_mailbox(house, DOMI_NOTICE) + check_sorted_mail(house) ==
               house->mail);
    DOMI_CHECK(check_nodes_of_mailbox(house, DOMI_REPLY) == house->replies);
    DOMI_CHECK(check_nodes_of_mailbox(house, DOMI_EVENT) == domi_house_count_events(house));
    (void)check_nodes_of_mailbox(house, DOMI_EXCEPTION);
    check_parked_stacks(house);
}

bool domi_house_is_sound(const domi_manager *home, const domi_house *house)
{
    if ((domi_counter_read(&home->counters.runs) & (WALK_EVERY - 1)) == 0)
        domi_house_check_lists(home, house);
    else
        domi_house_check_fields(home, house);
    return true;
}

/* Check a house of a thread that rests. A thief may use an exposed house, and a thread that spawns
 * may use a CREATED one, so these are not read. */
static void check_house_of_resting_thread(void *house_, void *home)
{
    const domi_house *house = house_;

    if (house->home != home || domi_house_is_exposed(house) || house->state == DOMI_CREATED)
        return;
    domi_house_check_lists(home, house);
    domi_house_check_routers(home, house);
}

void domi_manager_check_houses(domi_manager *home)
{
    domi_slots_visit_all(home, check_house_of_resting_thread, home);
    if (home->directory.routers != NULL)
        domi_routers_check(home->directory.routers);
}

/* --- a promise -------------------------------------------------------------------------------- */

void domi_promise_check_fields(const domi_promise *promise)
{
    switch (promise->state) {
    /* only the first promise of a stack can be FREE, because it is a part of the stack */
    case DOMI_PROMISE_FREE:
        DOMI_CHECK(promise->node.slab == DOMI_SLAB_STACK_PROMISE);
        DOMI_CHECK(!promise->queued && !promise->noted && !promise->timed);
        break;
    case DOMI_PROMISE_WAITING:
        DOMI_CHECK(promise->uncounted == (promise->kind != DOMI_PROMISE_ASK));
        DOMI_CHECK(!promise->queued);
        /* a promise that home's carrying out of a note will arm is not on the wheel yet */
        DOMI_CHECK(!(promise->timed && promise->noted));
        break;
    case DOMI_PROMISE_FAILED:
        DOMI_CHECK(promise->uncounted == (promise->kind != DOMI_PROMISE_ASK));
        /* the node of a promise is in at most one list */
        DOMI_CHECK(promise->queued && !promise->noted);
        break;
    case DOMI_PROMISE_DONE:
        DOMI_CHECK(!promise->uncounted && !(promise->queued && promise->noted));
        break;
    /* a DEAD promise is freed when its node comes out of the list that holds it */
    case DOMI_PROMISE_DEAD:
        DOMI_CHECK(promise->queued != promise->noted);
        DOMI_CHECK(!promise->uncounted);
        break;
    default:
        DOMI_NEVER("a promise is in no state");
    }
}
