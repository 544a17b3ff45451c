/* Nodes of a simulated cluster, which tests/cluster/nodes.h describes. */
#include "tests/cluster/nodes.h"

#include "tests/support/suite.h"

#include <domus/domus.h>

#include <stdio.h>

#define MS UINT64_C(1000000)

domt_nodes_state domt_nodes;

uint64_t domt_random_below(uint64_t below)
{
    domt_nodes.chance += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = domt_nodes.chance;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % below;
}

/* --- nodes ------------------------------------------------------------------------------------ */

void domt_nodes_make_simulated_cluster(uint64_t seed, uint32_t servers)
{
    const domus_testkit_cluster_options options = {.servers = servers, .untraced = true};

    domt_nodes = (domt_nodes_state){.servers = servers, .chance = seed * 7919};
    ck_assert_int_eq(domus_testkit_cluster_new(seed, &options, &domt_nodes.sim), 0);
}

static uint32_t add_node_with_clock(uint32_t threads, uint64_t offset_ns, int32_t drift_ppm)
{
    uint32_t at = domt_nodes.count++;
    domus_config config;

    ck_assert_uint_lt(at, DOMT_NODES_MAX);
    domus_config_init(&config);
    config.system.threads = threads;
    const domus_testkit_node_options node = {
        .config = &config, .clock_offset_ns = offset_ns, .clock_drift_ppm = drift_ppm};
    ck_assert_int_eq(domus_testkit_cluster_add_node(domt_nodes.sim, &node, &domt_nodes.numbers[at]),
                     0);
    return at;
}

uint32_t domt_nodes_add_node(uint32_t threads)
{
    return add_node_with_clock(threads, 0, 0);
}

void domt_nodes_begin_three_nodes(uint64_t seed, uint32_t servers, bool clocks_differ,
                                  void (*start)(uint32_t node))
{
    domt_nodes_make_simulated_cluster(seed, servers);
    domt_nodes.start = start;
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t threads = 1 + (uint32_t)domt_random_below(3);
        uint64_t offset_ns = domt_random_below(100 * DOMT_SECOND);
        int32_t drift_ppm = (int32_t)domt_random_below(400) - 200;
        start(clocks_differ ? add_node_with_clock(threads, offset_ns, drift_ppm)
                            : add_node_with_clock(threads, 0, 0));
    }
}

domus_system *domt_nodes_system_of_node(uint32_t node)
{
    return domus_testkit_system(
        domus_testkit_cluster_kit(domt_nodes.sim, domt_nodes.numbers[node]));
}

int domt_nodes_try_to_open_cluster(uint32_t node, domus_cluster_options with,
                                   char error[static 200])
{
    char name[8];

    snprintf(name, sizeof name, "n%u", node);
    with.name = with.name != NULL ? with.name : "sim";
    with.node = with.node != NULL ? with.node : name;
    with.heartbeat_ns = with.heartbeat_ns != 0 ? with.heartbeat_ns : 100 * MS;
    with.down_after_ns = with.down_after_ns != 0 ? with.down_after_ns : 600 * MS;
    with.open_client = domus_testkit_cluster_open_client;
    with.context = domus_testkit_cluster_context(domt_nodes.sim, domt_nodes.numbers[node]);
    with.seed = ++domt_nodes.starts;
    return domus_cluster_open(domt_nodes_system_of_node(node), &with, error, 200,
                              &domt_nodes.clusters[node]);
}

void domt_nodes_open_cluster(uint32_t node, domus_cluster_options with)
{
    char error[200] = "";

    ck_assert_msg(domt_nodes_try_to_open_cluster(node, with, error) == 0, "%s", error);
}

void domt_nodes_spawn_actor(uint32_t node, const domus_behaviour *behaviour, const void *state)
{
    domus_address address;

    ck_assert_int_eq(
        domus_outside_spawn(domt_nodes_system_of_node(node), behaviour, state, &address), 0);
}

void domt_nodes_advance_time(uint64_t ns)
{
    ck_assert_msg(domus_testkit_cluster_advance(domt_nodes.sim, ns) == 0, "%s",
                  domus_testkit_cluster_error(domt_nodes.sim));
}

void domt_nodes_crash_and_restart(uint32_t node)
{
    uint32_t number = domt_nodes.numbers[node];

    if (domus_testkit_cluster_crash(domt_nodes.sim, number, domt_random_below(2) == 0) != 0)
        return;
    domus_cluster_close(domt_nodes.clusters[node]);
    domt_nodes.clusters[node] = NULL;
    domt_nodes_advance_time(domt_random_below(2 * DOMT_SECOND));
    ck_assert_int_eq(domus_testkit_cluster_start(domt_nodes.sim, number), 0);
    domt_nodes.start(node);
}

