/* How a thread says that it sleeps, and how another thread wakes it: the park word.
 *
 * Every thread that may sleep until something is put for it has such a word: a thread of the loop
 * and a detached thread have one each, and the foreign threads that ask share one. They differ in
 * where they sleep (in a ring, or on the word itself as a futex) and in what they look at.
 *
 *     RUNNING   the thread is awake, and looks for itself
 *     SPINNING  as RUNNING; other threads read it as a hint that it is idle
 *     LOOKING   it is about to sleep and looks once more; whoever puts something has to wake it
 *     SLEEPING  as LOOKING, but it has looked, and uses nothing but its ring until it wakes
 *     DOZING    as SLEEPING, but the sleep is short, so that a sender need not wake it at once
 *     NOTIFIED  one sender has taken it upon itself to wake it, and no other one has to
 *     HELD      it dozes, and another thread uses its manager for a moment (a stand-in)
 *     WANTED    as HELD, and something was put meanwhile: the stand-in has to wake it
 *
 *     RUNNING <-> SPINNING                 the owner, domi_park_set_spinning()
 *     RUNNING -> LOOKING                   the owner, domi_park_begin_look_before_sleep()
 *     LOOKING -> SLEEPING, DOZING          the owner, domi_park_end_look_and_sleep()
 *     RUNNING -> SLEEPING                  the owner that has no stand-ins, domi_park_begin_sleep()
 *     LOOKING, SLEEPING, DOZING -> NOTIFIED    a sender, domi_park_try_notify()
 *     DOZING -> HELD                       a stand-in, domi_park_try_hold_dozing_owner()
 *     HELD -> WANTED                       a sender, domi_park_try_notify()
 *     HELD -> DOZING                       the stand-in, domi_park_release_held_owner()
 *     HELD, WANTED -> NOTIFIED             the stand-in, domi_park_release_held_owner()
 *     LOOKING, SLEEPING, DOZING, NOTIFIED -> RUNNING   the owner, domi_park_end_sleep()
 *
 * The owner, when it has found nothing to do:
 * 1. It exchanges the word to LOOKING, or to SLEEPING at once (domi_park_begin_sleep).
 * 2. It looks once more at everything that others put for it. If it finds something, it goes to 4.
 *    Else it changes LOOKING to SLEEPING or DOZING; if the word is NOTIFIED by then, that is left.
 * 3. It sleeps: in a ring, in which a write to its eventfd completes; or on the word, which the
 *    kernel compares with SLEEPING once more before it sleeps.
 * 4. It changes the word to RUNNING (domi_park_end_sleep), as soon as nobody holds it.
 * A sender:
 * 5. It puts, which is a read-modify-write or a seq_cst store.
 * 6. It reads the word. If that is LOOKING, SLEEPING or DOZING, it exchanges it for NOTIFIED
 *    (domi_park_try_notify); if it is HELD, for WANTED. If it is DOZING or HELD, it may do this
 *    some time later, but before it sleeps itself.
 * 7. If it has written NOTIFIED, it ends the sleep of 3: one write to the eventfd, or one futex
 *    wake.
 * A stand-in, which sends, too, may do this in place of 6 and 7 (runtime/loop/stand_in.c):
 * 8. It exchanges DOZING for HELD. Now the owner's manager is its own, but not the owner's ring.
 * 9. It looks at everything that others put for the owner, and does what it finds.
 * 10. It exchanges HELD for DOZING. If it has left something to do, or if the word is WANTED, it
 *    writes NOTIFIED, and then it does 7.
 *
 * No wake-up is lost. All of 1, 2, 5 and 6 are seq_cst, so they have one order that every thread
 * agrees on. If 5 comes before 2 in it, the owner finds what was put, and does not sleep. Else 1
 * comes before 2, 2 before 5, and 5 before 6, so the sender reads LOOKING or SLEEPING. With a
 * weaker order each side could read before its own write is visible to the other, and both would
 * miss the other's. Bare fences would do as well, but ThreadSanitizer cannot see them.
 *
 * The same holds of a stand-in. It begins to look after 8, so it finds all that was put before 8; a
 * sender that puts after 8 reads HELD, or what comes after HELD, in its 6.
 *
 * A wake-up that is put off, and that comes to nothing because the sender's handler does not
 * return, is no lost one: the owner of a DOZING word wakes by itself soon (idle.doze).
 *
 * If 7 comes between 2 and 3, the sleep ends at once: the eventfd is readable, or the word is no
 * longer SLEEPING. Only one of several senders writes NOTIFIED, so a sleep costs one wake-up (M12).
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
    DOMI_PARK_LOOKING,
    DOMI_PARK_HELD,
    DOMI_PARK_WANTED,
    DOMI_PARK_DOZING,
};

/* Begin a sleep, as the first step of an owner that has no stand-ins. The owner has to look once
 * more for work after this, and then to call domi_park_end_sleep(), whether it has slept or not. */
static inline void domi_park_begin_sleep(_Atomic uint32_t *word)
{
    (void)atomic_exchange_explicit(word, DOMI_PARK_SLEEPING, memory_order_seq_cst);
}

/* Begin a sleep as domi_park_begin_sleep() does, for an owner that may have stand-ins. The owner
 * calls domi_park_end_look_and_sleep() when it has found no work, and uses its manager no more
 * until domi_park_end_sleep(). */
static inline void domi_park_begin_look_before_sleep(_Atomic uint32_t *word)
{
    (void)atomic_exchange_explicit(word, DOMI_PARK_LOOKING, memory_order_seq_cst);
}

