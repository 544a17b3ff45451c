/* The entry of an account in the store, and the text form of an entry. */
#ifndef DOMUS_CHAOS_ENTRY_H
#define DOMUS_CHAOS_ENTRY_H

#include "tests/chaos/bank.h"

#define CHAOS_ENTRY_BYTES 2048u /* largest size of the text in bytes */

struct chaos_entry {
    uint64_t fence;   /* fence of the life that has written the entry */
    uint64_t life;    /* random number of the life that has written the entry */
    uint32_t node;    /* node on which that life ran */
    uint64_t version; /* number of changes of the entry until now */
    int64_t balance;
    uint64_t number;                   /* number of the last transfer that the account has begun */
    uint32_t open_to;                  /* receiver of the open transfer */
    uint32_t open_amount;              /* amount of the open transfer; 0: no transfer is open */
    uint64_t seen[CHAOS_ACCOUNTS_MAX]; /* number of the last transfer received from each account */
};

/* Write an entry as text. Returns the bytes of the text, which does not end with a zero. */
size_t chaos_entry_write_text(const struct chaos_entry *entry, uint32_t accounts,
                              char text[CHAOS_ENTRY_BYTES]);

/* Read an entry from its text. Returns false if the text is no entry. */
bool chaos_entry_read_text(const char *text, size_t size, uint32_t accounts,
                           struct chaos_entry *ret_entry);

#endif
