/* Watches between nodes: remote actors that are watched here, and actors here that other nodes
 * watch. */
#include "protocols/cluster/inside.h"

#include <errno.h>
#include <stdlib.h>

static uint32_t bucket_of_watched_name(const domus_remote_name *name)
{
    uint64_t hash =
        (name->node ^ (uint64_t)name->number << 20 ^ name->lease ^ (uint64_t)name->home << 48) *
        UINT64_C(0x9e3779b97f4a7c15);

    return (uint32_t)(hash >> 32) % DOMI_WATCHED_BUCKETS;
}

static bool is_same_remote_name(const domus_remote_name *one, const domus_remote_name *other)
{
    return one->node == other->node && one->number == other->number && one->lease == other->lease &&
           one->home == other->home;
}

static void unlink_and_free_watched(domi_watched **link)
{
    domi_watched *watched = *link;

    *link = watched->next;
    free(watched);
}

/* --- remote actors that are watched here ------------------------------------------------------ */

static domi_watched *find_watched_remote_actor(domi_cluster_gateway *gateway,
                                               const domus_remote_name *name)
{
    domi_watched *watched = gateway->watched[bucket_of_watched_name(name)];

    while (watched != NULL && !is_same_remote_name(&watched->name, name))
        watched = watched->next;
    return watched;
}

/* Record that actors here watch a remote actor. Returns 1 if nobody watched it before; 0;
 * -ENOMEM. */
static int add_watched_remote_actor(domi_cluster_gateway *gateway, domi_peer *peer,
                                    const domus_remote_watch *watch, domi_watched **ret_watched)
{
    domi_watched **bucket = &gateway->watched[bucket_of_watched_name(&watch->name)];

    *ret_watched = find_watched_remote_actor(gateway, &watch->name);
    if (*ret_watched != NULL)
        return 0;
    domi_watched *watched = calloc(1, sizeof *watched);
    if (watched == NULL)
        return -ENOMEM;
    watched->name = watch->name;
    watched->peer = peer;
    watched->next = *bucket;
    *bucket = watched;
    peer->watched++;
    *ret_watched = watched;
    return 1;
}

/* End the watches of actors here on a remote actor, because its node cannot be told of them. */
static void end_watches_on_remote_actor(domi_cluster_gateway *gateway,
                                        const domus_remote_name *name, int error)
{
    domi_watched **link = &gateway->watched[bucket_of_watched_name(name)];

    while (!is_same_remote_name(&(*link)->name, name))
        link = &(*link)->next;
    (*link)->peer->watched--;
    unlink_and_free_watched(link);
    (void)domus_remote_down(gateway->stack, name, error);
}

int domi_watched_begin_watch_for_local(domus_stack *stack, void *self, const void *payload)
{
    domi_cluster_gateway *gateway = self;
    const domus_remote_watch *watch = payload;
    domi_watched *watched;

    gateway->stack = stack;
    /* a router of another node cannot be watched, as one of this node cannot */
    if (watch->name.home == DOMUS_REMOTE_ROUTER) {
        (void)domus_remote_down(stack, &watch->name, -EOPNOTSUPP);
        return 0;
    }
    domi_peer *peer = domi_peer_find_or_make(gateway, watch->name.node);
    if (peer == NULL || !domi_peer_is_up(gateway, peer)) {
        (void)domus_remote_down(stack, &watch->name, -EHOSTDOWN);
        return 0;
    }
    int made = add_watched_remote_actor(gateway, peer, watch, &watched);
    if (made < 0) {
        (void)domus_remote_down(stack, &watch->name, made);
        return 0;
    }
    if (watch->room) {
        watched->room = gateway->has_rooms = true;
        domi_watched_report_room(gateway);
    }
    if (made == 1) {
        const domi_wire_envelope envelope = {.kind = DOMI_TO_WATCH, .to = watch->name};
        int error = domi_add_envelope_to_batch_of_link(
            gateway, peer, domi_gateway_index_at_peer(gateway, peer), &envelope);
        if (error != 0)
            end_watches_on_remote_actor(gateway, &watch->name, error);
    }
    return 0;
}

void domi_watched_report_end(domi_cluster_gateway *gateway, const domus_remote_name *name,
                             int reason)
{
    domi_watched **link = &gateway->watched[bucket_of_watched_name(name)];

    (void)domus_remote_end(gateway->stack, name, reason);
    while (*link != NULL && !is_same_remote_name(&(*link)->name, name))
        link = &(*link)->next;
    if (*link == NULL)
        return;
    (*link)->peer->watched--;
    unlink_and_free_watched(link);
}

void domi_watched_report_all_lost(domi_cluster_gateway *gateway, domi_peer *peer)
{
    for (uint32_t i = 0; i < DOMI_WATCHED_BUCKETS && peer->watched != 0; i++) {
        domi_watched **link = &gateway->watched[i];
        while (*link != NULL) {
            if ((*link)->peer != peer) {
                link = &(*link)->next;
                continue;
            }
            domus_remote_name name = (*link)->name;
            unlink_and_free_watched(link);
            peer->watched--;
            (void)domus_remote_down(gateway->stack, &name, -EHOSTDOWN);
        }
    }
}

