/* Loans: houses that home lets thieves run, and gets back (contract: Stealing).
 *
 * A house is exposed from the moment when home moves it from its own queue to the shared one until
 * home has it back, either from the shared queue or from a thief that has run it once. While it is
 * exposed, home touches nothing of it but its atomics and the fields that are constant in a life.
 * From the take to the return the house is lent, and only the thief uses the rest. Mail that
 * arrives meanwhile stays in the inbox. Home takes the house off the arrivals, marks it
 * (DOMI_SLOT_PENDING), and sorts the inbox when the house is back. So only one thread at a time
 * touches the mailboxes, and order holds.
 *
 * A loan is the record of one theft, an object of the thief's pool. It says what home has to do
 * when the house is back, and comes back through a lock-free stack in home's manager
 * (`returns`). */
#ifndef DOMI_HOUSE_DISPATCH_LOAN_H
#define DOMI_HOUSE_DISPATCH_LOAN_H

#include "house/conversation/notes.h"

/* Most houses and messages that a stand-in handles while it holds a home once (base/park.h). The
 * limits hold for returned loans, and again for arrivals. */
#define DOMI_PLAIN_HOUSES_MAX 16u /* most houses in one hold of a stand-in */
/* most messages in the inboxes of the houses of one hold together */
#define DOMI_PLAIN_MAIL_MAX 64u

typedef struct domi_loan {
    domi_node node;    /* node that links the loan into home's returns */
    domi_house *house; /* the house that the loan lends */
    domi_notes notes;  /* the notes that the thief has left for home */
    uint32_t handled;  /* number of messages that the thief's run of the house has handled */
    uint32_t tally;    /* number of the house's behaviour before the run (tally.h) */
} domi_loan;

/* Expose up to `most` houses of `queue` to thieves; pinned houses stay there. Returns the number of
 * exposed houses. Home. */
uint32_t domi_loans_expose_houses(domi_manager *home, domi_queue *queue, uint32_t most);

/* Take back the exposed houses that no thief has taken, to the head of `queue`. Returns their
 * number. Home. */
uint32_t domi_loans_take_houses_back(domi_manager *home, domi_queue *queue);

/* Settle the houses that thieves have returned, as after a run at home. Returns their number.
 * Without returned houses this costs one relaxed load. Home. */
uint32_t domi_loans_settle_returned_houses(domi_manager *home);

/* Settle the returned houses as a stand-in that holds home (base/park.h): it settles all or none,
 * runs no code of users, and does not use io. An actor that has to end or to restart becomes READY.
 * Returns false if home itself has to settle them. */
bool domi_loans_settle_as_stand_in(domi_manager *home);

/* Take back all exposed and returned houses, and carry out the notes of thieves, after all threads
 * have ended. The houses are not settled (dispatch.h), so none becomes READY or is freed. Home. */
void domi_loans_take_all_back_at_end(domi_manager *home);

/* Take one house that `home` has exposed, as a thief. Returns its loan; NULL if there is no such
 * house, if another thread holds the lock, or if there is no memory for the loan. Called by the
 * owner of `thief`. */
domi_loan *domi_loan_take_exposed_house(domi_manager *thief, domi_manager *home);

/* Run the house of a loan once, and return the loan to its home. Called by the owner of `thief`. */
void domi_loan_run_house_and_return(domi_manager *thief, domi_loan *loan);

/* Returns the number of houses of `home` in its shared queue; it may be out of date. Any thread. */
static inline uint32_t domi_loans_count_shared_houses(const domi_manager *home)
{
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&home->loans.shared_count,
                                memory_order_relaxed);
}

#endif
