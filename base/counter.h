/* Counters that one thread writes and any thread reads.
 *
 * The owner adds by a relaxed load and a relaxed store; a reader sees some recent value, never a
 * torn one. Most counters only grow; a few (bytes in use) go down by adding a negative number. */
#ifndef DOMI_BASE_COUNTER_H
#define DOMI_BASE_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

#if defined(__SANITIZE_THREAD__)
#define DOMI_SEES_COUNTERS
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DOMI_SEES_COUNTERS
#endif
#endif

typedef _Atomic uint64_t domi_counter;

static inline uint64_t domi_counter_read(const domi_counter *counter)
{
    return atomic_load_explicit((domi_counter *)(uintptr_t)counter, memory_order_relaxed);
}

/* Add `by` to a counter that the calling thread owns. On x86-64 this is one addition in memory, of
 * which compilers would make three instructions; it is not atomic, but no reader sees a torn value.
 * ThreadSanitizer has to see the accesses, so for it they are written out. */
static inline void domi_counter_add(domi_counter *counter, uint64_t by)
{
#if defined(__x86_64__) && !defined(DOMI_SEES_COUNTERS)
    __asm__("addq %1, %0" : "+m"(*counter) : "er"(by) : "cc");
#else
    atomic_store_explicit(counter, domi_counter_read(counter) + by, memory_order_relaxed);
#endif
}

#endif
