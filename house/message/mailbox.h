/* The two lanes into a house, and its five mailboxes.
 *
 * Home lane: the sender runs on the house's home, the house is not exposed, its inbox is empty
 * (else home would overtake its own earlier message). Plain lists, no atomic read-modify-write
 * (M8). Inbox lane: everyone else; one compare-exchange, and who found it empty links the house
 * into its home's arrivals (arrivals.h). A put copies nothing: it takes the envelope or refuses it.
 */
#ifndef DOMI_HOUSE_MESSAGE_MAILBOX_H
#define DOMI_HOUSE_MESSAGE_MAILBOX_H

#include "house/message/manager.h"

/* Put `node` (its lease and kind are set) by the inbox lane or to a house with control bits.
 * Returns as domi_mailbox_put(). */
int domi_mailbox_put_slow(domi_manager *manager, domi_house *house, domi_node *node);

/* How many nodes its inbox holds, about. Any thread. */
uint32_t domi_mailbox_depth(const domi_house *house);

/* The slot of a dead house, by its own node: home may free it. From its parent's thread. */
void domi_mailbox_give_back(domi_manager *manager, domi_house *house);

/* Sort what the inbox holds into the mailboxes. Home, just after it took the house off the
 * arrivals. */
void domi_mailbox_sort(domi_manager *manager, domi_house *house);

/* A message to `house` that it will not handle: count it, tell of it, release what it owns, let an
 * ask fail with `error`. */
void domi_mailbox_dead(domi_manager *manager, domi_house *house, domi_node *node, int error);

/* Turn the asks and notices of a house that stops, or (with `all`) everything, into dead letters.
 */
void domi_mailbox_empty(domi_manager *manager, domi_house *house, bool all);

/* A put was refused at mailbox_max, or the queue fell below half of it: keep FULL true. Home. */
void domi_mailbox_mark_full(domi_house *house);
void domi_mailbox_clear_full(domi_manager *manager, domi_house *house);

/* Fewer than half of what may wait there do; of a bound of 1: none. Home. */
static inline bool domi_mailbox_has_room(const domi_manager *manager, const domi_house *house)
{
    uint32_t own = domi_house_mail_max(house);
    uint32_t most = own != 0 ? own : manager->mailbox_max;

    return house->mail < most - most / 2;
}

/* Mail has come while marks hold it back: true if a receive is to look at it. An ask that would
 * wait for itself is taken out and fails with -EDEADLK. */
bool domi_mailbox_held(domi_manager *manager, domi_house *house, domi_node *node);

/* `holder` has parked under a barrier that it raised since it last did: asks that wait, and were
 * made on its behalf, fail with -EDEADLK. */
void domi_mailbox_fail_circles(domi_manager *manager, domi_house *house, const domus_stack *holder);

/* WAITING with mail that may run: READY, and into its queue. Home only. */
static inline void domi_house_ready(domi_manager *manager, domi_house *house)
{
    domi_house_move(house, DOMI_READY);
    domi_queue_put(&manager->ready[house->behaviour->kind], house);
}

/* Into the mailbox, and READY if that makes it so: a WAITING house has nothing that may run, so
 * the new node decides. `kind` is node->kind, which most callers know. Home, or the runner. */
DOMI_INLINE void domi_mailbox_add(domi_manager *manager, domi_house *house, domi_node *node,
                                  uint32_t kind)
{
    bool runs = true;

    domi_list_push(&house->tails[kind], node);
    if (kind == DOMI_ASK || kind == DOMI_NOTICE) {
        house->mail++;
        if (DOMI_UNLIKELY((house->marks & DOMI_MARKS_HOLD) != 0))
            runs = domi_mailbox_held(manager, house, node);
    } else if (kind == DOMI_EVENT) {
        house->events += DOMI_EVENT_STEP;
    } else if (kind == DOMI_REPLY) {
        house->replies++;
    }
    if (house->state == DOMI_WAITING && runs)
        domi_house_ready(manager, house);
}

/* As domi_mailbox_put(), of what was taken before: it is passed on also while memory is critical,
 * because who holds it could do nothing but hold it. */
int domi_mailbox_pass(domi_manager *manager, domus_address address, domi_node *node, uint32_t kind);

/* Put `node`, of kind `kind`, into the house of `address`. From the thread of `manager`.
 *
 * Returns 0, and the node is the house's; -ESTALE when its life is over or (asks, notices) ends;
 * -ENOBUFS for an ask or notice when mailbox_max wait; -EBUSY for one while memory is critical;
 * then the node is still the caller's. */
DOMI_INLINE int domi_mailbox_put(domi_manager *manager, domus_address address, domi_node *node,
                                 uint32_t kind)
{
    domi_house *house = address.house;

    DOMI_CHECK_SLOW(domi_manager_is_mine(manager));
    node->lease = address.lease;
    node->kind = (uint8_t)kind;
    /* Relaxed: on the home lane nobody else writes these; in the other cases they decide only
     * which lane is tried. No control bit is set: the house takes everything. */
    if (DOMI_LIKELY(house != NULL && house->home == manager &&
                    atomic_load_explicit(&house->life, memory_order_relaxed) ==
                        (uint64_t)address.lease << 32 &&
                    atomic_load_explicit(&house->inbox, memory_order_relaxed) == 0 &&
                    !domi_house_is_exposed(house) && house->mail < manager->lane_max)) {
        domi_mailbox_add(manager, house, node, kind);
        return 0;
    }
    return domi_mailbox_put_slow(manager, house, node);
}

#endif
