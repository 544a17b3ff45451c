/* Faults that a test sets in a simulated cluster: legs that are cut, slow and lossy; clients that
 * are disconnected; failures of buckets. */
#include "protocols/cluster/testkit/sim.h"

#include <errno.h>

#define LATENCY_LEAST UINT64_C(1000)
#define LATENCY_MOST  UINT64_C(3600000000000)

/* Check the numbers of a node and of a server; each may be DOMUS_EVERY. Returns 0; -EINVAL; -EBUSY
 * while a handler of the cluster runs. */
static int check_numbers_of_node_and_server(domi_sim *sim, uint32_t node, uint32_t server,
                                            uint32_t ways)
{
    if (sim->stepping)
        return domi_sim_record_error(sim, -EBUSY, "a handler runs");
    if ((node != DOMUS_EVERY && node >= sim->node_count) ||
        (server != DOMUS_EVERY && server >= sim->options.servers) || ways == 0 ||
        (ways & ~(uint32_t)DOMUS_BOTH_WAYS) != 0)
        return domi_sim_record_error(sim, -EINVAL, "there is no leg of node %u and server %u", node,
                                     server);
    return 0;
}

/* A function that changes one direction of a leg; `change` points to the new values. */
typedef void change_way(domi_sim *sim, domi_sim_way *way, const void *change);

/* Call a function for the named directions of the legs between the named nodes and servers. */
static void call_for_each_direction_of_legs(domi_sim *sim, uint32_t node, uint32_t server,
                                            uint32_t ways, change_way *change, const void *what)
{
    for (uint32_t n = 0; n < sim->node_count; n++) {
        for (uint32_t s = 0; s < sim->options.servers; s++) {
            if ((node != DOMUS_EVERY && node != n) || (server != DOMUS_EVERY && server != s))
                continue;
            if ((ways & DOMUS_TO_SERVER) != 0)
                change(sim, &sim->nodes[n]->ways[s][DOMI_SIM_UP], what);
            if ((ways & DOMUS_FROM_SERVER) != 0)
                change(sim, &sim->nodes[n]->ways[s][DOMI_SIM_DOWN], what);
        }
    }
}

static const char *name_of_directions_for_trace(uint32_t ways)
{
    if (ways == DOMUS_BOTH_WAYS)
        return "both ways";
    return ways == DOMUS_TO_SERVER ? "to" : "from";
}

/* --- legs ------------------------------------------------------------------------------------- */

static void set_properties_of_direction(domi_sim *sim, domi_sim_way *way, const void *change)
{
    const domus_testkit_leg *leg = change;

    way->latency_ns = leg->latency_ns != 0 ? leg->latency_ns : sim->options.latency_ns;
    way->jitter_ns = leg->jitter_ns != 0 ? leg->jitter_ns : sim->options.jitter_ns;
    if (way->jitter_ns == DOMUS_TESTKIT_NO_JITTER)
        way->jitter_ns = 0;
    way->loss_ppm = leg->loss_ppm;
}

int domus_testkit_cluster_set_leg(domus_testkit_cluster *cluster, uint32_t node, uint32_t server,
                                  domus_testkit_ways ways, const domus_testkit_leg *leg)
{
    int error = check_numbers_of_node_and_server(cluster, node, server, ways);

    if (error != 0)
        return error;
    if ((leg->latency_ns != 0 && leg->latency_ns < LATENCY_LEAST) ||
        leg->latency_ns > LATENCY_MOST ||
        (leg->jitter_ns > LATENCY_MOST && leg->jitter_ns != DOMUS_TESTKIT_NO_JITTER) ||
        leg->loss_ppm > DOMUS_TESTKIT_PPM)
        return domi_sim_record_error(cluster, -EINVAL, "a leg is out of range");
    call_for_each_direction_of_legs(cluster, node, server, ways, set_properties_of_direction, leg);
    domi_sim_add_line_to_trace(cluster, "legs of %d and server %d, %s, lose %u ppm", (int)node,
                               (int)server, name_of_directions_for_trace(ways), leg->loss_ppm);
    return 0;
}

static void cut_direction(domi_sim *sim, domi_sim_way *way, const void *change)
{
    (void)sim;
    way->cut = *(const uint32_t *)change;
}

