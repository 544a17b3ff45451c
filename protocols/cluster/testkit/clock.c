/* One time line: the cluster finds out what is due next, among packets on legs, timers of kits and
 * times of servers; moves its time there; and makes that happen.
 *
 * Each node has a clock of its own, which begins later and runs faster or slower. A kit is moved
 * only when something happens in it, so it may be behind in the meantime. */
#include "protocols/cluster/testkit/sim.h"

#include <errno.h>

/* times that one node is told to handle its mail at the same point of time, at most */
#define ROUNDS_MAX 8u

/* --- clocks ----------------------------------------------------------------------------------- */

/* Products of two 64-bit numbers would overflow, so whole millions of ns are converted apart from
 * the rest. */
uint64_t domi_sim_node_time_of_cluster_time(const domi_sim_node *node, uint64_t cluster_ns)
{
    uint64_t passed_ns = cluster_ns - node->begin_ns;
    uint64_t millions = passed_ns / DOMUS_TESTKIT_PPM;
    uint64_t rest = passed_ns % DOMUS_TESTKIT_PPM;

    return node->local_ns + millions * node->rate + rest * node->rate / DOMUS_TESTKIT_PPM;
}

uint64_t domi_sim_cluster_time_of_node_time(const domi_sim_node *node, uint64_t local_ns)
{
    if (local_ns <= node->local_ns)
        return node->begin_ns;
    if (local_ns == DOMI_SIM_NEVER)
        return DOMI_SIM_NEVER;
    uint64_t passed_ns = local_ns - node->local_ns;
    uint64_t rates = passed_ns / node->rate;
    uint64_t rest = passed_ns % node->rate;

    if (rates > (DOMI_SIM_NEVER - node->begin_ns) / DOMUS_TESTKIT_PPM - 1)
        return DOMI_SIM_NEVER;
    return node->begin_ns + rates * DOMUS_TESTKIT_PPM +
           (rest * DOMUS_TESTKIT_PPM + node->rate - 1) / node->rate;
}

int domi_sim_run_kit_to_cluster_time(domi_sim_node *node)
{
    domi_sim *sim = node->sim;
    uint64_t local_ns = domi_sim_node_time_of_cluster_time(node, sim->now_ns);
    uint64_t kit_ns = domus_testkit_now_ns(node->kit);
    int error;

    domi_sim_wake_clients_with_packets(node);
    sim->stepping = true;
    /* No timer of the kit is due before this time, so its clock may jump; packets that have come
     * are then handled at the time at which they came. */
    error = domus_testkit_jump(node->kit, local_ns > kit_ns ? local_ns - kit_ns : 0);
    sim->stepping = false;
    node->due_ns = domi_sim_cluster_time_of_node_time(node, domus_testkit_due_ns(node->kit));
    if (error != 0)
        return domi_sim_record_error(sim, error, "%s: %s", node->name,
                                     domus_testkit_error(node->kit));
    return 0;
}

static bool is_node_running(const domi_sim_node *node)
{
    return node->kit != NULL && !node->suspended;
}

/* Returns whether packets wait for a client of the node. */
static bool has_packets_for_clients(const domi_sim_node *node)
{
    for (const domi_sim_client *at = node->clients; at != NULL; at = at->next) {
        if (!at->is_over && at->came.head != NULL)
            return true;
    }
    return false;
}

/* Run the kits of all nodes that have something to do now. The node that runs first is drawn by
 * chance. */
static int run_kits_of_due_nodes(domi_sim *sim, bool all)
{
    if (sim->node_count == 0)
        return 0;
    uint32_t first = (uint32_t)domi_sim_draw_number_below(sim, sim->node_count);
    for (uint32_t i = 0; i < sim->node_count; i++) {
        domi_sim_node *node = sim->nodes[(first + i) % sim->node_count];
        if (!is_node_running(node))
            continue;
        /* A client that is ending cannot be woken, so packets for it are not waited for. */
        bool is_due = all || node->due_ns <= sim->now_ns || has_packets_for_clients(node);
        for (uint32_t round = 0; is_due && round < ROUNDS_MAX; round++) {
            int error = domi_sim_run_kit_to_cluster_time(node);
            if (error != 0)
                return error;
            is_due = has_packets_for_clients(node);
        }
    }
    return 0;
}

/* --- the next time ---------------------------------------------------------------------------- */

