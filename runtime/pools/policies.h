/* Which policy a pool of runners has, and whether the policy and the name of a pool are valid. */
#ifndef DOMI_RUNTIME_POOLS_POLICIES_H
#define DOMI_RUNTIME_POOLS_POLICIES_H

#include <domus/config.h>
#include <domus/policy.h>

#include <stdbool.h>

/* Returns the policy of a pool, which the configuration names, or brings as a table; NULL: no
 * policy has this name. */
const domus_policy *domi_policy_find_for_pool(const domus_pool_config *config);

/* True if the policy of a pool is not valid, or if the name of pool `index` is that of an earlier
 * pool. Then `message` says what is wrong. */
bool domi_policy_has_fault(const domus_pool_config *pool, char *message, size_t size);
bool domi_pool_has_name_of_earlier_pool(const domus_config *config, size_t index, char *message,
                                        size_t size);

#endif
