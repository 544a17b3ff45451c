/* Sorts the mail of an actor with an order into strands, and takes it out of them (order.h). */
#include "house/message/order.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/prefetch.h"
#include "house/message/mailbox.h"
#include "house/message/types.h"

#include <errno.h>
#include <string.h>

/* --- two messages ----------------------------------------------------------------------------- */

static domi_envelope *get_envelope_of_node(const domi_node *node)
{
    return (domi_envelope *)(uintptr_t)node;
}

/* True if the message `one` has to be taken before the message `other`, which came first. */
static bool is_taken_before_older(domus_order *order, const domi_node *one, const domi_node *other)
{
    return order(get_envelope_of_node(one)->type,
                 domi_envelope_get_payload(get_envelope_of_node(one)),
                 get_envelope_of_node(other)->type,
                 domi_envelope_get_payload(get_envelope_of_node(other))) < 0;
}

/* --- strands ---------------------------------------------------------------------------------- */

/* Merge two sorted lists of messages, given by their last nodes. The messages of `older` came
 * first. Returns the last node of the result. */
static domi_node *merge_sorted_lists_of_messages(domus_order *order, domi_node *older,
                                                 domi_node *newer)
{
    domi_node *one = older->next;
    domi_node *other = newer->next;
    domi_node *head = NULL;
    domi_node **link = &head;

    older->next = newer->next = NULL;
    while (one != NULL && other != NULL) {
        domi_node **from = is_taken_before_older(order, other, one) ? &other : &one;
        *link = *from;
        link = &(*from)->next;
        *from = *link;
    }
    *link = one != NULL ? one : other;
    domi_node *last = one != NULL ? older : newer;
    last->next = head;
    return last;
}

/* Merge the messages of the strand `newer` into the strand `older`. */
static void merge_strands(domus_order *order, domi_strand *older, const domi_strand *newer)
{
    domi_node *head = older->tail->next;

    older->count += newer->count;
    if (is_taken_before_older(order, newer->tail->next, older->tail)) {
        older->tail = merge_sorted_lists_of_messages(order, older->tail, newer->tail);
        return;
    }
    /* no node of `newer` has to be taken before one of `older`, so all of them follow behind */
    older->tail->next = newer->tail->next;
    newer->tail->next = head;
    older->tail = newer->tail;
}

static const domi_node *get_head_of_strand(const domi_strands *strands, uint32_t index)
{
    return strands->at[index].tail->next;
}

/* --- the heads of the strands ----------------------------------------------------------------- */

/* True if the head of the strand `index` has to be taken before the head of the strand `other`. */
static bool is_strand_taken_before(domus_order *order, const domi_strands *strands, uint32_t index,
                                   uint32_t other)
{
    if (index < other) /* of two strands with equal heads the older one comes first */
        return !is_taken_before_older(order, get_head_of_strand(strands, other),
                                      get_head_of_strand(strands, index));
    return is_taken_before_older(order, get_head_of_strand(strands, index),
                                 get_head_of_strand(strands, other));
}

/* Put the strand with this index into its place in `by_head`, where strands are sorted by their
 * heads. */
