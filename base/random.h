/* The seeded random source: whatever is left to chance in domus can be replayed from 64 bits.
 *
 * xoshiro256** (Blackman and Vigna), its state filled from the seed by splitmix64, so that
 * neighbouring seeds give unrelated sequences and no seed gives the all-zero state. Good for
 * choosing victims and for simulation; not for secrets.
 *
 * Thread-safety: each belongs to one thread. */
#ifndef DOMI_BASE_RANDOM_H
#define DOMI_BASE_RANDOM_H

#include <stdint.h>

typedef struct domi_random {
    uint64_t state[4]; /* never all zero */
} domi_random;

/* The same seed gives the same sequence, on every machine. */
void domi_random_init(domi_random *random, uint64_t seed);

/* 64 random bits. */
static inline uint64_t domi_random_next(domi_random *random)
{
    uint64_t *state = random->state;
    uint64_t product = state[1] * 5;
    uint64_t result = ((product << 7) | (product >> 57)) * 9;
    uint64_t shifted = state[1] << 17;

    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = (state[3] << 45) | (state[3] >> 19);
    return result;
}

/* One of 0..n-1, each as likely as the others; n is at least 1. */
uint64_t domi_random_below(domi_random *random, uint64_t n);

#endif
