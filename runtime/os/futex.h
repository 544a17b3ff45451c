/* Sleep and wake-up by a futex: a thread without a ring sleeps on a word of memory, and another
 * thread of the process wakes it. */
#ifndef DOMI_RUNTIME_OS_FUTEX_H
#define DOMI_RUNTIME_OS_FUTEX_H

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Call futex(2) with the `struct timespec` of the C library. On 32-bit machines this has times of
 * 64 bits, which need the newer call SYS_futex_time64. If an old filter of system calls refuses
 * this one, the older call is used; it suffices, because times of CLOCK_MONOTONIC fit into 32
 * bits. */
static inline void domi_futex_call(_Atomic uint32_t *word, int operation, uint32_t value,
                                   const struct timespec *until)
{
#if defined(SYS_futex_time64)
    if (syscall(SYS_futex_time64, word, operation, value, until, NULL, FUTEX_BITSET_MATCH_ANY) >=
            0 ||
        (errno != ENOSYS && errno != EPERM))
        return;
    const long older[2] = {until != NULL ? (long)until->tv_sec : 0,
                           until != NULL ? (long)until->tv_nsec : 0};
    (void)syscall(SYS_futex, word, operation, value, until != NULL ? older : NULL, NULL,
                  FUTEX_BITSET_MATCH_ANY);
#else
    (void)syscall(SYS_futex, word, operation, value, until, NULL, FUTEX_BITSET_MATCH_ANY);
#endif
}

/* Sleep on `word` while it has the value `value`, at the latest until the time `until` of
 * CLOCK_MONOTONIC; NULL: without end. The function may return early. */
static inline void domi_futex_wait(_Atomic uint32_t *word, uint32_t value,
                                   const struct timespec *until)
{
    domi_futex_call(word, FUTEX_WAIT_BITSET_PRIVATE, value, until);
}

/* Wake one of the threads that sleep on the word. */
static inline void domi_futex_wake(_Atomic uint32_t *word)
{
    domi_futex_call(word, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL);
}

#endif