static inline void domi_park_end_look_and_sleep(_Atomic uint32_t *word, bool dozes)
{
    uint32_t looking = DOMI_PARK_LOOKING;
    uint32_t asleep = dozes ? DOMI_PARK_DOZING : DOMI_PARK_SLEEPING;

    /* release: pairs with the acquire of domi_park_try_hold_dozing_owner(). If the exchange fails,
     * a sender has notified the owner, and the sleep ends at once. */
    (void)atomic_compare_exchange_strong_explicit(word, &looking, asleep, memory_order_release,
                                                  memory_order_relaxed);
}

/* Wait until no stand-in holds the park word. Returns the value that the word had then. */
uint32_t domi_park_wait_for_stand_in(_Atomic uint32_t *word);

static inline bool domi_park_is_owner_held(uint32_t word)
{
    return word == DOMI_PARK_HELD || word == DOMI_PARK_WANTED;
}

/* End the sleep of an owner that is awake again. Returns what the word was: NOTIFIED if a sender
 * has ended the sleep, else LOOKING, SLEEPING or DOZING. */
static inline uint32_t domi_park_end_sleep(_Atomic uint32_t *word)
{
    uint32_t was = atomic_load_explicit(word, memory_order_relaxed);

    /* seq_cst: the exchange also pairs with the monitor, which looks at all park words before it
     * sleeps (runtime/system/monitor.c). Its acquire pairs with domi_park_release_held_owner(), so
     * the owner sees what the stand-in did. */
    do {
        if (__builtin_expect(domi_park_is_owner_held(was), 0))
            was = domi_park_wait_for_stand_in(word);
    } while (!atomic_compare_exchange_weak_explicit(word, &was, DOMI_PARK_RUNNING,
                                                    memory_order_seq_cst, memory_order_relaxed));
    return was;
}

/* True if an owner whose park word is `word` sleeps, and has been neither notified nor held. */
static inline bool domi_park_is_word_of_sleeper(uint32_t word)
{
    return word == DOMI_PARK_SLEEPING || word == DOMI_PARK_DOZING;
}

/* True if the owner of the park word sleeps, or is about to. A sender asks this after it has put
 * something for the owner; if so, it has to call domi_park_try_notify() before it sleeps itself. */
static inline bool domi_park_may_owner_sleep(const _Atomic uint32_t *word)
{
    uint32_t now = atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)word, memory_order_seq_cst);

    return domi_park_is_word_of_sleeper(now) || now == DOMI_PARK_LOOKING || now == DOMI_PARK_HELD;
}

/* Notify the owner of a park word, which may sleep, after something was put for it. If this returns
 * true, the caller has to end the owner's sleep. It costs one load if the owner is awake. */
static inline bool domi_park_try_notify(_Atomic uint32_t *word)
{
    uint32_t was = atomic_load_explicit(word, memory_order_seq_cst);

    while (domi_park_is_word_of_sleeper(was) || was == DOMI_PARK_LOOKING || was == DOMI_PARK_HELD) {
        uint32_t next = was == DOMI_PARK_HELD ? DOMI_PARK_WANTED : DOMI_PARK_NOTIFIED;

        if (atomic_compare_exchange_weak_explicit(word, &was, next, memory_order_seq_cst,
                                                  memory_order_seq_cst))
            return next == DOMI_PARK_NOTIFIED;
    }
    return false;
}

/* True if a sender may put off waking the owner whose word is `word`, because the owner's sleep
 * ends soon by itself, or a stand-in that holds the word is about to let go. */
static inline bool domi_park_may_waking_be_put_off(const _Atomic uint32_t *word)
{
    uint32_t now = atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)word, memory_order_relaxed);

    return now == DOMI_PARK_DOZING || now == DOMI_PARK_HELD;
}

/* Hold the manager of an owner that dozes, as its stand-in. Returns false if the owner is awake, is
 * about to wake, has not looked yet or sleeps for long, or if another thread holds it. */
static inline bool domi_park_try_hold_dozing_owner(_Atomic uint32_t *word)
{
    uint32_t dozing = DOMI_PARK_DOZING;

    return atomic_compare_exchange_strong_explicit(word, &dozing, DOMI_PARK_HELD,
                                                   memory_order_seq_cst, memory_order_relaxed);
}

/* Release an owner's manager that the caller holds. `left` says that it leaves something to do. If
 * this returns true, the caller has to end the owner's sleep. */
static inline bool domi_park_release_held_owner(_Atomic uint32_t *word, bool left)
{
    uint32_t held = DOMI_PARK_HELD;

    /* release: the owner, or the next stand-in that holds the word, sees what the releasing
     * stand-in did. */
    if (!left && atomic_compare_exchange_strong_explicit(
                     word, &held, DOMI_PARK_DOZING, memory_order_seq_cst, memory_order_relaxed))
        return false;
    (void)atomic_exchange_explicit(word, DOMI_PARK_NOTIFIED, memory_order_seq_cst);
    return true;
}

/* Set in the park word whether an owner that is awake spins. Relaxed: this is a hint for others,
 * and nobody else writes the word of a thread that is awake. */
static inline void domi_park_set_spinning(_Atomic uint32_t *word, bool spins)
{
    atomic_store_explicit(word, spins ? DOMI_PARK_SPINNING : DOMI_PARK_RUNNING,
                          memory_order_relaxed);
}

/* Returns what the park word is just now, as a hint: the owner may change it at any time. */
static inline uint32_t domi_park_read_word(const _Atomic uint32_t *word)
{
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)word, memory_order_relaxed);
}

#endif
