/* PUT /config/KEY: changes a live key of the configuration while the program runs. */
#ifndef DOMI_PROTOCOLS_OBSERVE_CHANGE_H
#define DOMI_PROTOCOLS_OBSERVE_CHANGE_H

#include <domus/config.h>
#include <domus/http_router.h>

/* Answer a request whose body is the value; `key` has the form of an assignment. Returns 0 or a
 * negative errno. */
int domi_observe_serve_change(domus_stack *stack, const domus_http_request *request,
                              domus_slice key);

/* A configuration with its own list of listeners. */
typedef struct domi_present {
    domus_config config; /* the configuration, whose `listeners` points to the list below */
    domus_listener_config listeners[DOMUS_LISTENERS_MAX];
} domi_present;

/* Copy the current configuration of the observed system. */
void domi_observe_read_present(domi_present *ret_present);

#endif
