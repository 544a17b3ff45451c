/* How an owner that wakes waits for the end of a stand-in's hold: as for a spinlock, with pauses
 * and then sched_yield(), because the holder may not be running. */
#include "base/park.h"

#include "base/spinlock.h"

#include <sched.h>

#define PAUSES 64 /* pauses of the wait before it yields the CPU: about 3 us */

uint32_t domi_park_wait_for_stand_in(_Atomic uint32_t *word)
{
    uint32_t now;

    for (uint32_t looks = 1;; looks++) {
        /* Relaxed: this load only waits until no stand-in holds the word; the exchange of
         * domi_park_end_sleep() orders what follows. */
        now = atomic_load_explicit(word, memory_order_relaxed);
        if (!domi_park_is_owner_held(now))
            return now;
        if (looks % PAUSES == 0)
            sched_yield();
        else
            domi_pause();
    }
}
