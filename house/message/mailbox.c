/* The inbox lane, one lock-free stack for each house (contract: Lanes), and the end of mail that is
 * not handled.
 *
 * The inbox is one word: the newest node in the lower 48 bits, the depth in the upper 16. So one
 * operation tells whether it is empty and how deep it is. A put links the node first and then
 * publishes it by a compare-exchange. Home takes the whole stack with one exchange, but only after
 * it took the house off the arrivals. Until then the inbox is not empty, so no put links the house
 * a second time. */
#include "house/message/mailbox.h"

#include "base/check.h"
#include "base/prefetch.h"
#include "house/conversation/ask.h"
#include "house/conversation/owned.h"
#include "house/conversation/receive.h"
#include "house/directory/letters.h"
#include "house/directory/router.h"
#include "house/family/family.h"
#include "house/family/life.h"
#include "house/family/watch.h"
#include "house/message/arrivals.h"
#include "house/message/doors.h"
#include "house/message/kind.h"
#include "house/message/shared.h"

#include <errno.h>

#define POINTER_BITS 48
#define POINTER_MASK ((UINT64_C(1) << POINTER_BITS) - 1)
#define DEPTH_MAX    UINT64_C(0xffff)

static domi_node *word_node(uint64_t word)
{
    return (domi_node *)(uintptr_t)(word & POINTER_MASK);
}

static bool is_user(const domi_node *node)
{
    return node->kind == DOMI_ASK || node->kind == DOMI_NOTICE;
}

static int refuse_full(domi_manager *manager, domi_house *house, const domi_node *node)
{
    domi_counter_add(&manager->counters.refusals, 1);
    domi_doors.tell_refused(manager, house, node);
    return -ENOBUFS;
}

/* Refuse because memory is short. Subscribers to refusals are not told, because telling them takes
 * memory. */
static int refuse_busy(domi_manager *manager)
{
    domi_counter_add(&manager->counters.busy, 1);
    return -EBUSY;
}

/* Returns how many asks and notices may wait in the house. */
static uint32_t bound_of(const domi_manager *manager, const domi_house *house, uint64_t life)
{
    return (life & DOMI_LIFE_BOUNDED) != 0 ? domi_house_mail_max(house) : manager->mailbox_max;
}

static int put_inbox(domi_manager *manager, domi_house *house, domi_node *node, uint64_t mail_max)
{
    uint64_t word = atomic_load_explicit(&house->inbox, memory_order_relaxed);
    uint64_t next;

    DOMI_CHECK(((uintptr_t)node & ~POINTER_MASK) == 0);
    do {
        uint64_t depth = word >> POINTER_BITS;

        if (is_user(node) && depth >= mail_max)
            return refuse_full(manager, house, node);
        node->next = word_node(word);
        depth = depth < DEPTH_MAX ? depth + 1 : DEPTH_MAX;
        next = depth << POINTER_BITS | (uintptr_t)node;
        /* release: pairs with home's exchange in domi_mailbox_sort_inbox(), which then sees all
         * that the node holds. */
    } while (!atomic_compare_exchange_weak_explicit(&house->inbox, &word, next,
                                                    memory_order_release, memory_order_relaxed));
    if (word == 0) /* only the put that found it empty links, so no house is linked twice */
        domi_links_add(manager, house);
    return 0;
}

void domi_mailbox_mark_full(domi_house *house)
{
    /* It is a read-modify-write because a stop may set its bit at the same time. Relaxed: FULL is
     * a hint, and a sender that sees it late puts into the inbox, which has its own bound. */
    atomic_fetch_or_explicit(&house->life, DOMI_LIFE_FULL, memory_order_relaxed);
}

void domi_mailbox_clear_full(domi_manager *manager, domi_house *house)
{
    if (!domi_mailbox_has_room(manager, house))
        return;
    atomic_fetch_and_explicit(&house->life, ~DOMI_LIFE_FULL, memory_order_relaxed);
    domi_watch_fire_room(manager, house);
}

/* Let the ask behind `before` fail with -EDEADLK. It was made for the conversation that it would
 * have to wait for. The asker itself caused this, so the ask is no dead letter. */
