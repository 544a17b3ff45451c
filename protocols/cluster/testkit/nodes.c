/* The simulated cluster and its nodes: how nodes are made, crash, restart, and are suspended. */
#include "protocols/cluster/testkit/sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define US          UINT64_C(1000)
#define MS          UINT64_C(1000000)
#define SECOND      UINT64_C(1000000000)
#define HOUR        (3600 * SECOND)
#define CENTURY     (UINT64_C(100) * 366 * 24 * HOUR)
#define DRIFT_LIMIT 500000

/* --- options ---------------------------------------------------------------------------------- */

static uint64_t option_or_preset(uint64_t value, uint64_t preset)
{
    return value != 0 ? value : preset;
}

static void fill_in_defaults_of_options(domus_testkit_cluster_options *options)
{
    options->servers = (uint32_t)option_or_preset(options->servers, 1);
    options->latency_ns = option_or_preset(options->latency_ns, 100 * US);
    options->jitter_ns = option_or_preset(options->jitter_ns, 100 * US);
    options->route_latency_ns = option_or_preset(options->route_latency_ns, 50 * US);
    options->store_latency_ns = option_or_preset(options->store_latency_ns, 200 * US);
    options->buffer_max = option_or_preset(options->buffer_max, DOMUS_NATS_BUFFER_MAX);
    options->inflight_max =
        (uint32_t)option_or_preset(options->inflight_max, DOMUS_NATS_INFLIGHT_MAX);
    options->subscriptions_max =
        (uint32_t)option_or_preset(options->subscriptions_max, DOMUS_NATS_SUBSCRIPTIONS_MAX);
    options->pings_missed_max = (uint32_t)option_or_preset(options->pings_missed_max, 2);
    options->ping_interval_ns = option_or_preset(options->ping_interval_ns, 2 * SECOND);
    options->request_timeout_ns = option_or_preset(options->request_timeout_ns, 5 * SECOND);
    options->connect_timeout_ns = option_or_preset(options->connect_timeout_ns, 2 * SECOND);
    options->drain_timeout_ns = option_or_preset(options->drain_timeout_ns, 30 * SECOND);
    options->backoff_min_ns = option_or_preset(options->backoff_min_ns, 100 * MS);
    options->backoff_max_ns = option_or_preset(options->backoff_max_ns, 2 * SECOND);
    options->wire_max = option_or_preset(options->wire_max, UINT64_C(1) << 20);
    options->payload_max = (uint32_t)option_or_preset(options->payload_max, UINT32_C(1) << 20);
    options->pending_max = option_or_preset(options->pending_max, UINT64_C(64) << 20);
    options->stale_ns = option_or_preset(options->stale_ns, 6 * SECOND);
    options->route_stale_ns = option_or_preset(options->route_stale_ns, 4 * SECOND);
    options->election_ns = option_or_preset(options->election_ns, SECOND);
}

static bool is_valid_time_in_options(uint64_t ns)
{
    return ns >= US && ns <= HOUR;
}

static bool is_valid_jitter_of_leg(uint64_t ns)
{
    return ns <= HOUR || ns == DOMUS_TESTKIT_NO_JITTER;
}

static bool are_options_of_cluster_valid(const domus_testkit_cluster_options *options)
{
    const uint64_t times[] = {
        options->latency_ns,       options->route_latency_ns,   options->store_latency_ns,
        options->ping_interval_ns, options->request_timeout_ns, options->connect_timeout_ns,
        options->drain_timeout_ns, options->backoff_min_ns,     options->backoff_max_ns,
        options->stale_ns,         options->route_stale_ns,     options->election_ns};

    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        if (!is_valid_time_in_options(times[i]))
            return false;
    }
    return options->servers <= DOMUS_TESTKIT_SERVERS_MAX &&
           is_valid_jitter_of_leg(options->jitter_ns) &&
           options->backoff_min_ns <= options->backoff_max_ns && options->inflight_max <= 65536 &&
           options->payload_max <= DOMUS_NATS_PAYLOAD_LIMIT;
}

