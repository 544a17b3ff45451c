/* The simulator: it takes the steps of the threads, and lets time pass. */
#ifndef DOMI_RUNTIME_TESTKIT_STEPS_H
#define DOMI_RUNTIME_TESTKIT_STEPS_H

#include "runtime/testkit/kit.h"

/* Take one step of some thread. Returns false if no thread has anything to do. */
bool domi_testkit_step(domus_testkit *kit);

/* Take steps until nothing is left to do, or until `is_done` (may be NULL) returns true. Meanwhile
 * time goes on, to `until_ns` at most.
 *
 * Returns 0 when `is_done` returned true; -ETIME when `until_ns` has come or no timer is left
 * (without `is_done` this is the normal end); -ETIMEDOUT after too many steps, and then the kit's
 * error says which threads and actors still run. */
int domi_testkit_pass(domus_testkit *kit, bool (*is_done)(const void *context), const void *context,
                      uint64_t until_ns);

/* Returns when the next timer is due, or something happens in the network; UINT64_MAX: never.
 * Called only when there is no step to take. */
uint64_t domi_testkit_due_ns(const domus_testkit *kit);

/* Prepare the simulated thread of `manager` so that the test can act for it between steps: if the
 * thread sleeps it is woken, and it sees the kit's present time. */
void domi_testkit_rouse(domus_testkit *kit, const domi_manager *manager);

/* The hooks of the managers of simulated threads. */
extern const domi_runtime_hooks domi_hooks_of_testkit;

/* This function is domi_simulator.wait (runtime/system/system.h). */
bool domi_testkit_wait(domi_simulator *simulator, bool (*is_done)(const domus_system *system),
                       uint64_t until_ns);

#endif
