/* A running system with one pool of runners; tests/runtime/pooled.h has the contract. */
#include "tests/runtime/pooled.h"

const domus_policy *const domt_policies[DOMT_POLICIES] = {
    &domus_policy_sharing, &domus_policy_rings, &domus_policy_deques, &domus_policy_stealing};
struct domt_pooled domt_pooled;

void domt_pooled_start_with_config(domus_config *config, const domus_pool_config *pool)
{
    config->pools = pool;
    config->pool_count = 1;
    domt_pooled.system = domt_start_system(config);
    domt_pooled.pool = domus_outside_pool_find(domt_pooled.system, "work");
    ck_assert_ptr_nonnull(domt_pooled.pool);
    ck_assert_ptr_null(domus_outside_pool_find(domt_pooled.system, "play"));
}

void domt_pooled_start_with_policy(const char *policy, uint32_t runners, uint32_t threads)
{
    domus_config config = domt_config_of_threads(threads);
    domt_pooled_start_with_config(
        &config, &(domus_pool_config){.name = "work", .runners = runners, .policy = policy});
}

domus_address domt_pooled_spawn(const domus_pool *pool, const domus_behaviour *behaviour,
                                const void *state)
{
    const domus_spawn_options options = {.pool = pool};
    domus_address address;
    ck_assert_int_eq(
        domus_outside_spawn_with(domt_pooled.system, behaviour, state, &options, &address), 0);
    return address;
}