/* --- the cluster ------------------------------------------------------------------------------ */

static void begin_all_servers(domi_sim *sim)
{
    uint64_t jitter_ns = sim->options.jitter_ns;

    for (uint32_t i = 0; i < sim->options.servers; i++) {
        sim->running[i] = true;
        for (uint32_t j = 0; j < sim->options.servers; j++) {
            domi_sim_route *route = &sim->routes[i][j];
            route->way =
                (domi_sim_way){.latency_ns = sim->options.route_latency_ns, .jitter_ns = jitter_ns};
            route->leg.way = &route->way;
        }
    }
    sim->store.way =
        (domi_sim_way){.latency_ns = sim->options.store_latency_ns, .jitter_ns = jitter_ns};
    sim->store.leg.way = &sim->store.way;
    sim->store.leader = DOMUS_EVERY;
    domi_sim_elect_leader_of_store(sim);
}

int domus_testkit_cluster_new(uint64_t seed, const domus_testkit_cluster_options *options,
                              domus_testkit_cluster **ret_cluster)
{
    domi_sim *sim = calloc(1, sizeof *sim);

    if (sim == NULL)
        return -ENOMEM;
    if (options != NULL)
        sim->options = *options;
    fill_in_defaults_of_options(&sim->options);
    sim->lines = calloc(DOMUS_TESTKIT_CLUSTER_TRACE_MAX, sizeof sim->lines[0]);
    if (!are_options_of_cluster_valid(&sim->options) || sim->lines == NULL) {
        int error = sim->lines == NULL ? -ENOMEM : -EINVAL;
        free(sim->lines);
        free(sim);
        return error;
    }
    if (sim->options.jitter_ns == DOMUS_TESTKIT_NO_JITTER)
        sim->options.jitter_ns = 0;
    sim->random = seed;
    sim->now_ns = DOMUS_TESTKIT_START_NS;
    begin_all_servers(sim);
    *ret_cluster = sim;
    return 0;
}

/* End the test kit of a node. Messages that its actors send while it ends are lost. */
static void end_kit_of_node(domi_sim_node *node, bool silent)
{
    for (domi_sim_client *at = node->clients; at != NULL; at = at->next)
        domi_sim_client_end_for_good(at, silent);
    node->sim->stepping = true;
    (void)domus_testkit_stop(node->kit);
    if (node->on_stopped != NULL)
        node->on_stopped(node->context, node->index);
    domus_testkit_free(node->kit);
    node->sim->stepping = false;
    node->kit = NULL;
    /* While the kit ended, actors that were only mounted then may have made further clients. */
    for (domi_sim_client *at = node->clients; at != NULL; at = at->next)
        domi_sim_client_end_for_good(at, silent);
}

void domus_testkit_cluster_free(domus_testkit_cluster *cluster)
{
    if (cluster == NULL || cluster->stepping)
        return;
    cluster->ending = true;
    cluster->observer = NULL;
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        if (cluster->nodes[i]->kit != NULL)
            end_kit_of_node(cluster->nodes[i], true);
    }
    for (domi_sim_connection *at = cluster->connections; at != NULL; at = at->next)
        domi_sim_close_side_of_server(at, 0, "the end");
    for (uint32_t from = 0; from < cluster->options.servers; from++) {
        for (uint32_t to = 0; to < cluster->options.servers; to++)
            domi_sim_lose_packets_of_leg(
                cluster, &cluster->routes[from][to].leg,
                (domi_sim_loss){DOMUS_FATE_LOST_ROUTE, DOMUS_EVERY, "the end"});
    }
    for (domi_sim_interest *at = cluster->interests; at != NULL; at = at->next)
        at->known = 0;
    domi_sim_free_closed_connections(cluster);
    domi_sim_free_ended_subscriptions(cluster);
    domi_sim_store_free(cluster);
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        domi_sim_node *node = cluster->nodes[i];
        for (domi_sim_client *client = node->clients; client != NULL;) {
            domi_sim_client *next = client->next;
            domi_sim_client_free(client);
            client = next;
        }
        free(node);
    }
    free(cluster->lines);
    free(cluster->text);
    free(cluster);
}

