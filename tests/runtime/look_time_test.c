/* runtime/system/pressure.c: a program that takes memory of its own passes no mark by much before
 * the next look, however it began. The clock is virtual and the cgroup is made of files, so each
 * case is the same on any machine. */
#include "runtime/system/pressure.h"

#include "tests/runtime/stepped.h"
#include "tests/support/tree.h"

#include <stdio.h>

#define MS    UINT64_C(1000000)
#define MIB   UINT64_C(1048576)
#define LIMIT (100 * MIB)
#define HIGH  (80 * MIB) /* memory.high is 80 % */
#define FULL  (95 * MIB)

static domt_stepped world;
static domt_tree tree;
static uint64_t used;

static void use(uint64_t bytes)
{
    char text[32];

    used = bytes;
    snprintf(text, sizeof text, "%llu\n", (unsigned long long)bytes);
    domt_tree_write(&tree, "sys/fs/cgroup/a/memory.current", text);
}

static void begin(void)
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
    use(2 * MIB);
    world.system->pressure.root = tree.root;
    domi_pressure_begin(world.system);
    domt_stepped_iterate(&world, 0, false); /* the first look */
    domus_memory memory;
    domus_system_memory(world.system, &memory);
    ck_assert_uint_eq(memory.limit_bytes, LIMIT);
}

static void end(void)
{
    domi_pressure_end(world.system);
    domt_stepped_fini(&world);
    domt_tree_remove(&tree);
}

static domus_memory_level level(void)
{
    domus_memory memory;

    domus_system_memory(world.system, &memory);
    return memory.level;
}

/* A millisecond in which something came, so the thread stayed awake. */
static void pass_ms(void)
{
    domt_stepped_advance(&world, MS);
    world.rings[0].completions = 1;
    domt_stepped_iterate(&world, 0, false);
}

/* Use `step` bytes more in each millisecond, until `most` bytes are used or memory is short. */
static void grow(uint64_t step, uint64_t most)
{
    while (used < most && level() == DOMUS_MEMORY_NORMAL) {
        use(used + step < most ? used + step : most);
        pass_ms();
    }
}

static void stand_still(uint32_t ms)
{
    for (uint32_t i = 0; i < ms; i++)
        pass_ms();
}

static void is_noticed_before(uint64_t bytes)
{
    ck_assert_int_ne(level(), DOMUS_MEMORY_NORMAL);
    ck_assert_uint_ge(used, HIGH);
    ck_assert_msg(used < bytes, "noticed at %llu MiB", (unsigned long long)(used / MIB));
}

/* There was no growth before that could tell how fast it is. */
DOMT_TEST(growth_from_nothing_is_noticed)
{
    static const uint64_t steps[] = {MIB / 8, MIB, 2 * MIB, 3 * MIB};

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        begin();
        stand_still(1000);
        grow(steps[i], 2 * LIMIT);
        is_noticed_before(FULL);
        end();
    }
}

/* Growth that stands still for some milliseconds, as when the program waits for a client, comes
 * back as fast as before. */
DOMT_TEST(growth_that_stood_still_is_noticed)
{
    static const uint32_t still_ms[] = {1, 5, 20, 99, 500};

    for (size_t i = 0; i < sizeof still_ms / sizeof still_ms[0]; i++) {
        begin();
        grow(MIB / 2, 76 * MIB);
        stand_still(still_ms[i]);
        grow(MIB, 2 * LIMIT);
        is_noticed_before(HIGH + 8 * MIB);
        end();
    }
}

/* A look takes up to 50 us, so near a mark the looks take at most a hundredth of a thread. */
DOMT_TEST(looks_near_a_mark_are_milliseconds_apart)
{
    domus_memory before, after;

    begin();
    grow(MIB / 2, HIGH - MIB / 2);
    stand_still(100);
    domus_system_memory(world.system, &before);
    stand_still(1000);
    domus_system_memory(world.system, &after);
    ck_assert_uint_ge(after.looks - before.looks, 100);
    ck_assert_uint_le(after.looks - before.looks, 251);
    end();
}

DOMT_SUITE(60)
