/* A deque that one thread owns and others steal from, after Chase and Lev ("Dynamic Circular
 * Work-Stealing Deque", 2005), with orders in the manner of Le, Pop, Cohen and Zappa Nardelli
 * ("Correct and Efficient Work-Stealing for Weak Memory Models", 2013).
 *
 * The items have numbers, which grow. The deque holds top..bottom-1, each in the slot of its number
 * modulo the capacity. The owner pushes and takes at the bottom, so it gets the newest item;
 * thieves steal at the top, so they get the oldest, by a compare-exchange of `top`. A push that
 * finds all slots in use goes on in a buffer of twice the size; a thief may still read the old one,
 * so that is kept until the deque ends. All old buffers together are smaller than the last one.
 *
 * This deque differs from that of 2005 in one thing, without which half of the items could not be
 * stolen at once. There, the owner takes an item by a store of `bottom` and a load of `top`; only
 * the last item of all needs a compare-exchange, because a thief takes one item, and that is the
 * oldest. If a thief takes more, this loses and doubles items:
 *
 * 1. A thief reads top 0 and bottom 4, and chooses to take 0 and 1.
 * 2. The owner takes 3, 2 and 1. It reads top 0 each time, so it uses no compare-exchange.
 * 3. The thief exchanges top 0 for 2, which succeeds, because top is still 0. It has 1, too.
 * 4. Now top is 2 and bottom is 1. The next item that is pushed gets number 1. No thief finds it,
 *    and the one after it is number 2.
 *
 * Therefore `top` lies in one word with a count of changes, which each steal and each take of the
 * owner increments. A steal is one compare-exchange of that word, so it fails if anything was taken
 * since the thief read it; a take is a store of `bottom`, then one fetch-add of the word. The
 * fetch-add stands in place of the fence between store and load in the deque of 2005, and costs as
 * much. Nothing else is needed, and the last item of all is no special case:
 *
 * - A steal that succeeds has read `bottom` as it was between two takes of the owner. The load of
 *   the word acquires, so the thief sees the store of `bottom` by the last take in the word, or a
 *   later store. Had it read one that comes after the next take, that take would come before the
 *   thief's compare-exchange, because such a store releases and the load of `bottom` acquires; and
 *   the compare-exchange would fail. Between two takes `bottom` only grows, until the second take
 *   subtracts 1 from it, so the thief claims items that were pushed, and none that was taken.
 * - The owner that has stored `bottom` = n, and whose fetch-add returns a top of n or less, has
 *   item n. Steals that come before the fetch-add have claimed numbers below that top. Steals that
 *   come after it have read the word after it, and so `bottom` after the store: they claim numbers
 *   below n, or below a later `bottom`, but then number n is an item that was pushed later.
 * - If the fetch-add returns n + 1, thieves were faster. More than n + 1 it cannot return, because
 *   `bottom` was at most n + 1 since the last take.
 * - A slot is read before the compare-exchange. If the owner has put a later item there, it had
 *   read a `top` beyond the former item before. Had the thief's compare-exchange succeeded, it
 *   would come before that load in the word, and the load acquires from it through the
 *   read-modify-writes between them; so the thief would have read before the owner wrote. It thus
 *   fails, and what it has read is dropped. The same holds of an old buffer, into which nothing is
 *   written any more.
 *
 * The count of changes has 44 bits. A thief would have to stand still between two instructions
 * while exactly 2^44 items are taken, which is a day of nothing else, to mistake one for the other.
 *
 * Thread-safety: each function says who calls it. Nobody blocks; a steal that fails has been beaten
 * by a steal or a take that succeeded. */
#ifndef DOMI_RUNTIME_POLICIES_CHASE_LEV_H
#define DOMI_RUNTIME_POLICIES_CHASE_LEV_H

#include "house/message/parts.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define DOMI_CHASE_LEV_START 256u       /* number of slots that a deque has at first */
#define DOMI_CHASE_LEV_MOST  (1u << 18) /* most slots that a deque may have */

typedef struct domi_chase_lev_buffer {
    /* smaller buffer that was used before this one; thieves may still read it */
    struct domi_chase_lev_buffer *older;
    uint32_t mask; /* number of the buffer's slots, a power of two, minus one */
    _Atomic(void *) slots[];
} domi_chase_lev_buffer;

typedef struct domi_chase_lev {
    /* Number of the item that is pushed next. Only the owner of the deque writes it. */
    alignas(DOMI_LINES) _Atomic uint32_t bottom;
    /* present buffer of the deque; only the owner writes the pointer */
    _Atomic(domi_chase_lev_buffer *) buffer;
    /* In the low bits the number of the oldest item, modulo 2^20; in the high bits a count of
     * changes. */
    alignas(DOMI_LINES) _Atomic uint64_t word;
} domi_chase_lev;

/* Make a deque without items. Returns 0; -ENOMEM. */
int domi_chase_lev_init(domi_chase_lev *deque);

/* Free the buffers of a deque. The caller knows that no thread uses the deque any more. A deque of
 * zeros is allowed. */
void domi_chase_lev_fini(domi_chase_lev *deque);

/* Put an item, which is not NULL, at the bottom of a deque. Returns false if there is no memory to
 * grow, or if the deque has DOMI_CHASE_LEV_MOST items; then the deque is unchanged. Called by the
 * owner. */
bool domi_chase_lev_push_item(domi_chase_lev *deque, void *item);

/* Take the newest item from the bottom of a deque. Returns NULL if there is none. Called by the
 * owner. */
void *domi_chase_lev_take_newest_item(domi_chase_lev *deque);

/* Steal the oldest item from the top of a deque. Returns NULL if there is none, or another thread
 * was faster. Any thread may call this. */
void *domi_chase_lev_steal_oldest_item(domi_chase_lev *deque);

/* Steal half of the items of `deque`, rounded up, but not more than `own` has slots for. Returns
 * the oldest one, and puts the others at the bottom of `own` in their order. `ret_count` gets the
 * number of stolen items. Returns NULL if there is none, or another thread was faster. Called by
 * the owner of `own`, which is another deque. */
void *domi_chase_lev_steal_half_of_items(domi_chase_lev *deque, domi_chase_lev *own,
                                         uint32_t *ret_count);

/* True if the deque has no item, so that a runner may sleep. Any thread.
 *
 * If a push comes before this call in the one order of all seq_cst operations, and its item is
 * still in the deque, this function returns false: the push stores `bottom` and this function loads
 * it, both seq_cst. The word that this function reads may be older than `bottom`, and then the
 * deque looks fuller than it is, but the word is never newer. */
bool domi_chase_lev_is_empty(const domi_chase_lev *deque);

#endif
