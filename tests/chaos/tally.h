/* Counts of a node's transfers, in a file that is mapped into memory: so they outlast a kill -9.
 *
 * Each transfer is counted as asked when it begins, and once more when it has ended; so those that
 * are asked and nothing else were under way when their node was killed. The controller and the
 * checker read the file, in the order of these members. */
#ifndef DOMUS_CHAOS_TALLY_H
#define DOMUS_CHAOS_TALLY_H

#include "tests/chaos/bank.h"

enum chaos_outcome {
    CHAOS_ASKED,
    CHAOS_OK,      /* the receiver has the money */
    CHAOS_REFUSED, /* the account has answered that it has not so much */
    CHAOS_FAILED,  /* the error says that nothing was sent */
    CHAOS_UNKNOWN, /* any other error: the transfer may have been made, or will be */
    CHAOS_OUTCOMES,
};

enum chaos_event {
    CHAOS_WRITES,
    CHAOS_WRITE_ERRORS,
    CHAOS_RELOADS, /* an entry was read anew because a write had failed */
    CHAOS_FENCED,  /* a life has found a greater fence, and has ended */
    CHAOS_LIVES,
    CHAOS_TWINS,      /* another node has written with the same fence: that must not be */
    CHAOS_RESUMED,    /* an open transfer that a life before has begun */
    CHAOS_PAY_ERRORS, /* a deposit that was asked again */
    CHAOS_MOUNT_ERRORS,
    CHAOS_EVENTS,
};

struct chaos_tally {
    uint64_t windows[CHAOS_WINDOWS][CHAOS_OUTCOMES];        /* by the time at which the ask began */
    uint64_t accounts[CHAOS_ACCOUNTS_MAX][CHAOS_OUTCOMES];  /* by the account that was asked */
    uint64_t acked[CHAOS_ACCOUNTS_MAX][CHAOS_ACCOUNTS_MAX]; /* the greatest number from, to */
    uint64_t errors[CHAOS_ERRORS];                          /* by errno */
    uint64_t times[CHAOS_TIMES];                            /* of transfers that were OK */
    uint64_t events[CHAOS_EVENTS];
};

extern struct chaos_tally *chaos_tally;

int chaos_tally_open(void);

/* Threads of a node count beside each other. */
static inline void chaos_count(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

#endif
