/* Which policy a pool has, and what is wrong with it. */
#ifndef DOMI_RUNTIME_POOLS_POLICIES_H
#define DOMI_RUNTIME_POOLS_POLICIES_H

#include <domus/config.h>
#include <domus/policy.h>

#include <stdbool.h>

/* The policy that a configuration names, or brings; NULL: there is none of this name. */
const domus_policy *domi_policy_of(const domus_pool_config *config);

/* True if something is wrong with the policy of a pool, or with the name of pool `index`: it has
 * that of an earlier one. Then `message` says what. */
bool domi_policy_fault(const domus_pool_config *pool, char *message, size_t size);
bool domi_pool_name_fault(const domus_config *config, size_t index, char *message, size_t size);

#endif
