/* Regular expressions that match the numbers of a range, as the configuration's reader accepts
 * them: decimal digits without a sign and without leading zeros. They use only features that both
 * ECMAScript and Python have. */
#ifndef DOMUS_TOOL_CONFIG_PATTERN_H
#define DOMUS_TOOL_CONFIG_PATTERN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A unit, and its size in the smallest unit. */
typedef struct config_unit {
    const char *name;
    uint64_t factor;
} config_unit;

/* The numbers that a key accepts, in the smallest unit. */
typedef struct config_range {
    uint64_t low, high;
    bool is_power;   /* only powers of two are accepted */
    bool takes_zero; /* 0 is accepted, too, with or without a unit */
} config_range;

/* Write the alternatives for the numbers from `low` to `high`, such as "[5-9]|[1-4][0-9]|50". */
void config_pattern_numbers(FILE *out, uint64_t low, uint64_t high);

/* Write the alternatives for a number of a range with each of its units, an array that ends with a
 * unit without a name. Returns whether there is any alternative. */
bool config_pattern_range(FILE *out, const config_range *range, const config_unit *units);

#endif
