/* house/directory/router_check.c: each invariant of a router is broken once, and the check for it
 * ends the process. */
#include "house/directory/router_check.h"
#include "house/dispatch/invariants.h"
#include "house/family/family.h"
#include "tests/house/workers.h"
#include "tests/support/death.h"

static domi_router *made; /* a router of four routees; agents[0] has made it */

static void make_router(uint32_t max, domus_route route)
{
    open_workers(max);
    spawn_router_with_routees(4, route);
    made = (domi_router *)(void *)router.house;
}

typedef struct row {
    void (*breaks)(void);
    const char *text;
} row;

static void expect_each_breach_ends_process(void (*body)(void *), const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        domt_check_child_aborts(body, (void *)(uintptr_t)&rows[i].breaks, rows[i].text);
}

static void break_router(void *breaks)
{
    (*(void (**)(void))breaks)();
}

/* --- open ------------------------------------------------------------------------------------- */

static void break_with_a_home(void)
{
    made->face.home = world.managers[0];
}

static void break_with_state_waiting(void)
{
    made->face.state = DOMI_WAITING;
}

static void break_with_conversations(void)
{
    made->face.stacks = (domus_stack *)(void *)made;
}

static void break_with_another_size_class(void)
{
    made->size_class++;
}

static void break_with_no_size_class(void)
{
    made->size_class = DOMI_ROUTER_CLASSES;
}

static void break_with_stopping_but_open(void)
{
    atomic_fetch_or(&made->face.life, DOMI_ROUTER_STOPPING);
}

static void break_with_open_orphan(void)
{
    atomic_fetch_or(&made->face.life, DOMI_ROUTER_ORPHAN);
}

static void break_with_no_lease(void)
{
    atomic_fetch_and(&made->face.life, UINT32_MAX);
}

static void break_with_one_routee(void)
{
    atomic_store(&made->count, 1);
}

static void break_with_more_routees_than_places(void)
{
    atomic_store(&made->count, 5);
}

static void break_with_too_large_a_router(void)
{
    atomic_store(&made->count, 2);
}

static void break_with_no_such_route(void)
{
    atomic_store(&made->route, DOMUS_ROUTE_HASH + 1);
}

static void break_with_hash_without_a_key(void)
{
    atomic_store(&made->route, DOMUS_ROUTE_HASH);
}

static void break_with_nobody_as_a_routee(void)
{
    atomic_store(&made->routees[3].house, NULL);
}

static void break_with_a_router_as_a_routee(void)
{
    atomic_store(&made->routees[3].house, &made->face);
}

static void break_with_a_routee_without_a_lease(void)
{
    atomic_store(&made->routees[3].lease, 0);
}

static void break_with_a_routee_of_the_future(void)
{
    atomic_fetch_add(&made->routees[3].lease, 1);
}

static void break_and_check_open_router(void *breaks)
{
    break_router(breaks);
    domi_router_check(made);
}

static void break_and_check_before_open(void *breaks)
{
    atomic_fetch_or(&made->face.life, DOMI_LIFE_CLOSED);
    break_router(breaks);
    (void)domi_router_check_before_open(made);
}

DOMT_TEST(each_invariant_of_an_open_router_is_checked)
{
    static const row rows[] = {
        {break_with_a_home, "router->face.home == NULL"},
        {break_with_state_waiting, "router->face.state"},
        {break_with_conversations, "router->face.stacks"},
        {break_with_another_size_class, "router->turns"},
        {break_with_no_size_class, "DOMI_ROUTER_CLASSES"},
        {break_with_no_lease, "DOMI_LIFE_LEASE"},
        {break_with_one_routee, "count >= 2"},
        {break_with_more_routees_than_places, "count <= 1u << router->size_class"},
        {break_with_too_large_a_router, "router->size_class >> 1"},
        {break_with_no_such_route, "route <= DOMUS_ROUTE_HASH"},
        {break_with_hash_without_a_key, "has_key"},
        {break_with_nobody_as_a_routee, "who.house != NULL"},
        {break_with_a_router_as_a_routee, "who.house->home != NULL"},
        {break_with_a_routee_without_a_lease, "who.lease != 0"},
        {break_with_a_routee_of_the_future, "reached >= who.lease"},
    };
    static const row states[] = {
        {break_with_stopping_but_open, "no state"},
        {break_with_open_orphan, "no state"},
    };

    make_router(1, DOMUS_ROUTE_ROBIN);
    domi_router_check(made);
    expect_each_breach_ends_process(break_and_check_open_router, rows,
                                    sizeof rows / sizeof rows[0]);
    expect_each_breach_ends_process(break_and_check_open_router, states,
                                    sizeof states / sizeof states[0]);
    expect_each_breach_ends_process(break_and_check_before_open, rows,
                                    sizeof rows / sizeof rows[0]);
    stop_actor(routees[1]); /* a routee that ends before its router breaks no invariant */
    domi_router_check(made);
    close_workers();
}

/* --- given back ------------------------------------------------------------------------------- */

static void break_with_open_router(void)
{
    atomic_fetch_and(&made->face.life, ~DOMI_LIFE_CLOSED);
}

