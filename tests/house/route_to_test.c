/* domus_route_to(): routers over actors that already exist, here and on node 7. The choice follows
 * the states and ends of these routees, and the end of a router does not end them. */
#include "tests/house/remote_world.h"
#include "tests/house/steps.h"

#include "house/family/life.h"

#include <string.h>

#define HERE 2u /* number of the first workers, one on each home */
#define FAR  3u /* index of the remote actor in `routees` */

static unsigned got[HERE];
static domus_address routees[FAR + 1]; /* a worker on each of the two homes, another one on home 1,
                                          and a remote actor */
static domus_address router;
static domus_routing routing;
static int result;

/* --- workers ---------------------------------------------------------------------------------- */

static int count_work(domus_stack *stack, void *self, const void *payload)
{
    got[domus_self(stack).house->home->index]++;
    return 0;
}

static const domus_behaviour worker = {.name = "worker",
                                       .on = (const domus_on[]){{&domt_plain, count_work, 0}, {0}}};

static uint64_t key_of_number(const domus_type *type, const void *payload)
{
    return *(const uint64_t *)payload;
}

/* --- verbs ------------------------------------------------------------------------------------ */

typedef struct making {
    const domus_address *addresses;
    uint32_t count;
} making;

static int try_to_make_router(domus_stack *stack, void *making_)
{
    const making *now = making_;

    result = domus_route_to(stack, now->addresses, now->count, &routing, &router);
    return 0;
}

static int result_of_making_router(const domus_address *addresses, uint32_t count,
                                   domus_route route)
{
    making now = {addresses, count};

    routing =
        (domus_routing){.route = route, .key = route == DOMUS_ROUTE_HASH ? key_of_number : NULL};
    domt_run_as_agent(0, try_to_make_router, &now);
    return result;
}

static int set_state_of_node(domus_stack *stack, void *error)
{
    ck_assert_int_eq(domus_remote_node_set(stack, DOMT_NODE, (int)(intptr_t)error), 0);
    return 0;
}

static void let_gateway_set_state_of_node(int error)
{
    domt_run_as_gateway(0, set_state_of_node, (void *)(intptr_t)error);
}

/* An order to an agent: send the numbers first .. first + count - 1 in one turn; the last error is
 * the result. */
typedef struct sending {
    uint64_t first, count;
} sending;

static int send_numbers_as_ordered(domus_stack *stack, void *sending_)
{
    const sending *now = sending_;

    result = 0;
    for (uint64_t i = now->first; i < now->first + now->count; i++) {
        int error = domus_notice(stack, router, &domt_plain, &i);
        result = error != 0 ? error : result;
    }
    return 0;
}

static int send_numbers_by_agent(uint32_t home, uint64_t first, uint64_t count)
{
    sending now = {first, count};

    memset(got, 0, sizeof got);
    domt_carried_by[0].notices = domt_carried_by[1].notices = 0;
    domt_run_as_agent(home, send_numbers_as_ordered, &now);
    return result;
}

static unsigned count_notices_to_remote(void)
{
    return domt_carried_by[0].notices + domt_carried_by[1].notices;
}

static void set_up_routees(void)
{
    domt_remote_open_world(NULL);
    for (uint32_t i = 0; i < FAR; i++)
        routees[i] = domt_spawn(domt_outside_manager(&domt_remote), domt_remote.managers[i != 0],
                                &worker, NULL);
    domt_settle_world(&domt_remote);
    routees[FAR] = domt_remote_address(3, 0);
}

static void tear_down_routees(void)
{
    domt_remote_close_world();
}

static void stop_actor(domus_address who)
{
    domt_stop_actor_and_settle(&domt_remote, domt_outside_manager(&domt_remote), who);
}

static bool is_actor_alive(domus_address who)
{
    uint64_t life = domi_house_life_word(who.house);

    return DOMI_LIFE_LEASE(life) == who.lease && (life & (DOMI_LIFE_CLOSED | DOMI_LIFE_STOP)) == 0;
}

/* --- routes ----------------------------------------------------------------------------------- */

