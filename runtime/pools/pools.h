/* The pools of a system: made, started, stopped and freed with it. */
#ifndef DOMI_RUNTIME_POOLS_POOLS_H
#define DOMI_RUNTIME_POOLS_POOLS_H

#include "runtime/policies/pool.h"
#include "runtime/system/system.h"

/* How many managers the pools need, which come behind all others in `managers`. `config` and
 * `count` of the system are set. */
uint32_t domi_pools_count_managers(const domus_system *system);

/* Make all pools, and the data of their policies. Returns 0; -ENOMEM; the error of a policy, with
 * words in `system->error`. On failure nothing is left. */
int domi_pools_init(domus_system *system);

/* Make the threads of the runners that are no spares. Returns 0; the kernel's error. */
int domi_pools_start(domus_system *system);

/* Let all runners see a new step of the stop. Any thread. */
void domi_pools_call(domus_system *system);

/* True if each runner that has begun has begun `step`, too. */
bool domi_pools_follow(const domus_system *system, domi_stop_step step);

/* How many actors live in all pools. Any thread. */
uint64_t domi_pools_houses(const domus_system *system);

/* True if all runners that were begun have left their loops. Under the system's mutex. */
bool domi_pools_have_ended(const domus_system *system);

/* Join the runners, which have left their loops or are about to, and end the actors that are left,
 * on the calling thread. */
void domi_pools_end(domus_system *system);

/* Note the handlers of runners that have not returned (losses.h). Under the system's mutex. */
void domi_pools_note_stuck(domus_system *system);

/* End actors whose blocking work was abandoned and has returned. */
void domi_pools_end_left(domus_system *system);

/* Free all pools; none was made is allowed. */
void domi_pools_fini(domus_system *system);

#endif