static void break_with_router_being_stopped(void)
{
    atomic_fetch_or(&made->face.life, DOMI_ROUTER_STOPPING);
}

static void break_with_a_routee_that_lives_on(void)
{
    domus_address agent = agents[0];

    atomic_store(&made->routees[2].house, agent.house);
    atomic_store(&made->routees[2].lease, agent.lease);
}

static void break_and_check_before_give_back(void *breaks)
{
    break_router(breaks);
    (void)domi_router_check_before_give_back(world.managers[0], made);
}

DOMT_TEST(each_invariant_of_a_router_that_is_given_back_is_checked)
{
    static const row rows[] = {
        {break_with_open_router, "DOMI_LIFE_CLOSED"},
        {break_with_router_being_stopped, "DOMI_LIFE_CLOSED"},
        {break_with_a_routee_that_lives_on, "does_routee_take_no_more_messages"},
        {break_with_a_home, "router->face.home == NULL"},
    };

    make_router(1, DOMUS_ROUTE_ROBIN);
    ck_assert_int_eq(domi_router_stop(domt_outside_manager(&world), router), 0);
    /* all routees were asked to stop, so the router may be given back */
    ck_assert(domi_router_check_before_give_back(world.managers[0], made));
    domt_settle_world(&world);
    ck_assert(domi_router_check_before_give_back(world.managers[0], made));
    domi_router_check(made);
    expect_each_breach_ends_process(break_and_check_before_give_back, rows,
                                    sizeof rows / sizeof rows[0]);
    close_workers();
}

/* --- all routers, and their owner ------------------------------------------------------------- */

static void break_with_count_too_large(void)
{
    routers.count++;
}

static void break_with_count_too_small(void)
{
    routers.count--;
}

static void break_with_more_than_allowed(void)
{
    routers.max = 0;
}

static void break_with_open_router_in_free_list(void)
{
    routers.free[made->size_class] = made;
}

static void break_with_a_free_router_among_larger_ones(void)
{
    routers.free[made->size_class + 1] = routers.free[made->size_class - 1];
}

static void break_with_a_free_router_without_leases(void)
{
    atomic_store(&routers.free[made->size_class - 1]->face.life, DOMI_LIFE_CLOSED);
}

static void break_with_lost_free_router(void)
{
    routers.free[made->size_class - 1] = NULL;
}

static void break_with_no_owner(void)
{
    made->owned = false;
}

static void break_with_orphan_of_a_living_owner(void)
{
    atomic_fetch_or(&made->face.life, DOMI_LIFE_CLOSED | DOMI_ROUTER_ORPHAN);
}

static void break_with_a_circle(void)
{
    made->next = made;
}

static void break_with_load_at_another_place(void)
{
    routees[0].house->family->load = &made->routees[2].load;
}

static void break_with_load_of_another_lease(void)
{
    atomic_fetch_sub(&made->routees[0].lease, 1);
}

static void break_and_check_houses(void *breaks)
{
    break_router(breaks);
    domi_manager_check_houses(world.managers[0]);
}

DOMT_TEST(each_invariant_of_all_routers_is_checked)
{
    static const row rows[] = {
        {break_with_count_too_large, "routers->count + free <= made"},
        {break_with_count_too_small, "routers->count + free + used_up >= made"},
        {break_with_lost_free_router, "routers->count + free + used_up >= made"},
        {break_with_more_than_allowed, "routers->count <= routers->max"},
        {break_with_open_router_in_free_list, "== DOMI_LIFE_CLOSED"},
        {break_with_a_free_router_among_larger_ones, "router->size_class == size_class"},
        {break_with_a_free_router_without_leases, "DOMI_LIFE_LEASE"},
        {break_with_no_owner, "router->owned"},
        {break_with_orphan_of_a_living_owner, "DOMI_ROUTER_ORPHAN"},
        {break_with_a_circle, "count <= manager->directory.routers->count"},
        {break_with_load_at_another_place, "does_routee_take_no_more_messages"},
        {break_with_load_of_another_lease, "does_routee_take_no_more_messages"},
        {break_with_one_routee, "count >= 2"},
    };

    open_workers(8);
    spawn_router_with_routees(2, DOMUS_ROUTE_ROBIN);
    ck_assert_int_eq(domi_router_stop(domt_outside_manager(&world), router), 0);
    domt_settle_world(&world);
    spawn_router_with_routees(4, DOMUS_ROUTE_LEAST);
    made = (domi_router *)(void *)router.house;
    domi_manager_check_houses(world.managers[0]);
    /* the memory of the stopped router is used again for this one */
    spawn_router_with_routees(2, DOMUS_ROUTE_NEAR);
    ck_assert_int_eq(domi_router_stop(domt_outside_manager(&world), router), 0);
    domt_settle_world(&world);
    domi_manager_check_houses(world.managers[0]);
    close_workers();

    open_workers(8);
    for (uint32_t i = 0; i < 2; i++) /* no actor owns these routers */
        ck_assert_int_eq(domi_router_spawn_with_routees(domt_outside_manager(&world), NULL, &worker,
                                                        NULL, 2, NULL, NULL, &router),
                         0);
    /* a router without an owner is free at once when it stops */
    ck_assert_int_eq(domi_router_stop(domt_outside_manager(&world), router), 0);
    spawn_router_with_routees(4, DOMUS_ROUTE_LEAST);
    made = (domi_router *)(void *)router.house;
    domi_manager_check_houses(world.managers[0]);
    expect_each_breach_ends_process(break_and_check_houses, rows, sizeof rows / sizeof rows[0]);
    close_workers();
}

