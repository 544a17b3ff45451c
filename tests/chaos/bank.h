/* chaos_bank: a node whose accounts are grains, and whose store is a bucket of JetStream.
 *
 * **Transfers.** Each account has one entry in the bucket, and each change of an account is one
 * update of that entry at the revision that the account knows. A transfer from A to B is made in
 * three changes:
 *
 *   1. A's entry: the amount is subtracted from the balance, and the transfer is *open*: the entry
 *      has its number (which grows by one with each transfer of A), its receiver and its amount.
 *   2. B's entry: the amount is added to the balance, and the number is stored as the last one
 *      from A.
 *   3. A's entry: no transfer is open.
 *
 * An account has one open transfer at a time, so "the last number from A" tells B which of A's
 * transfers it has got: step 2 may be repeated, and has its effect once. A later life of A (after a
 * kill, a stop, or a move to another node) finds the open transfer in the entry, and continues with
 * step 2.
 *
 * **Why the sum is constant.** The sum of all balances, and of all open transfers whose number
 * their receiver has not stored, never changes: step 1 moves the amount from the balance to the
 * open transfer in one change, step 2 moves it on to the other balance in one change, and step 3
 * moves nothing, since the receiver has stored the number by then. No step has to change two
 * entries at once. If two lives of an account try the same step, only one succeeds, because the
 * other one has an older revision.
 *
 * **Fences.** An entry also has the fence (domus_grain_fence()) of the life that has written it. A
 * life writes the entry when it begins, so that its predecessor's next update fails; and a life
 * that reads a fence greater than its own ends. Each life writes a line into a file for each change
 * it has made, and the checker sees there that fences never become smaller. */
#ifndef DOMUS_CHAOS_BANK_H
#define DOMUS_CHAOS_BANK_H

#include <domus/cluster.h>
#include <domus/domus.h>

#include <stdbool.h>
#include <stdint.h>

#define CHAOS_ACCOUNTS_MAX 64u
#define CHAOS_NODES_MAX    16u
#define CHAOS_BEGIN        1000 /* the balance with which an account begins */
#define CHAOS_KEY_SIZE     16u
#define CHAOS_BUCKET       "bank"
#define CHAOS_CLUSTER      "chaos"
#define CHAOS_MS           UINT64_C(1000000)
#define CHAOS_ASK_NS       (1000 * CHAOS_MS) /* time-out in nanoseconds of an ask for a transfer */
#define CHAOS_WINDOW_NS    (100 * CHAOS_MS)
#define CHAOS_WINDOWS      36000u /* number of windows of time, which cover one hour */
#define CHAOS_ERRORS       160u
#define CHAOS_TIMES        32u /* number of classes of durations: powers of two of microseconds */

/* The arguments of the program chaos_bank, in the order of its command line. */
struct chaos_options {
    uint32_t node; /* number of this node of the bank, from 1 */
    const char *servers;
    const char *folder; /* directory for the files of this run of the bank */
    uint64_t epoch_ns;  /* begin of the first window of time, on CLOCK_MONOTONIC */
    uint32_t accounts;
    uint32_t rate;   /* how many transfers this node begins in a second */
    uint32_t probes; /* whether this node has a prober, which asks where each account is */
    uint32_t threads;
    uint64_t lease_ns; /* lease of a node in the cluster in nanoseconds; 0: the default */
};

extern struct chaos_options chaos_options;
extern domus_cluster *chaos_cluster;

/* Returns the time of CLOCK_MONOTONIC, which all processes of a machine share. */
uint64_t chaos_now_ns(void);

/* ---- Messages ---- */

/* ask to an account to send money to another one, which is answered by chaos_done */
struct chaos_transfer {
    uint32_t to;
    uint32_t amount;
};

/* ask of one account to another to take money, which is answered by chaos_done */
struct chaos_deposit {
    uint32_t from;
    uint32_t amount;
    uint64_t number;
};

struct chaos_done {
    uint64_t number;
};

struct chaos_place { /* The answer to an ask of type chaos_where. */
    uint32_t node;
    uint64_t fence;
};

extern const domus_type chaos_transfer_type, chaos_deposit_type, chaos_done_type, chaos_where_type,
    chaos_place_type;
extern const domus_pickler chaos_picklers[];

/* ---- Accounts (account.c) ---- */

extern const domus_grain_kind chaos_accounts;
void chaos_account_make_key(uint32_t account, char key[CHAOS_KEY_SIZE]);

/* ---- Further actors ---- */

/* actor on each node that begins transfers between accounts */
extern const domus_behaviour chaos_teller;
extern const domus_behaviour chaos_watcher; /* actor that watches an actor on each other node */
/* actor on each node that the watchers of other nodes watch */
extern const domus_behaviour chaos_watched;
extern const domus_behaviour chaos_prober; /* actor that asks each account on which node it is */

#endif
