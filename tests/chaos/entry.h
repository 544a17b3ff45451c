/* The entry of an account in the store, and the text form of an entry. */
#ifndef DOMUS_CHAOS_ENTRY_H
#define DOMUS_CHAOS_ENTRY_H

#include "tests/chaos/bank.h"

#define CHAOS_ENTRY_BYTES 2048u /* largest size in bytes of an entry's text */

struct chaos_entry {
    uint64_t fence;   /* fence of the life of the account that has written the entry */
    uint64_t life;    /* random number of the life of the account that has written the entry */
    uint32_t node;    /* node on which the life that has written the entry ran */
    uint64_t version; /* number of changes that the entry has had */
    int64_t balance;
    uint64_t number;      /* number of the last transfer that the account has begun */
    uint32_t open_to;     /* number of the account that receives the open transfer */
    uint32_t open_amount; /* amount of the open transfer; 0: no transfer is open */
    /* for each account, number of the last transfer that was received from it */
    uint64_t seen[CHAOS_ACCOUNTS_MAX];
};

/* Write an entry as text. Returns the number of bytes; no zero stands behind them. */
size_t chaos_entry_write_text(const struct chaos_entry *entry, uint32_t accounts,
                              char text[CHAOS_ENTRY_BYTES]);

/* Read an entry from its text. Returns false if the text is no entry of an account. */
bool chaos_entry_read_text(const char *text, size_t size, uint32_t accounts,
                           struct chaos_entry *ret_entry);

#endif
