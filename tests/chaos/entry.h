/* The entry of an account in the store, and its text there. */
#ifndef DOMUS_CHAOS_ENTRY_H
#define DOMUS_CHAOS_ENTRY_H

#include "tests/chaos/bank.h"

#define CHAOS_ENTRY_BYTES 2048u /* of its text, at most */

struct chaos_entry {
    uint64_t fence;   /* of the life that has written it */
    uint64_t life;    /* a number of that life, by chance */
    uint32_t node;    /* on which that was */
    uint64_t version; /* changes of the entry */
    int64_t balance;
    uint64_t number;                   /* of the last transfer that the account has begun */
    uint32_t open_to;                  /* receiver of this transfer while it is open */
    uint32_t open_amount;              /* 0: nothing is open */
    uint64_t seen[CHAOS_ACCOUNTS_MAX]; /* the last number from each account */
};

/* Returns the bytes of the text, which has no zero at its end. */
size_t chaos_entry_write(const struct chaos_entry *entry, uint32_t accounts,
                         char text[CHAOS_ENTRY_BYTES]);

/* Returns false if the text is none of an entry. */
bool chaos_entry_read(const char *text, size_t size, uint32_t accounts,
                      struct chaos_entry *ret_entry);

#endif