/* Lose the messages that are under way on legs whose kind of cut loses messages. */
static void lose_messages_on_cut_legs(domi_sim *sim)
{
    for (domi_sim_connection *at = sim->connections; at != NULL; at = at->next) {
        uint32_t node = at->client->node->index;
        if (at->up.way->cut == DOMUS_CUT_LOSES)
            domi_sim_lose_messages_of_leg(
                sim, &at->up, (domi_sim_loss){DOMUS_FATE_LOST_UP, node, "the leg is cut"});
        if (at->down.way->cut == DOMUS_CUT_LOSES)
            domi_sim_lose_messages_of_leg(
                sim, &at->down, (domi_sim_loss){DOMUS_FATE_LOST_DOWN, node, "the leg is cut"});
    }
}

int domus_testkit_cluster_cut(domus_testkit_cluster *cluster, uint32_t node, uint32_t server,
                              domus_testkit_ways ways, domus_testkit_cut cut)
{
    int error = check_numbers_of_node_and_server(cluster, node, server, ways);
    uint32_t change = cut;

    if (error != 0)
        return error;
    if (cut != DOMUS_CUT_HOLDS && cut != DOMUS_CUT_LOSES)
        return domi_sim_record_error(cluster, -EINVAL, "there is no such cut");
    call_for_each_direction_of_legs(cluster, node, server, ways, cut_direction, &change);
    domi_sim_add_line_to_trace(cluster, "legs of %d and server %d, %s, are cut%s", (int)node,
                               (int)server, name_of_directions_for_trace(ways),
                               cut == DOMUS_CUT_LOSES ? " and lose" : "");
    lose_messages_on_cut_legs(cluster);
    return 0;
}

int domus_testkit_cluster_heal(domus_testkit_cluster *cluster, uint32_t node, uint32_t server,
                               domus_testkit_ways ways)
{
    int error = check_numbers_of_node_and_server(cluster, node, server, ways);
    uint32_t change = 0;

    if (error != 0)
        return error;
    call_for_each_direction_of_legs(cluster, node, server, ways, cut_direction, &change);
    domi_sim_add_line_to_trace(cluster, "legs of %d and server %d, %s, are healed", (int)node,
                               (int)server, name_of_directions_for_trace(ways));
    return 0;
}

/* --- connections ------------------------------------------------------------------------------ */

/* Close all connections of clients of a node at their servers. */
static void close_connections_of_node(domi_sim *sim, uint32_t node, int error, const char *why)
{
    for (domi_sim_connection *at = sim->connections; at != NULL; at = at->next) {
        if (at->client->node->index == node && at->server_open) {
            sim->counts.slow += error == -EPIPE;
            domi_sim_close_side_of_server(at, error, why);
        }
    }
}

int domus_testkit_cluster_disconnect(domus_testkit_cluster *cluster, uint32_t node, uint64_t for_ns)
{
    domi_sim_node *at = domi_sim_find_running_node(cluster, node);

    if (at == NULL)
        return cluster->stepping ? -EBUSY : -EINVAL;
    at->barred_ns =
        for_ns < DOMI_SIM_NEVER - cluster->now_ns ? cluster->now_ns + for_ns : DOMI_SIM_NEVER;
    domi_sim_add_line_to_trace(cluster, "%s is disconnected", at->name);
    close_connections_of_node(cluster, node, -ECONNRESET, "it is disconnected");
    return 0;
}

int domus_testkit_cluster_drop_slow(domus_testkit_cluster *cluster, uint32_t node)
{
    if (domi_sim_find_running_node(cluster, node) == NULL)
        return cluster->stepping ? -EBUSY : -EINVAL;
    close_connections_of_node(cluster, node, -EPIPE, "slow consumer");
    return 0;
}

/* --- buckets ---------------------------------------------------------------------------------- */

int domus_testkit_cluster_set_store(domus_testkit_cluster *cluster,
                                    const domus_testkit_store_faults *faults)
{
    if (cluster->stepping)
        return domi_sim_record_error(cluster, -EBUSY, "a handler runs");
    if (faults->late_max_ns > LATENCY_MOST || faults->request_loss_ppm > DOMUS_TESTKIT_PPM ||
        faults->answer_loss_ppm > DOMUS_TESTKIT_PPM)
        return domi_sim_record_error(cluster, -EINVAL, "faults of the buckets are out of range");
    cluster->store.faults = *faults;
    domi_sim_add_line_to_trace(cluster, "buckets lose %u ppm of requests and %u of answers",
                               faults->request_loss_ppm, faults->answer_loss_ppm);
    return 0;
}

uint32_t domus_testkit_cluster_leader(const domus_testkit_cluster *cluster)
{
    return cluster->store.leader;
}