/* --- nodes ------------------------------------------------------------------------------------ */

domi_sim_node *domi_sim_find_running_node(domi_sim *sim, uint32_t node)
{
    if (sim->stepping)
        (void)domi_sim_record_error(sim, -EBUSY, "a handler runs");
    else if (node >= sim->node_count)
        (void)domi_sim_record_error(sim, -EINVAL, "there is no node %u", node);
    else
        return sim->nodes[node];
    return NULL;
}

/* Returns the error that domi_sim_find_running_node() has recorded because a node is missing. */
static int recorded_error_of_missing_node(const domi_sim *sim)
{
    return sim->stepping ? -EBUSY : -EINVAL;
}

/* Make a test kit for the node whose clock shows the node's time. */
static int make_kit_for_node(domi_sim_node *node)
{
    domi_sim *sim = node->sim;
    uint64_t local_ns = domi_sim_node_time_of_cluster_time(node, sim->now_ns);
    int error = domus_testkit_new(node->has_config ? &node->config : NULL,
                                  domi_sim_draw_number_below(sim, UINT64_MAX), sim->error,
                                  sizeof sim->error, &node->kit);

    if (error != 0) {
        node->kit = NULL;
        return error;
    }
    error = domus_testkit_jump(node->kit, local_ns - DOMUS_TESTKIT_START_NS);
    node->due_ns = domi_sim_cluster_time_of_node_time(node, domus_testkit_due_ns(node->kit));
    return error;
}

int domus_testkit_cluster_add_node(domus_testkit_cluster *cluster,
                                   const domus_testkit_node_options *options, uint32_t *ret_node)
{
    const domus_testkit_node_options none = {0};
    domi_sim *sim = cluster;

    if (options == NULL)
        options = &none;
    if (sim->stepping)
        return domi_sim_record_error(sim, -EBUSY, "a handler runs");
    if (sim->node_count == DOMUS_TESTKIT_NODES_MAX)
        return domi_sim_record_error(sim, -ENOSPC, "no more than %u nodes",
                                     DOMUS_TESTKIT_NODES_MAX);
    if (options->clock_offset_ns > CENTURY || options->clock_drift_ppm < -DRIFT_LIMIT ||
        options->clock_drift_ppm > DRIFT_LIMIT)
        return domi_sim_record_error(sim, -EINVAL, "the clock of a node is out of range");
    domi_sim_node *node = calloc(1, sizeof *node);
    if (node == NULL)
        return domi_sim_record_error(sim, -ENOMEM, "no memory for a node");
    node->sim = sim;
    node->index = sim->node_count;
    if (options->name != NULL)
        (void)snprintf(node->name, sizeof node->name, "%s", options->name);
    else
        (void)snprintf(node->name, sizeof node->name, "%u", node->index);
    node->has_config = options->config != NULL;
    if (node->has_config)
        node->config = *options->config;
    node->on_stopped = options->on_stopped;
    node->context = options->context;
    node->begin_ns = sim->now_ns;
    node->local_ns = DOMUS_TESTKIT_START_NS + options->clock_offset_ns;
    node->rate = (uint64_t)((int64_t)DOMUS_TESTKIT_PPM + options->clock_drift_ppm);
    const domi_sim_way way = {.latency_ns = sim->options.latency_ns,
                              .jitter_ns = sim->options.jitter_ns};
    for (uint32_t server = 0; server < DOMUS_TESTKIT_SERVERS_MAX; server++)
        node->ways[server][DOMI_SIM_UP] = node->ways[server][DOMI_SIM_DOWN] = way;
    int error = make_kit_for_node(node);
    if (error != 0) {
        domus_testkit_free(node->kit);
        free(node);
        return error;
    }
    sim->nodes[sim->node_count++] = node;
    domi_sim_add_line_to_trace(sim, "%s is node %u", node->name, node->index);
    *ret_node = node->index;
    return 0;
}

