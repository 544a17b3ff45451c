/* The last stalls of the observed system as JSON. */
#ifndef DOMI_PROTOCOLS_OBSERVE_STALLS_H
#define DOMI_PROTOCOLS_OBSERVE_STALLS_H

#include <domus/domus.h>

/* Write the last stalls as {"stalls": [...]}. This reads files. Returns 0; -ENOMEM; -ECHILD.
 * Ownership: the slice is the caller's. */
int domi_observe_stalls(domus_system *system, domus_slice *ret_text);

/* Handle GET /stalls for a viewer. */
int domi_observe_serve_stalls(domus_stack *stack, void *self, const void *payload);

#endif
