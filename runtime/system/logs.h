/* How lines are written to the log of a system. Any thread, where nothing else is said. */
#ifndef DOMI_RUNTIME_SYSTEM_LOGS_H
#define DOMI_RUNTIME_SYSTEM_LOGS_H

#include "runtime/system/levels.h"
#include "runtime/system/system.h"

/* ---- log.c ------------------------------------------------------------------------------------*/

/* Log lines go to the program's hook for logs, at most a fixed number in each second from each
 * thread. */

/* Log a line that thread `thread` writes; DOMUS_LOG_OUTSIDE stands for a thread that is not the
 * system's. Any thread may call this. */
void domi_log_line(domus_system *system, domus_log_level level, uint32_t thread, const char *format,
                   ...) __attribute__((format(printf, 4, 5)));

/* Log something that has happened to an actor. It is called as domi_runtime_hooks.log. */
void domi_log_what_happened_to_actor(domi_manager *manager, const domi_house *house,
                                     domi_happening what, int error);

/* Log a mistake of a handler or another function of the user, once for each behaviour and type. It
 * is called as domi_runtime_hooks.warn. */
void domi_log_mistake_of_user(domi_manager *manager, const domi_house *house, domi_mistake what,
                              const domus_type *type, int result);

/* Log a text in the name of a manager's thread. It is called as domi_runtime_hooks.say. */
void domi_log_text_for_manager(domi_manager *manager, domus_log_level level, const char *text);

/* ---- missing.c --------------------------------------------------------------------------------*/

/* Log lines at the start of a system, which name what a container without /proc or /sys lacks. */

/* Log one line if /proc is missing, and one if /sys is. Called before the start, after
 * domi_pressure_begin_to_measure(). */
void domi_log_missing_folders(domus_system *system);

/* ---- pressure_report.c ------------------------------------------------------------------------*/

/* Log lines about memory: one when a shortage begins, and one when it is over. */

/* Log that a shortage of memory has begun or ended, if that was not logged yet. `thread` is the
 * calling thread's index, or DOMUS_LOG_OUTSIDE. */
void domi_pressure_report_in_log(struct domus_system *system, uint32_t thread);

/* Record for the next report whether channels are being reset because memory is short, or have not
 * been for a while. Only the thread that takes a look at memory calls this. */
void domi_pressure_record_whether_shedding(domi_pressure *pressure, uint64_t now_ns);

#endif
