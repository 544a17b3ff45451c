/* This file checks pools before they are made: that their names differ, and that a program's own
 * policy has all its functions. The table of keys checks the rest. */
#include "runtime/pools/policies.h"

#include <stdio.h>
#include <string.h>

/* most bytes that the data of a policy for a pool or a runner may have */
#define DATA_MAX ((size_t)1024 * 1024)

/* The policies that the library has; the first one is the default. */
static const domus_policy *const policies[] = {&domus_policy_deques, &domus_policy_rings,
                                               &domus_policy_stealing, &domus_policy_sharing};

const domus_policy *domi_policy_find_for_pool(const domus_pool_config *config)
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

/* Returns the name of the first function that a program's policy lacks; NULL: it has all that it
 * needs. */
static const char *find_function_that_policy_lacks(const domus_policy *policy)
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

/* Write the names of the policies of the library as a choice: "a, b or c". */
static void write_names_of_policies(char text[static 128])
{
    const size_t count = sizeof policies / sizeof policies[0];
    size_t length = 0;

    for (size_t i = 0; i < count && length < 128; i++)
        length += (size_t)snprintf(text + length, 128 - length, "%s%s", policies[i]->name,
                                   i + 2 < count    ? ", "
                                   : i + 2 == count ? " or "
                                                    : "");
}

bool domi_policy_has_fault(const domus_pool_config *pool, char *message, size_t size)
{
    const domus_policy *policy = domi_policy_find_for_pool(pool);
    const char *missing = policy != NULL ? find_function_that_policy_lacks(policy) : NULL;

    if (policy == NULL) {
        char names[128];

        write_names_of_policies(names);
        snprintf(message, size, "must be %s, is '%.63s'", names, pool->policy);
        return true;
    }
    if (missing != NULL)
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

bool domi_pool_has_name_of_earlier_pool(const domus_config *config, size_t index, char *message,
                                        size_t size)
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
