/* runtime/system/budget.c and pressure.c: how much the library may hold, for foreign memory and
 * limits of all sizes; and a program that takes memory of its own passes no mark by much before
 * the next look, however it began. The clock is virtual and the cgroup is made of files, so each
 * case is the same on any machine. */
#include "runtime/system/budget.h"

#include "tests/runtime/stepped.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

#include "runtime/system/pressure.h"

#include <domus/memory.h>

#include <stdio.h>

static domi_budget memory_budget_of_use_and_limit(uint64_t used, int64_t held, uint64_t limit)
{
    const domi_usage usage = {.used = used, .limit = limit};

    return domi_budget_of_used_memory(&usage, held, domi_memory_marks_of_limit(limit, 80, 90));
}

static void expect_budget_and_marks(domi_budget now, uint64_t own, uint64_t foreign, uint64_t high,
                                    uint64_t last)
{
    ck_assert_uint_eq(now.own, own);
    ck_assert_uint_eq(now.foreign, foreign);
    ck_assert_uint_eq(now.marks.high, high);
    ck_assert_uint_eq(now.marks.critical, last);
}

DOMT_TEST(memory_marks_are_shares_of_the_limit)
{
    domi_marks marks = domi_memory_marks_of_limit(1000, 80, 90);
    ck_assert_uint_eq(marks.high, 800);
    ck_assert_uint_eq(marks.critical, 900);
    /* the marks are rounded down to whole bytes, but not to whole hundreds */
    marks = domi_memory_marks_of_limit(199, 1, 100);
    ck_assert_uint_eq(marks.high, 1);
    ck_assert_uint_eq(marks.critical, 199);
    marks = domi_memory_marks_of_limit(UINT64_C(1) << 60, 50, 100);
    ck_assert_uint_eq(marks.high, UINT64_C(1) << 59);
    ck_assert_uint_eq(marks.critical, UINT64_C(1) << 60);
}

DOMT_TEST(a_budget_is_what_foreign_memory_leaves_below_the_marks)
{
    expect_budget_and_marks(memory_budget_of_use_and_limit(0, 0, 1000), 0, 0, 800, 900);
    expect_budget_and_marks(memory_budget_of_use_and_limit(300, 300, 1000), 300, 0, 800, 900);
    expect_budget_and_marks(memory_budget_of_use_and_limit(300, 100, 1000), 100, 200, 600, 700);
    expect_budget_and_marks(memory_budget_of_use_and_limit(700, 25, 1000), 25, 675, 125, 225);
    /* with these figures the budget is the least one, an eighth of the limit */
    expect_budget_and_marks(memory_budget_of_use_and_limit(700, 24, 1000), 24, 676, 125, 224);
    expect_budget_and_marks(memory_budget_of_use_and_limit(800, 25, 1000), 25, 775, 125, 125);
    expect_budget_and_marks(memory_budget_of_use_and_limit(799, 25, 1000), 25, 774, 125, 126);
}

DOMT_TEST(foreign_memory_above_the_limit_leaves_an_eighth)
{
    expect_budget_and_marks(memory_budget_of_use_and_limit(1000, 0, 1000), 0, 1000, 125, 125);
    expect_budget_and_marks(memory_budget_of_use_and_limit(5000, 10, 1000), 10, 4990, 125, 125);
    expect_budget_and_marks(memory_budget_of_use_and_limit(UINT64_MAX, 10, 1000), 10,
                            UINT64_MAX - 10, 125, 125);
}

DOMT_TEST(a_budget_grows_as_foreign_memory_falls)
{
    expect_budget_and_marks(memory_budget_of_use_and_limit(950, 100, 1000), 100, 850, 125, 125);
    expect_budget_and_marks(memory_budget_of_use_and_limit(600, 100, 1000), 100, 500, 300, 400);
    expect_budget_and_marks(memory_budget_of_use_and_limit(100, 100, 1000), 100, 0, 800, 900);
}

/* The counted own memory may exceed the used memory, because pages that were never written are not
 * used. It may even be below zero, because one thread may free memory that another one has
 * allocated. */
