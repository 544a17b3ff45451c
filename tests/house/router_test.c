/* house/directory/router.c: each policy chooses the right routee, and skips routees that are gone
 * or full. */
#include "base/memory.h"
#include "tests/house/workers.h"

/* --- robin, near ------------------------------------------------------------------------------ */

DOMT_TEST(robin_gives_to_one_after_the_other)
{
    open_workers_with_large_mailboxes(8);
    spawn_router_with_routees(5, DOMUS_ROUTE_ROBIN);
    ck_assert_ptr_null(router.house->home);
    for (uint32_t i = 0; i < 5; i++)
        ck_assert_ptr_eq(routees[i].house->home, world.managers[i % 2]);
    domt_run_as_actor(&world, agents[0], send_100_numbers_to_router, NULL);
    domt_run_as_actor(&world, agents[1], send_100_numbers_to_router, NULL);
    for (uint32_t i = 0; i < 5; i++)
        ck_assert_uint_eq(got[i], 40);
    close_workers();
}

static int spawn_router_with_routee_per_thread(domus_stack *stack, void *context)
{
    ck_assert_int_eq(
        domus_spawn_many(stack, behaviour, NULL, DOMUS_PER_THREAD, NULL, NULL, &router), 0);
    /* domus_routees() counts both routees, although the array has room for one */
    ck_assert_uint_eq(domus_routees(stack, router, routees, 1), 2);
    ck_assert_uint_eq(domus_routees(stack, router, routees, 2), 2);
    return 0;
}

DOMT_TEST(near_gives_to_the_one_on_the_senders_thread)
{
    open_workers_with_large_mailboxes(8);
    domt_run_as_actor(&world, agents[0], spawn_router_with_routee_per_thread, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        ck_assert_ptr_eq(routees[i].house->home, world.managers[i]);
        memset(got, 0, sizeof got);
        domt_run_as_actor(&world, agents[i], send_100_numbers_to_router, NULL);
        ck_assert_uint_eq(got[i], 100);
    }
    for (uint64_t i = 0; i < 10; i++) /* messages of foreign threads go to the routees in turn */
        ck_assert_int_eq(domt_send_notice(domt_outside_manager(&world), router, &work, &i), 0);
    domt_settle_world(&world);
    ck_assert_uint_eq(got[0], 5);
    ck_assert_uint_eq(got[1], 105);
    close_workers();
}

DOMT_TEST(near_takes_turns_among_several_of_one_thread)
{
    open_workers_with_large_mailboxes(8);
    spawn_router_with_routees(5, DOMUS_ROUTE_NEAR);
    domt_run_as_actor(&world, agents[1], send_100_numbers_to_router, NULL);
    ck_assert_uint_eq(got[1], 50);
    ck_assert_uint_eq(got[3], 50);
    close_workers();
}

/* --- who is gone or full
 * -------------------------------------------------------------------------- */

DOMT_TEST(routees_that_have_ended_are_skipped_until_all_have)
{
    for (domus_route route = DOMUS_ROUTE_ROBIN; route <= DOMUS_ROUTE_LEAST; route++) {
        open_workers_with_large_mailboxes(8);
        spawn_router_with_routees(4, route);
        for (uint32_t gone = 0; gone < 4; gone++) {
            uint64_t before = got[gone];
            stop_actor(routees[gone]);
            domt_run_as_actor(&world, agents[0], send_100_numbers_to_router,
                              (void *)(intptr_t)(gone < 3 ? 0 : -ESTALE));
            ck_assert_uint_eq(got[gone], before);
            ck_assert_uint_eq(sum_of_messages(), gone < 3 ? (gone + 1) * 100 : 300);
        }
        close_workers();
    }
}