/* --- views ------------------------------------------------------------------------------------ */

static domus_address old;
static domus_address young;
static bool swaps;

static domus_address spawn_router_without_owner(const domus_routing *routing)
{
    domus_address address;

    ck_assert_int_eq(domi_router_spawn_with_routees(domt_outside_manager(&world), NULL, &worker,
                                                    NULL, 4, routing, NULL, &address),
                     0);
    domt_settle_world(&world);
    return address;
}

/* Replace the router by another one between the look at the router and the choice of a routee. */
static uint64_t replace_router_during_choice(const domus_type *type, const void *payload)
{
    static const domus_routing robin = {.route = DOMUS_ROUTE_ROBIN};

    if (swaps) {
        swaps = false;
        ck_assert_int_eq(domi_router_stop(domt_outside_manager(&world), old), 0);
        young = spawn_router_without_owner(&robin);
        ck_assert_ptr_eq(young.house, old.house);
    }
    return *(const uint64_t *)payload;
}

DOMT_TEST(view_of_a_router_that_has_ended_shows_none_of_the_next_routers_routees)
{
    const domus_routing hash = {.route = DOMUS_ROUTE_HASH, .key = replace_router_during_choice};

    open_workers(8);
    for (uint32_t i = 0; i < 10; i++) {
        swaps = false;
        old = router = spawn_router_without_owner(&hash);
        ck_assert_int_eq(domi_router_stop(domt_outside_manager(&world), old), 0);
        old = router = spawn_router_without_owner(&hash);
        swaps = true;
        ck_assert_int_eq(put_number_to_router(world.managers[0], i), -ESTALE);
        for (uint32_t r = 0; r < 4; r++)
            ck_assert_uint_eq(
                domi_router_routee_at_index((domi_router *)(void *)young.house, r).house->mail, 0);
        ck_assert_int_eq(domi_router_stop(domt_outside_manager(&world), young), 0);
        domt_settle_world(&world);
    }
    close_workers();
}

/* Give up the owner's routers, as at its end, when the stop of a routee wakes the first thread. */
static void stop_routers_of_owner_when_woken(domi_manager *manager)
{
    manager->hooks.wake = NULL;
    domi_router_stop_all_of_actor(manager, agents[0].house);
}

DOMT_TEST(router_that_its_owner_loses_while_another_stops_it_is_given_back)
{
    /* at most one router: if its place were lost, the next round would fail at once */
    open_workers(1);
    for (uint32_t i = 0; i < 3; i++) {
        spawn_router_with_routees(4, DOMUS_ROUTE_ROBIN);
        void (*wake)(domi_manager *) = world.managers[0]->hooks.wake;
        world.managers[0]->hooks.wake = stop_routers_of_owner_when_woken;
        atomic_store(&world.managers[0]->park, DOMI_PARK_SLEEPING);
        ck_assert_int_eq(domi_router_stop(domt_outside_manager(&world), router), 0);
        ck_assert(world.managers[0]->hooks.wake == NULL);
        atomic_store(&world.managers[0]->park, DOMI_PARK_RUNNING);
        world.managers[0]->hooks.wake = wake;
        ck_assert_ptr_null(agents[0].house->family->routers);
        ck_assert_uint_eq(routers.count, 0);
        domt_settle_world(&world);
    }
    close_workers();
}

static uint32_t births;

static bool is_one_of_first_two_spawns(domi_manager *manager)
{
    return births++ < 2;
}

DOMT_TEST(routees_of_a_router_that_could_not_be_made_are_stopped)
{
    open_workers(1);
    uint64_t houses = domt_sum_counter(&world, offsetof(domi_counters, spawns));
    births = 0;
    wish.count = 4;
    wish.routing.route = DOMUS_ROUTE_ROBIN;
    world.managers[0]->hooks.begin_spawn = is_one_of_first_two_spawns;
    domt_run_as_actor(&world, agents[0], spawn_router_as_wished, NULL);
    world.managers[0]->hooks.begin_spawn = NULL;
    ck_assert_int_eq(wish.result, -ESHUTDOWN);
    ck_assert_uint_eq(domt_sum_counter(&world, offsetof(domi_counters, spawns)), houses + 2);
    ck_assert_uint_eq(world.managers[0]->births.houses + world.managers[1]->births.houses,
                      2); /* only the houses of the two agents are left */
    ck_assert_uint_eq(routers.count, 0);
    spawn_router_with_routees(4, DOMUS_ROUTE_ROBIN);
    close_workers();
}

DOMT_SUITE(60)
