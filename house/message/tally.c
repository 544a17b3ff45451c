/* Gives behaviours their numbers, in a hash table that only grows. Readers take no lock, because an
 * entry is complete before its behaviour stands in it. */
#include "house/message/tally.h"

#include "house/message/types.h"

#include <stdio.h>

static uint32_t hash_behaviour(const domus_behaviour *behaviour)
{
    /* The factor of the hash is the golden ratio; addresses of behaviours differ by at least 16. */
    return (uint32_t)(((uintptr_t)behaviour >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

/* Returns the entry of a behaviour, or the free entry where it belongs. The table is never full,
 * because it has twice as many entries as there are numbers. */
static const domi_known_at *find_entry_of_behaviour(const domi_behaviours *behaviours,
                                                    const domus_behaviour *behaviour)
{
    for (uint32_t place = hash_behaviour(behaviour);; place++) {
        const domi_known_at *at = &behaviours->table[place % (2 * DOMI_TALLIES)];
        /* acquire: pairs with the release in domi_behaviours_add_number(), so the number of the
         * behaviour is seen. */
        const domus_behaviour *found = atomic_load_explicit(
            (_Atomic(const domus_behaviour *) *)(uintptr_t)&at->behaviour, memory_order_acquire);
        if (found == behaviour || found == NULL)
            return at;
    }
}

uint32_t domi_behaviours_find_number(const domi_behaviours *behaviours,
                                     const domus_behaviour *behaviour)
{
    const domi_known_at *at = find_entry_of_behaviour(behaviours, behaviour);

    /* acquire: the entry may have been free at the first load, and be complete now. */
    return atomic_load_explicit((_Atomic(const domus_behaviour *) *)(uintptr_t)&at->behaviour,
                                memory_order_acquire) == behaviour
               ? at->number
               : 0;
}

uint32_t domi_behaviours_add_number(domi_behaviours *behaviours, const domus_behaviour *behaviour,
                                    uint32_t bytes)
{
    /* acquire: pairs with the release of `count` below, so a thread that finds the table full sees
     * all its entries. From then on it is constant, and behaviours beyond the bound take no lock at
     * each spawn. */
    if (atomic_load_explicit(&behaviours->count, memory_order_acquire) == DOMUS_BEHAVIOURS_MAX)
        return domi_behaviours_find_number(behaviours, behaviour);
    domi_spinlock_lock(&behaviours->lock);
    uint32_t count = atomic_load_explicit(&behaviours->count, memory_order_relaxed);
    /* not 0 if another thread has given the behaviour a number meanwhile */
    uint32_t number = domi_behaviours_find_number(behaviours, behaviour);

    if (number == 0 && count < DOMUS_BEHAVIOURS_MAX) {
        domi_known_at *at =
            (domi_known_at *)(uintptr_t)find_entry_of_behaviour(behaviours, behaviour);
        domi_known *known = &behaviours->known[count + 1];

        number = at->number = count + 1;
        snprintf(known->name, sizeof known->name, "%s", domi_behaviour_name(behaviour));
        known->bytes = bytes;
        known->kind = behaviour->kind;
        /* release: a thread that finds the behaviour sees its number; one that reads the count sees
         * its name. */
        atomic_store_explicit(&at->behaviour, behaviour, memory_order_release);
        atomic_store_explicit(&behaviours->count, number, memory_order_release);
    }
    domi_spinlock_unlock(&behaviours->lock);
    return number;
}
