/* The seeded random source. All chance in domus comes from here, so that a run can be replayed from
 * a seed of 64 bits.
 *
 * The generator is xoshiro256** (Blackman and Vigna). Its state is filled from the seed by
 * splitmix64, so neighbouring seeds give unrelated sequences and no seed gives the all-zero state.
 * It is good enough for choosing victims and for simulation; it must not be used for secrets.
 *
 * Thread-safety: each source belongs to one thread. */
#ifndef DOMI_BASE_RANDOM_H
#define DOMI_BASE_RANDOM_H

#include <stdint.h>

typedef struct domi_random {
    uint64_t state[4]; /* the state of the random generator, never zero in all four words */
} domi_random;

/* Start the random sequence of `seed`, which is the same on every machine. */
void domi_random_init(domi_random *random, uint64_t seed);

/* Returns the next 64 random bits of the sequence. */
static inline uint64_t domi_random_next_bits(domi_random *random)
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

/* Returns a random number from 0 to n-1, each equally likely; n is at least 1. */
uint64_t domi_random_below(domi_random *random, uint64_t n);

#endif