DOMT_TEST(robin_passes_over_actors_that_are_gone_and_nodes_that_are_down_or_full)
{
    set_up_routees();
    ck_assert_int_eq(result_of_making_router(routees, 4, DOMUS_ROUTE_ROBIN), 0);
    ck_assert_int_eq(send_numbers_by_agent(0, 0, 40), 0);
    ck_assert_uint_eq(got[0], 10);
    ck_assert_uint_eq(got[1], 20);
    ck_assert_uint_eq(count_notices_to_remote(), 10);
    let_gateway_set_state_of_node(-EHOSTDOWN);
    ck_assert_int_eq(send_numbers_by_agent(1, 0, 30), 0);
    ck_assert_uint_eq(got[0] + got[1], 30);
    let_gateway_set_state_of_node(-ENOBUFS);
    ck_assert_int_eq(send_numbers_by_agent(1, 0, 30), 0);
    ck_assert_uint_eq(count_notices_to_remote(), 0);
    for (uint32_t i = 0; i < FAR; i++)
        stop_actor(routees[i]);
    ck_assert_int_eq(send_numbers_by_agent(0, 0, 1), -ENOBUFS);
    let_gateway_set_state_of_node(-EHOSTDOWN);
    ck_assert_int_eq(send_numbers_by_agent(0, 0, 1), -EHOSTDOWN);
    let_gateway_set_state_of_node(0);
    ck_assert_int_eq(send_numbers_by_agent(0, 0, 5), 0);
    ck_assert_uint_eq(count_notices_to_remote(), 5);
    tear_down_routees();
}

DOMT_TEST(near_prefers_the_senders_thread_then_this_system_then_another_node)
{
    set_up_routees();
    ck_assert_int_eq(result_of_making_router(routees + 1, 3, DOMUS_ROUTE_NEAR), 0);
    ck_assert_int_eq(send_numbers_by_agent(1, 0, 20), 0);
    ck_assert_uint_eq(got[1], 20);
    /* the worker on the other thread is chosen, rather than the actor on the other node */
    ck_assert_int_eq(send_numbers_by_agent(0, 0, 20), 0);
    ck_assert_uint_eq(got[1], 20);
    ck_assert_int_eq(result_of_making_router(routees, 4, DOMUS_ROUTE_NEAR), 0);
    ck_assert_int_eq(send_numbers_by_agent(0, 0, 20), 0);
    ck_assert_uint_eq(got[0], 20);
    for (uint32_t i = 0; i < FAR; i++)
        stop_actor(routees[i]);
    ck_assert_int_eq(send_numbers_by_agent(0, 0, 20), 0);
    ck_assert_uint_eq(count_notices_to_remote(), 20);
    let_gateway_set_state_of_node(-EHOSTDOWN);
    ck_assert_int_eq(send_numbers_by_agent(0, 0, 1), -EHOSTDOWN);
    tear_down_routees();
}

DOMT_TEST(least_sends_afar_when_everybody_here_has_more)
{
    set_up_routees();
    domus_address some[] = {routees[0], routees[FAR], domt_remote_address(4, 0)};
    ck_assert_int_eq(result_of_making_router(some, 3, DOMUS_ROUTE_LEAST), 0);
    ck_assert_int_eq(send_numbers_by_agent(0, 0, 64), 0);
    ck_assert_uint_eq(got[0], 64);
    ck_assert_int_eq(send_numbers_by_agent(0, 0, 200), 0);
    ck_assert_uint_ge(got[0], 64);
    ck_assert_uint_le(got[0], 66);
    ck_assert_uint_eq(got[0] + count_notices_to_remote(), 200);
    let_gateway_set_state_of_node(-ENOBUFS);
    /* the node refuses messages, so workers of this system get them */
    ck_assert_int_eq(send_numbers_by_agent(0, 0, 200), 0);
    ck_assert_uint_eq(got[0], 200);
    stop_actor(routees[0]);
    ck_assert_int_eq(send_numbers_by_agent(0, 0, 1), -ENOBUFS);
    tear_down_routees();
}

