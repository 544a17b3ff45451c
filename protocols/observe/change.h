/* PUT /config/KEY: a key of the configuration that is live changes while the program runs. */
#ifndef DOMI_PROTOCOLS_OBSERVE_CHANGE_H
#define DOMI_PROTOCOLS_OBSERVE_CHANGE_H

#include <domus/config.h>
#include <domus/http_router.h>

/* Answer a request whose body is the value; `key` is as in an assignment. Returns 0 or a negative
 * errno. */
int domi_observe_serve_change(domus_stack *stack, const domus_http_request *request,
                              domus_slice key);

/* A configuration with listeners of its own. */
typedef struct domi_present {
    domus_config config; /* its `listeners` are those below */
    domus_listener_config listeners[DOMUS_LISTENERS_MAX];
} domi_present;

/* Copy what holds now in the observed system. */
void domi_observe_read_present(domi_present *ret_present);

#endif
