/* Log lines go to the hook that the system was given, a bounded number in each second
 * from each thread. */
#ifndef DOMI_RUNTIME_SYSTEM_LOG_H
#define DOMI_RUNTIME_SYSTEM_LOG_H

#include "runtime/system/system.h"

/* Log a line of thread `thread`; DOMUS_LOG_OUTSIDE stands for a thread that is not the system's.
 * Any thread. */
void domi_log_line(domus_system *system, domus_log_level level, uint32_t thread, const char *format,
                   ...) __attribute__((format(printf, 4, 5)));

/* Log what happened to an actor. This is domi_runtime_hooks.log. */
void domi_log_happening(domi_manager *manager, const domi_house *house, domi_happening what,
                        int error);

/* Log a mistake of a function, once for each behaviour and type. This is domi_runtime_hooks.warn.
 */
void domi_log_mistake(domi_manager *manager, const domi_house *house, domi_mistake what,
                      const domus_type *type, int result);

/* Log a text for a manager. This is domi_runtime_hooks.say. */
void domi_log_text(domi_manager *manager, domus_log_level level, const char *text);

#endif
