/* The steps of a loan: home exposes a house, a thief takes, runs and returns it, and home settles
 * it. */
#include "house/dispatch/loan.h"

#include "base/check.h"
#include "house/dispatch/dispatch.h"
#include "house/dispatch/incoming.h"
#include "house/dispatch/settle.h"
#include "house/family/birth.h"
#include "house/message/mailbox.h"
#include "house/message/observer.h"
#include "house/message/pool.h"

#include <assert.h>

static_assert(sizeof(domi_loan) <= 64, "a record is an envelope's slab");

/* number of houses in a queue that are examined for each house to be exposed, so that a long queue
 * of pinned houses is not walked to its end */
#define LOOKS_PER_HOUSE 4u

static void set_count_of_shared_houses(domi_manager *home, uint32_t count)
{
    /* Relaxed: the count is written under the lock. A thread that reads it without the lock takes
     * the lock before it relies on it. */
    atomic_store_explicit(&home->loans.shared_count, count, memory_order_relaxed);
}

/* --- home ------------------------------------------------------------------------------------- */

/* Move houses that may be lent from the head of `from`, a level of `queue`, to `chosen`, and mark
 * them as exposed. The others stay in their order. Returns the number of moved houses. */
static uint32_t expose_houses_of_level(domi_queue *queue, domi_fifo *from, uint32_t most,
                                       uint32_t *looks, domi_fifo *chosen)
{
    domi_fifo kept = {NULL, NULL};
    uint32_t count = 0;

    while (count < most && *looks != 0 && from->head != NULL) {
        domi_house *house = domi_fifo_take(from);

        --*looks;
        if ((house->marks & DOMI_MARK_PINNED) != 0) {
            domi_fifo_put(&kept, house);
            continue;
        }
        domi_house_set_slot_bits(house, domi_house_slot_bits(house) | DOMI_SLOT_EXPOSED);
        if (from == &queue->high)
            house->marks |= DOMI_MARK_HIGH;
        else
            house->marks &= (uint16_t)~DOMI_MARK_HIGH;
        queue->count--;
        count++;
        domi_fifo_put(chosen, house);
    }
    domi_fifo_prepend(from, &kept);
    return count;
}

uint32_t domi_loans_expose_houses(domi_manager *home, domi_queue *queue, uint32_t most)
{
    domi_fifo chosen = {NULL, NULL};
    uint32_t looks = most > UINT32_MAX / LOOKS_PER_HOUSE ? UINT32_MAX : most * LOOKS_PER_HOUSE;
    uint32_t count = expose_houses_of_level(queue, &queue->normal, most, &looks, &chosen);

    count += expose_houses_of_level(queue, &queue->high, most - count, &looks, &chosen);
    if (count == 0)
        return 0;
    domi_spinlock_lock(&home->loans.shared_lock);
    if (home->loans.shared.head == NULL)
        home->loans.shared = chosen;
    else {
        home->loans.shared.tail->next = chosen.head;
        home->loans.shared.tail = chosen.tail;
    }
    set_count_of_shared_houses(home, domi_loans_count_shared_houses(home) + count);
    domi_spinlock_unlock(&home->loans.shared_lock);
    home->loans.lent += count;
    domi_counter_add(&home->counters.exposed, count);
    return count;
}

/* Make an exposed house home's own again: carry out the notes that the thief has made, and sort the
 * mail that came meanwhile. */
static void make_exposed_house_home_again(domi_manager *home, domi_house *house, domi_notes notes)
{
    uint32_t slot = domi_house_slot_bits(house);

    DOMI_CHECK((slot & DOMI_SLOT_EXPOSED) != 0 && home->loans.lent != 0);
    domi_house_set_slot_bits(house, slot & DOMI_SLOT_CLASS);
    home->loans.lent--;
    if (DOMI_UNLIKELY(home->observer != NULL))
        home->observer->forget(home, house);
    if (DOMI_UNLIKELY((slot & DOMI_SLOT_HELD) != 0))
        domi_belts_deliver_held_messages(home, house);
    domi_notes_carry_out_all_of_thief(home, notes);
    if ((slot & DOMI_SLOT_PENDING) != 0)
        domi_mailbox_sort_inbox(home, house);
}

static domi_fifo take_houses_no_thief_has_taken(domi_manager *home)
{
    domi_spinlock_lock(&home->loans.shared_lock);
    domi_fifo taken = home->loans.shared;
    home->loans.shared = (domi_fifo){NULL, NULL};
    set_count_of_shared_houses(home, 0);
    domi_spinlock_unlock(&home->loans.shared_lock);
    return taken;
}

uint32_t domi_loans_take_houses_back(domi_manager *home, domi_queue *queue)
{
    domi_fifo taken = take_houses_no_thief_has_taken(home);
    domi_fifo high = {NULL, NULL};
    domi_fifo normal = {NULL, NULL};
    uint32_t count = 0;

    for (domi_house *house = domi_fifo_take(&taken); house != NULL;
         house = domi_fifo_take(&taken)) {
        make_exposed_house_home_again(home, house, (domi_notes){.tail = NULL});
        domi_fifo_put((house->marks & DOMI_MARK_HIGH) != 0 ? &high : &normal, house);
        count++;
    }
    /* The houses that home takes back were ready before all houses that wait in `queue` now, so
     * they go to its head. */
    domi_fifo_prepend(&queue->high, &high);
    domi_fifo_prepend(&queue->normal, &normal);
    queue->count += count;
    return count;
}

/* Reverse a list of loans that begins with the newest one. Returns the oldest loan. */
static domi_node *reverse_list_of_loans(domi_node *node)
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

