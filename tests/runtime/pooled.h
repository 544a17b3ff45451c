/* A running system with one pool, for tests of pools; there is one such system at a time. */
#ifndef DOMT_POOLED_H
#define DOMT_POOLED_H

#include "tests/runtime/running.h"

#include <domus/policy.h>
#include <domus/pools.h>

/* The policies of the library: whatever holds for all of them is tested with each. */
#define DOMT_POLICIES 4u
extern const domus_policy *const domt_policies[DOMT_POLICIES];

extern struct domt_pooled {
    domus_system *system;
    const domus_pool *pool; /* the pool of the system, whose name is "work" */
} domt_pooled;

/* Start a system with this configuration and this pool. */
void domt_pooled_start_with_config(domus_config *config, const domus_pool_config *pool);

/* Start a system of `threads` threads with the default configuration, and a pool "work" with this
 * policy and number of runners. */
void domt_pooled_start_with_policy(const char *policy, uint32_t runners, uint32_t threads);

/* Spawn an actor in `pool`; if `pool` is NULL, on a thread. */
domus_address domt_pooled_spawn(const domus_pool *pool, const domus_behaviour *behaviour,
                                const void *state);

#endif
