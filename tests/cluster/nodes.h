/* Nodes of a simulated cluster, for tests in one thread: they begin from a seed, time advances for
 * all of them at once, a seed draws faults, and a node may crash and come back.
 *
 * There is one cluster at a time, in `domt_nodes`. Every error that no test provokes fails the
 * test. */
#ifndef DOMT_CLUSTER_NODES_H
#define DOMT_CLUSTER_NODES_H

#include <domus/cluster.h>
#include <domus/testkit_cluster.h>

#include <stdbool.h>
#include <stdint.h>

#define DOMT_NODES_MAX 4u
#define DOMT_SECOND    UINT64_C(1000000000)

typedef struct domt_nodes_state {
    domus_testkit_cluster *sim;
    /* the cluster of each node; NULL: the node has crashed, or has opened none */
    domus_cluster *clusters[DOMT_NODES_MAX];
    uint32_t numbers[DOMT_NODES_MAX];
    uint32_t count, servers;
    uint64_t starts; /* number of starts of nodes until now, which is the next start time */
    uint64_t chance;
    void (*start)(uint32_t node);
} domt_nodes_state;

extern domt_nodes_state domt_nodes;

/* Draw a random number below `below`. */
uint64_t domt_random_below(uint64_t below);

/* Make the simulated cluster, without nodes. */
void domt_nodes_make_simulated_cluster(uint64_t seed, uint32_t servers);

/* Add a node with a system of `threads` threads, whose clock is right. Returns its index. */
uint32_t domt_nodes_add_node(uint32_t threads);

/* Make a cluster of three nodes with one to three threads each. If `clocks_differ` is true, each
 * node has a clock of its own. `start` opens the cluster of a node and spawns its actors; it is
 * called again when the node comes back. */
void domt_nodes_begin_three_nodes(uint64_t seed, uint32_t servers, bool clocks_differ,
                                  void (*start)(uint32_t node));

domus_system *domt_nodes_system_of_node(uint32_t node);

/* Open the cluster of a node named n0, n1 ... Where `with` has 0 or NULL, all nodes have the same
 * defaults: the name "sim", heartbeats each 100 ms, down after 600 ms. Returns the result of
 * domus_cluster_open(). */
int domt_nodes_try_to_open_cluster(uint32_t node, domus_cluster_options with,
                                   char error[static 200]);

/* Open the cluster of a node as domt_nodes_try_to_open_cluster() does, and check that this
 * succeeds. */
void domt_nodes_open_cluster(uint32_t node, domus_cluster_options with);

/* Spawn an actor on a node from a foreign thread. */
void domt_nodes_spawn_actor(uint32_t node, const domus_behaviour *behaviour, const void *state);

/* Advance the time of all nodes. */
void domt_nodes_advance_time(uint64_t ns);

/* Draw a fault for one of the nodes or servers; or heal all faults that can be drawn. */
void domt_nodes_cause_random_fault(void);
void domt_nodes_heal_faults(void);

/* Make a node crash, and start it again within two seconds. */
void domt_nodes_crash_and_restart(uint32_t node);

/* Draw faults in four rounds, and heal all of them at the end. In each round, `crash_node`, which
 * may be NULL, may be called for one of the nodes. */
void domt_nodes_live_through_faults(void (*crash_node)(uint32_t node));

/* Free the systems of all nodes, and then close their clusters. */
void domt_nodes_free_all(void);

#endif
