/* Runners: the threads of a pool. */
#ifndef DOMI_RUNTIME_POOLS_RUNNER_H
#define DOMI_RUNTIME_POOLS_RUNNER_H

#include "runtime/policies/pool.h"

/* The hooks of the managers of runners. */
extern const domi_runtime_hooks domi_hooks_of_runners;

/* Make the thread of a runner. Returns 0; the kernel's error. Called under the system's mutex, or
 * while no runner runs. */
int domi_runner_start(domus_runner *runner);

/* Returns the sum of all that counts as a life-beat of a runner. Any thread. */
uint64_t domi_runner_beat(const domus_runner *runner);

/* Returns a number that changes with each turn, when it begins and when it ends, and not with what
 * its handlers do. Any thread. */
uint64_t domi_runner_turns(const domus_runner *runner);

/* One step of a runner's thread: look at the clock, at the stop of the system, and at what is due;
 * take a job, waiting for one if `may_wait`, and give it a turn. Returns false when the runner has
 * to end. The test kit calls it without a wait. */
bool domi_runner_step(domus_runner *runner, bool may_wait);

#endif
