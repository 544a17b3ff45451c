/* The run time of each behaviour, by looking now and then which behaviour runs.
 *
 * Reading the clock around each run would cost as much as a short run. So about 100 times a second
 * the monitor looks which behaviour runs on each thread and runner, and adds the time since its
 * last look to that behaviour. The samples of a behaviour are in proportion to its time. The time
 * between two looks is random, because programs have timers with fixed times. */
#ifndef DOMI_RUNTIME_SYSTEM_RUN_TIME_H
#define DOMI_RUNTIME_SYSTEM_RUN_TIME_H

#include "runtime/system/system.h"

/* Look which behaviour runs on each thread and runner, and add the time since the last look to it.
 * Returns the nanoseconds until the next look. Called by the monitor. */
uint64_t domi_run_time_look_at_all_behaviours(domus_system *system);

/* Forget the last look at what runs after the monitor has slept, so that no behaviour gets the time
 * of the sleep. Called by the monitor. */
void domi_run_time_forget_last_look(domus_system *system);

#endif
