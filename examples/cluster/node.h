/* The parts of a node that its files share. */
#ifndef NODE_H
#define NODE_H

#include <domus/cluster.h>
#include <domus/domus.h>

#define SECOND UINT64_C(1000000000)

/* The cluster, and the handle of its counters, which are constant once guests come. */
extern domus_cluster *node_cluster;
extern domus_grains node_counters;

/* --- guest.c ---------------------------------------------------------------------------------- */

#define GUEST_LINE_MAX 400u /* most bytes of a guest's line without its end */

/* A line of a guest, as it is published to a room. */
struct guest_said {
    char text[GUEST_LINE_MAX + DOMUS_CLUSTER_NAME_MAX + 16];
};

extern const domus_type guest_said_type;
extern const domus_pickle_table guest_said_table;

/* The behaviour of the actors that serve the port for guests' lines. */
extern const domus_behaviour guests;

/* --- counter.c -------------------------------------------------------------------------------- */

/* The answer of a counter: its value after the addition. */
struct counter_count {
    uint64_t value;
    char node[DOMUS_CLUSTER_NAME_MAX + 1]; /* name of the node on which the counter lives */
};

/* type of an ask to a counter, without a payload: add 1 */
extern const domus_type counter_add_type;
extern const domus_type counter_count_type;
extern const domus_pickle_table counter_count_table;
extern const domus_behaviour counter;

/* --- store.c ---------------------------------------------------------------------------------- */

/* The name by which actors of a node find its store. */
#define STORE_NAME "store"

struct store {
    const char *servers;  /* urls of the servers that connect the nodes; "": no cluster */
    domus_address bucket; /* address of the bucket of JetStream in which values are stored */
};

/* The behaviour of a node's store, an actor that handles the same asks of domus/nats_kv.h as a
 * bucket does. */
extern const domus_behaviour store;

#endif
