/* The put: the two lanes into a house, and its five mailboxes (contract: Lanes). Mail goes on from
 * there in dispatch/incoming.h (the inbox is sorted), dispatch/dispatch.c (a run takes it) and
 * conversation/dead.h (nobody handles it).
 *
 * The home lane is for a sender on the house's home, if the house is not exposed and its inbox is
 * empty (otherwise the message would overtake an earlier one of the same sender in the inbox). It
 * appends to plain lists, without an atomic read-modify-write (M8). The inbox lane is for all
 * others. It costs one compare-exchange, and the put that found the inbox empty links the house
 * into its home's arrivals (arrivals.h). A put copies nothing: it takes the envelope or refuses
 * it. */
#ifndef DOMI_HOUSE_MESSAGE_MAILBOX_H
#define DOMI_HOUSE_MESSAGE_MAILBOX_H

#include "house/message/manager.h"

/* Put a message by the slow half of domi_mailbox_put(), for every put that cannot take the short
 * way. `lease` and `kind` of the node are set. Returns as domi_mailbox_put() does. */
int domi_mailbox_put_slow(domi_manager *manager, domi_house *house, domi_node *node);

/* The inbox is one word: the newest node in the lower 48 bits, the number of nodes in the upper 16.
 * So one operation tells whether it is empty and how many nodes it holds. Home takes the whole
 * stack with one exchange, but only after it took the house off the arrivals. Until then the inbox
 * is not empty, so no put links the house a second time. */
#define DOMI_INBOX_BITS 48 /* bits of the inbox word that hold the pointer to the newest node */
/* mask of the bits of the inbox word that hold the pointer */
#define DOMI_INBOX_MASK ((UINT64_C(1) << DOMI_INBOX_BITS) - 1)

static inline domi_node *domi_inbox_newest_node(uint64_t word)
{
    return (domi_node *)(uintptr_t)(word & DOMI_INBOX_MASK & ~UINT64_C(1));
}

/* Returns the number of nodes in the inbox of a house, at most 65,535; other threads change it
 * meanwhile. Any thread. */
static inline uint32_t domi_mailbox_depth_of_inbox(const domi_house *house)
{
    return (uint32_t)(atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)&house->inbox,
                                           memory_order_relaxed) >>
                      DOMI_INBOX_BITS);
}

/* The mark of an inbox whose nodes home is delivering: the inbox counts as not empty, so no put
 * links the house or uses a belt or the home lane. The mark stands in place of a pointer to 0, and
 * goes when a node is put on top of it. Only homes to which belts lead use it, and pools. */
#define DOMI_INBOX_BUSY UINT64_C(1)

/* Take all nodes out of the inbox of a house, and leave `mark` in it: 0, or DOMI_INBOX_BUSY.
 * Returns the newest node, whose `next` is the one before it; NULL: there was none. Called by home,
 * after it took the house off its arrivals and has read `arrival_next`. */
static inline domi_node *domi_mailbox_take_all_nodes_of_inbox(domi_house *house, uint64_t mark)
{
    /* acquire: pairs with the release of each put into the inbox. If `mark` is 0, the next put
     * finds the inbox empty from here on, and may link the house again. */
    return domi_inbox_newest_node(
        atomic_exchange_explicit(&house->inbox, mark, memory_order_acquire));
}

/* Returns the bound of waiting mail: how many asks and notices may wait in the house. */
static inline uint32_t domi_mailbox_bound_of_mail(const domi_manager *manager,
                                                  const domi_house *house, uint64_t life)
{
    return (life & DOMI_LIFE_BOUNDED) != 0 ? domi_house_own_mail_bound(house)
                                           : manager->limits.mailbox_max;
}

/* Put the house's own node, which tells home that it may free the slot of `house`, whose life is
 * over. Called by the runner of the house's parent. */
void domi_mailbox_put_node_to_free_slot(domi_manager *manager, domi_house *house);

/* Set FULL in the life word, because the bound of waiting asks and notices is reached, or because
 * the channel of the actor has too much to send. Home. */
void domi_mailbox_mark_full(domi_house *house);

/* True if the number of asks and notices that wait in the house is below half of its bound (with a
 * bound of 1: if none waits), and the house has no channel with too much to send. Home. */
