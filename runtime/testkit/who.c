/* The numbers by which a trace calls actors, because an address in memory differs from run to run.
 * Actors are numbered in the order in which they first run. The table is a hash table with open
 * addressing, from house and lease to the number. An actor that has ended keeps its entry, so a
 * number is never used twice. */
#include "runtime/testkit/who.h"

#include "base/memory.h"

/* number of entries that the first table has; later ones have twice as many each */
#define ENTRIES_FIRST 256u

typedef struct entry {
    const domi_house *house; /* house of the entry's actor; NULL: the entry is free */
    uint32_t lease;          /* lease of the entry's actor */
    uint32_t number;         /* number by which the trace calls the entry's actor */
} entry;

struct domi_who {
    uint32_t size;   /* number of entries that the table has, a power of two */
    uint32_t used;   /* number of entries in use, at most half of `size` */
    entry entries[]; /* entries of the hash table, by house and lease */
};

/* Make a table of numbers with `size` entries. Returns NULL if there is no memory. */
static domi_who *make_table_of_numbers(uint32_t size)
{
    domi_who *who = domi_memory_new(sizeof *who + size * sizeof who->entries[0]);

    if (who != NULL)
        who->size = size;
    return who;
}

/* Returns the entry of an actor in the table, or, if it has none, the free entry where it would be
 * put. */
static entry *find_entry_of_actor(domi_who *who, const domi_house *house, uint32_t lease)
{
    uint64_t mixed = ((uint64_t)(uintptr_t)house / sizeof *house + lease) *
                     /* hash factor: 2^64 divided by the golden ratio, which spreads neighbouring
                      * addresses over the table */
                     UINT64_C(0x9E3779B97F4A7C15);
    uint32_t mask = who->size - 1;

    for (uint32_t i = (uint32_t)(mixed >> 32) & mask;; i = (i + 1) & mask) {
        entry *one = &who->entries[i];
        if (one->house == NULL || (one->house == house && one->lease == lease))
            return one;
    }
}

static domi_who *grow_table_of_numbers(domi_who *who)
{
    domi_who *larger = make_table_of_numbers(who != NULL ? who->size * 2 : ENTRIES_FIRST);

    if (larger == NULL || who == NULL)
        return larger;
    for (uint32_t i = 0; i < who->size; i++) {
        const entry *one = &who->entries[i];
        if (one->house != NULL)
            *find_entry_of_actor(larger, one->house, one->lease) = *one;
    }
    larger->used = who->used;
    domi_memory_free(who);
    return larger;
}

uint32_t domi_who_find_or_give_number_of_actor(domi_who **who, const domi_house *house)
{
    uint32_t lease = domi_house_get_address(house).lease;

    if (*who == NULL || ((*who)->used + 1) * 2 > (*who)->size) {
        domi_who *larger =
            (*who == NULL || (*who)->size < DOMI_WHO_MAX) ? grow_table_of_numbers(*who) : NULL;
        if (larger == NULL)
            return DOMI_WHO_UNKNOWN;
        *who = larger;
    }
    entry *one = find_entry_of_actor(*who, house, lease);
    if (one->house == NULL)
        *one = (entry){.house = house, .lease = lease, .number = (*who)->used++};
    return one->number;
}
