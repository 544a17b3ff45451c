/* domus/remote.h: a name leads to an address, an address to its name, and the table of addresses
 * has its limits. */
#include "house/family/slots.h"
#include "tests/house/remote_world.h"

#include <domus/spawn.h>

#include <string.h>

/* The name and the results of a call of domus_remote_address(), and of domus_remote_name_of() for
 * the address that it has found. */
typedef struct looking {
    domus_remote_name name, back;
    domus_address address;
    int error, back_error;
} looking;

static int find_address_of_name_and_name_back(domus_stack *stack, void *looking_)
{
    looking *now = looking_;

    now->error = domus_remote_address(stack, &now->name, &now->address);
    if (now->error == 0)
        now->back_error = domus_remote_name_of(stack, now->address, &now->back);
    return 0;
}

static looking look_up_name_by_gateway(domus_remote_name name)
{
    looking now = {.name = name};

    domt_run_as_gateway(0, find_address_of_name_and_name_back, &now);
    return now;
}

static domus_remote_name asked_name;
static int asked_error;

static int record_name_of_address(domus_stack *stack, void *address)
{
    asked_error = domus_remote_name_of(stack, *(domus_address *)address, &asked_name);
    return 0;
}

static int error_of_name_of_address(domus_address address)
{
    domt_run_as_gateway(0, record_name_of_address, &address);
    return asked_error;
}

static bool is_alive;

static int record_whether_name_is_alive(domus_stack *stack, void *name)
{
    is_alive = domus_remote_is_alive(stack, name);
    return 0;
}

static int spawn_router_of_two(domus_stack *stack, void *address)
{
    return domus_spawn_many(stack, &domt_agent, NULL, 2, NULL, NULL, address);
}

DOMT_TEST(actors_and_routers_of_this_system_have_names)
{
    domus_address routers[2];

    domt_remote_open_world(NULL);
    for (uint32_t i = 0; i < 2; i++)
        domt_run_as_agent(0, spawn_router_of_two, &routers[i]);
    const domus_address all[] = {domt_agents[0], domt_agents[1], routers[0], routers[1]};
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_int_eq(error_of_name_of_address(all[i]), 0);
        ck_assert_uint_eq(asked_name.node, DOMUS_REMOTE_HERE);
        looking now = look_up_name_by_gateway(asked_name);
        ck_assert_int_eq(now.error, 0);
        ck_assert(domus_address_equals(now.address, all[i]));
        domt_run_as_gateway(0, record_whether_name_is_alive, &asked_name);
        ck_assert(is_alive);
        asked_name.lease++;
        domt_run_as_gateway(0, record_whether_name_is_alive, &asked_name);
        ck_assert(!is_alive);
    }
    ck_assert_int_eq(error_of_name_of_address((domus_address){NULL, 0}), -EINVAL);
    domt_remote_close_world();
}

DOMT_TEST(names_that_strangers_make_up_lead_nowhere)
{
    domt_remote_open_world(NULL);
    ck_assert_int_eq(error_of_name_of_address(domt_agents[1]), 0);
    domus_remote_name name = asked_name;
    name.lease = 0;
    ck_assert_int_eq(look_up_name_by_gateway(name).error, -EINVAL);
    name = asked_name;
    /* each number differs in one bit from the agent's, so it is that of another slot; the last ones
     * are far too large */
    for (uint32_t i = 0; i < 32; i++) {
        name.number = asked_name.number ^ 1u << i;
        looking now = look_up_name_by_gateway(name);
        ck_assert(now.error == -ENOENT || (now.error == 0 && now.address.house != NULL));
        if (i >= 20)
            ck_assert_int_eq(now.error, -ENOENT);
    }
    name = asked_name;
    name.home = 3;
    ck_assert_int_eq(look_up_name_by_gateway(name).error, -ENOENT);
    name.home = DOMUS_REMOTE_ROUTER;
    ck_assert_int_eq(look_up_name_by_gateway(name).error, -ENOENT);
    name = asked_name;
    name.node = DOMT_NODE + 1;
    ck_assert_int_eq(look_up_name_by_gateway(name).error, -ENOENT);
    for (uint32_t i = 0; i < 2; i++) { /* a gateway itself is not found by its name */
        ck_assert_int_eq(error_of_name_of_address(domt_gateways[i]), 0);
        ck_assert_int_eq(look_up_name_by_gateway(asked_name).error, -ENOENT);
    }
    domt_remote_close_world();
}

