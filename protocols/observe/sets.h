/* Tables that libraries and the program show of themselves (domus/figures.h): as metrics, and each
 * set of them as JSON at a path of its name, such as /cluster:
 *
 *   {"set": "cluster", "tables": [
 *     {"name": "nodes", "title": "Nodes", "is_list": false, "from": 0, "total": 3,
 *      "columns": [{"name": "node", "title": "node", "kind": "label"}, ...],
 *      "rows": [{"node": "a", "state": "up", "rtt_ns": 1, ...}, ...]}, ...]}
 *
 * ?from=0&count=2000 has a part of the rows of each table, and ?table=nodes one of them. Kinds are
 * label, text, state, count, faults, amount, bytes and time, which is in ns. */
#ifndef DOMI_PROTOCOLS_OBSERVE_SETS_H
#define DOMI_PROTOCOLS_OBSERVE_SETS_H

#include "protocols/observe/families.h"

#include <domus/http.h>

/* Returns whether the path of a request is that of a set of tables. */
bool domi_is_path_of_figure_set(domus_system *system, const domus_http_request *request);

/* Handle a viewer's request for a set of tables. */
int domi_observe_serve_figure_set(domus_stack *stack, void *self, const void *payload);

/* Write the families of metrics of all tables of all sets; at most DOMUS_OBSERVE_ROWS_COUNT rows of
 * each table are written. */
void domi_write_metrics_of_figure_sets(domi_metrics *to, domus_system *system);

/* Write the names of all sets as JSON: ["cluster"]. */
void domi_write_names_of_figure_sets(domus_appender *json, domus_system *system);

#endif
