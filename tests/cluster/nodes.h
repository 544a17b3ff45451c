/* Nodes of a simulated cluster, for tests in one thread: they are begun from a seed, time passes
 * for all of them at once, a seed draws faults, and a node may crash and come back.
 *
 * There is one cluster at a time, in `domt_nodes`. Whatever fails that no test provokes fails the
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
    domus_cluster *clusters[DOMT_NODES_MAX]; /* NULL: the node has crashed, or was not opened */
    uint32_t numbers[DOMT_NODES_MAX];
    uint32_t count, servers;
    uint64_t starts; /* of clusters of nodes */
    uint64_t chance;
    void (*start)(uint32_t node);
} domt_nodes_state;

extern domt_nodes_state domt_nodes;

/* Draw a number below `below`, by the seed. */
uint64_t domt_draw(uint64_t below);

/* Make a cluster without a node. */
void domt_nodes_new(uint64_t seed, uint32_t servers);

/* Add a system with so many threads, whose clock is right. Returns its index. */
uint32_t domt_nodes_add(uint32_t threads);

/* Make a cluster of three nodes with one to three threads, and, if `clocks_differ`, clocks of their
 * own. `start` opens the cluster of a node and spawns its actors; it is called again when a node
 * comes back. */
void domt_nodes_begin(uint64_t seed, uint32_t servers, bool clocks_differ,
                      void (*start)(uint32_t node));

domus_system *domt_nodes_system(uint32_t node);

/* Make a system a node named n0, n1 ... Where `with` has 0 or NULL it gets what all have: the name
 * "sim", heartbeats of 100 ms, down after 600 ms. Returns as domus_cluster_open(). */
int domt_nodes_try_open(uint32_t node, domus_cluster_options with, char error[static 200]);

/* The same, which may not fail. */
void domt_nodes_open(uint32_t node, domus_cluster_options with);

/* Spawn an actor on a node from outside. */
void domt_nodes_spawn(uint32_t node, const domus_behaviour *behaviour, const void *state);

/* Let so much time pass for all. */
void domt_nodes_advance(uint64_t ns);

/* Let something happen to one of the nodes or servers, by the seed; heal all such faults. */
void domt_nodes_fault(void);
void domt_nodes_heal(void);

/* Let a node crash and, within two seconds, start again. */
void domt_nodes_crash(uint32_t node);

/* End the systems, and close the clusters behind them. */
void domt_nodes_end(void);

#endif
