/* A store that clients of Redis use: keys live in actors over all threads, the shards.
 *
 *   ./dev run kv --config examples/kv/kv.yaml      and then: redis-cli -p 7004
 *
 * Begin with kv.h, which tells the way of a command. */
#include "nodes.h"
#include "start.h"
#include "travel.h"

#include <domus/main.h>
#include <domus/observe.h>
#include <domus/tls.h>

#include <errno.h>
#include <stdio.h>

/* --- the node of a cluster -------------------------------------------------------------------- */

static const domus_cluster_options options = {
    .picklers = kv_picklers, .exports = kv_exports, .grains = kv_grains};

static int check_node_settings(const domus_cluster_setup *setup, char *error, size_t error_size)
{
    return domus_cluster_front.check(setup, error, error_size);
}

/* Open the program's node of a cluster. Without kv.cluster there is no node, not even a cluster of
 * this machine alone. */
static int open_node(domus_system *system, const domus_cluster_setup *setup, char *error,
                     size_t error_size, domus_cluster **ret_cluster)
{
    const domus_cluster_config *config = &setup->config->cluster;
    bool has_servers = config->servers != NULL && config->servers[0] != '\0';
    const char *wrong = NULL;

    *ret_cluster = NULL;
    if (has_servers && !kv_settings.cluster)
        wrong = "cluster.servers: it needs kv.cluster: true";
    else if (kv_settings.cluster && config->message_max_bytes < KV_MESSAGE_LEAST)
        wrong = "cluster.messageMax: it has to be 512KiB";
    if (wrong != NULL) {
        snprintf(error, error_size, "%s", wrong);
        return -EINVAL;
    }
    return kv_settings.cluster
               ? domus_cluster_front.open(system, setup, error, error_size, ret_cluster)
               : 0;
}

static void leave_node(domus_cluster *cluster)
{
    domus_cluster_front.leave(cluster);
}

static void close_node(domus_cluster *cluster)
{
    domus_cluster_front.close(cluster);
}

static const domus_joiner joiner = {check_node_settings, open_node, leave_node, close_node};
static const domus_cluster_member member = {&joiner, &options, &kv_cluster};

/* --- the program ------------------------------------------------------------------------------ */

static int start_server(domus_system *system, void *argument)
{
    int error = kv_start_actors_of_store(system);

    return error != 0 ? error : domus_main_serve(system, argument, &kv_sessions, NULL);
}

static void stop_server(domus_system *system, void *argument)
{
    (void)argument;
    kv_stop_store(system);
}

static const domus_section section = {"kv", kv_keys, sizeof kv_settings, NULL};
static const domus_program program = {"kv",
                                      start_server,
                                      "kv",
                                      .stop = stop_server,
                                      .section = &section,
                                      .settings = &kv_settings,
                                      .front = &domus_tls_front,
                                      .cluster = &member,
                                      .observe = &domus_observe_front};

int main(int argc, char **argv)
{
    return domus_main(argc, argv, &program);
}
