/* The number of requests of HTTP that the site has got. Each thread counts in a cache line of its
 * own. */
#include "web.h"

#include <stdatomic.h>

#define THREADS_MAX KV_THREADS_MAX

/* The counts of the threads. Relaxed: they order nothing, and each is written only by its
 * thread. */
static struct {
    _Alignas(64) _Atomic uint64_t requests;
} counts[THREADS_MAX];
static _Atomic uint32_t counts_used;
/* number of this thread's place in the counts, from 1 on; 0: the thread has no place yet */
static _Thread_local uint32_t mine;

void web_count_request(void)
{
    if (mine == 0)
        mine = atomic_fetch_add_explicit(&counts_used, 1, memory_order_relaxed) % THREADS_MAX + 1;
    _Atomic uint64_t *count = &counts[mine - 1].requests;
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

uint64_t web_count_of_requests(void)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < THREADS_MAX && i < atomic_load(&counts_used); i++)
        sum += atomic_load_explicit(&counts[i].requests, memory_order_relaxed);
    return sum;
}
