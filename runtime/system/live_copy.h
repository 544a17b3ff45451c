/* Copies of the configuration that holds now (live.h), for managers and others. */
#ifndef DOMI_RUNTIME_SYSTEM_LIVE_COPY_H
#define DOMI_RUNTIME_SYSTEM_LIVE_COPY_H

#include "runtime/system/system.h"

/* Let the system's own configuration be the one that holds, before the system has threads.
 * `spin_ns` is the configured value of scheduler.idle.spin. */
void domi_live_init_from_config(domus_system *system, uint64_t spin_ns);
void domi_live_fini(domus_system *system);

/* Copy the configuration that holds now. The system still owns the texts, listeners and pools in
 * the copy. Any thread may call this. */
void domi_live_copy_config(domus_system *system, domus_config *ret_config);

/* Bring a manager's copy of the configuration up to date, after a change. Called by the thread that
 * uses the manager. */
void domi_live_update_config_of_manager(domus_system *system, domi_manager *manager);

#endif