void domt_nodes_free_all(void)
{
    domus_testkit_cluster_free(domt_nodes.sim);
    for (uint32_t i = 0; i < domt_nodes.count; i++) {
        if (domt_nodes.clusters[i] != NULL)
            domus_cluster_close(domt_nodes.clusters[i]);
    }
}

/* --- faults ----------------------------------------------------------------------------------- */

void domt_nodes_heal_faults(void)
{
    domus_testkit_cluster *sim = domt_nodes.sim;

    for (uint32_t i = 0; i < domt_nodes.count; i++)
        (void)domus_testkit_cluster_resume(sim, domt_nodes.numbers[i], DOMUS_CLOCK_JUMPS);
    (void)domus_testkit_cluster_heal(sim, DOMUS_EVERY, DOMUS_EVERY, DOMUS_BOTH_WAYS);
    for (uint32_t i = 0; i < domt_nodes.servers; i++) {
        (void)domus_testkit_cluster_heal_route(sim, i, DOMUS_EVERY);
        (void)domus_testkit_cluster_start_server(sim, i);
    }
    (void)domus_testkit_cluster_set_leg(sim, DOMUS_EVERY, DOMUS_EVERY, DOMUS_BOTH_WAYS,
                                        &(domus_testkit_leg){0});
    (void)domus_testkit_cluster_set_store(sim, &(domus_testkit_store_faults){0});
}

/* Draw faults of the store: it loses requests and answers, and keeps entries longer than it
 * should. */
static void draw_and_set_store_faults(domus_testkit_cluster *sim)
{
    const domus_testkit_store_faults faults = {
        .late_max_ns = domt_random_below(DOMT_SECOND),
        .request_loss_ppm = (uint32_t)domt_random_below(200000),
        .answer_loss_ppm = (uint32_t)domt_random_below(200000)};

    (void)domus_testkit_cluster_set_store(sim, &faults);
}

void domt_nodes_cause_random_fault(void)
{
    domus_testkit_cluster *sim = domt_nodes.sim;
    uint32_t node = domt_nodes.numbers[domt_random_below(domt_nodes.count)];
    uint32_t server = (uint32_t)domt_random_below(domt_nodes.servers);
    domus_testkit_ways ways = (domus_testkit_ways)(1 + domt_random_below(3));
    domus_testkit_leg lossy = {.loss_ppm = (uint32_t)domt_random_below(200000)};

    switch (domt_random_below(9)) {
    case 0:
        (void)domus_testkit_cluster_cut(sim, node, DOMUS_EVERY, ways, DOMUS_CUT_HOLDS);
        break;
    case 1:
        (void)domus_testkit_cluster_cut(sim, node, DOMUS_EVERY, ways, DOMUS_CUT_LOSES);
        break;
    case 2:
        (void)domus_testkit_cluster_disconnect(sim, node, domt_random_below(DOMT_SECOND));
        break;
    case 3:
        (void)domus_testkit_cluster_drop_slow(sim, node);
        break;
    case 4:
        (void)domus_testkit_cluster_stop_server(sim, server);
        break;
    case 5:
        (void)domus_testkit_cluster_set_leg(sim, node, DOMUS_EVERY, ways, &lossy);
        break;
    case 6:
        (void)domus_testkit_cluster_cut_route(sim, server, DOMUS_EVERY);
        break;
    case 7:
        draw_and_set_store_faults(sim);
        break;
    default:
        (void)domus_testkit_cluster_suspend(sim, node);
        break;
    }
}

void domt_nodes_live_through_faults(void (*crash_node)(uint32_t node))
{
    for (uint32_t round = 0; round < 4; round++) {
        for (uint64_t i = 1 + domt_random_below(2); i > 0; i--)
            domt_nodes_cause_random_fault();
        domt_nodes_advance_time(domt_random_below(1500 * MS));
        if (domt_random_below(2) == 0)
            domt_nodes_heal_faults();
        if (crash_node != NULL && domt_random_below(2) == 0) {
            domt_nodes_heal_faults();
            crash_node((uint32_t)domt_random_below(domt_nodes.count));
        }
        domt_nodes_advance_time(domt_random_below(DOMT_SECOND));
    }
    domt_nodes_heal_faults();
}
