/* Sorts the nodes of an inbox: each goes to a mailbox or to the house itself, or is dropped. */
#include "house/dispatch/incoming.h"

#include "base/check.h"
#include "base/prefetch.h"
#include "house/conversation/dead.h"
#include "house/directory/router.h"
#include "house/family/life.h"
#include "house/message/arrivals.h"
#include "house/message/family.h"
#include "house/message/kind.h"
#include "house/message/mailbox.h"

#include <errno.h>

/* Drop an ask or a notice that comes for an actor which stops. For a channels actor io may give it
 * to another actor; a life of a grain gives it to the next life. */
static void drop_message_for_stopping_actor(domi_manager *manager, domi_house *house,
                                            domi_node *node)
{
    bool is_channels = house->behaviour->kind == DOMUS_CHANNELS;

    if (!is_channels && (house->family == NULL || house->family->grain == NULL)) {
        domi_mailbox_end_unhandled_message(manager, house, node, -ESTALE);
        return;
    }
    domi_list_append_node(&house->tails[node->kind], node);
    house->mail++;
    if (is_channels)
        manager->io_hooks.return_mail(manager, house);
    domi_mailbox_drop_mail_of_house(manager, house, false);
}

/* Handle one node of a house's inbox: append it to its mailbox, act on it, or drop it if its actor
 * is gone. */
DOMI_INLINE void sort_node_of_inbox(domi_manager *manager, domi_house *house, domi_node *node,
                                    uint32_t lease)
{
    if (node == &house->node && node->kind == DOMI_FREE) {
        domi_house_free_dead_slot(manager, house);
        return;
    }
    if (node->lease != lease) {
        if (node != &house->node)
            domi_mailbox_end_unhandled_message(manager, house, node, -ESTALE);
        return;
    }
    if (node->kind >= DOMI_MAILBOXES) {
        domi_kind_of_node(node)->handle_arrival(manager, house, node);
    } else if (domi_node_is_user_mail(node) && (house->marks & DOMI_MARK_STOPPING) != 0) {
        drop_message_for_stopping_actor(manager, house, node);
    } else {
        domi_mailbox_append_node(manager, house, node, node->kind);
    }
}

/* Prefetch the cache line of the sender that the put of an answer will write, while the message is
 * handled. A message that came alone is likely to be answered; in a flood the prefetch would only
 * delay others. */
static void prefetch_sender_for_answer(const domi_node *node)
{
    if (domi_node_is_user_mail(node))
        domi_prefetch_write(((const domi_envelope *)(const void *)node)->sender);
}

/* Returns the lease for which mail is sorted; 0 if the slot is free. A free slot has its next lease
 * already, so mail for its last life that comes late becomes a dead letter. */
static uint32_t get_lease_that_takes_sorted_mail(uint64_t life)
{
    return (life & DOMI_LIFE_CLOSED) != 0 ? 0 : DOMI_LIFE_LEASE(life);
}

/* Act on new mail in the mailboxes of a house: mark the house as full, record its load, let a stop
 * go on. The slot is not free, because another thread could be making an actor in a free slot by
 * now. */
DOMI_INLINE void update_house_after_new_mail(domi_manager *manager, domi_house *house,
                                             uint64_t life)
{
    if (DOMI_UNLIKELY(house->mail >= domi_mailbox_bound_of_mail(manager, house, life)))
        domi_mailbox_mark_full(house);
    if (DOMI_LIKELY((house->marks & (DOMI_MARK_ROUTEE | DOMI_MARK_STOPPING)) == 0))
        return;
    if ((house->marks & DOMI_MARK_ROUTEE) != 0)
        domi_router_record_load_of_routee(house);
    if ((house->marks & DOMI_MARK_STOPPING) != 0)
        /* A stopping house may have waited for an empty inbox, so its stop is tried again. */
        domi_house_let_act_on_change(manager, house);
}

/* Reverse a list of nodes that begins with the newest one. */
static domi_node *reverse_list_of_nodes(domi_node *node)
{
    domi_node *oldest = NULL;

    while (node != NULL) {
        domi_node *next = node->next;
        node->next = oldest;
        oldest = node;
        node = next;
    }
    return oldest;
}

/* The nodes that were taken out of one inbox. */
typedef struct taken_inbox {
    domi_house *house;
    domi_node *newest; /* the newest of the nodes from the inbox */
    /* notices from the inbox that have to wait for messages on belts, the newest first */
    domi_node *kept;
    uint64_t kept_count; /* number of notices in `kept` */
} taken_inbox;

