/* The pools of runners of a system: they are made, started, stopped and freed with it. */
#ifndef DOMI_RUNTIME_POOLS_POOLS_H
#define DOMI_RUNTIME_POOLS_POOLS_H

#include "runtime/policies/pool.h"
#include "runtime/system/system.h"

/* Returns how many managers the pools of a system need; these come behind all others in `managers`.
 * `config` and `count` of the system are set before. */
uint32_t domi_pools_count_managers(const domus_system *system);

/* Make all pools of a system, and the data of their policies. Returns 0; -ENOMEM; the error of a
 * policy, which `system->error` describes. On failure nothing is left. */
int domi_pools_init(domus_system *system);

/* Make the threads of all runners that are no spares. Returns 0, or the negative errno of the
 * kernel. */
int domi_pools_start_runner_threads(domus_system *system);

/* Call all runners of all pools, so that they see a new step of the system's stop. Any thread may
 * call this. */
void domi_pools_call_all_runners(domus_system *system);

/* True if every runner whose thread was made has begun this step of the system's stop. */
bool domi_pools_have_runners_begun_stop_step(const domus_system *system, domi_stop_step step);

/* Returns how many actors live in all pools together. Any thread may call this. */
uint64_t domi_pools_count_houses(const domus_system *system);

/* True if all runners whose threads were made have left their loops. Called under the system's
 * mutex. */
bool domi_pools_have_ended(const domus_system *system);

/* Join all runners, which have left their loops or are about to, and end the actors that are left
 * in pools, on the calling thread. */
void domi_pools_join_and_end_actors(domus_system *system);

/* Record the handlers that hold up runners at the end of a stop (losses.h). Called under the
 * system's mutex. */
void domi_pools_record_stuck_handlers(domus_system *system);

/* End the actors of pools whose blocking work was abandoned at the stop and has returned since. */
void domi_pools_end_abandoned_actors(domus_system *system);

/* Free all pools of a system; there may be none. */
void domi_pools_fini(domus_system *system);

#endif
