/* Long work in a pool: what does not come by a queue comes between its turns, and runners that are
 * awake are not called. */
#include "tests/runtime/pooled.h"

#define TURN_NS (5 * DOMT_MS)

static const domus_type go_type = {.name = "go"};
static const domus_type tick_type = {.name = "tick"};
static _Atomic uint32_t ticks, turns;

static int on_go(domus_stack *stack, void *self, const void *nothing)
{
    uint64_t until_ns = domt_now_ns() + TURN_NS;

    while (domt_now_ns() < until_ns)
        continue;
    atomic_fetch_add(&turns, 1);
    return domus_notice(stack, domus_self(stack), &go_type, NULL);
}

static int on_tick(domus_stack *stack, void *self, const void *nothing)
{
    atomic_fetch_add(&ticks, 1);
    return 0;
}

static int mount_ticking(domus_stack *stack, void *self)
{
    return domus_every(stack, 10 * DOMT_MS, &tick_type, NULL, NULL);
}

static const domus_behaviour computing = {.name = "computing",
                                          .on = (const domus_on[]){{&go_type, on_go, 0}, {0}}};
static const domus_behaviour ticking = {.name = "ticking",
                                        .on = (const domus_on[]){{&tick_type, on_tick, 0}, {0}},
                                        .on_mount = mount_ticking};

/* One runner, two actors that never come to rest, and turns of 5 ms. */
static void begin_long_turns(const domus_policy *policy)
{
    const domus_pool_config work = {
        .name = "work", .runners = 1, .own_policy = policy, .throughput = 1};
    domus_config config = domt_config(1);

    config.pools = &work;
    config.pool_count = 1;
    domt_pooled.system = domt_start(&config);
    domt_pooled.pool = domus_outside_pool_find(domt_pooled.system, "work");
    domt_pause_ns(20 * DOMT_MS); /* the runner falls asleep, with no timer in sight */
    for (int i = 0; i < 2; i++)
        domt_notice(domt_pooled.system, domt_pooled_spawn(domt_pooled.pool, &computing, NULL),
                    &go_type, NULL);
}

DOMT_TEST(timers_come_between_long_turns)
{
    begin_long_turns(&domus_policy_sharing);
    (void)domt_pooled_spawn(domt_pooled.pool, &ticking, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&ticks) != 0);
    uint32_t ticks_before = atomic_load(&ticks);
    uint32_t turns_before = atomic_load(&turns);
    DOMT_WAIT_FOR(20, atomic_load(&turns) - turns_before >= 120);
    /* The three actors have their turns one after the other, so at least each eighth turn of the
     * two others is followed by one of the third. */
    ck_assert_uint_ge(atomic_load(&ticks) - ticks_before, 120 / 8);
    domt_end(domt_pooled.system);
}

static _Atomic uint32_t calls;

static void count_call(domus_pool *pool)
{
    atomic_fetch_add(&calls, 1);
    domus_policy_sharing.call(pool);
}

/* Each timer is later than the one before. */
static int mount_arming(domus_stack *stack, void *self)
{
    domus_timer timer;

    for (uint32_t i = 0; i < 100; i++)
        ck_assert_int_eq(domus_after(stack, (1000 + i) * DOMT_MS, &tick_type, NULL, &timer), 0);
    return domt_count_mount(stack, self);
}

/* The runner does not sleep any more when they are armed. */
DOMT_TEST(timers_that_come_later_call_nobody)
{
    const domus_behaviour arming = {.name = "arming",
                                    .on = (const domus_on[]){{&tick_type, on_tick, 0}, {0}},
                                    .on_mount = mount_arming};
    domus_policy own = domus_policy_sharing;

    own.name = "own";
    own.call = count_call;
    begin_long_turns(&own);
    atomic_store(&calls, 0);
    atomic_store(&domt_mounted, 0);
    (void)domt_pooled_spawn(domt_pooled.pool, &arming, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&domt_mounted) == 1);
    ck_assert_uint_le(atomic_load(&calls), 1);
    domt_end(domt_pooled.system);
}

DOMT_SUITE(60)