DOMT_TEST(robin_refuses_when_all_are_full_and_near_when_its_own_is)
{
    open_workers(8);
    spawn_router_with_routees(4, DOMUS_ROUTE_ROBIN);
    for (uint64_t i = 0; i < 10; i++)
        ck_assert_int_eq(domt_send_notice(domt_outside_manager(&world), routees[1], &work, &i), 0);
    for (uint64_t i = 0; i < 54; i++)
        ck_assert_int_eq(put_number_to_router(domt_outside_manager(&world), i), 0);
    ck_assert_int_eq(put_number_to_router(domt_outside_manager(&world), 0), -ENOBUFS);
    domt_settle_world(&world);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_uint_eq(got[i], 16);
    close_workers();

    open_workers(8);
    spawn_router_with_routees(2, DOMUS_ROUTE_NEAR);
    for (uint64_t i = 0; i < 16; i++)
        ck_assert_int_eq(put_number_to_router(world.managers[1], i), 0);
    ck_assert_int_eq(put_number_to_router(world.managers[1], 0), -ENOBUFS);
    ck_assert_int_eq(put_number_to_router(world.managers[0], 0), 0);
    domt_settle_world(&world);
    ck_assert_uint_eq(got[0], 1);
    ck_assert_uint_eq(got[1], 16);
    close_workers();
}

/* --- least ------------------------------------------------------------------------------------ */

DOMT_TEST(least_prefers_the_empty_one)
{
    open_workers(8);
    spawn_router_with_routees(4, DOMUS_ROUTE_LEAST);
    for (uint32_t empty = 0; empty < 4; empty++) {
        /* the sender is on the router's home, on another home, or outside */
        for (uint32_t from = 0; from < 3; from++) {
            for (uint64_t i = 0; i < 20; i++)
                if (i % 4 != empty)
                    ck_assert_int_eq(
                        domt_send_notice(domt_outside_manager(&world), routees[i % 4], &work, &i),
                        0);
            memset(got, 0, sizeof got);
            for (uint64_t i = 0; i < 5; i++)
                ck_assert_int_eq(put_number_to_router(world.managers[from], i), 0);
            domt_settle_world(&world);
            for (uint32_t i = 0; i < 4; i++)
                ck_assert_uint_eq(got[i], 5);
        }
    }
    close_workers();
}

DOMT_TEST(least_sees_what_another_thread_has_taken_in)
{
    open_workers(8);
    spawn_router_with_routees(2, DOMUS_ROUTE_LEAST);
    for (uint64_t i = 0; i < 10; i++)
        ck_assert_int_eq(domt_send_notice(domt_outside_manager(&world), routees[1], &work, &i), 0);
    /* home 1 takes the messages out of the inbox, and does not handle them yet */
    (void)domi_manager_take_arrivals(world.managers[1]);
    for (uint64_t i = 0; i < 10; i++)
        ck_assert_int_eq(put_number_to_router(world.managers[0], i), 0);
    domt_settle_world(&world);
    ck_assert_uint_eq(got[0], 10);
    ck_assert_uint_eq(got[1], 10);
    close_workers();
}

static uint32_t answered;

static int count_answer_without_error(domus_stack *stack, void *self, const domus_answer *answer)
{
    answered += answer->error == 0;
    return 0;
}

static int ask_router(domus_stack *stack, void *context)
{
    return domus_ask(stack, router, &question, &(uint64_t){(uintptr_t)context},
                     count_answer_without_error);
}

DOMT_TEST(least_counts_conversations_that_wait)
{
    open_workers(8);
    answered = 0;
    spawn_router_with_routees(2, DOMUS_ROUTE_LEAST);
    slow = true;
    for (uint32_t i = 0; i < 4; i++)
        domt_run_as_actor(&world, agents[0], ask_router, NULL);
    ck_assert_uint_eq(got[0], 2);
    ck_assert_uint_eq(got[1], 2);
    close_workers();
}

/* --- hash ------------------------------------------------------------------------------------- */

static uint64_t key_of_number(const domus_type *type, const void *payload)
{
    ck_assert(type == &work || type == &question);
    return *(const uint64_t *)payload;
}

#define KEYS 4096u
static uint8_t placed[KEYS];

