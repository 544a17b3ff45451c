/* The last stalls of the observed system as JSON. */
#ifndef DOMI_PROTOCOLS_OBSERVE_STALLS_H
#define DOMI_PROTOCOLS_OBSERVE_STALLS_H

#include <domus/domus.h>

/* Write them as {"stalls": [...]}. It reads files. Returns 0; -ENOMEM; -ECHILD.
 * Ownership: the slice is the caller's. */
int domi_observe_stalls(domus_system *system, domus_slice *ret_text);

/* Answer GET /stalls; a handler of a viewer. */
int domi_observe_serve_stalls(domus_stack *stack, void *self, const void *payload);

#endif
