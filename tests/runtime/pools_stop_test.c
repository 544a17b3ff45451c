/* Stops of pooled actors and of their system, and calls that a pool refuses. */
#include "tests/runtime/pooled.h"

#include <domus/detached.h>

#include <errno.h>
#include <pthread.h>

static const domus_type go_type = {.name = "go"};
static _Atomic uint32_t mounts;

/* --- stops ------------------------------------------------------------------------------------ */

static _Atomic uint32_t handled;
static _Atomic bool holds;

static int stay_in_handler_while_held(domus_stack *stack, void *self, const void *nothing)
{
    atomic_fetch_add(&handled, 1);
    while (atomic_load(&holds))
        domt_pause_ns(100000);
    return 0;
}

static const domus_behaviour slow = {
    .name = "slow",
    .on = (const domus_on[]){{&go_type, stay_in_handler_while_held, 0}, {0}},
    .on_stop = domt_count_stop};

static void run_a_stop_does_not_wait_behind_notices(const char *policy, uint32_t runners)
{
    domt_pooled_start_with_policy(policy, runners, 1);
    atomic_store(&handled, 0);
    atomic_store(&holds, true);
    uint64_t before = atomic_load(&domt_stopped);
    domus_address address = domt_pooled_spawn(domt_pooled.pool, &slow, NULL);
    for (uint32_t i = 0; i < 10000; i++)
        domt_send_notice(domt_pooled.system, address, &go_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&handled) == 1);
    ck_assert_int_eq(domus_outside_stop(domt_pooled.system, address), 0);
    atomic_store(&holds, false);
    DOMT_WAIT_FOR(10, atomic_load(&domt_stopped) == before + 1);
    ck_assert_uint_le(atomic_load(&handled), 2);
    domt_end_system(domt_pooled.system);
}

DOMT_TEST(a_stop_does_not_wait_behind_notices)
{
    for (uint32_t i = 0; i < DOMT_POLICIES; i++) {
        run_a_stop_does_not_wait_behind_notices(domt_policies[i]->name, 1);
    }
}

/* --- timers that are due when their actors end ------------------------------------------------ */

static const domus_type tick_type = {.name = "tick"};

static int ignore_tick(domus_stack *stack, void *self, const void *nothing)
{
    return 0;
}

static int arm_timer_in_mount(domus_stack *stack, void *self)
{
    atomic_fetch_add(&mounts, 1);
    return domus_after(stack, 20 * DOMT_MS, &tick_type, NULL, NULL);
}

static int hold_runner_for_60_ms(domus_stack *stack, void *self, const void *nothing)
{
    domt_pause_ns(60 * DOMT_MS);
    return 0;
}

/* The only runner is held until the timers of some actors are due, and the actors were told to stop
 * meanwhile. The timers are put off, because the actors' houses are scheduled; then the actors end
 * in one turn. */
DOMT_TEST(a_timer_that_is_put_off_does_not_outlive_its_actor)
{
    const domus_behaviour timed = {
        .name = "timed",
        .on = (const domus_on[]){{&tick_type, ignore_tick, 0}, {0}},
        .on_mount = arm_timer_in_mount,
        .on_stop = domt_count_stop,
    };
    const domus_behaviour holding = {
        .name = "holding", .on = (const domus_on[]){{&go_type, hold_runner_for_60_ms, 0}, {0}}};
    domus_address actors[64];

    domt_pooled_start_with_policy("sharing", 1, 1);
    uint64_t before = atomic_load(&domt_stopped);
    domus_address holder = domt_pooled_spawn(domt_pooled.pool, &holding, NULL);
    for (int round = 0; round < 4; round++) {
        atomic_store(&mounts, 0);
        for (uint32_t i = 0; i < 64; i++)
            actors[i] = domt_pooled_spawn(domt_pooled.pool, &timed, NULL);
        DOMT_WAIT_FOR(20, atomic_load(&mounts) == 64);
        domt_send_notice(domt_pooled.system, holder, &go_type, NULL);
        for (uint32_t i = 0; i < 64; i++)
            ck_assert_int_eq(domus_outside_stop(domt_pooled.system, actors[i]), 0);
        before += 64;
        DOMT_WAIT_FOR(20, atomic_load(&domt_stopped) == before);
    }
    domt_end_system(domt_pooled.system);
}