void domi_watched_report_room(domi_cluster_gateway *gateway)
{
    bool has_rooms = false;

    for (uint32_t i = 0; gateway->has_rooms && i < DOMI_WATCHED_BUCKETS; i++) {
        for (domi_watched *watched = gateway->watched[i]; watched != NULL;
             watched = watched->next) {
            if (!watched->room)
                continue;
            watched->room = !domi_peer_has_room_on_way(gateway, watched->peer);
            if (watched->room)
                has_rooms = true;
            else
                (void)domus_remote_room(gateway->stack, &watched->name);
        }
    }
    gateway->has_rooms = has_rooms;
}

/* --- actors here that other nodes watch ------------------------------------------------------- */

static void send_end_of_actor_to_gateway(domi_cluster_gateway *gateway, domi_peer *peer,
                                         uint16_t to_gateway, const domus_remote_name *name,
                                         int reason)
{
    const domi_wire_envelope envelope = {.kind = DOMI_TO_DOWN, .from = *name, .error = reason};

    domi_add_envelope_or_mark_link_torn(gateway, peer, to_gateway, &envelope);
}

static domi_watched **bucket_of_watched_address(domi_cluster_gateway *gateway,
                                                domus_address address)
{
    return &gateway->watching[domus_address_hash(address) % DOMI_WATCHED_BUCKETS];
}

/* Returns an entry for the local actor: the entry of this gateway of this peer if there is one,
 * else another peer's; NULL if no peer watches the actor. */
static const domi_watched *find_watch_of_peer_on_actor(domi_cluster_gateway *gateway,
                                                       const domi_peer *peer, uint16_t from_gateway,
                                                       domus_address address)
{
    const domi_watched *any = NULL;

    for (const domi_watched *at = *bucket_of_watched_address(gateway, address); at != NULL;
         at = at->next) {
        if (!domus_address_equals(at->address, address))
            continue;
        any = at;
        if (at->peer == peer && at->gateway == from_gateway)
            break;
    }
    return any;
}

void domi_watching_add_for_peer(domi_cluster_gateway *gateway, domi_peer *peer,
                                uint16_t from_gateway, const domus_remote_name *name)
{
    domus_address address;

    if (domus_remote_address(gateway->stack, name, &address) != 0 ||
        !domus_remote_is_alive(gateway->stack, name)) {
        send_end_of_actor_to_gateway(gateway, peer, from_gateway, name, -ESTALE);
        return;
    }
    const domi_watched *other = find_watch_of_peer_on_actor(gateway, peer, from_gateway, address);
    if (other != NULL && other->peer == peer && other->gateway == from_gateway)
        return;
    domi_watched *watching = calloc(1, sizeof *watching);
    int error = watching == NULL ? -ENOMEM : 0;
    if (error == 0 && other != NULL)
        watching->watch = other->watch;
    else if (error == 0)
        error = domus_watch_actor(gateway->stack, address, &watching->watch);
    if (error != 0) {
        free(watching);
        send_end_of_actor_to_gateway(gateway, peer, from_gateway, name, error);
        return;
    }
    domi_watched **bucket = bucket_of_watched_address(gateway, address);
    watching->name = *name;
    watching->address = address;
    watching->peer = peer;
    watching->gateway = from_gateway;
    watching->next = *bucket;
    *bucket = watching;
}

int domi_watching_tell_peers_of_end(domus_stack *stack, void *self, const void *payload)
{
    domi_cluster_gateway *gateway = self;
    const domus_down *down = payload;
    domi_watched **link = bucket_of_watched_address(gateway, down->who);

    gateway->stack = stack;
    while (*link != NULL) {
        domi_watched *at = *link;
        if (!domus_address_equals(at->address, down->who)) {
            link = &at->next;
            continue;
        }
        send_end_of_actor_to_gateway(gateway, at->peer, at->gateway, &at->name, down->reason);
        unlink_and_free_watched(link);
    }
    return 0;
}

/* Remove a peer's watch on a local actor without telling the peer; this node's own watch ends with
 * the last peer's. */
static void drop_watch_of_peer(domi_cluster_gateway *gateway, domi_watched **link)
{
    domus_watch watch = (*link)->watch;
    domus_address address = (*link)->address;

    unlink_and_free_watched(link);
    if (find_watch_of_peer_on_actor(gateway, NULL, 0, address) == NULL)
        (void)domus_unwatch(gateway->stack, watch);
}

void domi_watching_end_for_gateway(domi_cluster_gateway *gateway, const domi_peer *peer,
                                   uint16_t from_gateway)
{
    for (uint32_t i = 0; i < DOMI_WATCHED_BUCKETS; i++) {
        domi_watched **link = &gateway->watching[i];
        while (*link != NULL) {
            if ((*link)->peer == peer && (*link)->gateway == from_gateway)
                drop_watch_of_peer(gateway, link);
            else
                link = &(*link)->next;
        }
    }
}

void domi_watches_free_all(domi_cluster_gateway *gateway)
{
    for (uint32_t i = 0; i < DOMI_WATCHED_BUCKETS; i++) {
        while (gateway->watched[i] != NULL)
            unlink_and_free_watched(&gateway->watched[i]);
        while (gateway->watching[i] != NULL)
            unlink_and_free_watched(&gateway->watching[i]);
    }
}
