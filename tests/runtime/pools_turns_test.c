/* Around the turns of runners: the functions of the program, and the wake for a job. */
#include "tests/runtime/pooled.h"

static const domus_type go_type = {.name = "go"};
static _Atomic uint32_t handled;

/* --- functions of the program --- */

static _Atomic uint32_t befores, afters, completions;
static _Atomic bool mixed_up;

static void before(domus_runner *runner, domus_job *job)
{
    if (atomic_load(&befores) != atomic_load(&afters) || domus_runner_number(runner) != 0)
        atomic_store(&mixed_up, true);
    atomic_fetch_add(&befores, 1);
}

static void after(domus_runner *runner, domus_job *job)
{
    atomic_fetch_add(&afters, 1);
}

static void completed(domus_runner *runner, domus_job *job)
{
    atomic_fetch_add(&completions, 1);
}

static int end_at_once(domus_stack *stack, void *self, const void *nothing)
{
    return domus_stop(stack, domus_self(stack));
}

DOMT_TEST(hooks_are_called_around_each_turn)
{
    const domus_behaviour brief = {.name = "brief",
                                   .on = (const domus_on[]){{&go_type, end_at_once, 0}, {0}}};
    static const domus_pool_hooks hooks = {before, after, completed};

    for (uint32_t i = 0; i < DOMT_POOLED_POLICIES; i++) {
        const domus_pool_config work = {
            .name = "work", .runners = 1, .policy = domt_pooled_policies[i], .hooks = &hooks};
        domus_config config = domt_config(1);
        config.pools = &work;
        config.pool_count = 1;
        atomic_store(&befores, 0);
        atomic_store(&afters, 0);
        atomic_store(&completions, 0);
        domt_pooled.system = domt_start(&config);
        const domus_pool *pool = domus_outside_pool_find(domt_pooled.system, "work");
        for (uint32_t j = 1; j <= 10; j++) {
            domus_address address = domt_pooled_spawn(pool, &brief, NULL);
            domt_notice(domt_pooled.system, address, &go_type, NULL);
            DOMT_WAIT_FOR(10, atomic_load(&completions) == j);
        }
        domt_end(domt_pooled.system);
        ck_assert_uint_ge(atomic_load(&befores), 10);
        ck_assert_uint_eq(atomic_load(&befores), atomic_load(&afters));
        ck_assert(!atomic_load(&mixed_up));
        ck_assert_uint_eq(atomic_load(&completions), 10);
    }
}

/* --- sleep --- */

static int hear_go(domus_stack *stack, void *self, const void *nothing)
{
    atomic_fetch_add(&handled, 1);
    return 0;
}

/* A runner of `stealing` sleeps for a second here when it has found nothing. */
DOMT_TEST(a_job_from_outside_wakes_a_runner)
{
    const domus_behaviour hearing = {.name = "hearing",
                                     .on = (const domus_on[]){{&go_type, hear_go, 0}, {0}}};
    for (uint32_t i = 0; i < DOMT_POOLED_POLICIES; i++) {
        const domus_pool_config work = {.name = "work",
                                        .runners = 2,
                                        .policy = domt_pooled_policies[i],
                                        .stealing = {.aggressive_attempts = 1,
                                                     .moderate_attempts = 1,
                                                     .relaxed_sleep_ns = 1000 * DOMT_MS}};
        domus_config config = domt_config(1);
        config.pools = &work;
        config.pool_count = 1;
        domt_pooled.system = domt_start(&config);
        const domus_pool *pool = domus_outside_pool_find(domt_pooled.system, "work");
        domus_address address = domt_pooled_spawn(pool, &hearing, NULL);
        atomic_store(&handled, 0);
        for (uint32_t j = 1; j <= 10; j++) {
            domt_pause_ns(5 * DOMT_MS); /* the runners sleep */
            uint64_t since_ns = domt_now_ns();
            domt_notice(domt_pooled.system, address, &go_type, NULL);
            DOMT_WAIT_FOR(10, atomic_load(&handled) == j);
            ck_assert_uint_lt(domt_now_ns() - since_ns, 700 * DOMT_MS);
        }
        domt_end(domt_pooled.system);
    }
}

DOMT_SUITE(60)