/* Record to which routee each key goes, while all threads send in turn. */
static void record_routee_of_each_key(void)
{
    for (uint32_t i = 0; i < KEYS; i++) {
        memset(got, 0, sizeof got);
        ck_assert_int_eq(put_number_to_router(world.managers[i % 3], i), 0);
        domt_settle_world(&world);
        uint8_t who = 0;
        while (got[who] == 0)
            who++;
        placed[i] = who;
    }
}

DOMT_TEST(hash_moves_only_the_keys_of_a_routee_that_has_ended)
{
    uint8_t before[KEYS];
    uint32_t count[8] = {0};
    uint32_t inherited[8] = {0};

    open_workers(8);
    wish.routing.key = key_of_number;
    spawn_router_with_routees(8, DOMUS_ROUTE_HASH);
    record_routee_of_each_key();
    for (uint32_t i = 0; i < KEYS; i++)
        count[placed[i]]++;
    for (uint32_t i = 0; i < 8; i++) {
        ck_assert_uint_ge(count[i], KEYS / 8 * 3 / 4);
        ck_assert_uint_le(count[i], KEYS / 8 * 5 / 4);
    }
    memcpy(before, placed, sizeof before);
    record_routee_of_each_key();
    ck_assert_mem_eq(before, placed, sizeof before);

    stop_actor(routees[3]);
    record_routee_of_each_key();
    for (uint32_t i = 0; i < KEYS; i++) {
        ck_assert(placed[i] != 3 && (before[i] == 3 || placed[i] == before[i]));
        inherited[placed[i]] += before[i] == 3;
    }
    for (uint32_t i = 0; i < 8; i++)
        ck_assert(i == 3 || inherited[i] >= count[3] / 16);
    close_workers();
}

DOMT_TEST(hash_refuses_when_the_routee_of_the_key_is_full)
{
    open_workers(8);
    wish.routing.key = key_of_number;
    spawn_router_with_routees(4, DOMUS_ROUTE_HASH);
    for (uint32_t i = 0; i < 16; i++)
        ck_assert_int_eq(put_number_to_router(domt_outside_manager(&world), 7), 0);
    ck_assert_int_eq(put_number_to_router(domt_outside_manager(&world), 7), -ENOBUFS);
    domt_settle_world(&world);
    for (uint32_t i = 0; i < 4; i++)
        stop_actor(routees[i]);
    ck_assert_int_eq(put_number_to_router(domt_outside_manager(&world), 7), -ESTALE);
    close_workers();
}

/* --- asks ------------------------------------------------------------------------------------- */

DOMT_TEST(asks_are_answered_by_a_routee)
{
    for (domus_route route = DOMUS_ROUTE_ROBIN; route <= DOMUS_ROUTE_HASH; route++) {
        open_workers(8);
        answered = 0;
        wish.routing.key = key_of_number;
        spawn_router_with_routees(4, route);
        for (uintptr_t i = 0; i < 20; i++)
            domt_run_as_actor(&world, agents[i % 2], ask_router, (void *)i);
        ck_assert_uint_eq(answered, 20);
        ck_assert_uint_eq(sum_of_messages(), 20);
        close_workers();
    }
}

static domus_conversation asking;

static int ask_router_and_remember(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_conversation_of(stack, &asking), 0);
    return ask_router(stack, context);
}

static int cancel_ask_to_router(domus_stack *stack, void *context)
{
    return domus_cancel(stack, asking);
}

DOMT_TEST(a_cancel_finds_the_routee_that_works_on_it)
{
    open_workers(8);
    slow = true;
    spawn_router_with_routees(4, DOMUS_ROUTE_ROBIN);
    for (uint32_t i = 0; i < 3; i++)
        domt_run_as_actor(&world, agents[0], ask_router_and_remember, NULL);
    ck_assert_uint_eq(domi_house_count_parked_conversations(routees[2].house), 1);
    domt_run_as_actor(&world, agents[0], cancel_ask_to_router, NULL);
    ck_assert_uint_eq(domi_house_count_parked_conversations(routees[2].house), 0);
    ck_assert_uint_eq(domi_house_count_parked_conversations(routees[0].house), 1);
    close_workers();
}

