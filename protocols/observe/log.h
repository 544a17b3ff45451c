/* The log of the observed program for viewers: its last lines, further lines as they come, and
 * changes of its level. */
#ifndef DOMI_PROTOCOLS_OBSERVE_LOG_H
#define DOMI_PROTOCOLS_OBSERVE_LOG_H

#include "protocols/observe/viewer.h"

#include <domus/http.h>

#include <stdbool.h>

/* Handle GET /log and POST /log?level=WORD for a viewer. */
int domi_observe_serve_log(domus_stack *stack, void *self, const void *payload);
int domi_observe_serve_log_level(domus_stack *stack, void *self, const void *payload);

/* Returns whether a request for /log asks to follow the log, so that the answer lasts until the
 * viewer goes away. */
bool domi_observe_wants_to_follow(const domus_http_request *request);

/* Free the place of a viewer that is gone. */
void domi_observe_stop_following(domi_follow *follow);

#endif
