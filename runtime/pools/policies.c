/* In this file pools are checked before anything is made of them: their names, their numbers, and
 * the table of functions of a program's own policy. */
#include "runtime/pools/policies.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 63u
#define RUNNERS_MAX    64u
#define TURN_MAX       65535u
#define BEAT_MIN_NS    UINT64_C(1000000)
#define BEAT_MAX_NS    UINT64_C(3600000000000)
#define DATA_MAX       ((size_t)1024 * 1024) /* bytes of a policy's data, of a pool or a runner */

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

static bool is_name(const char *text)
{
    size_t length = text != NULL ? strlen(text) : 0;

    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)text[i]) && text[i] != '-' && text[i] != '_')
            return false;
    }
    return length != 0 && length <= NAME_MAX_BYTES;
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

static const char *policy_fault(const domus_pool_config *pool, char *message, size_t size)
{
    const domus_policy *policy = domi_policy_of(pool);

    if (policy == NULL) {
        snprintf(message, size, "must be rings, deques, stealing or sharing, is '%.63s'",
                 pool->policy);
        return "policy";
    }
    const char *missing = missing_function(policy);
    if (missing != NULL)
        snprintf(message, size, "has no %s", missing);
    else if (policy->pool_size > DATA_MAX || policy->runner_size > DATA_MAX)
        snprintf(message, size, "must have at most %zu bytes of data, has %zu", DATA_MAX,
                 policy->pool_size > DATA_MAX ? policy->pool_size : policy->runner_size);
    else if (policy->name == NULL)
        snprintf(message, size, "has no name");
    else
        return NULL;
    return "policy";
}

static const char *number_fault(const domus_pool_config *pool, char *message, size_t size)
{
    if (pool->runners > RUNNERS_MAX) {
        snprintf(message, size, "must be 1..%u, is %" PRIu32, RUNNERS_MAX, pool->runners);
        return "runners";
    }
    if (pool->throughput > TURN_MAX) {
        snprintf(message, size, "must be 1..%u, is %" PRIu32, TURN_MAX, pool->throughput);
        return "throughput";
    }
    if (pool->spares > RUNNERS_MAX) {
        snprintf(message, size, "must be 0..%u, is %" PRIu32, RUNNERS_MAX, pool->spares);
        return "spares";
    }
    if (pool->life_beat_ns == 0 ||
        (pool->life_beat_ns >= BEAT_MIN_NS && pool->life_beat_ns <= BEAT_MAX_NS))
        return NULL;
    snprintf(message, size, "must be 1ms..1h, is %" PRIu64 "ns", pool->life_beat_ns);
    return "lifeBeat";
}

const char *domi_pool_fault(const domus_config *config, size_t index, char *message, size_t size)
{
    const domus_pool_config *pool = &config->pools[index];

    if (!is_name(pool->name)) {
        snprintf(message, size, "must be 1..%u letters, digits, '-' and '_'", NAME_MAX_BYTES);
        return "name";
    }
    for (size_t i = 0; i < index; i++) {
        if (config->pools[i].name != NULL && strcmp(config->pools[i].name, pool->name) == 0) {
            snprintf(message, size, "must be unique, '%.63s' is taken by pools[%zu]", pool->name,
                     i);
            return "name";
        }
    }
    const char *key = policy_fault(pool, message, size);
    return key != NULL ? key : number_fault(pool, message, size);
}
