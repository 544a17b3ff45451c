/* The waiting of the spinlock: a bounded number of looks, then the CPU to someone else. */
#include "base/spinlock.h"

#include <sched.h>

/* About 3 us: longer than any section under the lock, shorter than two context switches. */
#define SPINS 64

void domi_spinlock_wait(domi_spinlock *lock)
{
    for (int i = 0; i < SPINS; i++) {
        /* relaxed: only a hint to try again; the exchange of try_lock orders what follows. */
        if (atomic_load_explicit(&lock->held, memory_order_relaxed) == 0)
            return;
        domi_pause();
    }
    sched_yield();
}
