/* Regular expressions that match numbers of a range, as the reader of the configuration takes them:
 * decimal digits without a sign and without leading zeros. Both ECMAScript and Python know all that
 * is in them. */
#ifndef DOMUS_TOOL_CONFIG_PATTERN_H
#define DOMUS_TOOL_CONFIG_PATTERN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A unit, and how much of the smallest unit it is. */
typedef struct config_unit {
    const char *name;
    uint64_t factor;
} config_unit;

/* The numbers that a key takes, in the smallest unit. */
typedef struct config_range {
    uint64_t low, high;
    bool is_power;   /* only powers of two */
    bool takes_zero; /* 0 is taken, too, with or without a unit */
} config_range;

/* Write the alternatives for the numbers from `low` to `high`, such as "[5-9]|[1-4][0-9]|50". */
void config_pattern_numbers(FILE *out, uint64_t low, uint64_t high);

/* Write the alternatives for a number of a range with each of its units (an array that a unit
 * without a name ends). Returns whether there is one. */
bool config_pattern_range(FILE *out, const config_range *range, const config_unit *units);

#endif
