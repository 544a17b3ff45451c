/* A spinlock for sections of a few instructions: test and test-and-set with pauses, then
 * sched_yield().
 *
 * A waiter reads the word before it exchanges it, so that all waiters share the cache line; with
 * exchanges alone they would take it from each other all the time. After 64 pauses the waiter
 * yields, because with more threads than CPUs the holder may not be running. Nothing on a hot path
 * takes such a lock. */
#ifndef DOMI_BASE_SPINLOCK_H
#define DOMI_BASE_SPINLOCK_H

#include <stdatomic.h>
#include <stdbool.h>

typedef struct domi_spinlock {
    atomic_uint held; /* state of the spinlock: 1 while it is locked, 0 while it is free */
} domi_spinlock;

static inline void domi_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

void domi_spinlock_wait_for_unlock(domi_spinlock *lock);

static inline void domi_spinlock_init(domi_spinlock *lock)
{
    atomic_init(&lock->held, 0);
}

static inline bool domi_spinlock_try_lock(domi_spinlock *lock)
{
    /* acquire: pairs with the release in unlock, so the new holder of the lock sees everything that
     * the last holder wrote. */
    return atomic_load_explicit(&lock->held, memory_order_relaxed) == 0 &&
           atomic_exchange_explicit(&lock->held, 1, memory_order_acquire) == 0;
}

static inline void domi_spinlock_lock(domi_spinlock *lock)
{
    while (!domi_spinlock_try_lock(lock))
        domi_spinlock_wait_for_unlock(lock);
}

static inline void domi_spinlock_unlock(domi_spinlock *lock)
{
    atomic_store_explicit(&lock->held, 0, memory_order_release);
}

#endif
