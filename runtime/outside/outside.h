/* The outside's manager, which all foreign threads share (visit.h): how it is made and ended. */
#ifndef DOMI_RUNTIME_OUTSIDE_OUTSIDE_H
#define DOMI_RUNTIME_OUTSIDE_OUTSIDE_H

#include "runtime/system/system.h"

/* The functions of runtime that the outside's manager calls. */
extern const domi_runtime_hooks domi_hooks_of_outside;

/* Make the outside's manager, and the actor that asks in the name of foreign threads. Returns 0;
 * -ENOMEM. */
int domi_outside_init(domus_system *system);

/* End what is left in the outside's manager (mail, promises, the asking actor), after all
 * threads have ended. */
void domi_outside_fini(domus_system *system);

#endif
