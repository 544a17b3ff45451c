/* Copies of the configuration that holds now (live.h). */
#ifndef DOMI_RUNTIME_SYSTEM_LIVE_COPY_H
#define DOMI_RUNTIME_SYSTEM_LIVE_COPY_H

#include "runtime/system/system.h"

/* Begin with the configuration of the system, before it has threads. `spin_ns` is
 * scheduler.idle.spin as it was given. */
void domi_live_init(domus_system *system, uint64_t spin_ns);
void domi_live_fini(domus_system *system);

/* Copy what holds. The texts, listeners and pools in it are the system's. Any thread. */
void domi_live_copy(domus_system *system, domus_config *ret_config);

/* Give a manager what holds. The thread that uses the manager. */
void domi_live_take(domus_system *system, domi_manager *manager);

#endif
