/* Stalls of runners: a handler that holds its runner for longer than stall.threshold.
 *
 * A pool is where handlers may take long, so a stall here is counted, with its length, and the log
 * tells of one in a second for each pool at most, with the number of those that it did not tell.
 * Only the monitor's thread calls this, with what it has found of a runner (spares.c). */
#ifndef DOMI_RUNTIME_POOLS_STALLED_H
#define DOMI_RUNTIME_POOLS_STALLED_H

#include "runtime/policies/pool.h"

/* The runner has given no life-beat since `runner->pulse.beat_ns`, and does not rest. */
void domi_runner_stall_look(domus_runner *runner, uint64_t now_ns);

/* The runner has gone on, or rests. */
void domi_runner_stall_end(domus_runner *runner, uint64_t now_ns);

#endif
