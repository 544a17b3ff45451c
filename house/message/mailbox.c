/* The slow half of the put: the inbox lane (contract: Lanes), refusals, and a full mailbox.
 *
 * A put into the inbox links the node first and then publishes it by a compare-exchange. The
 * put that found the inbox empty links the house into its home's arrivals, so no house is
 * linked twice. */
#include "house/message/mailbox.h"

#include "base/check.h"
#include "base/probe.h"
#include "house/message/arrivals.h"
#include "house/message/belt.h"
#include "house/message/doors.h"
#include "house/message/family.h"
#include "house/message/kind.h"

#include <errno.h>

/* largest number of nodes that an inbox word can tell; its count stops here */
#define DEPTH_MAX UINT64_C(0xffff)

__attribute__((noinline)) static int
refuse_because_mailbox_is_full(domi_manager *manager, domi_house *house, const domi_node *node)
{
    domi_counter_add(&manager->counters.refusals, 1);
    domi_doors.tell_refused(manager, house, node);
    return -ENOBUFS;
}

/* Refuse a message because memory is short. Subscribers to refusals are not told, because their
 * letters would take memory. */
__attribute__((noinline, cold)) static int refuse_because_memory_is_short(domi_manager *manager)
{
    domi_counter_add(&manager->counters.busy, 1);
    return -EBUSY;
}

DOMI_INLINE int push_node_to_inbox(domi_manager *manager, domi_house *house, domi_node *node,
                                   uint64_t mail_max)
{
    uint64_t word = atomic_load_explicit(&house->inbox, memory_order_relaxed);
    uint64_t next;

    DOMI_CHECK(((uintptr_t)node & ~DOMI_INBOX_MASK) == 0);
    do {
        uint64_t depth = word >> DOMI_INBOX_BITS;

        if (domi_node_is_user_mail(node) && depth >= mail_max)
            return refuse_because_mailbox_is_full(manager, house, node);
        node->next = domi_inbox_newest_node(word);
        depth = depth < DEPTH_MAX ? depth + 1 : DEPTH_MAX;
        next = depth << DOMI_INBOX_BITS | (uintptr_t)node;
        /* release: pairs with home's exchange in domi_mailbox_take_all_nodes_of_inbox(), so home
         * sees all fields of the node. */
    } while (!atomic_compare_exchange_weak_explicit(&house->inbox, &word, next,
                                                    memory_order_release, memory_order_relaxed));
    DOMI_PROBE_2(send, house->home, node);
    /* only the put that found the inbox empty links the house, so no house is linked twice */
    if (word == 0)
        domi_links_add_house_to_arrivals(manager, house);
    return 0;
}

static int put_node_to_inbox(domi_manager *manager, domi_house *house, domi_node *node,
                             uint64_t mail_max)
{
    return push_node_to_inbox(manager, house, node, mail_max);
}

void domi_mailbox_mark_full(domi_house *house)
{
    /* FULL is set by a read-modify-write, because a stop may set its bit of the life word at the
     * same time. Relaxed: a sender that sees FULL late puts into the inbox, which has its own
     * bound. */
    atomic_fetch_or_explicit(&house->life, DOMI_LIFE_FULL, memory_order_relaxed);
}

bool domi_mailbox_clear_full_if_room(const domi_manager *manager, domi_house *house)
{
    if (!domi_mailbox_has_room(manager, house))
        return false;
    atomic_fetch_and_explicit(&house->life, ~DOMI_LIFE_FULL, memory_order_relaxed);
    return true;
}

/* Handle a node for the house itself (node.kind is DOMI_MOUNT or a later one). This is a function
 * of its own, because an inlined indirect call would cost each put into the inbox a register. */
__attribute__((noinline, cold)) static void
handle_node_for_house_itself(domi_manager *manager, domi_house *house, domi_node *node)
{
    domi_kind_of_node(node)->handle_arrival(manager, house, node);
}

__attribute__((noinline)) static int put_node_with_all_checks(domi_manager *manager,
                                                              domi_house *house, domi_node *node)
{
    if (house == NULL)
        return -ESTALE;
    if (DOMI_UNLIKELY(house->home == NULL))
        return domi_doors.put_to_face(manager, house, node);

    /* Relaxed: the address of the house reached this thread by a message, and this load sees
     * everything that happened before that message was put. */
    uint64_t life = domi_house_life_word(house);
    if (DOMI_LIFE_LEASE(life) != node->lease || (life & DOMI_LIFE_CLOSED) != 0)
        return -ESTALE;
    if (domi_node_is_user_mail(node)) {
        if ((life & DOMI_LIFE_STOP) != 0)
            return -ESTALE;
        if (DOMI_UNLIKELY(manager->memory.busy))
            return refuse_because_memory_is_short(manager);
        if ((life & DOMI_LIFE_FULL) != 0)
            return refuse_because_mailbox_is_full(manager, house, node);
    }

    /* Relaxed: the comment of domi_mailbox_is_home_lane_open() says why. If an earlier put of this
     * sender is in the inbox, this load sees that the inbox is not empty, until home has delivered
     * that message. */
    bool is_empty = atomic_load_explicit(&house->inbox, memory_order_relaxed) == 0;
    /* On the home lane of a thief, notices of a lent house would overtake earlier ones on a belt,
     * which the house has sent from its home. */
    bool home_lane = house->home == manager && is_empty && !domi_house_is_exposed(house) &&
                     !(manager->mail.lent && node->kind == DOMI_NOTICE);
    if (!home_lane)
        return put_node_to_inbox(manager, house, node,
                                 domi_mailbox_bound_of_mail(manager, house, life));
    if (domi_node_is_user_mail(node) &&
        house->mail >= domi_mailbox_bound_of_mail(manager, house, life)) {
        domi_mailbox_mark_full(house);
        return refuse_because_mailbox_is_full(manager, house, node);
    }
    if (DOMI_UNLIKELY(node->kind >= DOMI_MAILBOXES))
        handle_node_for_house_itself(manager, house, node);
    else
        domi_mailbox_append_node(manager, house, node, node->kind);
    return 0;
}