DOMT_TEST(own_memory_counts_as_between_zero_and_all_used)
{
    expect_budget_and_marks(memory_budget_of_use_and_limit(300, 301, 1000), 300, 0, 800, 900);
    expect_budget_and_marks(memory_budget_of_use_and_limit(300, INT64_MAX, 1000), 300, 0, 800, 900);
    expect_budget_and_marks(memory_budget_of_use_and_limit(300, -1, 1000), 0, 300, 500, 600);
    expect_budget_and_marks(memory_budget_of_use_and_limit(300, INT64_MIN, 1000), 0, 300, 500, 600);
}

DOMT_TEST(memory_limit_of_a_few_bytes_has_budgets)
{
    expect_budget_and_marks(memory_budget_of_use_and_limit(8, 0, 8), 0, 8, 1, 1);
    expect_budget_and_marks(memory_budget_of_use_and_limit(0, 0, 8), 0, 0, 6, 7);
    expect_budget_and_marks(memory_budget_of_use_and_limit(7, 0, 7), 0, 7, 0, 0);
    expect_budget_and_marks(memory_budget_of_use_and_limit(0, 0, 0), 0, 0, 0, 0);
}

DOMT_TEST(bound_of_queued_bytes_is_a_threads_part_of_a_share_of_the_budget)
{
    ck_assert_uint_eq(domi_bytes_thread_may_queue_for_peers(1000000, 50, 1), 500000);
    ck_assert_uint_eq(domi_bytes_thread_may_queue_for_peers(1000000, 50, 4), 125000);
    ck_assert_uint_eq(domi_bytes_thread_may_queue_for_peers(1000000, 100, 1), 1000000);
    ck_assert_uint_eq(domi_bytes_thread_may_queue_for_peers(131072, 50, 1), 65536);
    ck_assert_uint_eq(domi_bytes_thread_may_queue_for_peers(131071, 50, 1), DOMI_QUEUE_LEAST);
    ck_assert_uint_eq(domi_bytes_thread_may_queue_for_peers(0, 1, 1024), DOMI_QUEUE_LEAST);
}

DOMT_TEST(memory_level_ends_a_twentieth_below_where_it_begins)
{
    const domi_marks marks = {.high = 200, .critical = 400};

    ck_assert_uint_eq(domi_memory_bytes_at_end_of_level(200), 190);
    ck_assert_uint_eq(domi_memory_level_that_follows(DOMUS_MEMORY_NORMAL, 199, marks),
                      DOMUS_MEMORY_NORMAL);
    ck_assert_uint_eq(domi_memory_level_that_follows(DOMUS_MEMORY_NORMAL, 200, marks),
                      DOMUS_MEMORY_HIGH);
    ck_assert_uint_eq(domi_memory_level_that_follows(DOMUS_MEMORY_HIGH, 190, marks),
                      DOMUS_MEMORY_HIGH);
    ck_assert_uint_eq(domi_memory_level_that_follows(DOMUS_MEMORY_HIGH, 189, marks),
                      DOMUS_MEMORY_NORMAL);
    ck_assert_uint_eq(domi_memory_level_that_follows(DOMUS_MEMORY_HIGH, 399, marks),
                      DOMUS_MEMORY_HIGH);
    ck_assert_uint_eq(domi_memory_level_that_follows(DOMUS_MEMORY_NORMAL, 400, marks),
                      DOMUS_MEMORY_CRITICAL);
    ck_assert_uint_eq(domi_memory_level_that_follows(DOMUS_MEMORY_CRITICAL, 380, marks),
                      DOMUS_MEMORY_CRITICAL);
    ck_assert_uint_eq(domi_memory_level_that_follows(DOMUS_MEMORY_CRITICAL, 379, marks),
                      DOMUS_MEMORY_HIGH);
    ck_assert_uint_eq(domi_memory_level_that_follows(DOMUS_MEMORY_CRITICAL, 189, marks),
                      DOMUS_MEMORY_NORMAL);
}

/* Both budgets are equal, so use above them is critical at once, and the level is normal as soon as
 * use is below them. */
