/* Which policy a pool has, and what is wrong with its configuration. */
#ifndef DOMI_RUNTIME_POOLS_POLICIES_H
#define DOMI_RUNTIME_POOLS_POLICIES_H

#include <domus/config.h>
#include <domus/policy.h>

/* The policy that a configuration names, or brings; NULL: there is none of this name. */
const domus_policy *domi_policy_of(const domus_pool_config *config);

/* Say what is wrong with pool `index` of `config`: returns the name of the key, with words in
 * `message`; NULL: nothing is. */
const char *domi_pool_fault(const domus_config *config, size_t index, char *message, size_t size);

#endif
