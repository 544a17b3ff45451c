/* Blocking work: between a conversation's promise and the pool of helper threads (workers.h). */
#ifndef DOMI_RUNTIME_OUTSIDE_BLOCKING_H
#define DOMI_RUNTIME_OUTSIDE_BLOCKING_H

#include "runtime/system/system.h"

/* domi_manager.withdraw: take work back that has not begun. */
bool domi_blocking_withdraw(domi_manager *manager, struct domi_promise *promise);

#endif
