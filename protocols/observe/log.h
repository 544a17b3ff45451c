/* The log of the observed program for viewers: its last lines, further ones as they come, and what
 * is logged at all. */
#ifndef DOMI_PROTOCOLS_OBSERVE_LOG_H
#define DOMI_PROTOCOLS_OBSERVE_LOG_H

#include "protocols/observe/viewer.h"

#include <domus/http.h>

#include <stdbool.h>

/* Answer GET /log and POST /log?level=WORD; handlers of a viewer. */
int domi_observe_serve_log(domus_stack *stack, void *self, const void *payload);
int domi_observe_serve_log_level(domus_stack *stack, void *self, const void *payload);

/* Returns whether a request for /log asks to follow it: then it ends with its viewer. */
bool domi_observe_wants_to_follow(const domus_http_request *request);

/* A viewer is gone: give back its place. */
void domi_observe_stop_following(domi_follow *follow);

#endif
