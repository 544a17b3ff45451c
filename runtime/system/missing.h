/* Lines of the log at the start of a system say what it is without in a bare container. */
#ifndef DOMI_RUNTIME_SYSTEM_MISSING_H
#define DOMI_RUNTIME_SYSTEM_MISSING_H

#include "runtime/system/system.h"

/* Log a line for each of /proc and /sys that is not there. Before start, behind
 * domi_pressure_begin(). */
void domi_missing_tell(domus_system *system);

#endif
