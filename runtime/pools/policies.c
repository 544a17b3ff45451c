/* In this file pools are checked before anything is made of them: that their names differ, and the
 * table of functions of a program's own policy. The table of keys has the rest. */
#include "runtime/pools/policies.h"

#include <stdio.h>
#include <string.h>

#define DATA_MAX ((size_t)1024 * 1024) /* bytes of a policy's data, of a pool or a runner */

/* The first one is that of a pool which names none. */
static const domus_policy *const policies[] = {&domus_policy_deques, &domus_policy_rings,
                                               &domus_policy_stealing, &domus_policy_sharing};

const domus_policy *domi_policy_of(const domus_pool_config *config)
{
    const char *name = config->policy;

    if (config->own_policy != NULL)
        return config->own_policy;
    if (name == NULL || name[0] == '\0')
        return policies[0];
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        if (strcmp(policies[i]->name, name) == 0)
            return policies[i];
    }
    return NULL;
}

/* The first function that a policy lacks; NULL: it has all that it needs. */
static const char *missing_function(const domus_policy *policy)
{
    if (policy->central_enqueue == NULL)
        return "central_enqueue";
    if (policy->internal_enqueue == NULL)
        return "internal_enqueue";
    if (policy->resume_later == NULL)
        return "resume_later";
    if (policy->dequeue == NULL)
        return "dequeue";
    return policy->call == NULL ? "call" : NULL;
}

bool domi_policy_fault(const domus_pool_config *pool, char *message, size_t size)
{
    const domus_policy *policy = domi_policy_of(pool);
    const char *missing = policy != NULL ? missing_function(policy) : NULL;

    if (policy == NULL)
        snprintf(message, size, "must be rings, deques, stealing or sharing, is '%.63s'",
                 pool->policy);
    else if (missing != NULL)
        snprintf(message, size, "has no %s", missing);
    else if (policy->pool_size > DATA_MAX || policy->runner_size > DATA_MAX)
        snprintf(message, size, "must have at most %zu bytes of data, has %zu", DATA_MAX,
                 policy->pool_size > DATA_MAX ? policy->pool_size : policy->runner_size);
    else if (policy->name == NULL)
        snprintf(message, size, "has no name");
    else
        return false;
    return true;
}

bool domi_pool_name_fault(const domus_config *config, size_t index, char *message, size_t size)
{
    const char *name = config->pools[index].name;

    for (size_t i = 0; i < index; i++) {
        if (config->pools[i].name == NULL || strcmp(config->pools[i].name, name) != 0)
            continue;
        snprintf(message, size, "must be unique, '%.63s' is taken by pools[%zu]", name, i);
        return true;
    }
    return false;
}
