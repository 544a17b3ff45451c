/* The deque of Chase and Lev; chase_lev.h has the algorithm, and why it is correct. */
#include "runtime/policies/chase_lev.h"

#include "base/check.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

#define TOP_BITS 20
#define TOP_MASK ((1u << TOP_BITS) - 1)
/* number that is added to the deque's word to count one more change of it */
#define CHANGE ((uint64_t)1 << TOP_BITS)

/* A slow thread may read an old top and a newer bottom, and then there may seem to be up to twice
 * as many items between them as a deque can have. */
static_assert(DOMI_CHASE_LEV_MOST * 4 <= TOP_MASK + 1, "numbers of items must not be mistaken");
static_assert((DOMI_CHASE_LEV_START & (DOMI_CHASE_LEV_START - 1)) == 0, "a mask finds the slot");

/* Returns how many items the deque has, from the top in `word` to `bottom`. While the owner takes
 * from an empty deque, its bottom is one below the top, which counts as 0. */
static uint32_t count_items_between(uint64_t word, uint32_t bottom)
{
    uint32_t count = (bottom - (uint32_t)word) & TOP_MASK;

    return count == TOP_MASK ? 0 : count;
}

/* Returns what the deque's word becomes when `count` items are stolen. */
static uint64_t deque_word_after_steal(uint64_t word, uint32_t count)
{
    uint64_t changed = word + CHANGE;

    return (changed & ~(uint64_t)TOP_MASK) | (((uint32_t)word + count) & TOP_MASK);
}

static domi_chase_lev_buffer *make_buffer_with_slots(uint32_t slots)
{
    domi_chase_lev_buffer *buffer =
        domi_memory_new(sizeof *buffer + slots * sizeof(_Atomic(void *)));

    if (buffer != NULL)
        buffer->mask = slots - 1;
    return buffer;
}

/* Relaxed, as all accesses of slots are: the store of `bottom` publishes an item, and a thief uses
 * the item that it has read only if its compare-exchange succeeds. */
static void *read_slot_of_number(domi_chase_lev_buffer *buffer, uint32_t number)
{
    return atomic_load_explicit(&buffer->slots[number & buffer->mask], memory_order_relaxed);
}

static void write_slot_of_number(domi_chase_lev_buffer *buffer, uint32_t number, void *item)
{
    atomic_store_explicit(&buffer->slots[number & buffer->mask], item, memory_order_relaxed);
}

int domi_chase_lev_init(domi_chase_lev *deque)
{
    domi_chase_lev_buffer *buffer = make_buffer_with_slots(DOMI_CHASE_LEV_START);

    if (buffer == NULL)
        return -ENOMEM;
    atomic_init(&deque->bottom, 0);
    atomic_init(&deque->buffer, buffer);
    atomic_init(&deque->word, 0);
    return 0;
}

void domi_chase_lev_fini(domi_chase_lev *deque)
{
    domi_chase_lev_buffer *buffer = atomic_load_explicit(&deque->buffer, memory_order_relaxed);

    while (buffer != NULL) {
        domi_chase_lev_buffer *older = buffer->older;
        domi_memory_free(buffer);
        buffer = older;
    }
    atomic_store_explicit(&deque->buffer, NULL, memory_order_relaxed);
}

/* --- the owner -------------------------------------------------------------------------------- */

/* Copy the deque's `count` items to a new buffer of twice the size. Returns NULL if the deque has
 * its most items, or there is no memory. */
static domi_chase_lev_buffer *move_items_to_larger_buffer(domi_chase_lev *deque,
                                                          domi_chase_lev_buffer *buffer,
                                                          uint32_t bottom, uint32_t count)
{
    uint32_t slots = buffer->mask + 1;

    if (slots == DOMI_CHASE_LEV_MOST)
        return NULL;
    domi_chase_lev_buffer *larger = make_buffer_with_slots(slots * 2);
    if (larger == NULL)
        return NULL;
    for (uint32_t i = 1; i <= count; i++)
        write_slot_of_number(larger, bottom - i, read_slot_of_number(buffer, bottom - i));
    larger->older = buffer;
    /* release: pairs with the acquire in choose_items_to_steal(), so a thief sees the new buffer's
     * slots and mask. */
    atomic_store_explicit(&deque->buffer, larger, memory_order_release);
    return larger;
}

bool domi_chase_lev_push_item(domi_chase_lev *deque, void *item)
{
    /* Relaxed, both loads: only the owner, which this thread is, writes `bottom` and `buffer`. */
    uint32_t bottom = atomic_load_explicit(&deque->bottom, memory_order_relaxed);
    domi_chase_lev_buffer *buffer = atomic_load_explicit(&deque->buffer, memory_order_relaxed);
    /* acquire: pairs with the compare-exchange of thieves, so this thread overwrites a slot only
     * after the thieves have read it. */
    uint32_t count =
        count_items_between(atomic_load_explicit(&deque->word, memory_order_acquire), bottom);

    DOMI_CHECK(item != NULL);
    if (DOMI_UNLIKELY(count > buffer->mask)) {
        buffer = move_items_to_larger_buffer(deque, buffer, bottom, count);
        if (buffer == NULL)
            return false;
    }
    write_slot_of_number(buffer, bottom, item);
    /* release: a thief that reads this `bottom` sees the item. seq_cst: the caller looks next for
     * sleeping runners, and a runner looks at this word after it has said that it sleeps. */
    atomic_store_explicit(&deque->bottom, bottom + 1, memory_order_seq_cst);
    return true;
}