DOMT_TEST(equal_memory_marks_give_only_critical_or_normal)
{
    const domi_marks marks = {.high = 100, .critical = 100};

    ck_assert_uint_eq(domi_memory_level_that_follows(DOMUS_MEMORY_NORMAL, 99, marks),
                      DOMUS_MEMORY_NORMAL);
    ck_assert_uint_eq(domi_memory_level_that_follows(DOMUS_MEMORY_NORMAL, 100, marks),
                      DOMUS_MEMORY_CRITICAL);
    ck_assert_uint_eq(domi_memory_level_that_follows(DOMUS_MEMORY_CRITICAL, 95, marks),
                      DOMUS_MEMORY_CRITICAL);
    ck_assert_uint_eq(domi_memory_level_that_follows(DOMUS_MEMORY_CRITICAL, 94, marks),
                      DOMUS_MEMORY_NORMAL);
}

DOMT_TEST(next_look_at_memory_comes_before_next_mark_is_passed)
{
    const uint64_t ms = 1000000;
    const uint64_t mib = 1024 * 1024;
    static const struct {
        uint64_t way_mib, grown_kib, took_ms, after_ms;
    } cases[] = {
        /* memory use does not grow, so the next look comes after the usual interval */
        {400, 0, 100, 100},
        {400, 102400, 100, 100}, /* memory use grows by a quarter of the rest in one interval */
        {400, 102400, 50, 50},   /* memory use grows by a quarter of the rest in half an interval */
        {400, 204800, 100, 50},  /* memory use grows twice as fast as in the case above */
        {400, 10240, 4, 40},     /* memory use goes on growing as fast as before */
        {400, 10240, 20, 100},   /* memory use grows slower than before */
        {400, 409600, 100, 25},  /* memory use has passed the mark */
        {400, 1024000, 5, 1},    /* two looks at memory are at least a millisecond apart */
        /* memory use does not grow, but a program may take a quarter of the rest, at a MiB in a
         * millisecond */
        {200, 0, 100, 50},
        {200, 1, 100, 50},     /* memory use grows a little */
        {200, 102400, 80, 40}, /* memory use grows more than a little */
        {0, 0, 100,
         4}, /* no bytes are left to the next mark of memory, which counts as a way of 1 MiB */
        {0, 255, 100, 4},
        {0, 1024, 12, 3},
        {1u << 30, 1u << 20, 3600000, 100},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_uint_eq(domi_time_until_next_look_at_memory(100 * ms, cases[i].way_mib * mib,
                                                              cases[i].grown_kib * 1024,
                                                              cases[i].took_ms * ms),
                          cases[i].after_ms * ms);
    ck_assert_uint_eq(domi_time_until_next_look_at_memory(100 * ms, mib, mib, 0), 4 * ms);
    ck_assert_uint_eq(domi_time_until_next_look_at_memory(2 * ms, mib, 0, 2 * ms), 2 * ms);
}

/* --- looks ------------------------------------------------------------------------------------ */

#define MS    UINT64_C(1000000)
#define MIB   UINT64_C(1048576)
#define LIMIT (100 * MIB)
#define HIGH  (80 * MIB) /* the mark memory.high, which is 80 % of the limit */
#define FULL  (95 * MIB)

static domt_stepped world;
static domt_tree tree;
static uint64_t used;

static void set_used_bytes_of_cgroup(uint64_t bytes)
{
    char text[32];

    used = bytes;
    snprintf(text, sizeof text, "%llu\n", (unsigned long long)bytes);
    domt_tree_write(&tree, "sys/fs/cgroup/a/memory.current", text);
}

static void set_up_world_with_cgroup(void)
{
    domus_config config;

    domus_config_init(&config);
    config.system.threads = 1;
    config.system.cpus = "none";
    domt_stepped_init(&world, &config);
    domt_tree_make(&tree);
    domt_tree_write(&tree, "proc/self/cgroup", "0::/a\n");
    domt_tree_write(&tree, "sys/fs/cgroup/a/memory.max", "104857600\n");
    domt_tree_write(&tree, "sys/fs/cgroup/a/memory.stat", "inactive_file 0\n");
    set_used_bytes_of_cgroup(2 * MIB);
    world.system->pressure.root = tree.root;
    domi_pressure_begin_to_measure(world.system);
    /* in this iteration the thread looks at memory for the first time */
    domt_stepped_iterate(&world, 0, false);
    domus_memory memory;
    domus_system_memory(world.system, &memory);
    ck_assert_uint_eq(memory.limit_bytes, LIMIT);
}

static void tear_down_world_with_cgroup(void)
{
    domi_pressure_end_measuring(world.system);
    domt_stepped_fini(&world);
    domt_tree_remove_copy(&tree);
}

static domus_memory_level memory_level_now(void)
{
    domus_memory memory;

    domus_system_memory(world.system, &memory);
    return memory.level;
}

/* Let a millisecond pass on the virtual clock, with a completion in it, so that the thread stays
 * awake. */
static void pass_one_ms_awake(void)
{
    domt_stepped_advance_clock(&world, MS);
    world.rings[0].completions = 1;
    domt_stepped_iterate(&world, 0, false);
}

/* Let the program use `step` bytes more in each millisecond, until it uses `most` bytes or memory
 * is short. */
static void grow_used_memory_until_short(uint64_t step, uint64_t most)
{
    while (used < most && memory_level_now() == DOMUS_MEMORY_NORMAL) {
        set_used_bytes_of_cgroup(used + step < most ? used + step : most);
        pass_one_ms_awake();
    }
}

static void pass_time_at_constant_use(uint32_t ms)
{
    for (uint32_t i = 0; i < ms; i++)
        pass_one_ms_awake();
}

static void expect_pressure_before_limit(uint64_t bytes)
{
    ck_assert_int_ne(memory_level_now(), DOMUS_MEMORY_NORMAL);
    ck_assert_uint_ge(used, HIGH);
    ck_assert_msg(used < bytes, "noticed at %llu MiB", (unsigned long long)(used / MIB));
}

/* The growth begins suddenly, without earlier looks that show how fast memory use grows. */
DOMT_TEST(fast_growth_of_memory_is_noticed_in_time)
{
    static const uint64_t steps[] = {MIB / 8, MIB, 2 * MIB, 3 * MIB};

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        set_up_world_with_cgroup();
        pass_time_at_constant_use(1000);
        grow_used_memory_until_short(steps[i], 2 * LIMIT);
        expect_pressure_before_limit(FULL);
        tear_down_world_with_cgroup();
    }
}

