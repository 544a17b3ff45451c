/* The options that all managers of a system have in common: those of the threads, of the outside,
 * and of detached actors. */
#ifndef DOMI_RUNTIME_SYSTEM_MANAGER_OPTIONS_H
#define DOMI_RUNTIME_SYSTEM_MANAGER_OPTIONS_H

#include "house/dispatch/manage.h"
#include "runtime/system/system.h"

/* Returns the options from which manager `index` of a system is made. The caller adds the hooks,
 * and the objects that the hooks use besides the system. Any thread may call this. */
domi_manager_options domi_system_make_manager_options(domus_system *system, uint32_t index,
                                                      uint64_t now_ns);

/* Returns the time of the system's clock. It is called as domi_runtime_hooks.read_clock. */
uint64_t domi_system_read_clock(const domi_manager *manager);

#endif
