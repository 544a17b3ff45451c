/* A trace calls an actor by a number, because an address in memory differs from run to run. Actors
 * are numbered in the order in which they first run. The table is a hash table with open
 * addressing, from house and lease to the number. An actor that has ended keeps its entry, so a
 * number is never used twice. */
#include "runtime/testkit/who.h"

#include "base/memory.h"

#define ENTRIES_FIRST 256u /* number of entries of the first table, which later doubles */

typedef struct entry {
    const domi_house *house; /* house of the actor; NULL: the entry is free */
    uint32_t lease;          /* lease of the actor */
    uint32_t number;         /* number of the actor in the trace */
} entry;

struct domi_who {
    uint32_t size;   /* number of entries of the table, a power of two */
    uint32_t used;   /* number of used entries, at most half of `size` */
    entry entries[]; /* hash table by house and lease */
};

/* Make a table of `size` entries. Returns NULL if there is no memory. */
static domi_who *make_table(uint32_t size)
{
    domi_who *who = domi_memory_new(sizeof *who + size * sizeof who->entries[0]);

    if (who != NULL)
        who->size = size;
    return who;
}

/* Returns the entry of the actor, or, if it has none, the free entry where it would be put. */
static entry *find_entry(domi_who *who, const domi_house *house, uint32_t lease)
{
    uint64_t mixed = ((uint64_t)(uintptr_t)house / sizeof *house + lease) *
                     /* 2^64 divided by the golden ratio, which spreads neighbouring addresses over
                      * the table */
                     UINT64_C(0x9E3779B97F4A7C15);
    uint32_t mask = who->size - 1;

    for (uint32_t i = (uint32_t)(mixed >> 32) & mask;; i = (i + 1) & mask) {
        entry *one = &who->entries[i];
        if (one->house == NULL || (one->house == house && one->lease == lease))
            return one;
    }
}

static domi_who *grow_table(domi_who *who)
{
    domi_who *larger = make_table(who != NULL ? who->size * 2 : ENTRIES_FIRST);

    if (larger == NULL || who == NULL)
        return larger;
    for (uint32_t i = 0; i < who->size; i++) {
        const entry *one = &who->entries[i];
        if (one->house != NULL)
            *find_entry(larger, one->house, one->lease) = *one;
    }
    larger->used = who->used;
    domi_memory_free(who);
    return larger;
}

uint32_t domi_who_number(domi_who **who, const domi_house *house)
{
    uint32_t lease = domi_house_address(house).lease;

    if (*who == NULL || ((*who)->used + 1) * 2 > (*who)->size) {
        domi_who *larger = (*who == NULL || (*who)->size < DOMI_WHO_MAX) ? grow_table(*who) : NULL;
        if (larger == NULL)
            return DOMI_WHO_UNKNOWN;
        *who = larger;
    }
    entry *one = find_entry(*who, house, lease);
    if (one->house == NULL)
        *one = (entry){.house = house, .lease = lease, .number = (*who)->used++};
    return one->number;
}
