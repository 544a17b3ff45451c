/* Counts of a node's transfers, in a file that is mapped into memory, so that a kill -9 does not
 * lose the counts.
 *
 * Each transfer is counted as asked when it begins, and once more when it has ended; a transfer
 * that is only counted as asked was under way when its node was killed. The controller and the
 * checker read the file; its layout is the order of these members. */
#ifndef DOMUS_CHAOS_TALLY_H
#define DOMUS_CHAOS_TALLY_H

#include "tests/chaos/bank.h"

enum chaos_outcome {
    CHAOS_ASKED,
    CHAOS_OK,      /* the receiver has got the money */
    CHAOS_REFUSED, /* the account has answered that its balance is too small */
    CHAOS_FAILED,  /* the error says that nothing was sent */
    CHAOS_UNKNOWN, /* other errors: the transfer may have been made, or may be made later */
    CHAOS_OUTCOMES,
};

enum chaos_event {
    CHAOS_WRITES,
    CHAOS_WRITE_ERRORS,
    CHAOS_RELOADS, /* an entry was read again because a write had failed */
    CHAOS_FENCED,  /* a life has read a greater fence, and has ended */
    CHAOS_LIVES,
    CHAOS_TWINS,      /* another node has written with the same fence, which is an error */
    CHAOS_RESUMED,    /* an open transfer that an earlier life had begun */
    CHAOS_PAY_ERRORS, /* a deposit that was sent again */
    CHAOS_MOUNT_ERRORS,
    CHAOS_EVENTS,
};

struct chaos_tally {
    /* outcomes, by the window in which the ask began */
    uint64_t windows[CHAOS_WINDOWS][CHAOS_OUTCOMES];
    /* outcomes, by the account that was asked */
    uint64_t accounts[CHAOS_ACCOUNTS_MAX][CHAOS_OUTCOMES];
    /* greatest number of a transfer, by sender and receiver */
    uint64_t acked[CHAOS_ACCOUNTS_MAX][CHAOS_ACCOUNTS_MAX];
    uint64_t errors[CHAOS_ERRORS]; /* failed transfers, by errno */
    uint64_t times[CHAOS_TIMES];   /* successful transfers, by duration */
    uint64_t events[CHAOS_EVENTS];
};

extern struct chaos_tally *chaos_tally;

int chaos_tally_map_file(void);

/* Add one to a count. Several threads of a node count at the same time. */
static inline void chaos_count_one_more(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

#endif
