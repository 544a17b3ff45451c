/* The address of a router: it is made for an owner, and stopped or stale like an actor's. */
#include "tests/house/workers.h"

#include "base/memory.h"

/* --- the address ------------------------------------------------------------------------------ */

static int stop_router(domus_stack *stack, void *context)
{
    *(int *)context = domus_stop(stack, router);
    return 0;
}

DOMT_TEST(stop_stops_all_and_the_address_is_stale_for_ever)
{
    begin(1);
    for (uint32_t round = 0; round < 5; round++) { /* routers.max is 1 */
        int result = 1;
        stopped = 0;
        spawn_many(3, DOMUS_ROUTE_ROBIN);
        domus_address old = router;
        domt_do(&world, agents[round % 2], stop_router, &result);
        ck_assert_int_eq(result, 0);
        ck_assert_uint_eq(stopped, 3);
        domt_do(&world, agents[0], stop_router, &result);
        ck_assert_int_eq(result, -ESTALE);
        ck_assert_int_eq(put(world.managers[0], 1), -ESTALE);
        spawn_many(4, DOMUS_ROUTE_NEAR); /* in the same memory */
        ck_assert_ptr_eq(old.house, router.house);
        ck_assert_uint_ne(old.lease, router.lease);
        ck_assert_int_eq(domt_notice(world.managers[0], old, &work, &(uint64_t){1}), -ESTALE);
        ck_assert_int_eq(domi_house_stop(world.managers[0], old), -ESTALE);
        ck_assert_int_eq(put(world.managers[0], 1), 0);
        domt_do(&world, agents[0], stop_router, &result);
    }
    end();
}

static int stop_after_mail(domus_stack *stack, void *context)
{
    uint64_t number = 1;

    for (uint32_t i = 0; i < 8; i++)
        ck_assert_int_eq(domus_notice(stack, router, &work, &number), 0);
    sent = domus_stop_after_mail(stack, router);
    return 0;
}

DOMT_TEST(stop_after_mail_lets_all_handle_what_waits)
{
    begin(8);
    uint64_t before = domt_in_use_all(&world);
    spawn_many(4, DOMUS_ROUTE_ROBIN);
    domt_do(&world, agents[0], stop_after_mail, NULL);
    ck_assert_int_eq(sent, 0);
    ck_assert_uint_eq(total(), 8);
    ck_assert_uint_eq(stopped, 4);
    ck_assert_uint_eq(domt_in_use_all(&world), before);
    ck_assert_int_eq(put(world.managers[0], 1), -ESTALE);
    end();
}

static int watch(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_watch_actor(stack, router, NULL), -EINVAL);
    ck_assert_int_eq(domus_link_actor(stack, router, NULL), -EINVAL);
    ck_assert_int_eq(domus_watch_room(stack, router, NULL), -EINVAL);
    return 0;
}

DOMT_TEST(a_router_cannot_be_watched)
{
    begin(8);
    spawn_many(2, DOMUS_ROUTE_ROBIN);
    domt_do(&world, agents[0], watch, NULL);
    end();
}

static int spawn_named(domus_stack *stack, void *name)
{
    domus_spawn_options options = {.name = name};

    wish.result = domus_spawn_many(stack, behaviour, NULL, 3, NULL, &options, &router);
    return 0;
}

DOMT_TEST(a_name_is_the_routers)
{
    domus_address found;
    char name[] = "pool";

    begin(8);
    domt_do(&world, agents[0], spawn_named, name);
    ck_assert_int_eq(wish.result, 0);
    ck_assert_int_eq(domi_names_find(&names, "pool", &found), 0);
    ck_assert_ptr_eq(found.house, router.house);
    domt_do(&world, agents[1], spawn_named, name);
    ck_assert_int_eq(wish.result, -EEXIST);
    ck_assert_uint_eq(DOMT_SUM(&world, stops), 3); /* those of the second, before their mount */
    stop(router);
    ck_assert_uint_eq(stopped, 3);
    ck_assert_int_eq(domi_names_find(&names, "pool", &found), -ENOENT);
    end();
}

DOMT_TEST(a_count_of_one_is_a_plain_actor)
{
    begin(0);
    spawn_many(1, DOMUS_ROUTE_LEAST);
    ck_assert_ptr_eq(router.house->home, world.managers[0]);
    ck_assert_int_eq(put(world.managers[1], 1), 0);
    domt_settle(&world);
    ck_assert_uint_eq(got[0], 1);
    end();
}