DOMT_TEST(hash_moves_keys_only_when_their_routee_is_gone)
{
    enum { KEYS = 200 };
    static unsigned char where[KEYS];

    set_up_routees();
    domus_address some[] = {routees[0], routees[1], routees[FAR]};
    ck_assert_int_eq(result_of_making_router(some, 3, DOMUS_ROUTE_HASH), 0);
    for (uint64_t key = 0; key < KEYS; key++) {
        ck_assert_int_eq(send_numbers_by_agent((uint32_t)(key % 2), key, 1), 0);
        ck_assert_uint_eq(got[0] + got[1] + count_notices_to_remote(), 1);
        where[key] = (unsigned char)(got[0] ? 0 : got[1] ? 1 : 2);
    }
    let_gateway_set_state_of_node(-EHOSTDOWN);
    for (uint64_t key = 0; key < KEYS; key++) {
        ck_assert_int_eq(send_numbers_by_agent(0, key, 1), where[key] == 2 ? -EHOSTDOWN : 0);
        ck_assert_uint_eq(got[0], where[key] == 0);
        ck_assert_uint_eq(got[1], where[key] == 1);
    }
    let_gateway_set_state_of_node(0);
    stop_actor(routees[1]);
    unsigned moved = 0;
    for (uint64_t key = 0; key < KEYS; key++) {
        ck_assert_int_eq(send_numbers_by_agent(0, key, 1), 0);
        ck_assert(where[key] != 0 || got[0] == 1);
        ck_assert(where[key] != 2 || count_notices_to_remote() == 1);
        moved += where[key] == 1;
    }
    ck_assert_uint_gt(moved, KEYS / 6);
    tear_down_routees();
}

/* --- asks ------------------------------------------------------------------------------------- */

static domus_conversation asking;

static int record_error_of_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    result = answer->error;
    return 0;
}

static int ask_router_and_remember(domus_stack *stack, void *value)
{
    result = 1;
    ck_assert_int_eq(domus_conversation_of(stack, &asking), 0);
    return domus_ask(stack, router, &domt_plain, value, record_error_of_answer);
}

static int cancel_ask_to_router(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_cancel(stack, asking), 0);
    return 0;
}

static int reply_to_kept_as_gateway(domus_stack *stack, void *value)
{
    ck_assert_int_eq(domus_kept_reply(stack, domt_carried_by[1].kept[0], &domt_plain, value), 0);
    return 0;
}

DOMT_TEST(ask_of_a_router_is_answered_from_afar_and_can_be_cancelled)
{
    uint64_t value = 5;

    set_up_routees();
    ck_assert_int_eq(result_of_making_router(&routees[FAR], 1, DOMUS_ROUTE_ROBIN), 0);
    domt_run_as_agent(1, ask_router_and_remember, &value);
    ck_assert_uint_eq(domt_carried_by[1].asks, 1);
    domt_run_as_gateway(1, reply_to_kept_as_gateway, &value);
    ck_assert_int_eq(result, 0);
    domt_run_as_agent(1, ask_router_and_remember, &value);
    ck_assert_uint_eq(domt_carried_by[1].asks, 2);
    domt_run_as_agent(1, cancel_ask_to_router, NULL);
    ck_assert_int_eq(result, -ECANCELED);
    ck_assert_uint_eq(domt_carried_by[1].cancels, 1);
    tear_down_routees();
}

/* --- ends ------------------------------------------------------------------------------------- */

static int stop_router(domus_stack *stack, void *after_mail)
{
    ck_assert_int_eq(
        after_mail != NULL ? domus_stop_after_mail(stack, router) : domus_stop(stack, router), 0);
    return 0;
}

static void expect_router_ended_but_routees_alive(void)
{
    domt_settle_world(&domt_remote);
    ck_assert_int_eq(send_numbers_by_agent(1, 0, 1), -ESTALE);
    for (uint32_t i = 0; i < FAR; i++)
        ck_assert(is_actor_alive(routees[i]));
    ck_assert_uint_eq(domt_carried_by[0].stops + domt_carried_by[1].stops, 0);
    ck_assert_uint_eq(domt_carried_by[0].last_stops + domt_carried_by[1].last_stops, 0);
    ck_assert_uint_le(domt_remote_routers.count, 1);
}

static int spawn_router_of_four(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_spawn_many(stack, &worker, NULL, 4, NULL, NULL, &router), 0);
    return 0;
}

