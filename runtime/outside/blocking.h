/* Blocking work connects a conversation's promise with the pool of helper threads
 * (runtime/os/workers.h). */
#ifndef DOMI_RUNTIME_OUTSIDE_BLOCKING_H
#define DOMI_RUNTIME_OUTSIDE_BLOCKING_H

#include "runtime/system/system.h"

/* Take back work that has not begun. Returns false if it runs or has ended. This is
 * domi_runtime_hooks.withdraw. */
bool domi_blocking_withdraw(domi_manager *manager, struct domi_promise *promise);

#endif
