/* A watch on memory in a system whose cgroup is made of files: an actor that holds memory of the
 * application hears of foreign memory, which stops nothing else, also on a thread that sleeps. */
#include "runtime/system/system.h"
#include "tests/runtime/pressed.h"

#include <domus/pools.h>

static domus_system *system_;
static _Atomic uint32_t heard;
static _Atomic uint32_t level;
static _Atomic uint32_t own_level;
static _Atomic uint64_t foreign_bytes;

static int watch(domus_stack *stack, void *self)
{
    return domus_watch_memory(stack);
}

static int hear(domus_stack *stack, void *self, const void *payload)
{
    const domus_memory_change *change = payload;

    /* The test waits for the levels, and looks at the bytes then. */
    atomic_store(&foreign_bytes, change->foreign_bytes);
    atomic_store(&own_level, change->own_level);
    atomic_store(&level, change->level);
    atomic_fetch_add(&heard, 1);
    return 0;
}

static const domus_behaviour holding = {
    .name = "holding",
    .on = (const domus_on[]){{&domus_memory_type, hear, 0}, {NULL, NULL, 0}},
    .on_mount = watch,
};

static void hears(domus_memory_level wanted, domus_memory_level wanted_own)
{
    DOMT_WAIT_FOR(20, atomic_load(&level) == wanted && atomic_load(&own_level) == wanted_own);
}

static void goes_with_the_levels(domus_spawn_options options, const char *pool)
{
    domus_address address;

    atomic_store(&heard, 0);
    system_ = domt_pressed_start_logged(true);
    options.pool = pool != NULL ? domus_outside_pool_find(system_, pool) : NULL;
    ck_assert_int_eq(domus_outside_spawn_with(system_, &holding, NULL, &options, &address), 0);
    domt_pressed_use_with(85, 80);
    hears(DOMUS_MEMORY_HIGH, DOMUS_MEMORY_NORMAL);
    /* 80 %, or 75 when the look fell between the two figures of the test */
    ck_assert_uint_ge(atomic_load(&foreign_bytes), UINT64_C(740) << 20);
    domt_pressed_use_with(92, 87);
    hears(DOMUS_MEMORY_CRITICAL, DOMUS_MEMORY_NORMAL);
    domt_pressed_use_with(92, 10);
    hears(DOMUS_MEMORY_CRITICAL, DOMUS_MEMORY_CRITICAL);
    domt_pressed_use_with(20, 10);
    hears(DOMUS_MEMORY_NORMAL, DOMUS_MEMORY_NORMAL);
    ck_assert_uint_ge(atomic_load(&heard), 4);
    domt_pressed_end();
}

DOMT_TEST(an_actor_hears_of_memory_that_others_hold_and_of_the_librarys)
{
    goes_with_the_levels((domus_spawn_options){0}, NULL);
}

DOMT_TEST(a_detached_actor_does_too)
{
    goes_with_the_levels((domus_spawn_options){.detached = true}, NULL);
}

DOMT_TEST(an_actor_of_a_pool_does_too)
{
    goes_with_the_levels((domus_spawn_options){0}, "work");
}

DOMT_SUITE(60)
