/* The steps of a stop that starting a system needs, too, when it fails. */
#ifndef DOMI_RUNTIME_CONTROL_STOP_H
#define DOMI_RUNTIME_CONTROL_STOP_H

#include "runtime/system/system.h"

/* Change the stage of the system under outside_mutex, so no foreign thread is inside meanwhile. */
void domi_system_set_stage(domus_system *system, domi_stage stage);

/* Tell every thread which step of the stop is wanted (runtime/system/stop_step.h), and wake those
 * that sleep. Before DOMI_STOP_ACTORS detached actors have to be closed. */
void domi_system_set_stop_step(domus_system *system, domi_stop_step step);

/* Let the threads leave their loops, and join them, by `until_ns`. Returns false if one has not
 * left by then. */
bool domi_system_end(domus_system *system, uint64_t until_ns);

#endif
