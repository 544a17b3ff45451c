/* How many stalls one thread or runner had, and how long they were. The monitor writes the counts,
 * and any thread reads them. */
#ifndef DOMI_RUNTIME_SYSTEM_STALL_COUNTS_H
#define DOMI_RUNTIME_SYSTEM_STALL_COUNTS_H

#include "base/counter.h"

#include <domus/profile.h>

typedef struct domi_stall_counts {
    domi_counter count;
    domi_counter total_ns; /* sum of the lengths of all stalls that are over, in nanoseconds */
    /* number of stalls by their length: place n counts those below 2^(n+1) ms, the last place all
     * longer ones */
    domi_counter lengths[DOMUS_STALL_LENGTHS];
} domi_stall_counts;

/* Count the length of a stall of a thread or runner that is over; the stall itself was counted when
 * it was found. */
static inline void domi_stall_counts_add_length(domi_stall_counts *counts, uint64_t length_ns)
{
    uint32_t place = 0;

    while (place < DOMUS_STALL_LENGTHS - 1 && length_ns >= UINT64_C(1000000) << (place + 1))
        place++;
    domi_counter_add(&counts->total_ns, length_ns);
    domi_counter_add(&counts->lengths[place], 1);
}

/* Copy the counts of stalls into the three fields of `profile` that show them. */
static inline void domi_stall_counts_read(const domi_stall_counts *counts, domus_profile *profile)
{
    profile->stalls = domi_counter_read(&counts->count);
    profile->stalled_ns = domi_counter_read(&counts->total_ns);
    for (int i = 0; i < DOMUS_STALL_LENGTHS; i++)
        profile->stall_lengths[i] = domi_counter_read(&counts->lengths[i]);
}

#endif
