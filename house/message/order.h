/* The mail of an actor whose behaviour has an order (`domus_behaviour.order`): its asks and notices
 * are taken by a comparison of their payloads, and equal ones in the order in which they came.
 *
 * A put knows nothing of this: it appends to the mailbox, as for every actor. The runner sorts in
 * what has been appended since, before each message that it takes. So the puts of all other actors,
 * and their runs, cost nothing more.
 *
 * Sorted mail lies in strands. A strand is a list in its order, linked by the nodes themselves, so
 * no message needs memory beside its envelope. New mail is a strand behind all others, and
 * neighbours are merged until each has at least twice as many messages as the one behind it, or
 * both together would have more than DOMI_STRAND_MERGED. The next message is the head of the strand
 * that is first in `by_head`, where strands are sorted by their heads, and of equal heads by their
 * age. In a merge of neighbours equal messages of the older strand come first. So equal messages
 * never pass each other.
 *
 * A message is merged once for each doubling of its strand, which is O(log n) comparisons, on
 * average over all messages: a single one may merge DOMI_STRAND_MERGED of them. When strands are as
 * many as may be, the two old neighbours that are the shortest together are merged, which are at
 * most 1/25 of all mail. To take a message costs as many comparisons as a search among the heads, 6
 * at most. A comparison that is no order (it says that A comes before B, and B before A) makes the
 * result any order, but nothing is lost, because each merge ends and keeps all nodes.
 *
 * Owner of all this: whoever runs the house. */
#ifndef DOMI_HOUSE_MESSAGE_ORDER_H
#define DOMI_HOUSE_MESSAGE_ORDER_H

#include "house/message/family.h"

#define DOMI_STRANDS_MAX 64u /* most strands that the mail of one actor has */
/* most messages of two neighbouring strands together that are merged */
#define DOMI_STRAND_MERGED 2048u

/* A strand: asks and notices of one house in their order. */
typedef struct domi_strand {
    domi_node *tail; /* the messages of the strand: a circular list, by its last node */
    uint32_t count;  /* number of messages in the strand, at least 1 */
} domi_strand;

typedef struct domi_strands {
    domi_strand at[DOMI_STRANDS_MAX]; /* the strands, that with the oldest mail first */
    uint32_t count;                   /* number of strands in use */
    /* number of strands in `by_head`: all, except during a change */
    uint32_t ranked;
    uint32_t mail; /* number of messages in all these strands */
    /* indices of the actor's strands, sorted by the heads of the strands */
    uint8_t by_head[DOMI_STRANDS_MAX];
} domi_strands;

typedef struct domi_order {
    domi_strands waiting; /* sorted asks and notices, from which the next one is taken */
    /* Sorted mail that all waiting receives have looked at and not taken. It goes back to `waiting`
     * when they have to look again, or when no receive waits any more. */
    domi_strands seen;
    /* Whether the notice that ends the actor (domi_last_type) is the first one of its mailbox: then
     * only the mail before it is sorted in. */
    bool at_last;
} domi_order;

/* Allocate the memory for an order of the actor of `house`. Returns 0; -ENOMEM. */
int domi_order_make_for_house(domi_house *house);

/* Give `house` another behaviour. If its order differs from that of the last one, waiting mail is
 * sorted anew; messages that are equal in the new order stay as they were. For a behaviour with an
 * order, the caller has called domi_order_make_for_house() before. */
void domi_order_set_behaviour_and_resort(domi_house *house, const domus_behaviour *behaviour);

static inline bool domi_house_is_ordered(const domi_house *house)
{
    return (house->marks & DOMI_MARK_ORDERED) != 0;
}

/* Returns how many asks and notices lie in the strands of a house. */
static inline uint32_t domi_order_count_mail(const domi_house *house)
{
    const domi_order *order = house->family != NULL ? house->family->order : NULL;

    return order != NULL ? order->waiting.mail + order->seen.mail : 0;
}

/* The functions from here on are for houses whose actor has an order. None of them changes the
 * count `house->mail`. */

/* Take the ask or notice that comes next in the order out of the house. Returns NULL if there is
 * none. The notice that ends the actor comes when all mail before it has been taken. */
domi_node *domi_order_take_next_message(domi_house *house);

/* Take the next ask or notice that the waiting receives have not looked at out of the house, but
 * not the notice that ends the actor. Returns NULL if there is none. */
domi_node *domi_order_take_unseen_message(domi_house *house);

/* Move `node`, which domi_order_take_unseen_message() has returned, to the mail that the receives
 * have looked at. */
void domi_order_move_node_to_seen_mail(domi_house *house, domi_node *node);

/* Let all sorted mail count as not looked at by the receives. */
void domi_order_make_seen_mail_unseen(domi_house *house);

/* Take the notice that ends the actor out of its mailbox. Returns NULL if there is none, or if mail
 * waits that was put before it. */
domi_node *domi_order_take_ending_notice(domi_house *house);

/* Put stashed messages back into an actor's sorted mail, in the places that its order gives them;
 * they come before equal messages that wait. `list` is circular, by its last node; NULL: it is
 * empty. */
void domi_order_put_stashed_back(domi_house *house, domi_node *list);

/* --- walks over the mail ---------------------------------------------------------------------- */

/* Returns the strand of a house with this number, counted over all its strands; NULL: there is
 * none. A caller that takes nodes out of the strand's list subtracts them from its `count`, and
 * calls domi_order_correct_strands_after_walk() after the walk. */
domi_strand *domi_order_get_strand(const domi_house *house, uint32_t number);

/* Correct the counts of a house's strands after a walk, and forget strands that have become
 * empty. */
void domi_order_correct_strands_after_walk(domi_house *house);

#endif