DOMT_TEST(each_slot_is_found_by_its_number)
{
    domt_remote_open_world(NULL);
    domi_manager *home = domt_remote.managers[0];
    domus_address actors[9];
    static const uint32_t sizes[] = {0, 80, 100, 400, 1000, 5000, 0, 80, 0};
    domus_behaviour behaviours[9];
    for (uint32_t i = 0; i < 9; i++) {
        behaviours[i] = (domus_behaviour){.name = "sized", .state_size = sizes[i]};
        actors[i] = domt_spawn(domt_outside_manager(&domt_remote), home, &behaviours[i], NULL);
        ck_assert_ptr_eq(
            domi_slots_house_at_number(home, domi_slots_number_of_house(actors[i].house)),
            actors[i].house);
    }
    domt_remote_close_world();
}

DOMT_TEST(a_remote_name_has_one_address)
{
    domt_remote_open_world(NULL);
    domus_address first = domt_remote_address(1, 0);
    ck_assert(domus_address_equals(domt_remote_address(1, 0), first));
    ck_assert(!domus_address_equals(domt_remote_address(2, 0), first));
    ck_assert(!domus_address_equals(domt_remote_address(1, 1), first));
    looking now = look_up_name_by_gateway(domt_remote_name_of_number(1, 0));
    ck_assert_int_eq(now.back_error, 0);
    ck_assert_mem_eq(&now.back, &now.name, sizeof now.name);
    domus_remote_name other = domt_remote_name_of_number(1, 0);
    other.lease++;
    ck_assert(!domus_address_equals(look_up_name_by_gateway(other).address, first));
    domt_remote_close_world();
}

/* --- limits ------------------------------------------------------------------------------------
 */

static int end_remote_actor(domus_stack *stack, void *name)
{
    ck_assert_int_eq(domus_remote_end(stack, name, -EHOSTDOWN), 0);
    ck_assert_int_eq(domus_remote_end(stack, name, -EHOSTDOWN), -ENOENT);
    return 0;
}

DOMT_TEST(the_table_is_full_at_addresses_max)
{
    static const domus_remote_options options = {.addresses_max = 256};
    domus_address first[256];

    domt_remote_open_world(&options);
    for (uint32_t i = 0; i < 256; i++)
        first[i] = domt_remote_address(i, 0);
    ck_assert_int_eq(look_up_name_by_gateway(domt_remote_name_of_number(256, 0)).error, -ENOSPC);
    domus_remote_name name = domt_remote_name_of_number(17, 0);
    domt_run_as_gateway(0, end_remote_actor, &name);
    ck_assert_int_eq(error_of_name_of_address(first[17]), -ESTALE);
    looking now = look_up_name_by_gateway(domt_remote_name_of_number(256, 0));
    ck_assert_int_eq(now.error, 0);
    /* the house of the forgotten address is used again, with another lease */
    ck_assert_ptr_eq(now.address.house, first[17].house);
    ck_assert_uint_ne(now.address.lease, first[17].lease);
    ck_assert_int_eq(
        domt_send_notice(domt_outside_manager(&domt_remote), first[17], &domt_plain, "seventee"),
        -ESTALE);
    ck_assert_int_eq(look_up_name_by_gateway(name).error, -ENOSPC);
    domt_remote_close_world();
}

DOMT_TEST(an_address_is_used_again_behind_all_other_free_ones)
{
    domt_remote_open_world(NULL);
    domus_address first = domt_remote_address(0, 0);
    domus_remote_name name = domt_remote_name_of_number(0, 0);
    domt_run_as_gateway(0, end_remote_actor, &name);
    for (uint32_t i = 1; i < 256; i++)
        ck_assert_ptr_ne(domt_remote_address(i, 0).house, first.house);
    domt_remote_close_world();
}

static int opened;

static int try_to_open_node(domus_stack *stack, void *node)
{
    opened = domus_remote_node_open(stack, *(uint64_t *)node, 0);
    return 0;
}

static int end_node_as_gateway(domus_stack *stack, void *node)
{
    opened = domus_remote_node_set(stack, *(uint64_t *)node, -ESTALE);
    return 0;
}

