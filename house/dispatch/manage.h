/* How a manager begins and ends, and its actors with it. */
#ifndef DOMI_HOUSE_DISPATCH_MANAGE_H
#define DOMI_HOUSE_DISPATCH_MANAGE_H

#include "house/message/manager.h"

/* Make `manager` the one with number `index` of `count`, owned by the calling thread. The array
 * `managers` may be filled later. Returns 0; -ENOMEM. */
int domi_manager_init(domi_manager *manager, uint32_t index, uint32_t count,
                      domi_manager **managers, const domus_config *config, uint64_t now_ns);

/* Free the memory of `manager`, after all threads have ended. domi_manager_end_actors() has to be
 * called before, because it releases what messages still own. */
void domi_manager_fini(domi_manager *manager);

/* Run on_stop of every actor that lives here and turn all mail into dead letters. The owner calls
 * this last; or a thread that has become the owner after the former one ended. */
void domi_manager_end_actors(domi_manager *manager);

/* Stop every actor that has no parent; these stop their children. Called when the system stops,
 * after all threads have ceased to spawn. Owner. */
void domi_manager_stop_actors(domi_manager *manager);

#endif
