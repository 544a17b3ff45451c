/* Each node of an inbox goes to its mailbox, to the house itself, or is dropped. */
#include "house/dispatch/deliver.h"

#include "base/check.h"
#include "base/prefetch.h"
#include "house/conversation/dead.h"
#include "house/directory/router.h"
#include "house/family/life.h"
#include "house/message/kind.h"
#include "house/message/mailbox.h"

#include <errno.h>

/* An ask or a notice has come too late: the actor stops. */
static void drop_late(domi_manager *manager, domi_house *house, domi_node *node)
{
    if (house->behaviour->kind != DOMUS_CHANNELS) {
        domi_mailbox_drop(manager, house, node, -ESTALE);
        return;
    }
    domi_list_push(&house->tails[node->kind], node);
    house->mail++;
    manager->io_hooks.return_mail(manager, house);
    domi_mailbox_empty(manager, house, false);
}

/* Put one node of the inbox where it belongs, or drop it if its actor is gone. */
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
    } else if (domi_node_is_user_mail(node) && (house->marks & DOMI_MARK_STOPPING) != 0) {
        drop_late(manager, house, node);
    } else {
        domi_mailbox_append(manager, house, node, node->kind);
    }
}

/* Fetch the cache line of the sender that the put of an answer will write, while the message is
 * handled. A message that came alone is likely to be answered; in a flood the fetch would only be
 * in the way of others. */
static void expect_answer(const domi_node *node)
{
    if (domi_node_is_user_mail(node))
        domi_prefetch_write(((const domi_envelope *)(const void *)node)->sender);
}

void domi_mailbox_sort_inbox(domi_manager *manager, domi_house *house)
{
    DOMI_CHECK(house->home == manager && !domi_house_is_exposed(house));

    domi_node *node = domi_mailbox_take_inbox(house);
    domi_node *oldest = NULL;

    manager->mail.alone = node != NULL && node->next == NULL;
    if (manager->mail.alone)
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
    if (house->mail >= domi_mailbox_bound(manager, house, life))
        domi_mailbox_mark_full(house);
    if (DOMI_LIKELY((house->marks & (DOMI_MARK_ROUTEE | DOMI_MARK_STOPPING)) == 0))
        return;
    if ((house->marks & DOMI_MARK_ROUTEE) != 0)
        domi_router_note_load(house);
    if ((house->marks & DOMI_MARK_STOPPING) != 0)
        domi_house_rouse(manager, house); /* its end may have waited for an empty inbox */
}
