/* The configuration of the observed program as JSON: each key, its value, and the origin of the
 * value. */
#ifndef DOMI_PROTOCOLS_OBSERVE_CONFIG_H
#define DOMI_PROTOCOLS_OBSERVE_CONFIG_H

#include <domus/config_shown.h>
#include <domus/domus.h>

/* Show from now on the keys of `from` that `walk` visits. Any thread that opens the port may call
 * this while it is open. Returns 0; -ENOMEM. */
int domi_observe_set_config(domus_config_walk *walk, const void *from);

/* Free the configuration that was handed over, after the system of the port has stopped. */
void domi_observe_forget_config(void);

/* Handle GET /config for a viewer. */
int domi_observe_serve_config(domus_stack *stack, void *self, const void *payload);

#endif
