/* Log lines about memory: one line when a shortage begins, and one when it is over. */
#ifndef DOMI_RUNTIME_SYSTEM_PRESSURE_REPORT_H
#define DOMI_RUNTIME_SYSTEM_PRESSURE_REPORT_H

#include "runtime/system/levels.h"

/* Log a shortage that has begun or ended. `thread` as in log.h. */
void domi_pressure_report(struct domus_system *system, uint32_t thread);

/* Note for the next report whether channels are being reset because memory is short, or have not
 * been for a while. Only the thread that takes a look calls it. */
void domi_pressure_note_shed(domi_pressure *pressure, uint64_t now_ns);

#endif
