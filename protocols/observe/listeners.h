/* Counts of the listeners of the observed system, as metrics and as JSON. */
#ifndef DOMI_PROTOCOLS_OBSERVE_LISTENERS_H
#define DOMI_PROTOCOLS_OBSERVE_LISTENERS_H

#include "protocols/observe/families.h"

/* Write a family of metrics for each count, with the label `listener`: the listener's name, or
 * "(actors)" for those that actors have made. */
void domi_listeners_write_metrics(domi_metrics *to, const domus_system *system);

/* Write the listeners as JSON: [{"listener": "127.0.0.1:7005", "name": "web", "accepted": 1, ...},
 * ...]. */
void domi_listeners_write_json(domus_appender *json, const domus_system *system);

#endif
