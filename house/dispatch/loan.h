/* Loans: houses that home shows to thieves, and gets back (contract: Stealing).
 *
 * A house is exposed from the moment when home moves it from its private queue to the shared one
 * until home has it back: from the shared queue itself, or from a thief who has run it once. While
 * it is exposed home touches nothing of it but its atomics and what is constant in a life; it is
 * the thief's between his take and his return. What arrives for it meanwhile stays in its inbox,
 * and home notes that it was taken off the arrivals (`pending`): so the mailboxes are sorted only
 * by who may, and order holds.
 *
 * A loan is a record of the thief's, with what home has to do when the house is back. It comes back
 * by a lock-free stack of home's. */
#ifndef DOMI_HOUSE_DISPATCH_LOAN_H
#define DOMI_HOUSE_DISPATCH_LOAN_H

#include "house/conversation/notes.h"

typedef struct domi_loan {
    domi_node node; /* in home's returns */
    domi_house *house;
    domi_notes notes;
    uint32_t handled; /* messages, in the run */
} domi_loan;

/* Home: show up to `most` houses of `queue` to thieves; those pinned stay. Returns how many. */
uint32_t domi_loans_expose(domi_manager *home, domi_queue *queue, uint32_t most);

/* Home: take back what no thief has taken, to the head of `queue`. Returns how many. */
uint32_t domi_loans_take_back(domi_manager *home, domi_queue *queue);

/* Home: what thieves have returned is settled as after a run here. Returns how many; one relaxed
 * load if there are none. */
uint32_t domi_loans_settle(domi_manager *home);

/* Home, when nobody runs any more: have all back, unsettled. */
void domi_loans_end(domi_manager *home);

/* The thread of `thief`: take one house that `home` shows. NULL: there is none, somebody else is at
 * it, or there is no memory for the record. */
domi_loan *domi_loan_take(domi_manager *thief, domi_manager *home);

/* Run it once, and give it back. */
void domi_loan_run(domi_manager *thief, domi_loan *loan);

/* Houses that `home` shows, about. Any thread. */
static inline uint32_t domi_loans_shown(const domi_manager *home)
{
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&home->shared_count,
                                memory_order_relaxed);
}

#endif