DOMT_TEST(end_of_a_router_is_not_that_of_its_routees)
{
    set_up_routees();
    for (uintptr_t after_mail = 0; after_mail < 2; after_mail++) {
        ck_assert_int_eq(result_of_making_router(routees, 4, DOMUS_ROUTE_ROBIN), 0);
        domt_run_as_agent(1, stop_router, (void *)after_mail);
        expect_router_ended_but_routees_alive();
    }
    ck_assert_int_eq(result_of_making_router(routees, 4, DOMUS_ROUTE_ROBIN), 0);
    stop_actor(domt_agents[0]); /* stops the agent that has made the router */
    expect_router_ended_but_routees_alive();
    ck_assert_uint_eq(domt_remote_routers.count, 0);
    /* Routees that a router has made stop with it. */
    domt_run_as_agent(1, spawn_router_of_four, NULL);
    domus_address made[4];
    ck_assert_uint_eq(domus_routees(NULL, router, made, 4), 4);
    domt_run_as_agent(1, stop_router, NULL);
    domt_settle_world(&domt_remote);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert(!is_actor_alive(made[i]));
    tear_down_routees();
}

DOMT_TEST(routees_are_told_and_wrong_calls_are_refused)
{
    domus_address found[4], wrong[2];

    set_up_routees();
    ck_assert_int_eq(result_of_making_router(routees, 4, DOMUS_ROUTE_ROBIN), 0);
    stop_actor(routees[1]);
    ck_assert_uint_eq(domus_routees(NULL, router, found, 4), 3);
    ck_assert(domus_address_equals(found[0], routees[0]));
    ck_assert(domus_address_equals(found[2], routees[FAR]));
    wrong[0] = routees[0];
    wrong[1] = router;
    ck_assert_int_eq(result_of_making_router(wrong, 2, DOMUS_ROUTE_ROBIN), -EINVAL);
    wrong[1] = (domus_address){NULL, 0};
    ck_assert_int_eq(result_of_making_router(wrong, 2, DOMUS_ROUTE_ROBIN), -EINVAL);
    ck_assert_int_eq(result_of_making_router(routees, 0, DOMUS_ROUTE_ROBIN), -EINVAL);
    ck_assert_int_eq(result_of_making_router(NULL, 2, DOMUS_ROUTE_ROBIN), -EINVAL);
    /* -EINVAL, because routees.max is 8 */
    ck_assert_int_eq(result_of_making_router(routees, 9, DOMUS_ROUTE_ROBIN), -EINVAL);
    ck_assert_int_eq(result_of_making_router(routees, 2, DOMUS_ROUTE_HASH + 1), -EINVAL);
    making now = {routees, 2};
    routing = (domus_routing){.route = DOMUS_ROUTE_HASH};
    domt_run_as_agent(0, try_to_make_router, &now);
    ck_assert_int_eq(result, -EINVAL);
    for (uint32_t i = 1; i < 8; i++)
        ck_assert_int_eq(result_of_making_router(routees, 1, DOMUS_ROUTE_LEAST), 0);
    ck_assert_int_eq(result_of_making_router(routees, 1, DOMUS_ROUTE_LEAST), -ENOSPC);
    tear_down_routees();
}

static int spawn_router_by_least(domus_stack *stack, void *context)
{
    const domus_routing least = {.route = DOMUS_ROUTE_LEAST};

    ck_assert_int_eq(domus_spawn_many(stack, &worker, NULL, 4, &least, NULL, &router), 0);
    return 0;
}

static int stop_router_and_make_another(domus_stack *stack, void *making_)
{
    ck_assert_int_eq(domus_stop(stack, router), 0);
    return try_to_make_router(stack, making_);
}

/* Routees that a router has made report their loads until they have ended, which is after the end
 * of their router. */
DOMT_TEST(loads_of_spawned_routees_are_not_taken_for_distances)
{
    making now = {routees, 4};

    set_up_routees();
    domt_run_as_agent(0, spawn_router_by_least, NULL);
    routing = (domus_routing){.route = DOMUS_ROUTE_NEAR};
    domt_run_as_agent(0, stop_router_and_make_another, &now);
    ck_assert_int_eq(result, 0);
    ck_assert_int_eq(send_numbers_by_agent(0, 0, 20), 0);
    ck_assert_uint_eq(got[0], 20);
    tear_down_routees();
}

DOMT_SUITE(60)
