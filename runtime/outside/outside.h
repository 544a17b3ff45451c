/* The outside's manager, which foreign threads share (visit.h): its begin and its end. */
#ifndef DOMI_RUNTIME_OUTSIDE_OUTSIDE_H
#define DOMI_RUNTIME_OUTSIDE_OUTSIDE_H

#include "runtime/system/system.h"

/* The hooks of the outside's manager. */
extern const domi_runtime_hooks domi_hooks_of_outside;

/* Make the outside's manager, and the actor that asks on behalf of foreign threads. Returns 0;
 * -ENOMEM. */
int domi_outside_init(domus_system *system);

/* End everything that is left in the outside's manager, after all threads have ended. */
void domi_outside_fini(domus_system *system);

#endif
