/* Invariants: what is true of a house and of a promise in each of their states, as code.
 *
 * A run that settles is the moment at which everything has to fit together: no handler runs, and
 * the house is home's. So dev and the sanitizers' builds check each house there (dispatch.c), and
 * the test kit checks all houses of a thread that sleeps, in every build. A check that fails is a
 * bug of domus, and it ends the process (base/check.h). */
#ifndef DOMI_HOUSE_DISPATCH_INVARIANTS_H
#define DOMI_HOUSE_DISPATCH_INVARIANTS_H

#include "house/conversation/promise.h"
#include "house/message/manager.h"

/* What a look at the house's own three lines can tell. Home, between runs. */
void domi_house_check(const domi_manager *home, const domi_house *house);

/* Also its mailboxes and its parked conversations, one by one: a walk of all that waits. */
void domi_house_check_lists(const domi_manager *home, const domi_house *house);

/* Whoever runs the promise's house. */
void domi_promise_check(const domi_promise *promise);

/* For DOMI_CHECK_SLOW at the end of a run: the first check always, the walk in one run of 64.
 * Returns true. */
bool domi_house_is_sound(const domi_manager *home, const domi_house *house);

/* Check all houses that `home` has ever made. Home. */
void domi_manager_check_houses(domi_manager *home);

#endif
