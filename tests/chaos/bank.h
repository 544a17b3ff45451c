/* chaos_bank: a node whose accounts are grains, and whose store is a bucket of JetStream.
 *
 * **Transfers.** Each account has one entry in the bucket, and each change of an account is one
 * update of that entry at the revision that the account knows. A transfer from A to B is made in
 * three changes:
 *
 *   1. A's entry: the balance is less by the amount, and the transfer is *open*: its number, which
 *      grows by one with each transfer of A, its receiver and its amount.
 *   2. B's entry: the balance is more by the amount, and the number is the last one seen from A.
 *   3. A's entry: nothing is open.
 *
 * An account has one open transfer at a time, so "the last number seen from A" tells B all of A's
 * transfers that it has got: step 2 is repeated at will, and done once. Whoever becomes A (after a
 * kill, a stop, a move) finds the open transfer in the entry, and goes on with step 2.
 *
 * **Why the sum holds.** At each moment the sum of all balances, and of all open transfers whose
 * number their receiver has not seen, is what it was at the beginning: step 1 moves the amount from
 * the balance to the open transfer in one change, step 2 moves it on to the other balance in one
 * change, and step 3 moves nothing, since the receiver has seen the number by then. No step needs
 * two entries to change at once. Steps that are made twice by two lives of an account cannot both
 * succeed, because the second one has an older revision.
 *
 * **Fences.** An entry also has the fence (domus_grain_fence()) of the life that has written it. A
 * life writes the entry when it begins, so that its predecessor's next update fails; and a life
 * that finds a greater fence than its own ends. Each life writes a line into a file for each change
 * it has made, and the checker sees there that no fence has come after a greater one. */
#ifndef DOMUS_CHAOS_BANK_H
#define DOMUS_CHAOS_BANK_H

#include <domus/cluster.h>
#include <domus/domus.h>

#include <stdbool.h>
#include <stdint.h>

#define CHAOS_ACCOUNTS_MAX 64u
#define CHAOS_NODES_MAX    16u
#define CHAOS_BEGIN        1000 /* the balance of a new account */
#define CHAOS_KEY_SIZE     16u
#define CHAOS_BUCKET       "bank"
#define CHAOS_CLUSTER      "chaos"
#define CHAOS_MS           UINT64_C(1000000)
#define CHAOS_ASK_NS       (1000 * CHAOS_MS) /* the time-out of a transfer */
#define CHAOS_WINDOW_NS    (100 * CHAOS_MS)
#define CHAOS_WINDOWS      36000u /* an hour */
#define CHAOS_ERRORS       160u
#define CHAOS_TIMES        32u /* powers of two of microseconds */

/* The arguments of the program, in their order. */
struct chaos_options {
    uint32_t node; /* 1.. */
    const char *servers;
    const char *folder; /* of the files of this run */
    uint64_t epoch_ns;  /* of the windows, on CLOCK_MONOTONIC */
    uint32_t accounts;
    uint32_t rate;   /* transfers that this node begins in a second */
    uint32_t probes; /* look where each account is; 0: do not */
    uint32_t threads;
    uint64_t lease_ns; /* 0: the default */
};

extern struct chaos_options chaos_options;
extern domus_cluster *chaos_cluster;

uint64_t chaos_now_ns(void); /* CLOCK_MONOTONIC, which all processes of a machine share */

/* ---- Messages ---- */

struct chaos_transfer { /* an ask to an account; answered by chaos_done */
    uint32_t to;
    uint32_t amount;
};

struct chaos_deposit { /* an ask of one account to another; answered by chaos_done */
    uint32_t from;
    uint32_t amount;
    uint64_t number;
};

struct chaos_done {
    uint64_t number;
};

struct chaos_place { /* the answer to chaos_where */
    uint32_t node;
    uint64_t fence;
};

extern const domus_type chaos_transfer_type, chaos_deposit_type, chaos_done_type, chaos_where_type,
    chaos_place_type;
extern const domus_pickler chaos_picklers[];

/* ---- Accounts (account.c) ---- */

extern const domus_grain_kind chaos_accounts;
void chaos_account_key(uint32_t account, char key[CHAOS_KEY_SIZE]);

/* ---- The rest ---- */

extern const domus_behaviour chaos_teller;  /* begins transfers */
extern const domus_behaviour chaos_watcher; /* watches an actor on each other node */
extern const domus_behaviour chaos_watched; /* which is that */
extern const domus_behaviour chaos_prober;  /* asks each account where it is */

#endif
