/* A system with a simulator, which the test kit makes. domus/system.h has the other functions. */
#ifndef DOMI_RUNTIME_CONTROL_SYSTEM_LIFE_H
#define DOMI_RUNTIME_CONTROL_SYSTEM_LIFE_H

#include "runtime/system/system.h"

/* Do what domus_system_new() does. With a simulator (NULL: none), which stays the caller's, the
 * system has config.system.threads threads, which must not be 0, and domus_system_start() makes no
 * OS thread. */
int domi_system_new(const domus_config *config, domi_simulator *simulator, char *error,
                    size_t error_size, domus_system **ret_system);

/* Returns the time for scheduler.idle.spin, which may be `auto`. Any thread. */
uint64_t domi_system_choose_spin(const domus_system *system, uint64_t spin_ns);

#endif