static int misuse(domus_stack *stack, void *context)
{
    domus_routing routing = {.route = DOMUS_ROUTE_HASH};
    domus_spawn_options options = {.placement = DOMUS_ON_THREAD, .thread = 2};
    domus_behaviour broken = worker;

    broken.state_size = 1u << 21;
    ck_assert_int_eq(domus_spawn_many(stack, &worker, NULL, 0, NULL, NULL, &router), -EINVAL);
    ck_assert_int_eq(domus_spawn_many(stack, &worker, NULL, 65, NULL, NULL, &router), -EINVAL);
    ck_assert_int_eq(domus_spawn_many(stack, &worker, NULL, 2, &routing, NULL, &router), -EINVAL);
    ck_assert_int_eq(domus_spawn_many(stack, &worker, NULL, 2, NULL, &options, &router), -EINVAL);
    ck_assert_int_eq(domus_spawn_many(stack, &broken, NULL, 2, NULL, NULL, &router), -EINVAL);
    routing.route = (domus_route)4;
    ck_assert_int_eq(domus_spawn_many(stack, &worker, NULL, 2, &routing, NULL, &router), -EINVAL);
    options.thread = 1;
    ck_assert_int_eq(
        domus_spawn_many(stack, &worker, NULL, DOMUS_PER_THREAD, NULL, &options, &router), -EINVAL);
    ck_assert_int_eq(domus_spawn_many(stack, &worker, NULL, 2, NULL, &options, &router), 0);
    ck_assert_uint_eq(domus_routees(stack, router, routees, 2), 2);
    ck_assert_ptr_eq(routees[1].house->home, world.managers[1]);
    ck_assert_int_eq(domus_spawn_many(stack, &worker, NULL, 2, NULL, NULL, &router), -ENOSPC);
    return 0;
}

DOMT_TEST(wrong_orders_are_refused_and_routers_have_a_limit)
{
    begin(1);
    domt_do(&world, agents[0], misuse, NULL);
    end();
}

/* --- owners ----------------------------------------------------------------------------------- */

static int raise(domus_stack *stack, void *context)
{
    wish.result = domus_spawn_many(stack, behaviour, NULL, 2, NULL, NULL, &router);
    return 0;
}

DOMT_TEST(the_end_of_who_made_it_ends_a_router)
{
    begin(2);
    for (uint32_t i = 0; i < 10; i++) {
        domus_address owner =
            domt_spawn(domt_outside(&world), world.managers[i % 2], &domt_agent, NULL);
        domt_do(&world, owner, raise, NULL);
        ck_assert_int_eq(wish.result, 0);
        domt_do(&world, owner, raise, NULL);
        ck_assert_int_eq(wish.result, 0);
        if (i % 3 == 0)
            stop(router); /* one of the two before */
        stop(owner);
        ck_assert_uint_eq(stopped, 4 * (i + 1));
        ck_assert_int_eq(put(world.managers[0], 1), -ESTALE);
    }
    end();
}

DOMT_TEST(without_memory_nothing_is_left)
{
    static const domus_behaviour big = {.name = "big", .state_size = 5000, .on_stop = on_stop};

    behaviour = &big;
    for (int64_t n = 0; n < 9; n++) {
        begin(2);
        uint64_t before = domt_in_use_all(&world);
        wish.count = 4;
        wish.routing.route = DOMUS_ROUTE_LEAST;
        memset(&wish.options, 0, sizeof wish.options);
        domt_send(domt_outside(&world), agents[0], spawn, NULL);
        domi_memory_fail_after(n, 1);
        domt_settle(&world);
        domi_memory_fail_after(-1, 0);
        ck_assert_int_eq(wish.result, -ENOMEM);
        ck_assert_uint_eq(DOMT_SUM(&world, spawns), DOMT_SUM(&world, stops) + 2); /* the agents */
        ck_assert_uint_eq(domt_in_use_all(&world), before);
        domt_do(&world, agents[0], spawn, NULL);
        ck_assert_int_eq(wish.result, 0);
        end();
    }
    behaviour = &worker;
}

DOMT_SUITE(20)
