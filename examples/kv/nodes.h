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

#define KV_SHARDS_OF_CLUSTER 32u /* number of shards in a cluster, unless kv.shards is set */

/* The cluster; NULL without kv.cluster. The program sets it before kv_start_actors_of_store(), and
 * it is constant from then on. Its options have kv_picklers (travel.h), kv_exports and kv_grains.
 */
extern domus_cluster *kv_cluster;

/* Name of the export by which other nodes spawn an envoy on this node, for their exchanges
 * (exchange.c). */
#define KV_ENVOY "kv.envoy"
extern const domus_behaviour kv_envoy;
/* The type of a notice to an envoy: it works for the sender, an exchange, and ends when that
 * ends. */
extern const domus_type kv_greeting_type;

/* The kinds of grains of the program: the shards. */
extern const domus_grain_kind kv_grains[];

/* The first ask of a door (door.h) to its shard. Nodes that are configured differently would look
 * for the same key in different shards, so a shard refuses a door whose values differ from its
 * own. */
struct kv_lookup {
    uint32_t shards;
    /* a check value made of kv.hashKey, by which the shard sees whether the other node has the same
     * one */
    uint64_t check;
};
extern const domus_type kv_lookup_type;

/* The answer to a kv_lookup: the address of the shard. */
struct kv_here {
    domus_address shard;
};
extern const domus_type kv_here_type;

void kv_fill_lookup_with_own_settings(struct kv_lookup *lookup);

/* The handler of a shard for a kv_lookup. */
domus_handler kv_reply_address_if_settings_agree;

/* The behaviours that other nodes may spawn on this node. */
extern const domus_cluster_export kv_exports[];

/* Make the doors and the other actors of a node. Returns 0; a negative errno. */
int kv_start_doors_and_grains_of_node(domus_system *system);

/* End the node when the program ends: its clients stop waiting, and its shards go to other
 * nodes. */
void kv_stop_node(domus_system *system);

/* Returns whether kv_stop_node() has begun, from when on no client of this node may begin to
 * wait. */
bool kv_is_node_ending(void);

/* Write the lines of the cluster section of INFO. */
void kv_write_cluster_section(domus_appender *text);

/* --- elements that come back ------------------------------------------------------------------ */

/* The behaviour of the returner, an actor that sends elements of lists back to their shards on
 * other nodes, if the clients on this node that should get them have ended (gift.h). */
extern const domus_behaviour kv_returner;

/* The handler of a shard for elements that come back from a returner: it puts them where they
 * were. */
domus_handler kv_put_sent_gift_back_into_store;

#endif
