/* Counts of a node's transfers, in a file that is mapped into memory, so that a kill -9 does not
 * lose the counts.
 *
 * Each transfer is counted as asked when it begins, and once more when it has ended; a transfer
 * that is only counted as asked was under way when its node was killed. The controller and the
 * checker read the file; its layout is the order of
 * the members of struct chaos_tally. */
#ifndef DOMUS_CHAOS_TALLY_H
#define DOMUS_CHAOS_TALLY_H

#include "tests/chaos/bank.h"

enum chaos_outcome {
    CHAOS_ASKED,
    CHAOS_OK,      /* outcome of a transfer: the receiver has got the money */
    CHAOS_REFUSED, /* outcome of a transfer: the balance of the account was too small */
    CHAOS_FAILED,  /* outcome of a transfer: an error that says that nothing was sent */
    /* outcome of a transfer: another error, so it may have been made, or may be made later */
    CHAOS_UNKNOWN,
    CHAOS_OUTCOMES,
};

enum chaos_event {
    CHAOS_WRITES,
    CHAOS_WRITE_ERRORS,
    CHAOS_RELOADS, /* entries that were read again because a write had failed */
    CHAOS_FENCED,  /* lives that have read a greater fence than their own, and have ended */
    CHAOS_LIVES,
    /* entries that another node has written with the same fence, which is an error */
    CHAOS_TWINS,
    CHAOS_RESUMED,    /* open transfers of an earlier life that the next life has continued */
    CHAOS_PAY_ERRORS, /* deposits that an account has sent again */
    CHAOS_MOUNT_ERRORS,
    CHAOS_EVENTS,
};

struct chaos_tally {
    /* outcomes of transfers, by the window of time in which their ask began */
    uint64_t windows[CHAOS_WINDOWS][CHAOS_OUTCOMES];
    /* outcomes of transfers, by the account that was asked */
    uint64_t accounts[CHAOS_ACCOUNTS_MAX][CHAOS_OUTCOMES];
    /* greatest number of a transfer that was made, by sender and receiver */
    uint64_t acked[CHAOS_ACCOUNTS_MAX][CHAOS_ACCOUNTS_MAX];
    uint64_t errors[CHAOS_ERRORS]; /* number of transfers that failed, by errno */
    uint64_t times[CHAOS_TIMES];   /* number of transfers that succeeded, by duration */
    uint64_t events[CHAOS_EVENTS];
};

extern struct chaos_tally *chaos_tally;

int chaos_tally_map_file(void);

/* Add one to a count of the tally. Several threads of a node count at the same time. */
static inline void chaos_count_one_more(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

#endif