DOMI_INLINE domi_node *take_nodes_out_of_inbox(domi_manager *manager, domi_house *house,
                                               uint64_t mark)
{
    domi_node *newest = domi_mailbox_take_all_nodes_of_inbox(house, mark);

    manager->mail.alone = newest != NULL && newest->next == NULL;
    if (manager->mail.alone)
        prefetch_sender_for_answer(newest);
    return newest;
}

static taken_inbox take_nodes_of_arrived_house(domi_manager *manager, domi_house *house,
                                               uint64_t mark)
{
    return (taken_inbox){.house = house, .newest = take_nodes_out_of_inbox(manager, house, mark)};
}

/* Move the notices of a list of nodes to `kept`. Returns the other nodes, in their order. */
__attribute__((noinline, cold)) static domi_node *keep_notices_for_later(taken_inbox *taken,
                                                                         domi_node *node)
{
    domi_node *others = NULL;

    while (node != NULL) {
        domi_node *next = node->next;
        domi_node **to = node->kind == DOMI_NOTICE ? &taken->kept : &others;
        node->next = *to;
        *to = node;
        taken->kept_count += node->kind == DOMI_NOTICE;
        node = next;
    }
    return reverse_list_of_nodes(others);
}

/* Sort the nodes of an inbox to the mailboxes, the oldest first. */
DOMI_INLINE void sort_nodes_to_mailboxes(domi_manager *manager, domi_house *house, domi_node *node)
{
    /* acquire: pairs with the release in publish_life_word() (birth.c): late mail for the old life
     * may make home sort before the new actor's mount node arrives. */
    uint64_t life = atomic_load_explicit(&house->life, memory_order_acquire);
    uint32_t lease = get_lease_that_takes_sorted_mail(life);

    while (node != NULL) {
        domi_node *next = node->next;
        sort_node_of_inbox(manager, house, node, lease);
        node = next;
    }
    if (lease != 0)
        update_house_after_new_mail(manager, house, life);
}

/* Deliver the nodes of one inbox, the oldest first. With `keeps_notices` the belts could not be
 * drained, or a stand-in leaves messages there: then notices are kept, because a sender may have
 * put an earlier notice on a belt. */
static void deliver_nodes_of_inbox(domi_manager *manager, taken_inbox *taken, bool keeps_notices)
{
    domi_node *node = reverse_list_of_nodes(taken->newest);

    if (DOMI_UNLIKELY(keeps_notices))
        node = keep_notices_for_later(taken, node);
    sort_nodes_to_mailboxes(manager, taken->house, node);
}

/* Put the notices that were kept back into the inbox, below the nodes that have come meanwhile. */
__attribute__((noinline, cold)) static void
put_kept_notices_back_into_inbox(const taken_inbox *taken)
{
    uint64_t word = DOMI_INBOX_BUSY;
    uint64_t kept = taken->kept_count << DOMI_INBOX_BITS | (uintptr_t)taken->kept;

    /* acquire: this function reads the nodes that have come on top. */
    if (atomic_compare_exchange_strong_explicit(&taken->house->inbox, &word, kept,
                                                memory_order_acquire, memory_order_acquire))
        return;
    /* Senders only add nodes on top of the inbox, so home may write at its bottom. */
    domi_node *bottom = domi_inbox_newest_node(word);
    while (bottom->next != NULL)
        bottom = bottom->next;
    bottom->next = taken->kept;
}

/* Remove the mark of an inbox of which everything was delivered. If more nodes have come, no sender
 * has linked the house, so home does it. */
static void remove_busy_mark_of_inbox(domi_manager *manager, const taken_inbox *taken)
{
    uint64_t word = DOMI_INBOX_BUSY;

    if (DOMI_UNLIKELY(taken->kept != NULL))
        put_kept_notices_back_into_inbox(taken);
    /* release: a sender that finds the inbox empty may use a belt, and its message there is
     * delivered after those of the inbox. */
    else if (atomic_compare_exchange_strong_explicit(&taken->house->inbox, &word, 0,
                                                     memory_order_release, memory_order_relaxed))
        return;
    domi_links_add_house_to_arrivals(manager, taken->house);
}

/* True if the belts hold nothing that was put before the nodes that were taken from an inbox. A
 * stand-in takes nothing off the belts: a belt that holds a message is linked, because its receiver
 * turned all of them off before its sleep. Relaxed: the link came before the put into the inbox,
 * which was acquired. */