/* Memory use stands still for some milliseconds, as when a program waits for a client, and then
 * grows as fast as before. */
DOMT_TEST(growth_after_constant_use_is_noticed_in_time)
{
    static const uint32_t still_ms[] = {1, 5, 20, 99, 500};

    for (size_t i = 0; i < sizeof still_ms / sizeof still_ms[0]; i++) {
        set_up_world_with_cgroup();
        grow_used_memory_until_short(MIB / 2, 76 * MIB);
        pass_time_at_constant_use(still_ms[i]);
        grow_used_memory_until_short(MIB, 2 * LIMIT);
        expect_pressure_before_limit(HIGH + 8 * MIB);
        tear_down_world_with_cgroup();
    }
}

/* A look at memory takes up to 50 us, so near a mark the looks may take at most a hundredth of a
 * thread's time. */
DOMT_TEST(looks_at_memory_near_a_mark_are_milliseconds_apart)
{
    domus_memory before, after;

    set_up_world_with_cgroup();
    grow_used_memory_until_short(MIB / 2, HIGH - MIB / 2);
    pass_time_at_constant_use(100);
    domus_system_memory(world.system, &before);
    pass_time_at_constant_use(1000);
    domus_system_memory(world.system, &after);
    ck_assert_uint_ge(after.looks - before.looks, 100);
    ck_assert_uint_le(after.looks - before.looks, 251);
    tear_down_world_with_cgroup();
}

DOMT_SUITE(60)
