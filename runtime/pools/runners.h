/* The runners of a pool: their threads, the times that they spend, the spares that begin while
 * other runners are blocked, and the handlers that hold a runner for too long. */
#ifndef DOMI_RUNTIME_POOLS_RUNNERS_H
#define DOMI_RUNTIME_POOLS_RUNNERS_H

#include "runtime/policies/pool.h"
#include "runtime/system/system.h"

/* ---- runner.c ---------------------------------------------------------------------------------*/

/* A runner is a thread that gives turns to the actors of a pool. */

/* The functions of runtime that the managers of runners call. */
extern const domi_runtime_hooks domi_hooks_of_runners;

/* Make the OS thread of a runner. Returns 0, or the negative errno of the kernel. Called under the
 * system's mutex, or while no runner runs. */
int domi_runner_start_thread(domus_runner *runner);

/* Returns a number that grows with each life-beat of the runner (domus/pools.h). Any thread may
 * call this. */
uint64_t domi_runner_count_life_beats(const domus_runner *runner);

/* Returns a number that changes when a turn of the runner begins and when it ends, but not with
 * what a handler does in between. Any thread may call this. */
uint64_t domi_runner_count_turn_changes(const domus_runner *runner);

/* Take one step of a runner's thread: look at the clock, at the stop of the system, and at timers
 * that are due; take a job, waiting for one if `may_wait`, and give it a turn. Returns false when
 * the runner has to end. The test kit calls this function without a wait. */
bool domi_runner_take_step(domus_runner *runner, bool may_wait);

/* ---- span.c -----------------------------------------------------------------------------------*/

/* The times of a runner: how long it lives, searches and sleeps; the remaining time is work.
 *
 * No turn reads a clock for this. A runner that has found no job reads the time and its CPU clock
 * before it waits, and once more when it goes on: the CPU time between the two reads is search, the
 * other time was sleep. */

/* Begin to measure the times of a runner, because its thread begins; domi_span_end_life_of_runner()
 * ends that with the thread. */
void domi_span_begin_life_of_runner(domus_runner *runner);
void domi_span_end_life_of_runner(domus_runner *runner);

/* Note the time at which a runner begins to wait for a job; domi_span_end_wait_of_runner() notes
 * that it goes on. */
void domi_span_begin_wait_of_runner(domus_runner *runner);
void domi_span_end_wait_of_runner(domus_runner *runner);

typedef struct domi_spans {
    uint64_t lived_ns, search_ns, park_ns;
} domi_spans;

/* Read how long a runner has lived, searched and slept up to now. Any thread may call this. */
domi_spans domi_span_read_times(const domus_runner *runner);

/* ---- spares.c ---------------------------------------------------------------------------------*/

/* Spares: runners that begin while all runners of a pool are blocked, and end when they are not
 * needed any more.
 *
 * A runner gives life-beats (Haller and Odersky, section on blocking): it begins a turn, handles a
 * message, spawns, or sends to an actor of the pool that had nothing to do. The monitor counts a
 * runner as blocked if it is in a turn and has given no life-beat for `lifeBeat`; so a handler that
 * computes for so long without the library also counts as blocked. If all runners of a pool are
 * blocked, and an actor or a timer waits, the monitor begins a spare. If more runners than the
 * usual number are at work for twenty life-beats, spares end. */

/* The watch by which the monitor looks at all pools. */
extern const domi_monitor_watch domi_spares_watch;

/* ---- stalled.c --------------------------------------------------------------------------------*/

/* Stalls of runners: a handler that holds its runner for longer than stall.threshold.
 *
 * Handlers in a pool may take long, so all stalls there are counted, with their lengths, but at
 * most one in a second is logged for each pool, with the number of those that were not logged. Only
 * the monitor's thread calls these functions, after a look at a runner (spares.c). */

/* Handle a look at a runner that has given no life-beat since `runner->pulse.beat_ns` and does not
 * rest: count a stall, once it is long enough, and log it. */
void domi_runner_look_for_stall(domus_runner *runner, uint64_t now_ns);

/* End the stall of a runner, if one was counted: the runner has gone on, or rests. */
void domi_runner_end_stall(domus_runner *runner, uint64_t now_ns);

#endif
