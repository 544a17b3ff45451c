/* A lock for a few members that gateways share, held only for some instructions. A thread that
 * finds it locked yields its CPU, because the holder may not be running. */
#ifndef DOMI_CLUSTER_LOCK_H
#define DOMI_CLUSTER_LOCK_H

#include <sched.h>
#include <stdatomic.h>

typedef struct domi_lock {
    atomic_flag held;
} domi_lock;

#define DOMI_LOCK_FREE                                                                             \
    {                                                                                              \
        ATOMIC_FLAG_INIT                                                                           \
    }

static inline void domi_lock_take(domi_lock *lock)
{
    /* acquire: pairs with the release in domi_lock_release(), so that this holder sees what the
     * last holder wrote */
    while (atomic_flag_test_and_set_explicit(&lock->held, memory_order_acquire))
        (void)sched_yield();
}

static inline void domi_lock_release(domi_lock *lock)
{
    atomic_flag_clear_explicit(&lock->held, memory_order_release);
}

#endif