/* --- actors that are ended with the system ---------------------------------------------------- */

static _Atomic int received;

static void receive_in_stop_of_actor(domus_stack *stack, void *self)
{
    domus_received got;
    atomic_store(&received, domus_receive_now(stack, &(domus_pattern){0}, DOMT_MS, &got));
}

static void *let_handler_return_after_100_ms(void *nothing)
{
    domt_pause_ns(100 * DOMT_MS);
    atomic_store(&holds, false);
    return NULL;
}

/* Start a system with a pool of one runner, which gives its actors little time to end. */
static void begin_system_with_short_stop(void)
{
    const domus_pool_config work = {.name = "work", .runners = 1};
    domus_config config = domt_config_of_threads(1);

    config.shutdown.actor_timeout_ns = 20 * DOMT_MS;
    atomic_store(&handled, 0);
    atomic_store(&domt_mounted, 0);
    atomic_store(&holds, true);
    domt_pooled_start_with_config(&config, &work);
}

/* Stop the system, and a moment after that let the handler return that holds the runner. */
static void stop_system_and_let_handler_return(void)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, let_handler_return_after_100_ms, NULL), 0);
    ck_assert_int_eq(domus_system_stop(domt_pooled.system), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

/* A handler holds the only runner for longer than the stop of actors may take. So the other actors
 * end without a runner, with the home of the pool as their manager. */
DOMT_TEST(on_stop_of_an_actor_left_at_the_end_receives_nothing)
{
    const domus_behaviour idle = {
        .name = "idle", .on_mount = domt_count_mount, .on_stop = receive_in_stop_of_actor};

    atomic_store(&received, 0);
    begin_system_with_short_stop();
    (void)domt_pooled_spawn(domt_pooled.pool, &idle, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&domt_mounted) == 1);
    domt_send_notice(domt_pooled.system, domt_pooled_spawn(domt_pooled.pool, &slow, NULL), &go_type,
                     NULL);
    DOMT_WAIT_FOR(10, atomic_load(&handled) == 1);
    stop_system_and_let_handler_return();
    ck_assert_int_eq(atomic_load(&received), -EOPNOTSUPP);
    domus_system_free(domt_pooled.system);
}

static domus_address child;

static int spawn_slow_child_in_mount(domus_stack *stack, void *self)
{
    const domus_spawn_options options = {.pool = domt_pooled.pool};
    ck_assert_int_eq(domus_spawn_with(stack, &slow, NULL, &options, &child), 0);
    return domt_count_mount(stack, self);
}

/* The child of an actor on a thread ends, and tells its parent so, after the time for the end of
 * all actors is over. The thread has to keep the parent until the child's runner has ended. */
DOMT_TEST(a_child_in_a_pool_may_end_later_than_its_parents_thread)
{
    const domus_behaviour parent = {.name = "parent", .on_mount = spawn_slow_child_in_mount};

    begin_system_with_short_stop();
    (void)domt_pooled_spawn(NULL, &parent, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&domt_mounted) == 1);
    domt_send_notice(domt_pooled.system, child, &go_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&handled) == 1);
    ck_assert_int_eq(domus_outside_stop(domt_pooled.system, child), 0);
    stop_system_and_let_handler_return();
    domus_system_free(domt_pooled.system);
}

/* --- what is wrong ---------------------------------------------------------------------------- */

static void check_fault_of_pools_config(const domus_pool_config *pools, size_t count,
                                        const char *wanted)
{
    domus_config config = domt_config_of_threads(1);
    char error[256];
    config.pools = pools;
    config.pool_count = count;
    ck_assert_int_eq(domus_config_check(&config, error, sizeof error), -EINVAL);
    ck_assert_str_eq(error, wanted);
}

