/* A node of a cluster: its guests talk with guests of other nodes, and count with them.
 *
 *   ./dev run cluster          starts a nats-server and three nodes, and tells what to try
 *
 * guest.c serves the port for lines, with rooms that extend over all nodes; counter.c has counters,
 * each of which lives on one of the nodes; store.c keeps the values that survive a node. Without
 * `cluster.servers` the same program runs alone, with the same commands. */
#include "node.h"

#include <domus/main.h>
#include <domus/observe.h>

domus_cluster *node_cluster;
domus_grains node_counters;

/* Picklers for the types that travel between nodes. */
static const domus_pickler picklers[] = {
    {.type = &guest_said_type, .version = 1, .table = &guest_said_table},
    {.type = &counter_add_type, .version = 1},
    {.type = &counter_count_type, .version = 1, .table = &counter_count_table},
    {.type = NULL}};

/* The kinds of grains that are spread over the nodes. */
static const domus_grain_kind kinds[] = {
    {.name = "counter", .behaviour = &counter, .options = {.passivate_after_ns = 60 * SECOND}},
    {.name = NULL}};

static int start_node(domus_system *system, void *argument)
{
    const struct store begin = {.servers = domus_system_config(system)->cluster.servers};
    domus_address address; /* address of the store, which counters find by its name */
    int error = domus_outside_grain_open(system, &kinds[0], &node_counters);

    if (error == 0)
        error = domus_outside_spawn(system, &store, &begin, &address);
    return error != 0 ? error : domus_main_serve(system, argument, &guests, NULL);
}

int main(int argc, char **argv)
{
    static const domus_cluster_options part = {.picklers = picklers, .grains = kinds};
    static const domus_cluster_member member = {&domus_cluster_front, &part, &node_cluster};
    static const domus_program program = {.name = "cluster",
                                          .start = start_node,
                                          .argument = "guests",
                                          .observe = &domus_observe_front,
                                          .cluster = &member};
    return domus_main(argc, argv, &program);
}
