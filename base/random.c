/* Seeds the random source, and draws a number below a bound so that each number is equally
 * likely. */
#include "base/random.h"

#include "base/check.h"

static uint64_t draw_from_splitmix64(uint64_t *state)
{
    uint64_t mixed = *state += UINT64_C(0x9E3779B97F4A7C15);

    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94D049BB133111EB);
    return mixed ^ (mixed >> 31);
}

void domi_random_init(domi_random *random, uint64_t seed)
{
    /* splitmix64 is a permutation: four draws in a row differ, so they cannot all be zero. */
    for (int i = 0; i < 4; i++)
        random->state[i] = draw_from_splitmix64(&seed);
}

uint64_t domi_random_below(domi_random *random, uint64_t n)
{
    DOMI_CHECK(n > 0);

    /* The 2^64 possible draws do not divide evenly by n, so the lowest 2^64 mod n of them are
     * surplus: such a draw is thrown away and drawn again, which happens less than once on average
     * for every n. */
    uint64_t surplus = (UINT64_MAX - n + 1) % n;
    uint64_t drawn;

    do
        drawn = domi_random_next_bits(random);
    while (drawn < surplus);
    return drawn % n;
}