void *domi_chase_lev_take_newest_item(domi_chase_lev *deque)
{
    uint32_t bottom = atomic_load_explicit(&deque->bottom, memory_order_relaxed);

    /* Relaxed: only the owner adds items, so if an old value of the word shows none, there is
     * none. */
    if (count_items_between(atomic_load_explicit(&deque->word, memory_order_relaxed), bottom) == 0)
        return NULL;
    bottom--;
    /* release, as all stores of `bottom`: a thief that reads this value sees the takes that came
     * before it. */
    atomic_store_explicit(&deque->bottom, bottom, memory_order_release);
    /* release: a thief that reads the word after this change sees the store of `bottom` above.
     * acquire: this thread may use the slots of stolen items again, because thieves have read
     * them. */
    uint64_t word = atomic_fetch_add_explicit(&deque->word, CHANGE, memory_order_acq_rel);
    /* no item is left for the owner, because thieves have stolen the last one */
    if (((bottom + 1 - (uint32_t)word) & TOP_MASK) == 0) {
        atomic_store_explicit(&deque->bottom, bottom + 1, memory_order_release);
        return NULL;
    }
    return read_slot_of_number(atomic_load_explicit(&deque->buffer, memory_order_relaxed), bottom);
}

/* --- thieves ---------------------------------------------------------------------------------- */

/* The items that a thief has chosen to steal, and what it has read of the deque. */
typedef struct choice {
    uint64_t word;
    domi_chase_lev_buffer *buffer;
    uint32_t count; /* number of items that the deque had when the thief read it */
} choice;

static choice choose_items_to_steal(domi_chase_lev *deque)
{
    choice chosen;

    /* acquire, in this order: the load of the word pairs with the takes of the owner, that of
     * `bottom` with its pushes; so the buffer is at least as new as these pushes. */
    chosen.word = atomic_load_explicit(&deque->word, memory_order_acquire);
    chosen.count = count_items_between(chosen.word,
                                       atomic_load_explicit(&deque->bottom, memory_order_acquire));
    chosen.buffer = atomic_load_explicit(&deque->buffer, memory_order_acquire);
    return chosen;
}

/* Claim `count` of the chosen items for the thief. Returns false if any item was taken or stolen
 * meanwhile. */
static bool try_to_claim_items(domi_chase_lev *deque, choice chosen, uint32_t count)
{
    /* release: the owner puts new items into these slots only after this thief has read them.
     * acquire: the next thief that reads this word sees a `bottom` at least as new as this thief
     * did. */
    return atomic_compare_exchange_strong_explicit(&deque->word, &chosen.word,
                                                   deque_word_after_steal(chosen.word, count),
                                                   memory_order_acq_rel, memory_order_relaxed);
}

void *domi_chase_lev_steal_oldest_item(domi_chase_lev *deque)
{
    choice chosen = choose_items_to_steal(deque);

    if (chosen.count == 0)
        return NULL;
    void *item = read_slot_of_number(chosen.buffer, (uint32_t)chosen.word);
    return try_to_claim_items(deque, chosen, 1) ? item : NULL;
}

void *domi_chase_lev_steal_half_of_items(domi_chase_lev *deque, domi_chase_lev *own,
                                         uint32_t *ret_count)
{
    choice chosen = choose_items_to_steal(deque);
    uint32_t bottom = atomic_load_explicit(&own->bottom, memory_order_relaxed);
    domi_chase_lev_buffer *buffer = atomic_load_explicit(&own->buffer, memory_order_relaxed);
    /* acquire: pairs with the thieves of the own deque, as in domi_chase_lev_push_item() */
    uint32_t used =
        count_items_between(atomic_load_explicit(&own->word, memory_order_acquire), bottom);
    uint32_t room = buffer->mask + 1 - used;
    uint32_t count = chosen.count - chosen.count / 2;

    if (chosen.count == 0)
        return NULL;
    if (count - 1 > room)
        count = room + 1;
    void *first = read_slot_of_number(chosen.buffer, (uint32_t)chosen.word);
    /* No other thread reads these slots of the own deque until `bottom` is beyond them. */
    for (uint32_t i = 1; i < count; i++)
        write_slot_of_number(buffer, bottom + i - 1,
                             read_slot_of_number(chosen.buffer, (uint32_t)chosen.word + i));
    if (!try_to_claim_items(deque, chosen, count))
        return NULL;
    if (count > 1) /* seq_cst, as the store of `bottom` in domi_chase_lev_push_item() */
        atomic_store_explicit(&own->bottom, bottom + count - 1, memory_order_seq_cst);
    *ret_count = count;
    return first;
}

bool domi_chase_lev_is_empty(const domi_chase_lev *deque)
{
    /* the pointer is cast to one without const, because atomic loads of C17 take no other */
    domi_chase_lev *looked = (domi_chase_lev *)(uintptr_t)deque;
    /* acquire: `bottom`, which is read next, is at least as new as the one that the thieves had
     * read whose steals are in the word. */
    uint64_t word = atomic_load_explicit(&looked->word, memory_order_acquire);

    /* seq_cst: pairs with the store of `bottom` in domi_chase_lev_push_item() */
    return count_items_between(word, atomic_load_explicit(&looked->bottom, memory_order_seq_cst)) ==
           0;
}
