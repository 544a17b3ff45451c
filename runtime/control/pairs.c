/* Reads for each pair of threads how many houses one has run for the other (domus/profile.h). */
#include "runtime/loop/pairs.h"
#include "runtime/system/system.h"

#include <domus/system.h>

size_t domus_system_pairs(const domus_system *system, domus_pair *pairs, size_t size)
{
    size_t count = 0;

    for (uint32_t thief = 0; thief < system->count; thief++) {
        /* acquire: pairs with the release by which the thief has published its counters of pairs
         * (loop/pairs.c). */
        const domi_pair_counters *counters =
            atomic_load_explicit(&system->threads[thief].pairs, memory_order_acquire);
        for (uint32_t victim = 0; counters != NULL && victim < system->count; victim++) {
            const domus_pair pair = {.thief = thief,
                                     .victim = victim,
                                     .steals = domi_counter_read(&counters[victim].steals),
                                     .stand_ins = domi_counter_read(&counters[victim].stand_ins)};
            if (pair.steals == 0 && pair.stand_ins == 0)
                continue;
            if (count < size)
                pairs[count] = pair;
            count++;
        }
    }
    return count;
}
