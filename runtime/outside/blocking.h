/* Blocking work: a conversation's promise waits for a job of the helper threads
 * (runtime/os/workers.h). */
#ifndef DOMI_RUNTIME_OUTSIDE_BLOCKING_H
#define DOMI_RUNTIME_OUTSIDE_BLOCKING_H

#include "runtime/system/system.h"

/* Withdraw work that has not begun. Returns false if the work runs or has ended. This function is
 * domi_runtime_hooks.withdraw. */
bool domi_blocking_withdraw(domi_manager *manager, struct domi_promise *promise);

#endif
