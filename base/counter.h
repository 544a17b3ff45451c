/* Counters that one thread writes and any thread reads.
 *
 * The owner adds by a relaxed load and a relaxed store, which compile to a plain addition; a reader
 * sees some recent value, never a torn one. Most counters only grow; a few (bytes in use) go down
 * by adding a negative number. */
#ifndef DOMI_BASE_COUNTER_H
#define DOMI_BASE_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint64_t domi_counter;

static inline uint64_t domi_counter_read(const domi_counter *counter)
{
    return atomic_load_explicit((domi_counter *)(uintptr_t)counter, memory_order_relaxed);
}

static inline void domi_counter_add(domi_counter *counter, uint64_t by)
{
    atomic_store_explicit(counter, domi_counter_read(counter) + by, memory_order_relaxed);
}

#endif
