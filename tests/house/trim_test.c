/* house/message/trim.c: memory that a trim leaves with a slab is counted as spare until it is used
 * again, and objects that come back are sorted some at a time. */
#include "base/memory.h"
#include "house/message/pool.h"
#include "house/message/trim.h"
#include "tests/support/death.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

enum { COUNT = 20000 }; /* of 64 bytes: more than four chunks */

static domt_world world;
static domi_node *nodes[COUNT];

static uint64_t spare(const domi_manager *manager)
{
    return atomic_load(&manager->memory.spare_bytes);
}

DOMT_TEST(spare_bytes_that_are_used_again_are_not_spare_any_more)
{
    uint64_t now_ns = 0;

    domt_world_open(&world, 1);
    domi_manager *home = world.managers[0];
    for (int i = 0; i < COUNT; i++)
        nodes[i] = domi_pool_take(home, DOMI_SLAB_64);
    for (int i = 0; i < COUNT; i += 2)
        domi_pool_free(home, nodes[i]);
    for (int i = 0; i < 10000 && spare(home) == 0; i++)
        (void)domi_pool_trim_step(home, now_ns += UINT64_C(100000000), 4096);
    while (domi_pool_trim_step(home, now_ns, 4096))
        ;
    ck_assert_uint_gt(spare(home), 0);
    ck_assert_uint_eq(spare(home), home->pool.slabs[DOMI_SLAB_64].spare_bytes);
    for (int i = 0; i < COUNT; i++) /* all that is free, and more */
        ck_assert_ptr_nonnull(domi_pool_take(home, DOMI_SLAB_64));
    ck_assert_uint_eq(home->pool.slabs[DOMI_SLAB_64].spare_bytes, 0);
    ck_assert_uint_eq(spare(home), 0);
    domt_world_end(&world);
}

/* A thread for which others have freed much must not stand still while it sorts that. */
DOMT_TEST(objects_that_come_back_in_crowds_are_sorted_some_at_a_time)
{
    uint32_t steps = 1;

    domt_world_open(&world, 2);
    domi_manager *home = world.managers[0];
    for (int i = 0; i < COUNT; i++)
        nodes[i] = domi_pool_take(home, DOMI_SLAB_64);
    for (int i = 0; i < COUNT; i++)
        domi_pool_free(world.managers[1], nodes[i]);
    domi_pool_flush_returns(world.managers[1]);
    for (; domi_pool_collect_returned(home); steps++)
        ck_assert_uint_lt(steps, COUNT);
    ck_assert_uint_ge(steps, COUNT / 5000);
    ck_assert_uint_eq(domt_in_use(&world, DOMI_SLAB_64), 0);
    domt_world_end(&world);
}

/* --- what is true between two steps ----------------------------------------------------------- */

static void trims_without_a_pass(void)
{
    world.managers[0]->memory.trim.under_way = false;
}

static void has_come_to_no_slab(void)
{
    world.managers[0]->memory.trim.slab = DOMI_SLABS;
}

static void waits_longer_than_it_may(void)
{
    world.managers[0]->memory.trim.wait_ns = UINT64_MAX;
}

static void trims_a_slab_that_it_left(void)
{
    world.managers[0]->memory.trim.slab++;
}

static void trims_a_slab_before_it_begins(void)
{
    world.managers[0]->memory.trim.begun = false;
}

static void spares_bytes_that_it_does_not_tell(void)
{
    world.managers[0]->pool.slabs[DOMI_SLAB_64].spare_bytes += 64;
}

static void check_pass(void *breaks)
{
    (*(void (**)(void))breaks)();
    (void)domi_trim_is_sound(world.managers[0]);
}

DOMT_TEST(each_invariant_of_a_pass_is_checked)
{
    struct {
        void (*breaks)(void);
        const char *text;
    } rows[] = {
        {trims_without_a_pass, "trim->under_way || !trim->begun"},
        {has_come_to_no_slab, "trim->slab < DOMI_SLABS"},
        {waits_longer_than_it_may, "trim->wait_ns"},
        {trims_a_slab_that_it_left, "slab->trim == NULL"},
        {trims_a_slab_before_it_begins, "slab->trim == NULL"},
        {spares_bytes_that_it_does_not_tell, "spare <= told"},
    };
    uint64_t now_ns = 0;

    domt_world_open(&world, 1);
    domi_manager *home = world.managers[0];
    for (int i = 0; i < COUNT; i++)
        nodes[i] = domi_pool_take(home, DOMI_SLAB_64);
    for (int i = 0; i < COUNT; i++)
        domi_pool_free(home, nodes[i]);
    for (int i = 0; i < 1000 && !home->memory.trim.begun; i++)
        (void)domi_pool_trim_step(home, now_ns += UINT64_C(100000000), 64);
    ck_assert(home->pool.slabs[DOMI_SLAB_64].trim != NULL && domi_trim_is_sound(home));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        domt_dies(check_pass, &rows[i].breaks, rows[i].text);
    domt_world_end(&world);
}

DOMT_SUITE(30)
