/* A gateway follows the table of nodes: if a node is down or has ended, the gateway gives up
 * everything that it holds for that node. */
#include "protocols/cluster/parts.h"

#include <errno.h>

/* --- losing a peer ---------------------------------------------------------------------------- */

void domi_peer_end_session_of_link(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t index,
                                   bool is_told)
{
    uint64_t lost = domi_link_end_session(peer->links[index], is_told);
    int64_t delta = -(int64_t)peer->counted[index];

    peer->counted[index] = 0;
    domi_node_count_queued_bytes(gateway, peer->record, delta);
    DOMI_COUNT(gateway, peer->record, lost, lost);
    domi_served_cancel_asks_of_peer_gateway(gateway, peer, index);
    domi_watching_end_for_gateway(gateway, peer, index);
    domi_grain_forget_returned_parts(peer, index);
    if (index != domi_gateway_index_at_peer(gateway, peer))
        return;
    domi_asks_fail_all_of_peer(gateway, peer, -EHOSTDOWN);
    domi_watched_report_all_lost(gateway, peer);
    domi_routes_leave_lost_peer(gateway, peer);
}

void domi_peer_end_sessions_of_all_links(domi_cluster_gateway *gateway, domi_peer *peer)
{
    for (uint16_t i = 0; i < peer->record->gateways; i++) {
        if (peer->links[i] != NULL)
            domi_peer_end_session_of_link(gateway, peer, i, false);
    }
    if (peer->links[domi_gateway_index_at_peer(gateway, peer)] != NULL)
        return;
    /* There may be asks and watches to the peer without a link, because it could not be made; they
     * fail here. */
    domi_asks_fail_all_of_peer(gateway, peer, -EHOSTDOWN);
    domi_watched_report_all_lost(gateway, peer);
    domi_routes_leave_lost_peer(gateway, peer);
}

#define ENDED_AT_A_TIME 64u

/* End the addresses of actors of a node that has ended, as far as this gateway owns these
 * addresses. */
static void end_addresses_of_ended_node(domi_cluster_gateway *gateway, uint64_t id)
{
    domus_remote_name names[ENDED_AT_A_TIME];
    uint32_t cursor = 0;

    do {
        uint32_t count = domus_remote_idle(gateway->stack, id, &cursor, names, ENDED_AT_A_TIME);
        for (uint32_t i = 0; i < count; i++)
            (void)domus_remote_end(gateway->stack, &names[i], -EHOSTDOWN);
    } while (cursor != 0);
}

/* --- following the table ---------------------------------------------------------------------- */

/* A copy of some members of a node's record, on which a gateway acts without the lock. */
typedef struct seen_record {
    uint64_t id;
    uint32_t downs;
    bool is_ended;
} seen_record;

static uint32_t copy_downs_and_ends_of_nodes(domus_cluster *cluster, seen_record *seen)
{
    uint32_t count = 0;

    domi_lock_take(&cluster->lock);
    for (uint32_t i = 0; i < cluster->nodes_used; i++) {
        const domi_node_record *record = cluster->nodes[i];
        if (record == NULL)
            continue;
        seen[count++] = (seen_record){
            .id = record->id,
            .downs = atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&record->downs,
                                          memory_order_relaxed),
            .is_ended = record->state == DOMUS_NODE_ENDED,
        };
    }
    domi_lock_release(&cluster->lock);
    return count;
}

/* Release everything that this gateway holds of a node that has ended. */
static void release_ended_node(domi_cluster_gateway *gateway, uint64_t id)
{
    domus_cluster *cluster = gateway->cluster;
    domi_peer *peer = domi_peer_find(gateway, id);
    uint64_t bit = UINT64_C(1) << gateway->index % 64;

    end_addresses_of_ended_node(gateway, id);
    if (peer != NULL)
        domi_peer_unlink_and_free(gateway, peer);
    domi_lock_take(&cluster->lock);
    domi_node_record *record = domi_node_find(cluster, id);
    bool is_first = record != NULL && (record->let_go[gateway->index / 64] & bit) == 0;
    if (is_first) {
        record->let_go[gateway->index / 64] |= bit;
        record->holders--;
    }
    domi_lock_release(&cluster->lock);
    /* Forgetting the node in all groups takes long, so it is done without the lock of the table.
     * Only gateway 0 does it, since only gateway 0 learns which nodes have members. */
    if (is_first && gateway->index == 0)
        domi_wide_remove_ended_node(&cluster->wide, id);
}

void domi_peers_follow_downs_of_nodes(domi_cluster_gateway *gateway)
{
    seen_record seen[DOMUS_CLUSTER_NODES_MAX];
    uint32_t count = copy_downs_and_ends_of_nodes(gateway->cluster, seen);

    for (uint32_t i = 0; i < count; i++) {
        domi_peer *peer = domi_peer_find(gateway, seen[i].id);
        if (peer != NULL && (peer->downs != seen[i].downs || seen[i].is_ended)) {
            peer->downs = seen[i].downs;
            domi_peer_end_sessions_of_all_links(gateway, peer);
            domi_interest_forget_what_peer_knows(peer);
        }
        if (seen[i].is_ended)
            release_ended_node(gateway, seen[i].id);
    }
}