static inline bool domi_mailbox_has_room(const domi_manager *manager, const domi_house *house)
{
    uint32_t own = domi_house_own_mail_bound(house);
    uint32_t most = own != 0 ? own : manager->limits.mailbox_max;

    return house->mail < most - most / 2 && !domi_house_is_backlogged(house);
}

/* Clear FULL in the life word of a house, if its mailbox has room. Returns whether it has. Home. */
bool domi_mailbox_clear_full_if_room(const domi_manager *manager, domi_house *house);

/* Handle `node`, an ask or a notice that was just added while a mark holds asks and notices back.
 * Returns true if a receive has to look at it, so that the house may run. An ask that would wait
 * for itself behind a barrier is taken out again and fails with -EDEADLK. */
bool domi_mailbox_check_mail_held_by_mark(domi_manager *manager, domi_house *house,
                                          domi_node *node);

/* Let the waiting receives of the house look at all mail again, because mail was taken out or put
 * in front. Called by the runner, or by home when it sorts the inbox. */
void domi_mailbox_let_receives_look_again(domi_house *house);

/* Make a house READY that is WAITING, and queue it, because it has mail that may run. Home only. */
static inline void domi_house_make_ready(domi_manager *manager, domi_house *house)
{
    domi_queue *ready = &manager->schedule.ready[DOMUS_STATE];

    if (DOMI_UNLIKELY(house->behaviour->kind != DOMUS_STATE))
        ready = &manager->schedule.ready[DOMUS_CHANNELS];
    domi_house_change_state(house, DOMI_READY);
    domi_queue_put_house(ready, house);
}

/* Let an actor be mounted that has waited for its channel to begin (domi_house_spawn_channel()).
 * Does nothing for any other actor. Home only. */
static inline void domi_house_end_mount_wait_for_channel(domi_manager *manager, domi_house *house)
{
    if (house->state != DOMI_MOUNTING || house->behaviour->kind != DOMUS_CHANNELS ||
        !house->channels.waits)
        return;
    house->channels.waits = false;
    domi_fifo_put(&manager->schedule.mounting, house);
}

/* Make sure that the house acts on a change that is no mail: a stop, a directive, the end of a
 * child. If the house is WAITING, it becomes READY, and acts at the end of its run. In the other
 * states nothing has to be done: a CREATED or MOUNTING house acts when it is mounted (one that
 * waits for its channel is mounted now, if it has to stop), a READY, SCHEDULED or RUNNING one at
 * the end of its next run, and an exposed one when it is back. */
static inline void domi_house_let_act_on_change(domi_manager *manager, domi_house *house)
{
    if (domi_house_is_exposed(house))
        return;
    if (house->state == DOMI_WAITING)
        domi_house_make_ready(manager, house);
    else if ((domi_house_life_word(house) & DOMI_LIFE_STOP) != 0)
        domi_house_end_mount_wait_for_channel(manager, house);
}

/* Link `node` into its mailbox of the house, and count it. `kind` is node->kind, which most callers
 * know as a constant. */
DOMI_INLINE void domi_mailbox_link_node(domi_house *house, domi_node *node, uint32_t kind)
{
    domi_list_append_node(&house->tails[kind], node);
    if (kind == DOMI_ASK || kind == DOMI_NOTICE)
        house->mail++;
    else if (kind == DOMI_EVENT)
        house->events += DOMI_EVENT_STEP;
    else if (kind == DOMI_REPLY)
        house->replies++;
}

/* Append `node` to its mailbox of the house, and make the house READY if it is WAITING and the node
 * may run. A WAITING house had nothing that may run, so the new node alone decides. `kind` is
 * node->kind. Home, or the runner. */
DOMI_INLINE void domi_mailbox_append_node(domi_manager *manager, domi_house *house, domi_node *node,
                                          uint32_t kind)
{
    bool runs = true;

    domi_mailbox_link_node(house, node, kind);
    if ((kind == DOMI_ASK || kind == DOMI_NOTICE) &&
        DOMI_UNLIKELY((house->marks & DOMI_MARKS_HOLD) != 0))
        runs = domi_mailbox_check_mail_held_by_mark(manager, house, node);
    if (house->state == DOMI_WAITING && runs)
        domi_house_make_ready(manager, house);
}

/* Append `node` as domi_mailbox_append_node() does, for a node that no mark of the house holds
 * back. */
DOMI_INLINE void domi_mailbox_append_unheld_node(domi_manager *manager, domi_house *house,
                                                 domi_node *node, uint32_t kind)
{
    domi_mailbox_link_node(house, node, kind);
    if (house->state == DOMI_WAITING)
        domi_house_make_ready(manager, house);
}

