/* Invariants: checks of what must be true of a house and of a promise in each of their states.
 *
 * When a run has settled, everything has to fit together: no handler runs, and the house is home's.
 * So builds with slow checks (dev and the sanitizers') check each house at that moment
 * (dispatch.c). The test kit checks all houses of a thread that sleeps, in every build. A check
 * that fails is a bug of domus, and it ends the process (base/check.h). */
#ifndef DOMI_HOUSE_DISPATCH_INVARIANTS_H
#define DOMI_HOUSE_DISPATCH_INVARIANTS_H

#include "house/conversation/promise.h"
#include "house/message/manager.h"

/* Check the fields of the house itself, without a walk over its lists. Home, between runs. */
void domi_house_check_fields(const domi_manager *home, const domi_house *house);

/* Check a house as domi_house_check_fields() does, and check all its messages and parked
 * conversations one by one. */
void domi_house_check_lists(const domi_manager *home, const domi_house *house);

/* Check a promise. The thread that runs the house of its conversation calls it. */
void domi_promise_check_fields(const domi_promise *promise);

/* Check a house at the end of a run, for DOMI_CHECK_SLOW: by domi_house_check_fields(), and in one
 * run of 64 by domi_house_check_lists(). Always returns true, because a check that fails ends the
 * process. */
bool domi_house_is_sound(const domi_manager *home, const domi_house *house);

/* Check all houses of `home` in which an actor lives and which are not exposed, and the routers of
 * the system. Home; no thread may make or stop a router during the call. */
void domi_manager_check_houses(domi_manager *home);

#endif
