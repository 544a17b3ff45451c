/* Pairs of threads, of which one has run actors of the other, as metrics and as JSON. */
#ifndef DOMI_PROTOCOLS_OBSERVE_PAIRS_H
#define DOMI_PROTOCOLS_OBSERVE_PAIRS_H

#include "protocols/observe/families.h"

/* The most pairs of a text: all of 64 threads. Further pairs are left out.
 */
#define DOMI_PAIRS_MAX 4032u

/* Write a family for steals and one for stand-ins, if there are any pairs. A text that has no
 * memory for them has none. */
void domi_pairs_write_metrics(domi_metrics *to, const domus_system *system);

/* Write the pairs as a list. */
void domi_pairs_write_json(domus_appender *json, const domus_system *system);

#endif
