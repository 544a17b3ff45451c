/* The other nodes (peers) as one gateway sees them, with its links to their gateways. */
#include "protocols/cluster/inside.h"

#include <errno.h>
#include <stdlib.h>

static domi_peer **bucket_of_peer(domi_cluster_gateway *gateway, uint64_t id)
{
    return &gateway->peers_by_id[(id ^ id >> 32) % DOMI_PEERS_BUCKETS];
}

/* Find the record of a node that was heard and has not ended. `ret_downs` gets how often the node
 * went down so far, by which the new peer notices when it goes down later. */
static domi_node_record *find_record_of_living_node(domus_cluster *cluster, uint64_t id,
                                                    uint32_t *ret_downs)
{
    domi_lock_take(&cluster->lock);
    domi_node_record *found = domi_node_find(cluster, id);
    if (found != NULL && (found->gateways == 0 || found->state == DOMUS_NODE_ENDED))
        found = NULL;
    if (found != NULL)
        *ret_downs = atomic_load_explicit(&found->downs, memory_order_relaxed);
    domi_lock_release(&cluster->lock);
    return found;
}

domi_peer *domi_peer_find_or_make(domi_cluster_gateway *gateway, uint64_t id)
{
    domi_peer **bucket = bucket_of_peer(gateway, id);

    for (domi_peer *peer = *bucket; peer != NULL; peer = peer->next_in_bucket) {
        if (peer->id == id)
            return peer;
    }
    uint32_t downs;
    domi_node_record *record = find_record_of_living_node(gateway->cluster, id, &downs);
    domi_peer *peer = record != NULL ? calloc(1, sizeof *peer) : NULL;
    if (peer == NULL)
        return NULL;
    peer->record = record;
    peer->id = id;
    peer->downs = downs;
    peer->links = calloc(record->gateways, sizeof(domi_link *));
    peer->counted = calloc(record->gateways, sizeof(uint64_t));
    peer->returns = calloc(record->gateways, sizeof *peer->returns);
    if (peer->links == NULL || peer->counted == NULL || peer->returns == NULL) {
        free(peer->links);
        free(peer->counted);
        free(peer->returns);
        free(peer);
        return NULL;
    }
    peer->next_in_bucket = *bucket;
    *bucket = peer;
    peer->next = gateway->peers;
    gateway->peers = peer;
    return peer;
}

domi_link *domi_peer_link_to_gateway(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t index)
{
    if (peer->links[index] == NULL) {
        domi_link *link = malloc(sizeof *link);
        if (link == NULL)
            return NULL;
        domi_link_init(link, gateway->cluster->id, peer->id, (uint16_t)gateway->index);
        /* The first session is greater than all sessions of an earlier gateway here, which has
         * failed. */
        link->session = domus_now_ns(gateway->stack) + 1;
        peer->links[index] = link;
    }
    return peer->links[index];
}

domi_peer *domi_peer_find(domi_cluster_gateway *gateway, uint64_t id)
{
    domi_peer *peer = *bucket_of_peer(gateway, id);

    while (peer != NULL && peer->id != id)
        peer = peer->next_in_bucket;
    return peer;
}

static void free_peer_with_links(domi_peer *peer)
{
    for (uint32_t i = 0; i < peer->record->gateways; i++) {
        if (peer->links[i] == NULL)
            continue;
        domi_link_fini(peer->links[i]);
        free(peer->links[i]);
    }
    free(peer->links);
    free(peer->counted);
    free(peer->returns);
    free(peer);
}

void domi_peer_unlink_and_free(domi_cluster_gateway *gateway, domi_peer *peer)
{
    domi_peer **link = bucket_of_peer(gateway, peer->id), **all = &gateway->peers;

    while (*link != peer)
        link = &(*link)->next_in_bucket;
    *link = peer->next_in_bucket;
    while (*all != peer)
        all = &(*all)->next;
    *all = peer->next;
    free_peer_with_links(peer);
}

bool domi_peer_is_up(domi_cluster_gateway *gateway, const domi_peer *peer)
{
    domi_lock_take(&gateway->cluster->lock);
    bool is = peer->record->state == DOMUS_NODE_UP;
    domi_lock_release(&gateway->cluster->lock);
    return is;
}

bool domi_peer_has_room_on_way(domi_cluster_gateway *gateway, const domi_peer *peer)
{
    domi_lock_take(&gateway->cluster->lock);
    bool has = !peer->record->is_full;
    domi_lock_release(&gateway->cluster->lock);
    return has;
}

void domi_peers_free_all(domi_cluster_gateway *gateway)
{
    while (gateway->peers != NULL)
        domi_peer_unlink_and_free(gateway, gateway->peers);
}
