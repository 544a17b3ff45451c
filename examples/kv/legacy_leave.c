/* The shards of a node that leaves. When it has left, nobody can fetch anything from it, so the
 * keys go to another node before: a keeper there fetches them as a next life would, and puts them
 * into its slot, where the next life finds them.
 *
 * From then on until it is stopped, the shard answers nothing (-ESTALE, as one that has ended):
 * what it changed would be lost. */
#include "legacy.h"

#include <errno.h>

#define NODES_MAX 64u
#define ASK_NS    UINT64_C(5000000000)

const domus_type kv_evacuate_type = {.name = "evacuate"};

/* --- the shard -------------------------------------------------------------------------------- */

/* End the evacuation of the running shard: its keys are on another node, or, with an error, in the
 * slot of this node. */
static int become_shard_without_keys(domus_stack *stack, int error)
{
    int failed = domus_become(stack, &kv_shard_without_keys);

    return failed != 0 ? failed : error != 0 ? error : kv_answer_ok(stack);
}

static int end_evacuation_after_keeper_answers(domus_stack *stack, void *self,
                                               const domus_answer *answer)
{
    (void)self;
    return become_shard_without_keys(stack, answer->error);
}

static int ask_spawned_keeper_to_fetch_keys(domus_stack *stack, void *self,
                                            const domus_answer *answer)
{
    const struct kv_store *store = self;
    struct kv_keep keep = {.shard = store->index, .fence = store->fence};

    if (answer->error != 0)
        return end_evacuation_after_keeper_answers(stack, self, answer);
    domus_address keeper = ((const domus_cluster_spawned *)answer->payload)->address;
    int error = domus_spawn(stack, &kv_porter, NULL, &keep.porter);
    if (error == 0) {
        error = domus_ask_within(stack, keeper, &kv_keep_type, &keep, ASK_NS,
                                 end_evacuation_after_keeper_answers);
        if (error == DOMUS_PARKED)
            return error;
        (void)domus_stop(stack, keep.porter);
    }
    (void)domus_stop(stack, keeper);
    return become_shard_without_keys(stack, error);
}

/* Choose another node that is up for the keys of a shard; shards are spread over all such nodes.
 * Returns false if there is none. */
static bool choose_node_for_keys(uint32_t shard, domus_node *ret_node)
{
    domus_node_info nodes[NODES_MAX];
    domus_node up[NODES_MAX];
    uint32_t ups = 0, count = domus_cluster_nodes(kv_cluster, nodes, NODES_MAX);

    for (uint32_t i = 0; i < count && i < NODES_MAX; i++) {
        if (!nodes[i].is_here && nodes[i].state == DOMUS_NODE_UP && !nodes[i].is_leaving)
            up[ups++] = nodes[i].node;
    }
    if (ups != 0)
        *ret_node = up[shard % ups];
    return ups != 0;
}

int kv_evacuate_shard_to_other_node(domus_stack *stack, void *self, const void *payload)
{
    struct kv_store *store = self;
    domus_node node;

    (void)payload;
    if (store->is_partial || !choose_node_for_keys(store->index, &node))
        return kv_answer_ok(stack);
    int error = domus_barrier(stack);
    if (error != 0)
        return error;
    if (!kv_legacy_leave_if_store_is_whole(stack, store))
        return -ENOMEM;
    /* The next life does not get the changes that the store has from now on. */
    store->is_partial = true;
    error = domus_cluster_spawn(stack, node, KV_KEEPER, NULL, NULL, ASK_NS,
                                ask_spawned_keeper_to_fetch_keys);
    return error == DOMUS_PARKED ? error : become_shard_without_keys(stack, error);
}

/* --- the node --------------------------------------------------------------------------------- */

static int answer_ok_when_all_are_evacuated(domus_stack *stack, void *self,
                                            const domus_answer *answers)
{
    (void)self, (void)answers;
    return kv_answer_ok(stack);
}

/* Ask all shards that live here to bring their keys to another node. If there is no other node,
 * their keys are lost. */
int kv_ask_all_shards_to_evacuate(domus_stack *stack, void *self, const void *payload)
{
    int error = 0;

    (void)self, (void)payload;
    for (uint32_t i = 0; i < kv_shard_count && error == 0; i++)
        error = domus_ask_add(stack, kv_shards[i], &kv_evacuate_type, NULL, 0, i);
    return error != 0 ? error : domus_wait_all(stack, answer_ok_when_all_are_evacuated);
}