static void insert_strand_into_list_by_head(domus_order *order, domi_strands *strands,
                                            uint32_t index)
{
    uint32_t low = 0;
    uint32_t high = strands->ranked;

    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (is_strand_taken_before(order, strands, index, strands->by_head[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    memmove(&strands->by_head[low + 1], &strands->by_head[low], strands->ranked - low);
    strands->by_head[low] = (uint8_t)index;
    strands->ranked++;
}

/* Take the entry `place` out of the list `by_head` of sorted strands. */
static void remove_entry_from_list_by_head(domi_strands *strands, uint32_t place)
{
    strands->ranked--;
    memmove(&strands->by_head[place], &strands->by_head[place + 1], strands->ranked - place);
}

/* Take the strand with this index out of the list `by_head` of sorted strands. */
static void remove_strand_from_list_by_head(domi_strands *strands, uint32_t index)
{
    const uint8_t *at = memchr(strands->by_head, (int)index, strands->ranked);

    DOMI_CHECK(at != NULL);
    remove_entry_from_list_by_head(strands, (uint32_t)(at - strands->by_head));
}

/* Remove from the strands one that was taken out of `by_head` before. */
static void remove_strand(domi_strands *strands, uint32_t index)
{
    strands->count--;
    memmove(&strands->at[index], &strands->at[index + 1],
            (strands->count - index) * sizeof strands->at[0]);
    for (uint32_t i = 0; i < strands->ranked; i++)
        strands->by_head[i] = (uint8_t)(strands->by_head[i] - (strands->by_head[i] > index));
}

/* --- adding and taking ------------------------------------------------------------------------ */

/* True if the neighbouring strands `index` and `index` + 1 have to be merged. */
static bool must_neighbour_strands_be_merged(const domi_strands *strands, uint32_t index)
{
    uint32_t older = strands->at[index].count;
    uint32_t newer = strands->at[index + 1].count;

    return older < 2 * newer && older + newer <= DOMI_STRAND_MERGED;
}

/* Number of the newest strands, which are not merged to make room for another strand. They are as
 * many as the doublings from one message to a strand of DOMI_STRAND_MERGED. If they were merged,
 * each new message would be merged with a long strand. */
#define NEWEST 12u

static_assert(1u << (NEWEST - 1) == DOMI_STRAND_MERGED, "one more than the doublings");

/* Make room for one more strand: merge those two neighbouring strands that are the shortest
 * together. */
static void make_room_for_strand(domus_order *order, domi_strands *strands)
{
    uint32_t least = UINT32_MAX;
    uint32_t index = 0;

    if (strands->count < DOMI_STRANDS_MAX)
        return;
    for (uint32_t i = 0; i + 1 + NEWEST < strands->count; i++) {
        if (strands->at[i].count + strands->at[i + 1].count < least) {
            least = strands->at[i].count + strands->at[i + 1].count;
            index = i;
        }
    }
    remove_strand_from_list_by_head(strands, index);
    remove_strand_from_list_by_head(strands, index + 1);
    merge_strands(order, &strands->at[index], &strands->at[index + 1]);
    remove_strand(strands, index + 1);
    insert_strand_into_list_by_head(order, strands, index);
}

/* Add a strand of mail that is newer than all mail of the strands. */
static void add_strand_of_newer_mail(domus_order *order, domi_strands *strands, domi_strand strand)
{
    make_room_for_strand(order, strands);
    strands->at[strands->count++] = strand;
    strands->mail += strand.count;
    for (uint32_t last = strands->count - 1;
         last > 0 && must_neighbour_strands_be_merged(strands, last - 1); last--) {
        remove_strand_from_list_by_head(strands, last - 1);
        merge_strands(order, &strands->at[last - 1], &strands->at[last]);
        strands->count--;
    }
    insert_strand_into_list_by_head(order, strands, strands->count - 1);
}

/* Add a strand of mail that is older than all mail of the strands. */
static void add_strand_of_older_mail(domus_order *order, domi_strands *strands, domi_strand strand)
{
    make_room_for_strand(order, strands);
    memmove(&strands->at[1], &strands->at[0], strands->count * sizeof strands->at[0]);
    for (uint32_t i = 0; i < strands->ranked; i++)
        strands->by_head[i]++;
    strands->at[0] = strand;
    strands->count++;
    strands->mail += strand.count;
    while (strands->count > 1 && must_neighbour_strands_be_merged(strands, 0)) {
        remove_strand_from_list_by_head(strands, 1);
        merge_strands(order, &strands->at[0], &strands->at[1]);
        remove_strand(strands, 1);
    }
    insert_strand_into_list_by_head(order, strands, 0);
}

static domi_node *take_first_message_of_strands(domus_order *order, domi_strands *strands)
{
    if (strands->count == 0)
        return NULL;
    uint32_t first = strands->by_head[0];
    domi_strand *strand = &strands->at[first];
    domi_node *node = domi_list_take_first_node(&strand->tail);

    strands->mail--;
    remove_entry_from_list_by_head(strands, 0);
    if (--strand->count == 0) {
        remove_strand(strands, first);
        return node;
    }
    /* `node` becomes the head of its strand when the next message is taken */
    domi_prefetch_read(strand->tail->next->next);
    insert_strand_into_list_by_head(order, strands, first);
    return node;
}

/* Take all mail out of the strands, as one strand, which may be empty. */
static domi_strand take_all_mail_as_one_strand(domus_order *order, domi_strands *strands)
{
    domi_strand all = {NULL, 0};

    strands->ranked = 0;
    while (strands->count > 1) {
        for (uint32_t i = 0; i + 1 < strands->count;
             i++) { /* strands are merged in pairs, so that no list grows long before the others */
            merge_strands(order, &strands->at[i], &strands->at[i + 1]);
            remove_strand(strands, i + 1);
        }
    }
    if (strands->count == 1)
        all = strands->at[0];
    strands->count = 0;
    strands->mail = 0;
    return all;
}

/* --- sorting in ------------------------------------------------------------------------------- */

static bool is_notice_that_ends_actor(const domi_node *node)
{
    return get_envelope_of_node(node)->type == &domi_last_type;
}

/* Take those messages at the start of a list that are in order already, as a strand. */
static domi_strand take_sorted_start_of_list(domus_order *order, domi_node **list)
{
    domi_strand strand = {NULL, 0};

    do {
        domi_list_append_node(&strand.tail, domi_list_take_first_node(list));
        strand.count++;
    } while (*list != NULL && !is_notice_that_ends_actor((*list)->next) &&
             !is_taken_before_older(order, (*list)->next, strand.tail));
    return strand;
}

/* Sort into the strands the messages that were appended to the mailboxes since the last call. */
static void sort_new_mail_into_strands(domi_house *house)
{
    domi_order *order = house->family->order;
    domus_order *compare = house->behaviour->order;
    domi_node **asks = &house->tails[DOMI_ASK];
    domi_node **notices = &house->tails[DOMI_NOTICE];

    if (order->at_last)
        return;
    while (*asks != NULL)
        add_strand_of_newer_mail(compare, &order->waiting,
                                 take_sorted_start_of_list(compare, asks));
    while (*notices != NULL && !is_notice_that_ends_actor((*notices)->next))
        add_strand_of_newer_mail(compare, &order->waiting,
                                 take_sorted_start_of_list(compare, notices));
    order->at_last = *notices != NULL;
}

domi_node *domi_order_take_next_message(domi_house *house)
{
    domi_order *order = house->family->order;

    sort_new_mail_into_strands(house);
    if (order->seen.count != 0)
        domi_order_make_seen_mail_unseen(house);
    domi_node *node = take_first_message_of_strands(house->behaviour->order, &order->waiting);
    return node != NULL ? node : domi_order_take_ending_notice(house);
}

domi_node *domi_order_take_ending_notice(domi_house *house)
{
    domi_order *order = house->family->order;

    sort_new_mail_into_strands(house);
    if (!order->at_last || order->waiting.count != 0 || order->seen.count != 0)
        return NULL;
    order->at_last = false;
    return domi_list_take_first_node(&house->tails[DOMI_NOTICE]);
}

domi_node *domi_order_take_unseen_message(domi_house *house)
{
    sort_new_mail_into_strands(house);
    return take_first_message_of_strands(house->behaviour->order, &house->family->order->waiting);
}

void domi_order_move_node_to_seen_mail(domi_house *house, domi_node *node)
{
    node->next = node; /* the node alone is a circular list */
    add_strand_of_newer_mail(house->behaviour->order, &house->family->order->seen,
                             (domi_strand){node, 1});
}

void domi_order_make_seen_mail_unseen(domi_house *house)
{
    domi_order *order = house->family->order;
    domus_order *compare = house->behaviour->order;

    /* Messages that the receives have looked at stand before equal messages that they have not. */
    if (order->seen.count != 0)
        add_strand_of_older_mail(compare, &order->waiting,
                                 take_all_mail_as_one_strand(compare, &order->seen));
}

void domi_order_put_stashed_back(domi_house *house, domi_node *list)
{
    domi_order *order = house->family->order;
    domus_order *compare = house->behaviour->order;
    domi_strands sorted;

    if (list == NULL)
        return;
    sorted.count = sorted.ranked = sorted.mail = 0;
    while (list != NULL)
        add_strand_of_newer_mail(compare, &sorted, take_sorted_start_of_list(compare, &list));
    domi_order_make_seen_mail_unseen(house);
    add_strand_of_older_mail(compare, &order->waiting,
                             take_all_mail_as_one_strand(compare, &sorted));
}

/* --- the order of an actor -------------------------------------------------------------------- */

int domi_order_make_for_house(domi_house *house)
{
    domi_family *family = domi_family_get_or_make(house);

    if (family != NULL && family->order == NULL)
        family->order = domi_memory_new(sizeof *family->order);
    return family != NULL && family->order != NULL ? 0 : -ENOMEM;
}

/* Put all sorted mail of an actor back into its two mailboxes, before the mail that was appended
 * since. */
static void move_sorted_mail_to_mailboxes(domi_house *house)
{
    domi_order *order = house->family->order;
    domi_node *lists[] = {[DOMI_ASK] = NULL, [DOMI_NOTICE] = NULL};

    sort_new_mail_into_strands(house);
    domi_order_make_seen_mail_unseen(house);
    domi_strand all = take_all_mail_as_one_strand(house->behaviour->order, &order->waiting);
    while (all.tail != NULL) {
        domi_node *node = domi_list_take_first_node(&all.tail);
        domi_list_append_node(&lists[node->kind], node);
    }
    domi_list_prepend_list(&house->tails[DOMI_ASK], lists[DOMI_ASK]);
    domi_list_prepend_list(&house->tails[DOMI_NOTICE], lists[DOMI_NOTICE]);
    order->at_last = false;
}

void domi_order_set_behaviour_and_resort(domi_house *house, const domus_behaviour *behaviour)
{
    domus_order *before = house->behaviour->order;

    if (behaviour->order != before) {
        if (before != NULL)
            move_sorted_mail_to_mailboxes(house);
        house->marks &= (uint16_t)~DOMI_MARK_ORDERED;
        if (behaviour->order != NULL)
            house->marks |= DOMI_MARK_ORDERED;
        domi_mailbox_let_receives_look_again(house);
    }
    domi_house_set_behaviour(house, behaviour);
}

/* --- walks ------------------------------------------------------------------------------------ */

domi_strand *domi_order_get_strand(const domi_house *house, uint32_t number)
{
    domi_order *order = house->family != NULL ? house->family->order : NULL;

    if (order == NULL)
        return NULL;
    if (number < order->waiting.count)
        return &order->waiting.at[number];
    number -= order->waiting.count;
    return number < order->seen.count ? &order->seen.at[number] : NULL;
}

/* The walk may have changed the heads of strands, so all strands are ranked anew. */
static void forget_empty_strands(domus_order *order, domi_strands *strands)
{
    strands->mail = 0;
    strands->ranked = 0;
    for (uint32_t i = strands->count; i-- > 0;) {
        strands->mail += strands->at[i].count;
        if (strands->at[i].count == 0)
            remove_strand(strands, i);
    }
    for (uint32_t i = 0; i < strands->count; i++)
        insert_strand_into_list_by_head(order, strands, i);
}

void domi_order_correct_strands_after_walk(domi_house *house)
{
    forget_empty_strands(house->behaviour->order, &house->family->order->waiting);
    forget_empty_strands(house->behaviour->order, &house->family->order->seen);
}
