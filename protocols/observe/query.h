/* Numbers and words in the queries of the observation port. */
#ifndef DOMI_PROTOCOLS_OBSERVE_QUERY_H
#define DOMI_PROTOCOLS_OBSERVE_QUERY_H

#include <domus/slice.h>

/* Read a number in 0..most, which has digits alone, and behind them `unit` or nothing (NULL: there
 * is no unit). Returns 0, also without such a parameter, which leaves `number` as it was; -EINVAL.
 */
int domi_query_number(domus_slice query, const char *name, const char *unit, uint32_t most,
                      uint32_t *number);

/* Find a parameter's value in a list of words that ends with NULL. Returns its place; 0 without
 * such a parameter; -EINVAL for another word. */
int domi_query_word(domus_slice query, const char *name, const char *const words[]);

#endif
