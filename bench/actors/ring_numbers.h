/* The numbers of the ring that all contenders use, and the order of a shuffled ring, which domus
 * and the threads without actors use. */
#ifndef DOMUS_BENCH_ACTORS_RING_NUMBERS_H
#define DOMUS_BENCH_ACTORS_RING_NUMBERS_H

#include <stdint.h>

#define RING_TOKENS     10u
#define RING_PASSES_MIN UINT64_C(1000000)
/* Passes of all tokens in a ring of threads without actors, for which a pass takes a hundred times
 * as long. In a ring of 32,000 processes each one still gets some tokens. */
#define RING_PASSES_THREADS UINT64_C(100000)
/* Bytes of the stack of each thread in the ring without actors. A thread touches two pages of
 * it. */
#define RING_STACK_BYTES 65536u

/* Shuffle the `size` (at least 1) elements of an order by the algorithm of Fisher and Yates, with a
 * random generator (splitmix64) of a fixed seed. */
static inline void ring_shuffle_order(uint32_t *order, uint64_t size)
{
    uint64_t seed = 1;

    for (uint64_t i = size - 1; i > 0; i--) {
        uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        uint64_t other = (z ^ z >> 31) % (i + 1);
        uint32_t held = order[i];
        order[i] = order[other];
        order[other] = held;
    }
}

#endif
