/* Log lines: to the hook that the system was given, a bounded number a second from each thread. */
#ifndef DOMI_RUNTIME_SYSTEM_LOG_H
#define DOMI_RUNTIME_SYSTEM_LOG_H

#include "runtime/system/system.h"

/* A line from thread `thread`, DOMUS_LOG_OUTSIDE: none of the system's. Any thread. */
void domi_log_line(domus_system *system, domus_log_level level, uint32_t thread, const char *format,
                   ...) __attribute__((format(printf, 4, 5)));

/* domi_manager.log. */
void domi_log_actor(domi_manager *manager, const domi_house *house, domi_happening what, int error);

/* domi_manager.say. */
void domi_log_said(domi_manager *manager, domus_log_level level, const char *text);

/* Each line of domus_system_left(). */
void domi_log_left(domus_system *system);

#endif