/* --- the address ------------------------------------------------------------------------------ */

static int try_to_stop_router(domus_stack *stack, void *context)
{
    *(int *)context = domus_stop(stack, router);
    return 0;
}

DOMT_TEST(stop_stops_all_and_the_address_is_stale_for_ever)
{
    open_workers(1);
    /* the stopped router is given back, so a further round works although routers.max is 1 */
    for (uint32_t round = 0; round < 5; round++) {
        int result = 1;
        stopped = 0;
        spawn_router_with_routees(3, DOMUS_ROUTE_ROBIN);
        domus_address old = router;
        domt_run_as_actor(&world, agents[round % 2], try_to_stop_router, &result);
        ck_assert_int_eq(result, 0);
        ck_assert_uint_eq(stopped, 3);
        domt_run_as_actor(&world, agents[0], try_to_stop_router, &result);
        ck_assert_int_eq(result, -ESTALE);
        ck_assert_int_eq(put_number_to_router(world.managers[0], 1), -ESTALE);
        /* makes a router in the memory of the one that has ended */
        spawn_router_with_routees(4, DOMUS_ROUTE_NEAR);
        ck_assert_ptr_eq(old.house, router.house);
        ck_assert_uint_ne(old.lease, router.lease);
        ck_assert_int_eq(domt_send_notice(world.managers[0], old, &work, &(uint64_t){1}), -ESTALE);
        ck_assert_int_eq(domi_house_ask_to_stop(world.managers[0], old), -ESTALE);
        ck_assert_int_eq(put_number_to_router(world.managers[0], 1), 0);
        domt_run_as_actor(&world, agents[0], try_to_stop_router, &result);
    }
    close_workers();
}

static int stop_router_after_mail(domus_stack *stack, void *context)
{
    for (uint32_t i = 0; i < 8; i++)
        ck_assert_int_eq(domus_notice(stack, router, &work, &(uint64_t){1}), 0);
    sent = domus_stop_after_mail(stack, router);
    return 0;
}

DOMT_TEST(stop_after_mail_lets_all_handle_what_waits)
{
    open_workers(8);
    uint64_t before = domt_count_all_objects_in_use(&world);
    spawn_router_with_routees(4, DOMUS_ROUTE_ROBIN);
    domt_run_as_actor(&world, agents[0], stop_router_after_mail, NULL);
    ck_assert_int_eq(sent, 0);
    ck_assert_uint_eq(sum_of_messages(), 8);
    ck_assert_uint_eq(stopped, 4);
    ck_assert_uint_eq(domt_count_all_objects_in_use(&world), before);
    ck_assert_int_eq(put_number_to_router(world.managers[0], 1), -ESTALE);
    close_workers();
}

static int try_to_watch_router(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_watch_actor(stack, router, NULL), -EINVAL);
    ck_assert_int_eq(domus_link_actor(stack, router, NULL), -EINVAL);
    ck_assert_int_eq(domus_watch_room(stack, router, NULL), -EINVAL);
    return 0;
}

DOMT_TEST(a_router_cannot_be_watched)
{
    open_workers(8);
    spawn_router_with_routees(2, DOMUS_ROUTE_ROBIN);
    domt_run_as_actor(&world, agents[0], try_to_watch_router, NULL);
    close_workers();
}

static int spawn_router_with_name(domus_stack *stack, void *name)
{
    domus_spawn_options options = {.name = name};

    wish.result = domus_spawn_many(stack, behaviour, NULL, 3, NULL, &options, &router);
    return 0;
}

