/* The common part of the managers of a system: those of the threads, of the outside, and of
 * detached actors. */
#ifndef DOMI_RUNTIME_SYSTEM_MANAGER_OPTIONS_H
#define DOMI_RUNTIME_SYSTEM_MANAGER_OPTIONS_H

#include "house/dispatch/manage.h"
#include "runtime/system/system.h"

/* Returns the options for manager `index` of `system`. The caller adds the hooks, and the objects
 * besides the system that the hooks use. Any thread may call this. */
domi_manager_options domi_system_manager_options(domus_system *system, uint32_t index,
                                                 uint64_t now_ns);

/* This function is domi_runtime_hooks.read_clock. */
uint64_t domi_system_read_clock(const domi_manager *manager);

#endif
