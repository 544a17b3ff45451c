/* Reads numbers and words from the queries of the observation port. */
#ifndef DOMI_PROTOCOLS_OBSERVE_QUERY_H
#define DOMI_PROTOCOLS_OBSERVE_QUERY_H

#include <domus/slice.h>

/* Read a number from 0 to `most`: digits, behind which `unit` may stand (NULL: no unit is allowed).
 * Returns 0, also if the parameter is missing, and then `number` is unchanged; -EINVAL. */
int domi_query_number(domus_slice query, const char *name, const char *unit, uint32_t most,
                      uint32_t *number);

/* Find a parameter's value in a list of words that ends with NULL. Returns its index; 0 if the
 * parameter is missing; -EINVAL for an unknown word. */
int domi_query_word(domus_slice query, const char *name, const char *const words[]);

#endif