/* Put a message as domi_mailbox_put() does, one that an actor already has (forwarded or kept). It
 * is put even while memory is critical, because a refusal would free no memory: its holder could
 * only keep it. */
int domi_mailbox_put_passed_on(domi_manager *manager, domus_address address, domi_node *node,
                               uint32_t kind);

/* Put an ask or a notice, as `kind` says, that is owed to the actor of `address`: it belongs to
 * earlier work of that actor, such as the next piece of a stream, or was taken before. It is put
 * however much mail waits in that actor, and also while memory is critical. Returns 0; -ESTALE. */
int domi_mailbox_put_despite_bound(domi_manager *manager, domus_address address, domi_node *node,
                                   uint32_t kind);

/* Put a notice as domi_mailbox_put() does, one that has to come behind all mail that any sender put
 * before it. Where earlier mail may be on belts, the notice goes through the inbox, because home
 * takes what belts hold before it delivers an inbox. */
int domi_mailbox_put_behind_all_mail(domi_manager *manager, domus_address address, domi_node *node);

/* Put a copied notice by the slow half of domi_mailbox_put_copied_notice(). */
int domi_mailbox_put_copied_notice_slow(domi_manager *manager, domi_house *house, domi_node *node);

/* True if the home lane to the actor of `address` is open for a message of `kind` (contract:
 * Lanes). Owner.
 *
 * Relaxed: home reads here its own writes, such as an earlier put into the inbox. A put or a stop
 * of another thread that these loads miss counts as later than this put. If the sender is not home,
 * the loads only lead to the slow half. A `life` that equals the lease has no control bit set, so
 * the house takes every message. */
DOMI_INLINE bool domi_mailbox_is_home_lane_open(domi_manager *manager, domus_address address,
                                                uint32_t kind)
{
    domi_house *house = address.house;

    DOMI_CHECK_SLOW(domi_manager_is_owned_by_caller(manager));
    return house != NULL && house->home == manager &&
           atomic_load_explicit(&house->life, memory_order_relaxed) == (uint64_t)address.lease
                                                                           << 32 &&
           atomic_load_explicit(&house->inbox, memory_order_relaxed) == 0 &&
           !domi_house_is_exposed(house) &&
           ((kind != DOMI_ASK && kind != DOMI_NOTICE) || house->mail < manager->mail.lane_max);
}

/* Put a message by the home lane, if that lane is open for the message. Returns false if it is not;
 * then `lease` and `kind` of the node are set. Owner. */
DOMI_INLINE bool domi_mailbox_put_by_home_lane(domi_manager *manager, domus_address address,
                                               domi_node *node, uint32_t kind)
{
    node->lease = address.lease;
    node->kind = (uint8_t)kind;
    if (DOMI_LIKELY(domi_mailbox_is_home_lane_open(manager, address, kind))) {
        domi_mailbox_append_node(manager, address.house, node, kind);
        return true;
    }
    return false;
}

/* Put `node`, of kind `kind`, into the house of `address`. Called by the owner of `manager`.
 *
 * Returns 0, and then the house owns the node. Returns -ESTALE if the actor's life is over, and for
 * an ask or a notice if the actor was asked to stop. Returns, for asks and notices only, -ENOBUFS
 * if the mailbox is full, and -EBUSY while memory is critical. If this fails, the caller still owns
 * the node. */
DOMI_INLINE int domi_mailbox_put(domi_manager *manager, domus_address address, domi_node *node,
                                 uint32_t kind)
{
    if (DOMI_LIKELY(domi_mailbox_put_by_home_lane(manager, address, node, kind)))
        return 0;
    return domi_mailbox_put_slow(manager, address.house, node);
}

/* Put a notice as domi_mailbox_put() does, one whose payload was just copied into its envelope, so
 * that a belt may carry the bytes instead (belt.h). Messages that users have as objects are never
 * copied. */
DOMI_INLINE int domi_mailbox_put_copied_notice(domi_manager *manager, domus_address address,
                                               domi_node *node)
{
    if (DOMI_LIKELY(domi_mailbox_put_by_home_lane(manager, address, node, DOMI_NOTICE)))
        return 0;
    return domi_mailbox_put_copied_notice_slow(manager, address.house, node);
}

#endif
