/* A store that clients of Redis use: keys live in actors over all threads, the shards.
 *
 *   ./dev run kv --config examples/kv/kv.yaml      and then: redis-cli -p 7004
 *
 * Begin with kv.h, which tells the way of a command. */
#include "nodes.h"
#include "start.h"
#include "travel.h"

#include <domus/main.h>
#include <domus/tls.h>

#include <errno.h>
#include <stdio.h>

static domus_cluster *cluster;
static const domus_cluster_options options = {
    .picklers = kv_picklers, .exports = kv_exports, .grains = kv_grains};
static const domus_cluster_member member = {&domus_cluster_front, &options, &cluster};

/* A node with shards of its own would get shards of the others, too. */
static bool is_half_a_node(const domus_system *system)
{
    const char *servers = domus_system_config(system)->cluster.servers;

    return !kv_settings.cluster && servers != NULL && servers[0] != '\0';
}

static int start(domus_system *system, void *argument)
{
    if (is_half_a_node(system)) {
        fprintf(stderr, "kv: cluster.servers needs kv.cluster: true\n");
        return -EINVAL;
    }
    kv_cluster = kv_settings.cluster ? cluster : NULL;
    int error = kv_start(system);

    return error != 0 ? error : domus_main_serve(system, argument, &kv_sessions, NULL);
}

static void stop(domus_system *system, void *argument)
{
    (void)argument;
    kv_stop(system);
}

static const domus_section section = {"kv", kv_keys, sizeof kv_settings, NULL};
static const domus_program program = {"kv",
                                      start,
                                      "kv",
                                      .stop = stop,
                                      .section = &section,
                                      .settings = &kv_settings,
                                      .front = &domus_tls_front,
                                      .cluster = &member};

int main(int argc, char **argv)
{
    return domus_main(argc, argv, &program);
}