static bool are_belts_empty(const domi_manager *manager)
{
    return manager->belts.on == NULL &&
           atomic_load_explicit((_Atomic(domi_belt *) *)(uintptr_t)&manager->belts.linked,
                                memory_order_relaxed) == NULL;
}

/* Take all messages off the belts; a stand-in takes none. Returns false if some are left there. */
static bool take_all_messages_off_belts(domi_manager *manager)
{
    if (DOMI_UNLIKELY(manager->belts.kept_off))
        return are_belts_empty(manager);
    return domi_belts_take_all_messages(manager);
}

/* Sort inboxes whose notices may have to wait for messages on the belts:
 *
 *   1. All inboxes are taken and marked.
 *   2. The belts are drained: a message that a sender put there before its put into one of these
 *      inboxes is there.
 *   3. The inboxes are delivered. */
static void sort_inboxes_after_draining_belts(domi_manager *manager, taken_inbox *taken,
                                              uint32_t count)
{
    bool drained = take_all_messages_off_belts(manager);

    for (uint32_t i = 0; i < count; i++) {
        deliver_nodes_of_inbox(manager, &taken[i], !drained);
        remove_busy_mark_of_inbox(manager, &taken[i]);
    }
}

void domi_mailbox_sort_inbox(domi_manager *manager, domi_house *house)
{
    DOMI_CHECK(house->home == manager && !domi_house_is_exposed(house));
    if (domi_manager_has_belts(manager)) {
        taken_inbox taken = take_nodes_of_arrived_house(manager, house, DOMI_INBOX_BUSY);
        sort_inboxes_after_draining_belts(manager, &taken, 1);
    } else {
        taken_inbox taken = take_nodes_of_arrived_house(manager, house, 0);
        deliver_nodes_of_inbox(manager, &taken, false);
    }
}

void domi_mailbox_sort_inbox_of_pooled(domi_manager *runner, domi_house *house)
{
    /* acquire by the exchange of the inbox: from here on this runner sees the house as its last
     * runner has left it, because the puts since then belong to the release sequence that the
     * exchange ends. */
    domi_node *newest = take_nodes_out_of_inbox(runner, house, DOMI_INBOX_BUSY);

    /* the last runner has left work in the house; only runners write the state of a pooled house */
    if (house->state == DOMI_READY)
        domi_queue_put_house(&runner->schedule.ready[DOMUS_STATE], house);
    sort_nodes_to_mailboxes(runner, house, reverse_list_of_nodes(newest));
}

void domi_mailbox_deliver_belt_message(domi_manager *manager, domi_house *house, domi_node *node)
{
    /* acquire: the comment in sort_nodes_to_mailboxes() says why. */
    uint64_t life = atomic_load_explicit(&house->life, memory_order_acquire);
    uint32_t lease = get_lease_that_takes_sorted_mail(life);

    sort_node_of_inbox(manager, house, node, lease);
    if (lease != 0)
        update_house_after_new_mail(manager, house, life);
}

/* Record that the inbox of an exposed house has to be sorted when the house is back. Returns false
 * if the house is not exposed. */
static bool mark_exposed_house_for_later_sorting(domi_house *house)
{
    if (DOMI_LIKELY(!domi_house_is_exposed(house)))
        return false;
    domi_house_set_slot_bits(house, domi_house_slot_bits(house) | DOMI_SLOT_PENDING);
    return true;
}

#define SORTED_AT_ONCE 32u /* the belts are drained once for so many inboxes */

uint32_t domi_inboxes_sort_all_of_list(domi_manager *manager, domi_house *list)
{
    taken_inbox taken[SORTED_AT_ONCE];
    bool belts = domi_manager_has_belts(manager);
    uint32_t marked = 0;
    uint32_t count = 0;

    for (domi_house *house = list; house != NULL; count++) {
        domi_house *next = atomic_load_explicit(&house->arrival_next, memory_order_relaxed);
        if (mark_exposed_house_for_later_sorting(house)) {
            house = next;
            continue;
        }
        if (!belts) {
            domi_mailbox_sort_inbox(manager, house);
        } else {
            DOMI_CHECK(house->home == manager);
            taken[marked++] = take_nodes_of_arrived_house(manager, house, DOMI_INBOX_BUSY);
            if (marked == SORTED_AT_ONCE) {
                sort_inboxes_after_draining_belts(manager, taken, marked);
                marked = 0;
            }
        }
        house = next;
    }
    if (marked != 0)
        sort_inboxes_after_draining_belts(manager, taken, marked);
    return count;
}