static uint64_t smaller_of_two_times(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

static uint64_t find_due_time_of_next_event(const domi_sim *sim)
{
    uint64_t due_ns = smaller_of_two_times(domi_sim_store_next_due_time(sim),
                                           domi_sim_due_time_of_next_route_event(sim));

    due_ns = smaller_of_two_times(due_ns, domi_sim_due_time_of_stale_check(sim));
    for (const domi_sim_connection *at = sim->connections; at != NULL; at = at->next)
        due_ns =
            smaller_of_two_times(due_ns, smaller_of_two_times(domi_sim_due_time_of_leg(&at->up),
                                                              domi_sim_due_time_of_leg(&at->down)));
    for (uint32_t i = 0; i < sim->node_count; i++) {
        if (is_node_running(sim->nodes[i]))
            due_ns = smaller_of_two_times(due_ns, sim->nodes[i]->due_ns);
    }
    return due_ns;
}

/* Deliver the packets on all legs whose time has come. */
static void deliver_due_packets_on_legs(domi_sim *sim)
{
    for (domi_sim_connection *at = sim->connections; at != NULL; at = at->next) {
        while (domi_sim_due_time_of_leg(&at->up) <= sim->now_ns)
            domi_sim_deliver_packet_to_server(at);
        while (domi_sim_due_time_of_leg(&at->down) <= sim->now_ns)
            domi_sim_deliver_packet_to_client(at);
    }
    for (uint32_t from = 0; from < sim->options.servers; from++) {
        for (uint32_t to = 0; to < sim->options.servers; to++) {
            while (domi_sim_due_time_of_leg(&sim->routes[from][to].leg) <= sim->now_ns)
                domi_sim_deliver_packet_of_route(sim, from, to);
        }
    }
    while (sim->store.leader != DOMUS_EVERY &&
           domi_sim_due_time_of_leg(&sim->store.leg) <= sim->now_ns)
        domi_sim_store_serve_next_request(sim);
}

/* Do everything that is due outside of nodes: for packets, routes, servers and buckets. */
static void do_due_work_of_servers(domi_sim *sim)
{
    deliver_due_packets_on_legs(sim);
    domi_sim_close_slow_or_silent_clients(sim);
    domi_sim_break_stale_routes(sim);
    domi_sim_elect_leader_of_store(sim);
    domi_sim_store_send_due_of_consumers(sim);
    domi_sim_free_closed_connections(sim);
    domi_sim_free_ended_subscriptions(sim);
}

/* Run the simulated cluster until a time, or until the condition holds. Returns 0; -ETIME if the
 * time has come before the condition holds. */
static int run_cluster_until(domi_sim *sim, bool (*is_done)(void *context), void *context,
                             uint64_t until_ns)
{
    if (sim->stepping)
        return domi_sim_record_error(sim, -EBUSY, "a handler runs");
    int error = run_kits_of_due_nodes(sim, true);
    while (error == 0) {
        if (sim->failed != 0)
            return domi_sim_record_error(sim, sim->failed, "no memory for the cluster");
        if (is_done != NULL && is_done(context))
            return 0;
        uint64_t due_ns = find_due_time_of_next_event(sim);
        if (due_ns > until_ns) {
            sim->now_ns = until_ns;
            error = run_kits_of_due_nodes(sim, true);
            return error == 0 ? -ETIME : error;
        }
        if (due_ns > sim->now_ns)
            sim->now_ns = due_ns;
        do_due_work_of_servers(sim);
        error = run_kits_of_due_nodes(sim, false);
    }
    return error;
}

int domus_testkit_cluster_advance(domus_testkit_cluster *cluster, uint64_t by_ns)
{
    if (by_ns > INT64_MAX - cluster->now_ns)
        return domi_sim_record_error(cluster, -ERANGE, "time would end");
    int error = run_cluster_until(cluster, NULL, NULL, cluster->now_ns + by_ns);
    return error == -ETIME ? 0 : error;
}

int domus_testkit_cluster_run(domus_testkit_cluster *cluster)
{
    return domus_testkit_cluster_advance(cluster, 0);
}

int domus_testkit_cluster_until(domus_testkit_cluster *cluster, bool (*is_done)(void *context),
                                void *context, uint64_t within_ns)
{
    if (within_ns > INT64_MAX - cluster->now_ns)
        return domi_sim_record_error(cluster, -ERANGE, "time would end");
    int error = run_cluster_until(cluster, is_done, context, cluster->now_ns + within_ns);
    return error == -ETIME
               ? domi_sim_record_error(cluster, -ETIME, "it has not come within the time")
               : error;
}

uint64_t domus_testkit_cluster_now_ns(const domus_testkit_cluster *cluster)
{
    return cluster->now_ns;
}
