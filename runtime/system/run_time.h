/* The run time of each behaviour, by looking now and then which one runs.
 *
 * To read the clock around each run would cost as much as a short run. So the monitor looks, about
 * 100 times a second, what each thread and runner runs, and adds the time since its last look to
 * that behaviour. Runs of behaviours are hit in proportion to their time. The time between two
 * looks is a random one, because programs have timers with fixed times. */
#ifndef DOMI_RUNTIME_SYSTEM_RUN_TIME_H
#define DOMI_RUNTIME_SYSTEM_RUN_TIME_H

#include "runtime/system/system.h"

/* Look once. Returns the nanoseconds until the next look. The monitor. */
uint64_t domi_run_time_look(domus_system *system);

/* Let the time in which the monitor slept belong to nobody. The monitor. */
void domi_run_time_forget(domus_system *system);

#endif