domus_testkit *domus_testkit_cluster_kit(domus_testkit_cluster *cluster, uint32_t node)
{
    return node < cluster->node_count ? cluster->nodes[node]->kit : NULL;
}

void *domus_testkit_cluster_context(domus_testkit_cluster *cluster, uint32_t node)
{
    return node < cluster->node_count ? cluster->nodes[node] : NULL;
}

int domus_testkit_cluster_crash(domus_testkit_cluster *cluster, uint32_t node, bool silent)
{
    domi_sim_node *at = domi_sim_find_running_node(cluster, node);

    if (at == NULL)
        return recorded_error_of_missing_node(cluster);
    if (at->kit == NULL)
        return domi_sim_record_error(cluster, -EALREADY, "%s has crashed", at->name);
    domi_sim_add_line_to_trace(cluster, "%s crashes%s", at->name, silent ? " silently" : "");
    end_kit_of_node(at, silent);
    at->suspended = false;
    at->due_ns = DOMI_SIM_NEVER;
    return 0;
}

int domus_testkit_cluster_start(domus_testkit_cluster *cluster, uint32_t node)
{
    domi_sim_node *at = domi_sim_find_running_node(cluster, node);

    if (at == NULL)
        return recorded_error_of_missing_node(cluster);
    if (at->kit != NULL)
        return domi_sim_record_error(cluster, -EALREADY, "%s runs", at->name);
    domi_sim_add_line_to_trace(cluster, "%s starts again", at->name);
    return make_kit_for_node(at);
}

int domus_testkit_cluster_suspend(domus_testkit_cluster *cluster, uint32_t node)
{
    domi_sim_node *at = domi_sim_find_running_node(cluster, node);

    if (at == NULL)
        return recorded_error_of_missing_node(cluster);
    if (at->kit == NULL || at->suspended)
        return domi_sim_record_error(cluster, -EALREADY, "%s does not run", at->name);
    domi_sim_add_line_to_trace(cluster, "%s is suspended", at->name);
    at->suspended = true;
    return domi_sim_run_kit_to_cluster_time(at);
}

int domus_testkit_cluster_resume(domus_testkit_cluster *cluster, uint32_t node,
                                 domus_testkit_clock clock)
{
    domi_sim_node *at = domi_sim_find_running_node(cluster, node);

    if (at == NULL)
        return recorded_error_of_missing_node(cluster);
    if (at->kit == NULL || !at->suspended)
        return domi_sim_record_error(cluster, -EALREADY, "%s is not suspended", at->name);
    domi_sim_add_line_to_trace(cluster, "%s goes on", at->name);
    at->suspended = false;
    uint64_t kit_ns = domus_testkit_now_ns(at->kit);
    uint64_t local_ns = domi_sim_node_time_of_cluster_time(at, cluster->now_ns);
    /* The clock of the resumed node goes on from its old time, while the node handles what has
     * come. */
    at->begin_ns = cluster->now_ns;
    at->local_ns = kit_ns;
    int error = domi_sim_run_kit_to_cluster_time(at);
    if (error != 0 || clock == DOMUS_CLOCK_STOOD)
        return error;
    at->local_ns = local_ns;
    cluster->stepping = true;
    error = domus_testkit_jump(at->kit, local_ns - kit_ns);
    cluster->stepping = false;
    at->due_ns = domi_sim_cluster_time_of_node_time(at, domus_testkit_due_ns(at->kit));
    return error;
}
