/* The keys that `bench sweep` sweeps, with their values. */
#ifndef DOMUS_BENCH_SWEEP_VALUES_H
#define DOMUS_BENCH_SWEEP_VALUES_H

#include "bench/sweep_rows.h"

#define SWEEP_VALUES_MAX 8u
#define SWEEP_KEYS_COUNT 15u

struct sweep_key {
    const char *name;
    const char *load; /* name of the only load that has this key; NULL: all loads have it */
    /* the values of the key, the default first, ended by NULL */
    const char *values[SWEEP_VALUES_MAX + 1];
};

extern const struct sweep_key sweep_keys[SWEEP_KEYS_COUNT];

uint32_t sweep_count_values_of_key(const struct sweep_key *key);

/* Returns whether the row has the key, and `names`, which are separated by commas, contain the
 * key's name; if `names` is NULL, all keys are wanted. */
bool sweep_key_is_wanted(const struct sweep_key *key, const struct sweep_row *row,
                         const char *names);

#endif
