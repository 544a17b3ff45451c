/* Everything that an actor holds beside its state is given back once: routers and their names when
 * it restarts, watches when it ends. */
#include "house/directory/name_table.h"
#include "house/directory/router.h"
#include "house/family/life.h"
#include "house/family/watch.h"
#include "tests/house/kin.h"
#include "tests/support/suite.h"

#include <errno.h>

static const domus_supervision restarts = {.otherwise = DOMUS_RESTART};
static domus_behaviour boss;

static int spawn_pool(domus_stack *stack, void *self)
{
    domus_spawn_options options = {.name = "pool"};
    domus_address pool;

    return domus_spawn_many(stack, &domt_agent, NULL, 3, NULL, &options, &pool);
}

DOMT_TEST(restart_gives_the_routers_and_their_names_back)
{
    static const uint64_t key[2] = {1, 2};
    domi_names names;
    domi_routers routers;

    domt_kin_open(2);
    ck_assert_int_eq(domi_names_init(&names, 8, key), 0);
    domi_routers_init(&routers, 8, 8);
    for (uint32_t i = 0; i < 3; i++) {
        domt_kin_world.managers[i]->directory.names = &names;
        domt_kin_world.managers[i]->directory.routers = &routers;
    }
    boss = domt_kin_boss(&restarts);
    (void)domt_kin_root(1, 0, &boss);
    domt_kin_of[2].mounting = spawn_pool;
    (void)domt_kin_child(1, 2, 0, &domt_kin_hearing);
    (void)domt_kin_trail();
    domt_kin_err(2, -EIO);
    ck_assert_uint_eq(routers.count, 1);
    ck_assert_uint_eq(domi_names_count(&names), 1);
    ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, restarts), 1);
    ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, failures), 1);
    ck_assert(domt_kin_lives(2));
    domt_kin_close();
    domi_routers_fini(&routers);
    domi_names_fini(&names);
}

static void meanwhile(domi_manager *home)
{
    (void)domt_iterate(home);
}

/* The other thread: what it does while on_stop runs, and when it is woken after. */
static int watch_two(domus_stack *stack, void *self)
{
    domi_manager *there = domt_kin_world.managers[1];

    ck_assert_int_eq(domus_watch_actor(stack, domt_kin_of[3].address, NULL), 0);
    ck_assert_int_eq(domus_watch_actor(stack, domt_kin_of[2].address, NULL), 0);
    (void)domt_iterate(there);
    ck_assert_int_eq(domi_house_stop(domt_outside(&domt_kin_world), domt_kin_of[3].address), 0);
    there->hooks.wake = meanwhile;
    atomic_store(&there->park, DOMI_PARK_SLEEPING);
    return 0;
}

static domus_watch watches[2];

static int watch_twice(domus_stack *stack, void *unused)
{
    for (uint32_t i = 0; i < 2; i++)
        ck_assert_int_eq(domus_watch_actor(stack, domt_kin_of[2].address, &watches[i]), 0);
    return 0;
}

DOMT_TEST(watch_is_freed_once_when_both_sides_end_together)
{
    domt_kin_open(2);
    (void)domt_kin_root(1, 0, &domt_kin_hearing);
    (void)domt_kin_root(2, 1, &domt_kin_hearing);
    (void)domt_kin_root(3, 1, &domt_kin_hearing);
    domt_kin_of[1].stopping = watch_two;
    ck_assert_int_eq(domi_house_stop(domt_kin_world.managers[0], domt_kin_of[1].address), 0);
    domt_kin_turn(0);
    domt_settle(&domt_kin_world);
    ck_assert(!domt_kin_lives(1));
    ck_assert(!domt_kin_lives(3));
    domt_kin_of[1].stopping = NULL;
    (void)domt_kin_root(1, 0, &domt_kin_hearing);
    domt_kin_do(1, watch_twice, NULL);
    ck_assert_ptr_ne(watches[0].watch, watches[1].watch);
    domt_kin_close();
}

DOMT_SUITE(60)
