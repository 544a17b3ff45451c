/* Pairs of threads, of which the first has run actors of the second, as metrics and as JSON. */
#ifndef DOMI_PROTOCOLS_OBSERVE_PAIRS_H
#define DOMI_PROTOCOLS_OBSERVE_PAIRS_H

#include "protocols/observe/families.h"

/* Pairs of a text, at most: all pairs of 64 threads. Further ones are left out. */
#define DOMI_PAIRS_MAX 4032u

/* Write a family of metrics for steals and one for stand-ins, if there are any pairs. Without
 * memory both are left out. */
void domi_pairs_write_metrics(domi_metrics *to, const domus_system *system);

/* Write the pairs as a JSON list. */
void domi_pairs_write_json(domus_appender *json, const domus_system *system);

#endif