DOMT_TEST(nodes_max_nodes_are_known_at_a_time)
{
    static const domus_remote_options options = {.nodes_max = 2};
    uint64_t numbers[] = {DOMUS_REMOTE_HERE, 8, 9};

    domt_remote_open_world(&options); /* opens node 7 */
    domt_run_as_gateway(1, try_to_open_node, &numbers[0]);
    ck_assert_int_eq(opened, -EINVAL);
    domt_run_as_gateway(1, try_to_open_node, &numbers[1]);
    ck_assert_int_eq(opened, 0);
    domt_run_as_gateway(1, try_to_open_node, &numbers[2]);
    ck_assert_int_eq(opened, -ENOSPC);
    domt_run_as_gateway(0, end_node_as_gateway, &numbers[1]);
    ck_assert_int_eq(opened, 0);
    domt_run_as_gateway(0, end_node_as_gateway, &numbers[1]);
    ck_assert_int_eq(opened, -ENOENT); /* node 8 has no address, so it was forgotten */
    domt_run_as_gateway(1, try_to_open_node, &numbers[2]);
    ck_assert_int_eq(opened, 0);
    domt_remote_close_world();
}

static int try_wrong_options(domus_stack *stack, void *options)
{
    ck_assert_int_eq(domi_remotes_allocate_tables(&(domi_remotes){.max = 0}, options, 2), -EINVAL);
    (void)stack;
    return 0;
}

DOMT_TEST(wrong_options_of_remote_addresses_are_refused)
{
    static const domus_remote_options wrong[] = {
        {.addresses_max = 255}, {.addresses_max = 16777217}, {.nodes_max = 65537}};

    domt_remote_open_world(NULL);
    for (uint32_t i = 0; i < 3; i++)
        domt_run_as_agent(0, try_wrong_options, (void *)(uintptr_t)&wrong[i]);
    domt_remote_close_world();
}

/* --- idle addresses ----------------------------------------------------------------------------
 */

static domus_remote_name idle[8];
static uint32_t idle_count;

static int list_idle_addresses(domus_stack *stack, void *context)
{
    uint32_t cursor = 0;

    idle_count = domus_remote_idle(stack, DOMT_NODE, &cursor, idle, 8);
    ck_assert_uint_eq(cursor, 0);
    return 0;
}

DOMT_TEST(addresses_that_nobody_uses_are_listed_at_the_third_look)
{
    domt_remote_open_world(NULL);
    (void)domt_remote_address(1, 0);
    domus_address used = domt_remote_address(2, 0);
    (void)domt_remote_address(3, 1); /* an address that belongs to the other gateway */
    for (uint32_t looks = 0; looks < 4; looks++) {
        ck_assert_int_eq(
            domt_send_notice(domt_outside_manager(&domt_remote), used, &domt_plain, "a notice"), 0);
        domt_run_as_gateway(0, list_idle_addresses, NULL);
        ck_assert_uint_eq(idle_count, looks < 2 ? 0 : 1);
    }
    ck_assert_uint_eq(idle[0].number, 1);
    (void)domt_remote_address(1, 0); /* looks the address up, as for a message from actor 1 */
    domt_run_as_gateway(0, list_idle_addresses, NULL);
    ck_assert_uint_eq(idle_count, 0);
    domt_remote_close_world();
}

DOMT_TEST(all_addresses_of_a_node_that_has_ended_are_listed)
{
    uint64_t node = DOMT_NODE;

    domt_remote_open_world(NULL);
    (void)domt_remote_address(1, 0);
    (void)domt_remote_address(2, 0);
    domt_run_as_gateway(0, end_node_as_gateway, &node);
    ck_assert_int_eq(look_up_name_by_gateway(domt_remote_name_of_number(1, 0)).error, -ESTALE);
    domt_run_as_gateway(0, try_to_open_node, &node);
    ck_assert_int_eq(opened, -EALREADY);
    domt_run_as_gateway(0, list_idle_addresses, NULL);
    ck_assert_uint_eq(idle_count, 2);
    for (uint32_t i = 0; i < 2; i++)
        domt_run_as_gateway(0, end_remote_actor, &idle[i]);
    /* with its last address the node was forgotten, so it can be opened anew */
    domt_run_as_gateway(0, try_to_open_node, &node);
    ck_assert_int_eq(opened, 0);
    domt_remote_close_world();
}

DOMT_SUITE(20)
