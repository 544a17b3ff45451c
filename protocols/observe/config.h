/* The configuration of the observed program as JSON: each key, its value, and where that stands. */
#ifndef DOMI_PROTOCOLS_OBSERVE_CONFIG_H
#define DOMI_PROTOCOLS_OBSERVE_CONFIG_H

#include <domus/config_shown.h>
#include <domus/domus.h>

/* Show what `walk` shows of `from` from now on. Any thread that opens the port, while it is open.
 * Returns 0; -ENOMEM. */
int domi_observe_set_config(domus_config_walk *walk, const void *from);

/* Forget it: the system of the port has stopped. */
void domi_observe_forget_config(void);

/* Answer GET /config; a handler of a viewer. */
int domi_observe_serve_config(domus_stack *stack, void *self, const void *payload);

#endif
