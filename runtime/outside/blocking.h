/* Blocking work: a conversation waits by a promise for a job of the helper threads
 * (runtime/os/workers.h). */
#ifndef DOMI_RUNTIME_OUTSIDE_BLOCKING_H
#define DOMI_RUNTIME_OUTSIDE_BLOCKING_H

#include "runtime/system/system.h"

/* Withdraw a promise's blocking work, if it has not begun. Returns false if the work runs or has
 * ended. It is called as domi_runtime_hooks.withdraw. */
bool domi_blocking_withdraw_work(domi_manager *manager, struct domi_promise *promise);

#endif
