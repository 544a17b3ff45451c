/* The store over several nodes (kv.cluster), which are one cluster of domus (domus/cluster.h).
 *
 * Each shard is a grain, so exactly one node has it. On every node a door (door.c) stands for each
 * shard: sessions send to it as to a shard of their own, and it passes the messages on to where the
 * shard lives. Messages to other nodes are pickled (travel.h).
 *
 * Without kv.cluster nothing of this is there, and kv_shards has the shards themselves. */
#ifndef KV_NODES_H
#define KV_NODES_H

#include "kv.h"

#include <domus/cluster.h>
#include <domus/grain.h>

#define KV_SHARDS_OF_CLUSTER 32u /* unless kv.shards says another number */

/* The cluster; NULL without kv.cluster. The program sets it before kv_start(), and it is constant
 * then. Its options have kv_picklers (travel.h), kv_exports and kv_grains. */
extern domus_cluster *kv_cluster;

/* An actor that other nodes spawn here, for their exchanges (exchange.c). */
#define KV_ENVOY "kv.envoy"
extern const domus_behaviour kv_envoy;
/* A notice to it: it works for the sender, and ends when that is gone. */
extern const domus_type kv_greeting_type;

/* The kinds of grains: the shards. */
extern const domus_grain_kind kv_grains[];

/* The first ask of a door. Nodes that are configured differently would look for the same
 * key in different shards, so a shard refuses a door whose values are others than its own. */
struct kv_lookup {
    uint32_t shards;
    uint64_t check; /* a hash, which tells whether kv.hashKey is the same */
};
extern const domus_type kv_lookup_type;

/* The answer: the shard as an actor. */
struct kv_here {
    domus_address shard;
};
extern const domus_type kv_here_type;

void kv_lookup_fill(struct kv_lookup *lookup);

/* A row of the shard. */
domus_handler kv_answer_lookup;

/* The behaviours that other nodes spawn here. */
extern const domus_cluster_export kv_exports[];

/* Make the doors, and what else a node needs. Returns 0; a negative errno. */
int kv_nodes_begin(domus_system *system);

/* The program ends: clients of this node wait no longer. The shards go to other nodes. */
void kv_nodes_stop(domus_system *system);

/* True from then on: no client of this node may begin to wait. */
bool kv_nodes_are_ending(void);

/* Write the lines of INFO's section about the cluster. */
void kv_nodes_describe(domus_appender *text);

/* --- elements that come back ------------------------------------------------------------------ */

/* An actor that sends elements back to shards on other nodes, when their clients on this node were
 * gone (gift.h). */
extern const domus_behaviour kv_returner;

/* A row of the shard: put such elements back where they were. */
domus_handler kv_take_back;

#endif
