/* A node of a store that is spread over a cluster: its doors (door.h), and the lines that INFO
 * prints of nodes. */
#include "nodes.h"

#include "desk.h"
#include "door.h"
#include "legacy.h"
#include "pubsub.h"
#include "wait.h"

#include <domus/system.h>

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES_TOLD 64u /* most nodes that INFO tells of */

/* longest time for which a node that stops brings its keys to other nodes */
#define EVACUATE_NS UINT64_C(10000000000)

domus_cluster *kv_cluster;

const domus_type kv_lookup_type = {.name = "lookup", .size = sizeof(struct kv_lookup)};
const domus_type kv_here_type = {.name = "here", .size = sizeof(struct kv_here)};

static domus_grains shards;
static domus_address returner;
/* whether this node is ending; relaxed: a client that comes at the same time may begin to wait, or
 * not */
static _Atomic bool is_ending;

/* --- the shards ------------------------------------------------------------------------------- */

static int make_state_of_shard_from_grain_key(void *context, const char *key, void *self)
{
    struct kv_store *store = self;
    char *end;
    unsigned long index = strtoul(key, &end, 10);

    (void)context;
    if (*end != '\0' || index >= kv_shard_count)
        /* no shard has this number here: another node is configured with more shards */
        return -EINVAL;
    store->index = (uint32_t)index;
    store->memory.bytes_max = kv_memory_max_of_shard();
    return 0;
}

/* The kinds of grains: a shard, which is never passivated, because its keys would be lost. */
const domus_grain_kind kv_grains[] = {
    {
        .name = "kv_shard",
        .behaviour = &kv_shard,
        .make = make_state_of_shard_from_grain_key,
        .options = {.placement = DOMUS_SPREAD, .mailbox_max = UINT16_MAX},
    },
    {.name = NULL},
};

void kv_fill_lookup_with_own_settings(struct kv_lookup *lookup)
{
    static const char text[] = "all nodes have to have the same hash";

    *lookup = (struct kv_lookup){kv_shard_count, kv_hash_of_bytes(text, sizeof text - 1)};
}

int kv_reply_address_if_settings_agree(domus_stack *stack, void *self, const void *payload)
{
    const struct kv_lookup *lookup = payload;
    struct kv_here here = {domus_self(stack)};
    struct kv_lookup own;

    (void)self;
    kv_fill_lookup_with_own_settings(&own);
    if (lookup->shards != own.shards || lookup->check != own.check)
        return kv_answer_error(stack, "ERR this node is configured differently");
    return domus_reply(stack, &kv_here_type, &here);
}

const domus_cluster_export kv_exports[] = {
    {.name = KV_ENVOY, .behaviour = &kv_envoy, .options = {.mailbox_max = UINT16_MAX}},
    {.name = KV_PORTER, .behaviour = &kv_porter},
    {.name = KV_KEEPER, .behaviour = &kv_keeper},
    {.name = NULL},
};

/* --- the node --------------------------------------------------------------------------------- */

int kv_start_doors_and_grains_of_node(domus_system *system)
{
    static const domus_spawn_options options = {.mailbox_max = UINT16_MAX};
    int error = domus_outside_grain_open(system, &kv_grains[0], &shards);
    if (error == 0)
        error = domus_outside_spawn(system, &kv_returner, NULL, &returner);
    if (error == 0)
        error =
            domus_outside_spawn_with(system, &kv_exchange_behaviour, NULL, &options, &kv_exchange);
    for (uint32_t i = 0; i < kv_shard_count && error == 0; i++) {
        struct kv_door door = {.shard = i, .grains = shards};
        error = domus_outside_spawn_with(system, &kv_door, &door, &options, &kv_shards[i]);
    }
    return error;
}

static bool is_any_other_node_up(void)
{
    domus_node_info nodes[NODES_TOLD];
    uint32_t count = domus_cluster_nodes(kv_cluster, nodes, NODES_TOLD);

    for (uint32_t i = 0; i < count && i < NODES_TOLD; i++) {
        if (!nodes[i].is_here && nodes[i].state == DOMUS_NODE_UP)
            return true;
    }
    return false;
}

void kv_stop_node(domus_system *system)
{
    atomic_store_explicit(&is_ending, true, memory_order_relaxed);
    for (uint32_t i = 0; i < kv_clerk_count; i++)
        (void)domus_outside_notice(system, kv_clerks[i], &kv_wait_end_type, NULL);
    if (is_any_other_node_up())
        (void)domus_outside_ask(system, returner, &kv_evacuate_type, NULL, EVACUATE_NS, NULL);
}

bool kv_is_node_ending(void)
{
    return atomic_load_explicit(&is_ending, memory_order_relaxed);
}

/* cluster_enabled is about the cluster protocol of Redis: a client that read 1 would send CLUSTER
 * SLOTS, and look for the node of each key, which it need not do here. */
void kv_write_cluster_section(domus_appender *text)
{
    domus_node_info nodes[NODES_TOLD];
    uint32_t up = 0;

    (void)domus_append_text(text, "cluster_enabled:0\r\nkv_cluster_enabled:%d\r\n",
                            kv_cluster != NULL);
    if (kv_cluster == NULL)
        return;
    uint32_t count = domus_cluster_nodes(kv_cluster, nodes, NODES_TOLD);
    for (uint32_t i = 0; i < count && i < NODES_TOLD; i++)
        up += nodes[i].state == DOMUS_NODE_UP || nodes[i].is_here;
    (void)domus_append_text(text,
                            "kv_cluster_node:%s\r\nkv_cluster_state:%s\r\n"
                            "kv_cluster_nodes_up:%" PRIu32 "\r\nkv_cluster_shards:%" PRIu32
                            "\r\nkv_cluster_shards_here:%" PRIu32 "\r\n",
                            nodes[0].name, nodes[0].state == DOMUS_NODE_UP ? "ok" : "alone", up,
                            kv_shard_count, domus_grain_count(shards));
}
