/* How a thread waits for a spinlock: it looks a bounded number of times, then yields the CPU. */
#include "base/spinlock.h"

#include <sched.h>

/* Pauses of a waiter before it yields: 64 take about 3 us, longer than any section under the lock
 * and shorter than two context switches. */
#define SPINS 64

void domi_spinlock_wait_for_unlock(domi_spinlock *lock)
{
    for (int i = 0; i < SPINS; i++) {
        /* relaxed: reading the lock is only a hint to try again; the exchange in try_lock orders
         * what follows. */
        if (atomic_load_explicit(&lock->held, memory_order_relaxed) == 0)
            return;
        domi_pause();
    }
    sched_yield();
}
