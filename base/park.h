/* How a thread says that it sleeps, and how another thread wakes it: the park word.
 *
 * Every thread that may sleep until something is put for it has such a word: a thread of the loop
 * and a detached thread have one each, and the foreign threads that ask share one. They differ in
 * where they sleep (in a ring, or on the word itself as a futex) and in what they look at.
 *
 *     RUNNING   the thread is awake, and looks for itself
 *     SPINNING  as RUNNING; other threads read it as a hint that it is idle
 *     SLEEPING  it sleeps or is about to; whoever puts something has to wake it
 *     NOTIFIED  one sender has taken it upon itself to wake it, and no other one has to
 *
 *     RUNNING <-> SPINNING                 the owner, domi_park_set_spinning()
 *     RUNNING -> SLEEPING                  the owner, domi_park_begin()
 *     SLEEPING -> NOTIFIED                 a sender, domi_park_try_notify()
 *     SLEEPING, NOTIFIED -> RUNNING        the owner, domi_park_end()
 *
 * The owner, when it has found nothing to do:
 * 1. It exchanges the word to SLEEPING (domi_park_begin).
 * 2. It looks once more at everything that others put for it. If it finds something, it goes to 4.
 * 3. It sleeps: in a ring, in which a write to its eventfd completes; or on the word, which the
 *    kernel compares with SLEEPING once more before it sleeps.
 * 4. It exchanges the word to RUNNING (domi_park_end).
 * A sender:
 * 5. It puts, which is a read-modify-write or a seq_cst store.
 * 6. It reads the word. If that is SLEEPING, it exchanges it for NOTIFIED (domi_park_try_notify).
 * 7. If that succeeded, it ends the sleep of 3: one write to the eventfd, or one futex wake.
 *
 * No wake-up is lost. All of 1, 2, 5 and 6 are seq_cst, so they have one order that every thread
 * agrees on. If 5 comes before 2 in it, the owner finds what was put, and does not sleep. Else 1
 * comes before 2, 2 before 5, and 5 before 6, so the sender reads SLEEPING. With a weaker order
 * each side could read before its own write is visible to the other, and both would miss the
 * other's. Bare fences would do as well, but ThreadSanitizer cannot see them.
 *
 * If 7 comes between 2 and 3, the sleep ends at once: the eventfd is readable, or the word is no
 * longer SLEEPING. Only one of several senders succeeds in 6, so a sleep costs one wake-up (M12).
 * models/park.pml has all this with store buffers, tests/house/litmus_test.c on real CPUs.
 *
 * Thread-safety: any thread may call domi_park_try_notify() and read the word. The owner, or the
 * holder of the lock that the owners share, calls the others. */
#ifndef DOMI_BASE_PARK_H
#define DOMI_BASE_PARK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum domi_park {
    DOMI_PARK_RUNNING,
    DOMI_PARK_SLEEPING,
    DOMI_PARK_NOTIFIED,
    DOMI_PARK_SPINNING,
};

/* The first step of the owner. It has to look once more after this, and then to call
 * domi_park_end() whether it has slept or not. */
static inline void domi_park_begin(_Atomic uint32_t *word)
{
    (void)atomic_exchange_explicit(word, DOMI_PARK_SLEEPING, memory_order_seq_cst);
}

/* The owner is awake again. Returns what the word was: NOTIFIED if a sender has ended the sleep,
 * else SLEEPING. */
static inline uint32_t domi_park_end(_Atomic uint32_t *word)
{
    /* seq_cst: it also pairs with the monitor, which looks at all park words before it sleeps
     * (runtime/system/monitor.c). */
    return atomic_exchange_explicit(word, DOMI_PARK_RUNNING, memory_order_seq_cst);
}

/* A sender calls this after it has put something. If it returns true, the caller has to end the
 * owner's sleep. It costs one load if the owner is awake. */
static inline bool domi_park_try_notify(_Atomic uint32_t *word)
{
    uint32_t sleeping = DOMI_PARK_SLEEPING;

    return atomic_load_explicit(word, memory_order_seq_cst) == DOMI_PARK_SLEEPING &&
           atomic_compare_exchange_strong_explicit(word, &sleeping, DOMI_PARK_NOTIFIED,
                                                   memory_order_seq_cst, memory_order_relaxed);
}

/* An owner that is awake begins to spin, or ceases to. Relaxed: this is a hint for others, and
 * nobody else writes the word of a thread that is awake. */
static inline void domi_park_set_spinning(_Atomic uint32_t *word, bool spins)
{
    atomic_store_explicit(word, spins ? DOMI_PARK_SPINNING : DOMI_PARK_RUNNING,
                          memory_order_relaxed);
}

/* Returns what the word is just now, as a hint: the owner may change it at any time. */
static inline uint32_t domi_park_peek(const _Atomic uint32_t *word)
{
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)word, memory_order_relaxed);
}

#endif
