/* A lock for a few fields that gateways share, which is held for some instructions. Whoever finds
 * it held lets others run, because its holder may not be on a CPU. */
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
    /* acquire: pairs with the release below, so this holder sees what the last one wrote. */
    while (atomic_flag_test_and_set_explicit(&lock->held, memory_order_acquire))
        (void)sched_yield();
}

static inline void domi_lock_give(domi_lock *lock)
{
    atomic_flag_clear_explicit(&lock->held, memory_order_release);
}

#endif
