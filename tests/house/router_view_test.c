/* A router that ends while somebody uses it: an old view of it reaches nobody, and its place comes
 * back whoever of the two that end it is the last. */
#include "house/family/family.h"
#include "tests/house/workers.h"

static domus_address old;
static domus_address young;
static bool swaps;

static domus_address spawn_ownerless(const domus_routing *routing)
{
    domus_address address;

    ck_assert_int_eq(
        domi_router_spawn(domt_outside(&world), NULL, &worker, NULL, 4, routing, NULL, &address),
        0);
    domt_settle(&world);
    return address;
}

/* Called between the look at the router and the choice of a routee. */
static uint64_t swap_routers(const domus_type *type, const void *payload)
{
    static const domus_routing robin = {.route = DOMUS_ROUTE_ROBIN};

    if (swaps) {
        swaps = false;
        ck_assert_int_eq(domi_router_stop(domt_outside(&world), old), 0);
        young = spawn_ownerless(&robin);
        ck_assert_ptr_eq(young.house, old.house);
    }
    return *(const uint64_t *)payload;
}

DOMT_TEST(view_of_a_router_that_has_ended_shows_none_of_the_next_routers_routees)
{
    const domus_routing hash = {.route = DOMUS_ROUTE_HASH, .key = swap_routers};

    begin(8);
    for (uint32_t i = 0; i < 10; i++) {
        swaps = false;
        old = router = spawn_ownerless(&hash);
        ck_assert_int_eq(domi_router_stop(domt_outside(&world), old), 0);
        old = router = spawn_ownerless(&hash);
        swaps = true;
        ck_assert_int_eq(put(world.managers[0], i), -ESTALE);
        for (uint32_t r = 0; r < 4; r++)
            ck_assert_uint_eq(domi_router_routee((domi_router *)(void *)young.house, r).house->mail,
                              0);
        ck_assert_int_eq(domi_router_stop(domt_outside(&world), young), 0);
        domt_settle(&world);
    }
    end();
}

/* The first sleeper that is woken by the stop of a routee: then the owner ends as well. */
static void end_owner(domi_manager *manager)
{
    manager->hooks.wake = NULL;
    domi_router_stop_owned(manager, agents[0].house);
}

DOMT_TEST(router_that_its_owner_loses_while_another_stops_it_is_given_back)
{
    begin(1); /* one router, so a place that is lost is missed at once */
    for (uint32_t i = 0; i < 3; i++) {
        spawn_many(4, DOMUS_ROUTE_ROBIN);
        void (*wake)(domi_manager *) = world.managers[0]->hooks.wake;
        world.managers[0]->hooks.wake = end_owner;
        atomic_store(&world.managers[0]->park, DOMI_PARK_SLEEPING);
        ck_assert_int_eq(domi_router_stop(domt_outside(&world), router), 0);
        ck_assert(world.managers[0]->hooks.wake == NULL);
        atomic_store(&world.managers[0]->park, DOMI_PARK_RUNNING);
        world.managers[0]->hooks.wake = wake;
        ck_assert_ptr_null(agents[0].house->family->routers);
        ck_assert_uint_eq(routers.count, 0);
        domt_settle(&world);
    }
    end();
}

static uint32_t births;

static bool may_spawn_two(domi_manager *manager)
{
    return births++ < 2;
}

DOMT_TEST(routees_of_a_router_that_could_not_be_made_are_stopped)
{
    begin(1);
    uint64_t houses = domt_sum(&world, offsetof(domi_counters, spawns));
    births = 0;
    wish.count = 4;
    wish.routing.route = DOMUS_ROUTE_ROBIN;
    world.managers[0]->hooks.begin_spawn = may_spawn_two;
    domt_do(&world, agents[0], spawn, NULL);
    world.managers[0]->hooks.begin_spawn = NULL;
    ck_assert_int_eq(wish.result, -ESHUTDOWN);
    ck_assert_uint_eq(domt_sum(&world, offsetof(domi_counters, spawns)), houses + 2);
    ck_assert_uint_eq(world.managers[0]->births.houses + world.managers[1]->births.houses,
                      2); /* the agents */
    ck_assert_uint_eq(routers.count, 0);
    spawn_many(4, DOMUS_ROUTE_ROBIN);
    end();
}

DOMT_SUITE(30)
