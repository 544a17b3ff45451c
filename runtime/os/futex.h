/* A thread that has no ring sleeps on a word of memory by these two functions, and is woken by
 * another thread of the process. */
#ifndef DOMI_RUNTIME_OS_FUTEX_H
#define DOMI_RUNTIME_OS_FUTEX_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The call that takes a `struct timespec` of the C library, whose times have 64 bits on every
 * processor. */
#if defined(SYS_futex_time64)
#define DOMI_SYS_FUTEX SYS_futex_time64
#else
#define DOMI_SYS_FUTEX SYS_futex
#endif

/* Sleep while `word` is `value`, at the latest until `until` (CLOCK_MONOTONIC; NULL: no end). It
 * may return early. */
static inline void domi_futex_wait(_Atomic uint32_t *word, uint32_t value,
                                   const struct timespec *until)
{
    (void)syscall(DOMI_SYS_FUTEX, word, FUTEX_WAIT_BITSET_PRIVATE, value, until, NULL,
                  FUTEX_BITSET_MATCH_ANY);
}

/* Wake one thread that sleeps on the word. */
static inline void domi_futex_wake(_Atomic uint32_t *word)
{
    (void)syscall(DOMI_SYS_FUTEX, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

#endif