DOMT_TEST(wrong_pools_are_refused_with_words)
{
    static const domus_policy empty = {.name = "mine"};
    const domus_pool_config twice[] = {{.name = "a"}, {.name = "a"}};

    check_fault_of_pools_config(&(domus_pool_config){.name = ""}, 1,
                                "pools[0].name: is missing or empty");
    check_fault_of_pools_config(twice, 2,
                                "pools[1].name: must be unique, 'a' is taken by pools[0]");
    check_fault_of_pools_config(
        &(domus_pool_config){.name = "a", .policy = "best"}, 1,
        "pools[0].policy: must be deques, rings, stealing or sharing, is 'best'");
    check_fault_of_pools_config(&(domus_pool_config){.name = "a", .own_policy = &empty}, 1,
                                "pools[0].policy: has no central_enqueue");
    check_fault_of_pools_config(&(domus_pool_config){.name = "a", .runners = 65}, 1,
                                "pools[0].runners: must be auto or 1..64, is 65");
    check_fault_of_pools_config(&(domus_pool_config){.name = "a", .throughput = 65536}, 1,
                                "pools[0].throughput: must be 0 or 1..65535, is 65536");
    check_fault_of_pools_config(&(domus_pool_config){.name = "a", .spares = 65}, 1,
                                "pools[0].spares: must be 0..64, is 65");
    check_fault_of_pools_config(&(domus_pool_config){.name = "a", .life_beat_ns = 5}, 1,
                                "pools[0].lifeBeat: must be 0 or 1ms..1h, is 5ns");
    check_fault_of_pools_config(NULL, 1, "pools: must be 0..16, and not NULL, are 1");
}

static _Atomic int refused;

static int spawn_into_pool_of_other_system(domus_stack *stack, void *other)
{
    const domus_spawn_options options = {.pool = *(const domus_pool **)other};
    domus_address address;
    atomic_store(&refused, domus_spawn_with(stack, &slow, NULL, &options, &address));
    return 0;
}

DOMT_TEST(a_pool_of_another_system_is_refused)
{
    const domus_behaviour elsewhere = {.name = "elsewhere",
                                       .state_size = sizeof(domus_pool *),
                                       .on_mount = spawn_into_pool_of_other_system};
    domus_spawn_options options = {0};
    domus_grain_kind kind = {.name = "kind", .behaviour = &slow};
    domus_grains grains;
    domus_address address;

    domt_pooled_start_with_policy("sharing", 1, 1);
    domus_system *other = domt_pooled.system;
    options.pool = domt_pooled.pool;
    domt_pooled_start_with_policy("sharing", 1, 1);
    ck_assert_int_eq(domus_outside_spawn_with(domt_pooled.system, &slow, NULL, &options, &address),
                     -EINVAL);
    ck_assert_int_eq(
        domus_outside_spawn_many(domt_pooled.system, &slow, NULL, 2, NULL, &options, &address),
        -EINVAL);
    kind.options.pool = options.pool;
    ck_assert_int_eq(domus_outside_grain_open(domt_pooled.system, &kind, &grains), -EINVAL);
    kind.options.pool = domt_pooled.pool;
    ck_assert_int_eq(domus_outside_grain_open(domt_pooled.system, &kind, &grains), 0);
    (void)domt_pooled_spawn(domt_pooled.pool, &elsewhere, &options.pool);
    DOMT_WAIT_FOR(10, atomic_load(&refused) == -EINVAL);
    domt_end_system(domt_pooled.system);
    domt_end_system(other);
}

static int fail_first_init_of_policy(domus_pool *pool)
{
    return atomic_fetch_add(&mounts, 1) == 0 ? -EXDEV : domus_policy_sharing.init(pool);
}

DOMT_TEST(a_policy_that_cannot_begin_fails_the_start_and_not_the_next_one)
{
    domus_policy own = domus_policy_sharing;
    const domus_pool_config pools[] = {{.name = "first"}, {.name = "work", .own_policy = &own}};
    domus_config config = domt_config_of_threads(1);
    domus_system *system;

    own.name = "own";
    own.init = fail_first_init_of_policy;
    config.pools = pools;
    config.pool_count = 2;
    atomic_store(&mounts, 0);
    ck_assert_int_eq(domus_system_new(&config, NULL, 0, &system), 0);
    ck_assert_int_eq(domus_system_start(system), -EXDEV);
    ck_assert_str_eq(domus_system_error(system),
                     "pool work: policy own: Invalid cross-device link");
    ck_assert_int_eq(domus_system_start(system), 0);
    domt_end_system(system);
}

DOMT_SUITE(120)
