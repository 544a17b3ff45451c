/* The runners of a pool: their threads, their times, spares that begin while others are blocked,
 * and handlers that hold one for too long. */
#ifndef DOMI_RUNTIME_POOLS_RUNNERS_H
#define DOMI_RUNTIME_POOLS_RUNNERS_H

#include "runtime/policies/pool.h"
#include "runtime/system/system.h"

/* ---- runner.c ---------------------------------------------------------------------------------*/

/* Runners: the threads of a pool. */

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

/* ---- span.c -----------------------------------------------------------------------------------*/

/* The times of a runner: how long it lives, searches and sleeps; the rest is work.
 *
 * No turn reads a clock for this. A runner that has found no job reads the time and its CPU clock
 * before it waits, and once more when it goes on: the CPU time between the two is search, the rest
 * was sleep. */

/* The runner's life begins, and ends. */
void domi_span_begin(domus_runner *runner);
void domi_span_end(domus_runner *runner);

/* The runner begins to wait, and goes on. */
void domi_span_wait(domus_runner *runner);
void domi_span_go_on(domus_runner *runner);

typedef struct domi_spans {
    uint64_t lived_ns, search_ns, park_ns;
} domi_spans;

/* Read the times up to now. Any thread. */
domi_spans domi_span_read(const domus_runner *runner);

/* ---- spares.c ---------------------------------------------------------------------------------*/

/* Spares: runners that begin while all runners of a pool are blocked, and end when they are not
 * needed any more.
 *
 * A runner gives life-beats (Haller and Odersky, section on blocking): it begins a turn, handles a
 * message, spawns, or sends to an actor of the pool that had nothing to do. The monitor counts a
 * runner as blocked that is in a turn and has given none for `lifeBeat`, so a handler that computes
 * for so long without the library is blocked, too. If all runners of a pool are blocked, and an
 * actor or a timer waits, the monitor begins a spare. While more runners than the usual number are
 * at work for twenty life-beats, spares end. */

/* The watch of all pools, which the monitor calls. */
extern const domi_monitor_watch domi_spares_watch;

/* ---- stalled.c --------------------------------------------------------------------------------*/

/* Stalls of runners: a handler that holds its runner for longer than stall.threshold.
 *
 * A pool is where handlers may take long, so a stall here is counted, with its length, and the log
 * tells of one in a second for each pool at most, with the number of those that it did not tell.
 * Only the monitor's thread calls this, with what it has found of a runner (spares.c). */

/* The runner has given no life-beat since `runner->pulse.beat_ns`, and does not rest. */
void domi_runner_stall_look(domus_runner *runner, uint64_t now_ns);

/* The runner has gone on, or rests. */
void domi_runner_stall_end(domus_runner *runner, uint64_t now_ns);

#endif