/* Take all loans that have come back, the oldest first. */
static domi_node *take_returned_loans(domi_manager *home)
{
    /* acquire: pairs with the push in domi_loan_run_house_and_return(), so home sees what the thief
     * did to the house. */
    return reverse_list_of_loans(
        atomic_exchange_explicit(&home->loans.returns, NULL, memory_order_acquire));
}

/* Take back the first loan of a list, with its house, and free the loan's record. Returns the next
 * loan. */
static domi_node *take_back_first_loan(domi_manager *home, domi_node *node, domi_loan *ret_loan)
{
    *ret_loan = *(domi_loan *)(void *)node;
    domi_pool_free_object(home, node);
    domi_house_count_behaviour_change(home, ret_loan->house, ret_loan->tally);
    make_exposed_house_home_again(home, ret_loan->house, ret_loan->notes);
    return ret_loan->node.next;
}

/* Settle the houses of a list of returned loans. Not inlined, so that a home without returns saves
 * no registers for this. */
__attribute__((noinline)) static uint32_t settle_returned_houses(domi_manager *home)
{
    uint32_t count = 0;
    domi_loan loan;

    for (domi_node *node = take_returned_loans(home); node != NULL; count++) {
        node = take_back_first_loan(home, node, &loan);
        if (DOMI_UNLIKELY(home->observer != NULL) && home->observer->note_loan != NULL)
            home->observer->note_loan(home, loan.house, loan.node.owner);
        domi_house_settle_after_run(home, loan.house, loan.handled);
    }
    return count;
}

uint32_t domi_loans_settle_returned_houses(domi_manager *home)
{
    if (atomic_load_explicit(&home->loans.returns, memory_order_relaxed) == NULL)
        return 0;
    return settle_returned_houses(home);
}

/* True if the returned loans from `node` on are few, their houses have little mail, and none of
 * these watches a descriptor, because such a watch needs home's ring. */
static bool are_returned_loans_few_and_plain(const domi_node *node)
{
    uint64_t mail = 0;

    for (uint32_t count = 0; node != NULL; count++) {
        const domi_loan *loan = (const domi_loan *)(const void *)node;

        mail += domi_mailbox_depth_of_inbox(loan->house);
        if (count == DOMI_PLAIN_HOUSES_MAX || mail > DOMI_PLAIN_MAIL_MAX ||
            (loan->house->marks & DOMI_MARK_PINNED) != 0)
            return false;
        node = node->next;
    }
    return true;
}

bool domi_loans_settle_as_stand_in(domi_manager *home)
{
    /* acquire: the comment in take_returned_loans() says why. Only the owner takes loans off, so if
     * the newest loan is the same as before, the list has not changed. */
    domi_node *newest = atomic_load_explicit(&home->loans.returns, memory_order_acquire);
    domi_loan loan;

    if (newest == NULL)
        return true;
    if (!are_returned_loans_few_and_plain(newest) ||
        !atomic_compare_exchange_strong_explicit(&home->loans.returns, &newest, NULL,
                                                 memory_order_acquire, memory_order_relaxed))
        return false;
    for (domi_node *node = reverse_list_of_loans(newest); node != NULL;) {
        node = take_back_first_loan(home, node, &loan);
        domi_house_settle_as_stand_in(home, loan.house, loan.handled);
    }
    return true;
}

void domi_loans_take_all_back_at_end(domi_manager *home)
{
    domi_fifo taken = take_houses_no_thief_has_taken(home);

    for (domi_house *house = domi_fifo_take(&taken); house != NULL; house = domi_fifo_take(&taken))
        make_exposed_house_home_again(home, house, (domi_notes){.tail = NULL});
    for (domi_node *node = take_returned_loans(home); node != NULL;) {
        domi_loan loan;
        node = take_back_first_loan(home, node, &loan);
    }
    DOMI_CHECK(home->loans.lent == 0);
}

/* --- the thief -------------------------------------------------------------------------------- */

domi_loan *domi_loan_take_exposed_house(domi_manager *thief, domi_manager *home)
{
    if (domi_loans_count_shared_houses(home) == 0)
        return NULL;
    domi_loan *loan = domi_pool_take_object(thief, DOMI_SLAB_64);
    if (loan == NULL)
        return NULL;
    domi_house *house = NULL;
    if (domi_spinlock_try_lock(&home->loans.shared_lock)) {
        house = domi_fifo_take(&home->loans.shared);
        if (house != NULL)
            set_count_of_shared_houses(home, domi_loans_count_shared_houses(home) - 1);
        domi_spinlock_unlock(&home->loans.shared_lock);
    }
    if (house == NULL) {
        domi_pool_free_object(thief, &loan->node);
        return NULL;
    }
    loan->house = house;
    loan->tally = house->tally;
    return loan;
}

void domi_loan_run_house_and_return(domi_manager *thief, domi_loan *loan)
{
    domi_manager *home = loan->house->home;

    domi_manager_set_runs_lent_house(thief, true);
    loan->handled = domi_house_run_lent(thief, loan->house);
    domi_manager_set_runs_lent_house(thief, false);
    loan->notes = domi_notes_take_those_of_thiefs_run(thief);
    domi_node *newest = atomic_load_explicit(&home->loans.returns, memory_order_relaxed);
    do
        loan->node.next = newest;
    /* seq_cst: this exchange publishes the house and the record to home. Like a link into the
     * arrivals it also stands before the load of home's park word in the one order of all seq_cst
     * operations. */
    while (!atomic_compare_exchange_weak_explicit(&home->loans.returns, &newest, &loan->node,
                                                  memory_order_seq_cst, memory_order_relaxed));
    domi_manager_notify_of_push(thief, home);
}