static void fail_circle(domi_manager *manager, domi_house *house, domi_node *before)
{
    domi_envelope *ask = (domi_envelope *)(void *)before->next;

    domi_list_take_behind(&house->tails[DOMI_ASK], before);
    house->mail--;
    domi_receive_reset(house);
    domi_counter_add(&manager->counters.circles, 1);
    domi_ask_fail(manager, ask, -EDEADLK);
}

static void sort_one(domi_manager *manager, domi_house *house, domi_node *node, uint32_t lease)
{
    if (node == &house->node && node->kind == DOMI_FREE) {
        domi_house_free_returned(manager, house);
        return;
    }
    if (node->lease != lease) {
        if (node != &house->node)
            domi_mailbox_drop(manager, house, node, -ESTALE);
        return;
    }
    if (node->kind >= DOMI_MAILBOXES) {
        domi_kind_of(node)->handle_arrival(manager, house, node);
    } else if (is_user(node) && (house->marks & DOMI_MARK_STOPPING) != 0) {
        domi_mailbox_drop(manager, house, node, -ESTALE);
    } else {
        domi_mailbox_append(manager, house, node, node->kind);
    }
}

uint32_t domi_mailbox_depth(const domi_house *house)
{
    return (uint32_t)(atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)&house->inbox,
                                           memory_order_relaxed) >>
                      POINTER_BITS);
}

int domi_mailbox_put_slow(domi_manager *manager, domi_house *house, domi_node *node)
{
    if (house == NULL)
        return -ESTALE;
    if (DOMI_UNLIKELY(house->home == NULL))
        return domi_doors.put_to_router(manager, house, node);

    /* Relaxed: the address reached this thread by a message, and this load sees everything that
     * happened before that message was put. */
    uint64_t life = domi_house_life(house);
    if (DOMI_LIFE_LEASE(life) != node->lease || (life & DOMI_LIFE_CLOSED) != 0)
        return -ESTALE;
    if (is_user(node)) {
        if ((life & DOMI_LIFE_STOP) != 0)
            return -ESTALE;
        if (DOMI_UNLIKELY(manager->busy))
            return refuse_busy(manager);
        if ((life & DOMI_LIFE_FULL) != 0)
            return refuse_full(manager, house, node);
    }

    bool home_lane = house->home == manager && !domi_house_is_exposed(house) &&
                     atomic_load_explicit(&house->inbox, memory_order_relaxed) == 0;
    if (!home_lane)
        return put_inbox(manager, house, node, bound_of(manager, house, life));
    if (is_user(node) && house->mail >= bound_of(manager, house, life)) {
        domi_mailbox_mark_full(house);
        return refuse_full(manager, house, node);
    }
    if (node->kind >= DOMI_MAILBOXES)
        domi_kind_of(node)->handle_arrival(manager, house, node);
    else
        domi_mailbox_append(manager, house, node, node->kind);
    return 0;
}

int domi_mailbox_put_passed(domi_manager *manager, domus_address address, domi_node *node,
                            uint32_t kind)
{
    manager->busy = false;
    int error = domi_mailbox_put(manager, address, node, kind);
    /* The old value may be out of date: a put may take memory, and to take some may be how this
     * thread hears of a change of the level. */
    manager->busy = manager->pressure_seen >= DOMUS_MEMORY_CRITICAL;
    return error;
}

void domi_mailbox_give_back(domi_manager *manager, domi_house *house)
{
    house->node.kind = DOMI_FREE;
    (void)put_inbox(manager, house, &house->node, 0);
}

/* Fetch the cache line of the sender that the put of an answer will write, while the message is
 * handled. A message that came alone is likely to be answered; in a flood the fetch would only be
 * in the way of others. */
static void expect_answer(const domi_node *node)
{
    if (node->kind == DOMI_ASK || node->kind == DOMI_NOTICE)
        domi_prefetch_write(((const domi_envelope *)(const void *)node)->sender);
}

