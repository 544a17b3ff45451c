/* Writes and reads the text of an entry: decimal numbers with a space between them, in the order of
 * the struct, so that the checker, which shares no code with this program, reads it by a split. */
#include "tests/chaos/entry.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t chaos_entry_write_text(const struct chaos_entry *entry, uint32_t accounts,
                              char text[CHAOS_ENTRY_BYTES])
{
    int used = snprintf(text, CHAOS_ENTRY_BYTES,
                        "%" PRIu64 " %" PRIu64 " %u %" PRIu64 " %" PRId64 " %" PRIu64 " %u %u",
                        entry->fence, entry->life, entry->node, entry->version, entry->balance,
                        entry->number, entry->open_to, entry->open_amount);

    for (uint32_t i = 0; i < accounts; i++)
        used +=
            snprintf(text + used, CHAOS_ENTRY_BYTES - (size_t)used, " %" PRIu64, entry->seen[i]);
    return (size_t)used;
}

bool chaos_entry_read_text(const char *text, size_t size, uint32_t accounts,
                           struct chaos_entry *ret_entry)
{
    char copy[CHAOS_ENTRY_BYTES];
    uint64_t numbers[8 + CHAOS_ACCOUNTS_MAX];
    char *at = copy;

    if (size >= sizeof copy)
        return false;
    memcpy(copy, text, size);
    copy[size] = '\0';
    for (uint32_t i = 0; i < 8 + accounts; i++) {
        char *end;
        /* The program never writes a negative balance, so a text with one is no entry. */
        numbers[i] = strtoull(at, &end, 10);
        if (end == at)
            return false;
        at = end;
    }
    if (*at != '\0')
        return false;
    *ret_entry = (struct chaos_entry){.fence = numbers[0],
                                      .life = numbers[1],
                                      .node = (uint32_t)numbers[2],
                                      .version = numbers[3],
                                      .balance = (int64_t)numbers[4],
                                      .number = numbers[5],
                                      .open_to = (uint32_t)numbers[6],
                                      .open_amount = (uint32_t)numbers[7]};
    memcpy(ret_entry->seen, numbers + 8, accounts * sizeof numbers[0]);
    return true;
}
