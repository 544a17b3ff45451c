/* base/spinlock.c: the lock has one holder at a time, and a thread that waits yields its CPU.
 *
 * The test defines sched_yield() itself, so that it can count yields. */
#include "base/spinlock.h"

#include "tests/support/suite.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS_PER_CPU 4
#define THREADS_MAX     64
#define ROUNDS          5000

static atomic_int yields;

int sched_yield(void)
{
    atomic_fetch_add_explicit(&yields, 1, memory_order_relaxed);
    return (int)syscall(SYS_sched_yield);
}

struct shared {
    domi_spinlock lock;
    long count; /* not atomic: only the lock keeps this count right */
    long trail; /* a second count, which equals `count` whenever the lock is free */
};

static void *count_under_the_lock(void *shared_)
{
    struct shared *shared = shared_;

    for (int i = 0; i < ROUNDS; i++) {
        domi_spinlock_lock(&shared->lock);
        if (shared->count == shared->trail) {
            shared->count++;
            if (i % 64 == 0)
                /* the holder gives up its CPU while it has the lock, so that others have to wait */
                sched_yield();
            shared->trail++;
        }
        domi_spinlock_unlock(&shared->lock);
    }
    return NULL;
}

DOMT_TEST(spinlock_excludes_more_threads_than_cpus)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    int threads = (int)(cpus < 1 ? 1 : cpus) * THREADS_PER_CPU;
    struct shared shared = {.count = 0};
    pthread_t thread[THREADS_MAX];

    threads = threads > THREADS_MAX ? THREADS_MAX : threads;
    domi_spinlock_init(&shared.lock);
    for (int i = 0; i < threads; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, count_under_the_lock, &shared), 0);
    for (int i = 0; i < threads; i++)
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    ck_assert_int_eq(shared.count, (long)threads * ROUNDS);
    ck_assert_int_eq(shared.trail, shared.count);
}

DOMT_TEST(spinlock_try_lock_fails_while_held)
{
    domi_spinlock lock;

    domi_spinlock_init(&lock);
    ck_assert(domi_spinlock_try_lock(&lock));
    ck_assert(!domi_spinlock_try_lock(&lock));
    ck_assert(!domi_spinlock_try_lock(&lock));
    domi_spinlock_unlock(&lock);
    ck_assert(domi_spinlock_try_lock(&lock));
    domi_spinlock_unlock(&lock);
    domi_spinlock_lock(&lock);
    ck_assert(!domi_spinlock_try_lock(&lock));
    domi_spinlock_unlock(&lock);
}

DOMT_TEST(spinlock_wait_yields_once_and_returns)
{
    domi_spinlock lock;

    domi_spinlock_init(&lock);
    domi_spinlock_lock(&lock);
    atomic_store(&yields, 0);
    /* domi_spinlock_wait_for_unlock() yields once, and returns although the lock is held */
    domi_spinlock_wait_for_unlock(&lock);
    ck_assert_int_eq(atomic_load(&yields), 1);
    domi_spinlock_unlock(&lock);
}

DOMT_TEST(spinlock_wait_does_not_yield_when_free)
{
    domi_spinlock lock;

    domi_spinlock_init(&lock);
    atomic_store(&yields, 0);
    domi_spinlock_wait_for_unlock(&lock);
    ck_assert_int_eq(atomic_load(&yields), 0);
}

DOMT_SUITE(60)