DOMT_TEST(a_name_is_the_routers)
{
    domus_address found;
    char name[] = "pool";

    open_workers(8);
    domt_run_as_actor(&world, agents[0], spawn_router_with_name, name);
    ck_assert_int_eq(wish.result, 0);
    ck_assert_int_eq(domi_names_find_address(&names, "pool", &found), 0);
    ck_assert_ptr_eq(found.house, router.house);
    domt_run_as_actor(&world, agents[1], spawn_router_with_name, name);
    ck_assert_int_eq(wish.result, -EEXIST);
    /* the routees of the second router are stopped, before their mount */
    ck_assert_uint_eq(DOMT_SUM(&world, stops), 3);
    stop_actor(router);
    ck_assert_uint_eq(stopped, 3);
    ck_assert_int_eq(domi_names_find_address(&names, "pool", &found), -ENOENT);
    close_workers();
}

DOMT_TEST(router_of_a_single_routee_is_a_plain_actor)
{
    open_workers(0);
    spawn_router_with_routees(1, DOMUS_ROUTE_LEAST);
    ck_assert_ptr_eq(router.house->home, world.managers[0]);
    ck_assert_int_eq(put_number_to_router(world.managers[1], 1), 0);
    domt_settle_world(&world);
    ck_assert_uint_eq(got[0], 1);
    close_workers();
}

static int try_wrong_calls_of_routers(domus_stack *stack, void *context)
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

DOMT_TEST(wrong_calls_are_refused_and_routers_have_a_limit)
{
    open_workers(1);
    domt_run_as_actor(&world, agents[0], try_wrong_calls_of_routers, NULL);
    close_workers();
}

/* --- owners ----------------------------------------------------------------------------------- */

static int spawn_router_of_two(domus_stack *stack, void *context)
{
    wish.result = domus_spawn_many(stack, behaviour, NULL, 2, NULL, NULL, &router);
    return 0;
}

DOMT_TEST(the_end_of_its_maker_ends_a_router)
{
    open_workers(2);
    for (uint32_t i = 0; i < 10; i++) {
        domus_address owner =
            domt_spawn(domt_outside_manager(&world), world.managers[i % 2], &domt_agent, NULL);
        domt_run_as_actor(&world, owner, spawn_router_of_two, NULL);
        ck_assert_int_eq(wish.result, 0);
        domt_run_as_actor(&world, owner, spawn_router_of_two, NULL);
        ck_assert_int_eq(wish.result, 0);
        if (i % 3 == 0)
            stop_actor(router); /* sometimes one of the owner's two routers is stopped before */
        stop_actor(owner);
        ck_assert_uint_eq(stopped, 4 * (i + 1));
        ck_assert_int_eq(put_number_to_router(world.managers[0], 1), -ESTALE);
    }
    close_workers();
}

DOMT_TEST(without_memory_nothing_is_left)
{
    static const domus_behaviour big = {
        .name = "big", .state_size = 5000, .on_stop = on_stop_count_worker};

    behaviour = &big;
    for (int64_t n = 0; n < 9; n++) {
        open_workers(2);
        uint64_t before = domt_count_all_objects_in_use(&world);
        wish.count = 4;
        wish.routing.route = DOMUS_ROUTE_LEAST;
        memset(&wish.options, 0, sizeof wish.options);
        domt_send_function_to_call(domt_outside_manager(&world), agents[0], spawn_router_as_wished,
                                   NULL);
        domi_memory_fail_allocation_after(n, 1);
        domt_settle_world(&world);
        domi_memory_fail_allocation_after(-1, 0);
        ck_assert_int_eq(wish.result, -ENOMEM);
        /* all actors but the two agents have stopped */
        ck_assert_uint_eq(DOMT_SUM(&world, spawns), DOMT_SUM(&world, stops) + 2);
        ck_assert_uint_eq(domt_count_all_objects_in_use(&world), before);
        domt_run_as_actor(&world, agents[0], spawn_router_as_wished, NULL);
        ck_assert_int_eq(wish.result, 0);
        close_workers();
    }
    behaviour = &worker;
}

DOMT_SUITE(20)