void domi_mailbox_sort_inbox(domi_manager *manager, domi_house *house)
{
    DOMI_CHECK(house->home == manager && !domi_house_is_exposed(house));

    /* acquire: pairs with the release of each put. Home has read arrival_next before this exchange,
     * because from here on the next put finds the inbox empty and may link the house again. */
    uint64_t word = atomic_exchange_explicit(&house->inbox, 0, memory_order_acquire);
    domi_node *node = word_node(word);
    domi_node *oldest = NULL;

    manager->alone = node != NULL && node->next == NULL;
    if (manager->alone)
        expect_answer(node);
    while (node != NULL) {
        domi_node *next = node->next;
        node->next = oldest;
        oldest = node;
        node = next;
    }

    /* A free slot has its next lease already, so mail that comes late for its last life becomes a
     * dead letter. acquire: pairs with the release in publish_life() (life.c): late mail for the
     * old life may make home sort before the new actor's mount node arrives. */
    uint64_t life = atomic_load_explicit(&house->life, memory_order_acquire);
    uint32_t lease = (life & DOMI_LIFE_CLOSED) != 0 ? 0 : DOMI_LIFE_LEASE(life);
    for (node = oldest; node != NULL;) {
        domi_node *next = node->next;
        sort_one(manager, house, node, lease);
        node = next;
    }
    if (lease == 0)
        return; /* the slot is free, and another thread may be making an actor in it by now */
    if (house->mail >= bound_of(manager, house, life))
        domi_mailbox_mark_full(house);
    if (DOMI_LIKELY((house->marks & (DOMI_MARK_ROUTEE | DOMI_MARK_STOPPING)) == 0))
        return;
    if ((house->marks & DOMI_MARK_ROUTEE) != 0)
        domi_router_note_load(house);
    if ((house->marks & DOMI_MARK_STOPPING) != 0)
        domi_house_rouse(manager, house); /* its end may have waited for an empty inbox */
}

bool domi_mailbox_hold(domi_manager *manager, domi_house *house, domi_node *node)
{
    const domus_stack *holder = house->stacks;

    /* The holder of the barrier is the first parked conversation. If it has not parked yet, it is
     * not in the list, and domi_mailbox_fail_circles() looks at the asks when it parks. */
    if ((house->marks & DOMI_MARK_BARRIER) != 0 && node->kind == DOMI_ASK && holder != NULL &&
        holder->barrier &&
        domi_stack_is_in_chain(domi_envelope_return((domi_envelope *)(void *)node), holder)) {
        domi_node *before = node;
        while (before->next != node)
            before = before->next;
        fail_circle(manager, house, before);
        return false;
    }
    if ((house->marks & DOMI_MARK_RECEIVING) != 0)
        house->marks |= DOMI_MARK_FRESH;
    return domi_house_has_receive_to_look(house);
}

void domi_mailbox_fail_circles(domi_manager *manager, domi_house *house, const domus_stack *holder)
{
    domi_node *before = house->tails[DOMI_ASK];
    const domi_node *last = before;
    bool more = before != NULL;

    while (more) {
        domi_node *node = before->next;

        more = node != last;
        if (domi_stack_is_in_chain(domi_envelope_return((domi_envelope *)(void *)node), holder))
            fail_circle(manager, house, before);
        else
            before = node;
    }
}

void domi_mailbox_drop(domi_manager *manager, domi_house *house, domi_node *node, int error)
{
    domi_envelope *envelope = (domi_envelope *)(void *)node;

    if (domi_node_is_embedded(node) && node->slab != DOMI_SLAB_SHARED) {
        domi_kind_of(node)->drop(manager, node);
        return;
    }
    if (envelope->type == &domi_delivery_type) {
        domi_counter_add(&manager->counters.dead_letters, 1);
        domi_delivery_end(manager, envelope, 1);
        return;
    }
    domi_letters_tell_dead(manager, (domus_address){house, node->lease}, envelope, error);
    if (node->kind == DOMI_ASK)
        domi_ask_fail(manager, envelope, error);
    else
        domi_answer_release(manager, envelope);
}

static void empty_list(domi_manager *manager, domi_house *house, domi_node **tail)
{
    while (*tail != NULL)
        domi_mailbox_drop(manager, house, domi_list_take(tail), -ESTALE);
}

void domi_mailbox_empty(domi_manager *manager, domi_house *house, bool all)
{
    for (uint32_t kind = 0; kind < DOMI_MAILBOXES; kind++) {
        if (all || kind == DOMI_ASK || kind == DOMI_NOTICE)
            empty_list(manager, house, &house->tails[kind]);
    }
    if (house->family != NULL) {
        empty_list(manager, house, &house->family->stash[0]);
        empty_list(manager, house, &house->family->stash[1]);
        house->family->stashed = 0;
    }
    house->mail = 0;
    if (all)
        house->replies = house->events = 0;
    domi_receive_reset(house);
}