/* Most mail from other threads, and most mail between actors of a pool, is for a house that takes
 * every message: its life word has no control bit, and so the house has no bound of its own
 * (domi_mailbox_is_home_lane_open()). */
int domi_mailbox_put_slow(domi_manager *manager, domi_house *house, domi_node *node)
{
    if (DOMI_LIKELY(house != NULL && house->home != manager && house->home != NULL &&
                    domi_house_life_word(house) == (uint64_t)node->lease << 32 &&
                    !manager->memory.busy))
        return push_node_to_inbox(manager, house, node, manager->limits.mailbox_max);
    return put_node_with_all_checks(manager, house, node);
}

int domi_mailbox_put_behind_all_mail(domi_manager *manager, domus_address address, domi_node *node)
{
    bool lent = manager->mail.lent;

    node->lease = address.lease;
    node->kind = DOMI_NOTICE;
    /* where there are belts, a manager that counts as lent does not put this notice by the home
     * lane */
    domi_manager_set_runs_lent_house(manager, true);
    int error = domi_mailbox_put_slow(manager, address.house, node);
    domi_manager_set_runs_lent_house(manager, lent);
    return error;
}

/* True if a notice may go by a belt: the receiver's thread has belts, too, no lent house sends, the
 * receiver accepts every message now, and its inbox is empty. Relaxed: the comment in
 * domi_mailbox_put_slow() says why. If an earlier notice of this sender is in the inbox, the load
 * sees that, until home has delivered it. */
static bool may_belt_carry_notice(const domi_manager *manager, const domi_house *house,
                                  const domi_node *node)
{
    return node->slab == DOMI_SLAB_64 && house != NULL && house->home != manager &&
           house->home != NULL && !manager->mail.lent && !manager->memory.busy &&
           house->home->index < manager->threads &&
           domi_house_life_word(house) == (uint64_t)node->lease << 32 &&
           atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)&house->inbox,
                                memory_order_relaxed) == 0;
}

/* Put a notice by a belt to another thread. This is a function of its own, so that a put of a
 * pool's runner, which has no belts, saves no register. */
__attribute__((noinline)) static int put_notice_on_belt(domi_manager *manager, domi_house *house,
                                                        domi_node *node)
{
    if (may_belt_carry_notice(manager, house, node) && domi_belt_put_notice(manager, house, node))
        return 0;
    return domi_mailbox_put_slow(manager, house, node);
}

int domi_mailbox_put_copied_notice_slow(domi_manager *manager, domi_house *house, domi_node *node)
{
    if (domi_manager_has_belts(manager))
        return put_notice_on_belt(manager, house, node);
    return domi_mailbox_put_slow(manager, house, node);
}

int domi_mailbox_put_despite_bound(domi_manager *manager, domus_address address, domi_node *node,
                                   uint32_t kind)
{
    domi_house *house = address.house;

    node->lease = address.lease;
    node->kind = (uint8_t)kind;
    /* an address without a home is that of a router or a remote actor, which get no pieces of
     * streams */
    if (house == NULL || house->home == NULL)
        return -ESTALE;
    uint64_t life = domi_house_life_word(house);
    if (DOMI_LIFE_LEASE(life) != node->lease || (life & (DOMI_LIFE_CLOSED | DOMI_LIFE_STOP)) != 0)
        return -ESTALE;
    if (house->home == manager && !domi_house_is_exposed(house) &&
        atomic_load_explicit(&house->inbox, memory_order_relaxed) == 0) {
        domi_mailbox_append_node(manager, house, node, kind);
        return 0;
    }
    return put_node_to_inbox(manager, house, node, UINT64_MAX);
}

int domi_mailbox_put_passed_on(domi_manager *manager, domus_address address, domi_node *node,
                               uint32_t kind)
{
    manager->memory.busy = false;
    int error = domi_mailbox_put(manager, address, node, kind);
    /* The earlier value of `busy` may be out of date: the refused put may have taken memory, and a
     * thread that takes memory may learn that the level of memory has changed. */
    manager->memory.busy = manager->memory.pressure_seen >= DOMUS_MEMORY_CRITICAL;
    return error;
}

void domi_mailbox_put_node_to_free_slot(domi_manager *manager, domi_house *house)
{
    house->node.kind = DOMI_FREE;
    (void)put_node_to_inbox(manager, house, &house->node, 0);
}

bool domi_mailbox_check_mail_held_by_mark(domi_manager *manager, domi_house *house, domi_node *node)
{
    if ((house->marks & DOMI_MARK_BARRIER) != 0 && node->kind == DOMI_ASK &&
        !domi_doors.hold_ask(manager, house, node))
        return false;
    if ((house->marks & DOMI_MARK_RECEIVING) != 0)
        house->marks |= DOMI_MARK_FRESH;
    return domi_house_has_receive_to_search(house);
}

void domi_mailbox_let_receives_look_again(domi_house *house)
{
    if ((house->marks & DOMI_MARK_RECEIVING) == 0)
        return;
    house->family->seen[0] = house->family->seen[1] = NULL;
    house->marks |= DOMI_MARK_FRESH;
}
