/* The table of nodes, which heartbeats and silence change.
 *
 *   HEARD   the node was heard, but has not told that it hears this node
 *   UP      both hear each other
 *   DOWN    for down_after_ns the node was silent, or did not tell that it hears this node
 *   ENDED   the node has left, or a newer start of a node with its name was heard
 *
 *   HEARD -> UP    its heartbeat names this node, or a batch has come from it, which it only sends
 *                  to nodes that it takes for up
 *   UP    -> DOWN  silence, in one direction
 *   DOWN  -> UP    its heartbeat names this node again
 *   HEARD -> DOWN  silence
 *   any   -> ENDED it has told so, or has started again
 *
 * A node that was not heard, but of whose actors another node has sent an address, is in the table,
 * too, as DOWN, but programs do not see it.
 *
 * An ended node stays in the table until each gateway has released it. A node that was never up and
 * is silent for ten times as long is ended, and so is one that was up and is silent for an hour, so
 * neither strangers nor nodes that crash and get new names fill the table for ever. */
#include "protocols/cluster/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const domus_type domi_follow_type = {.name = "cluster follow"};

/* multiple of down_after_ns after which a silent node that was never up counts as ended */
#define FORGET_AFTER 10u
/* ns after which a silent node that was up counts as ended */
#define FORGET_NS UINT64_C(3600000000000)
/* nodes that other nodes have mentioned, but that were never heard, in the table at most */
#define HEARSAY_MAX 64u

domi_node_record *domi_node_find(domus_cluster *cluster, uint64_t id)
{
    for (uint32_t i = 0; i < cluster->nodes_used; i++) {
        if (cluster->nodes[i] != NULL && cluster->nodes[i]->id == id)
            return cluster->nodes[i];
    }
    return NULL;
}

static uint64_t load_relaxed_counter(const _Atomic uint64_t *count)
{
    return atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)count, memory_order_relaxed);
}

/* Change the state of a node, and note the time. Under the cluster's lock. */
static void set_node_state(domi_node_record *record, domus_node_state state, uint64_t now_ns)
{
    if (record->state == DOMUS_NODE_UP || state == DOMUS_NODE_ENDED)
        atomic_fetch_add_explicit(&record->downs, 1, memory_order_relaxed);
    record->state = state;
    record->since_ns = now_ns;
}

/* Returns the errno with which the runtime must refuse messages to this node; 0: it must send them.
 * Under the cluster's lock. */
static int errno_of_messages_to_node(const domi_node_record *record)
{
    if (record->state == DOMUS_NODE_ENDED)
        return -ESTALE;
    if (record->state != DOMUS_NODE_UP)
        return -EHOSTDOWN;
    return record->is_full ? -ENOBUFS : 0;
}

void domi_node_tell_runtime_if_it_is_up(domi_cluster_gateway *gateway, domi_node_record *record)
{
    /* The runtime is told under the lock, so that the last of several changes is also the last that
     * it is told. */
    domi_lock_take(&gateway->cluster->lock);
    (void)domus_remote_node_set(gateway->stack, record->id, errno_of_messages_to_node(record));
    domi_lock_release(&gateway->cluster->lock);
}

/* Update whether the way to the node is full, by the bytes that are on the way now: another gateway
 * may have changed them. Under the cluster's lock. Returns whether a full way has room again. */
static bool update_room_on_way_to_node(domi_cluster_gateway *gateway, domi_node_record *record)
{
    uint64_t max = gateway->cluster->options.queued_max;
    uint64_t now = load_relaxed_counter(&record->queued_bytes);
    bool is_full = now > max || (record->is_full && now > max / 2);

    if (record->is_full == is_full)
        return false;
    record->is_full = is_full;
    (void)domus_remote_node_set(gateway->stack, record->id, errno_of_messages_to_node(record));
    return !is_full;
}

void domi_node_count_queued_bytes(domi_cluster_gateway *gateway, domi_node_record *record,
                                  int64_t delta)
{
    uint64_t max = gateway->cluster->options.queued_max;
    uint64_t now =
        atomic_fetch_add_explicit(&record->queued_bytes, (uint64_t)delta, memory_order_relaxed) +
        (uint64_t)delta;

    if (delta == 0 || (now <= max && now > max / 2))
        return;
    domi_lock_take(&gateway->cluster->lock);
    bool has_room = update_room_on_way_to_node(gateway, record);
    domi_lock_release(&gateway->cluster->lock);
    if (!has_room || !domi_cluster_is_open(gateway->cluster))
        return;
    for (uint32_t i = 0; i < gateway->cluster->gateways; i++)
        (void)domus_notice(gateway->stack, gateway->cluster->addresses[i], &domi_follow_type, NULL);
}

/* --- heartbeats of other nodes ---------------------------------------------------------------- */

/* Make a record for a node at a free place of the table. Under the cluster's lock. Returns NULL if
 * there is no place or no memory. */
static domi_node_record *add_record_of_node(domi_cluster_gateway *gateway, uint64_t id,
                                            domus_node_state state)
{
    domus_cluster *cluster = gateway->cluster;
    uint32_t slot = 0;

    while (slot < cluster->nodes_used && cluster->nodes[slot] != NULL)
        slot++;
    if (slot == DOMUS_CLUSTER_NODES_MAX)
        return NULL;
    domi_node_record *record = calloc(1, sizeof *record);
    if (record == NULL)
        return NULL;
    record->id = id;
    record->slot = (uint16_t)slot;
    record->state = state;
    record->since_ns = record->heard_ns = domus_now_ns(gateway->stack);
    record->holders = cluster->gateways;
    int error = domus_remote_node_open(gateway->stack, id, -EHOSTDOWN);
    if (error != 0 && error != -EALREADY) {
        free(record);
        return NULL;
    }
    cluster->nodes[slot] = record;
    if (slot == cluster->nodes_used)
        cluster->nodes_used++;
    return record;
}

/* Store what a node says of itself in its first heartbeat. `record` is NULL, or was made when other
 * nodes mentioned the node. Under the cluster's lock. Returns the record; NULL as
 * add_record_of_node(). */
static domi_node_record *store_first_heartbeat_of_node(domi_cluster_gateway *gateway,
                                                       domi_node_record *record,
                                                       const domi_heartbeat *beat)
{
    if (record == NULL)
        record = add_record_of_node(gateway, beat->id, DOMUS_NODE_HEARD);
    if (record == NULL)
        return NULL;
    record->state = DOMUS_NODE_HEARD;
    record->since_ns = domus_now_ns(gateway->stack);
    record->incarnation = beat->incarnation;
    memcpy(record->name, beat->name, sizeof record->name);
    record->gateways = beat->gateways;
    return record;
}

/* Returns whether the node was only mentioned by other nodes, and never heard. Under the cluster's
 * lock. */
static bool was_node_never_heard(const domi_node_record *record)
{
    return record->gateways == 0;
}

static uint32_t count_nodes_only_mentioned(const domus_cluster *cluster)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < cluster->nodes_used; i++)
        count += cluster->nodes[i] != NULL && was_node_never_heard(cluster->nodes[i]);
    return count;
}

int domi_nodes_add_mentioned_node(domi_cluster_gateway *gateway, uint64_t id)
{
    domus_cluster *cluster = gateway->cluster;
    int error = 0;

    domi_lock_take(&cluster->lock);
    const domi_node_record *record = domi_node_find(cluster, id);
    if (record == NULL && count_nodes_only_mentioned(cluster) != HEARSAY_MAX)
        record = add_record_of_node(gateway, id, DOMUS_NODE_DOWN);
    if (record == NULL)
        error = -ENOSPC;
    else if (record->state == DOMUS_NODE_ENDED)
        error = -ESTALE;
    domi_lock_release(&cluster->lock);
    return error;
}

/* End the records of earlier starts of a node that has started again. Under the cluster's lock.
 * Returns false if the heartbeat itself is from an earlier start. If one of two starts is silent,
 * that one counts as the earlier, whatever its clock has told, because clocks may be set back. */
static bool end_earlier_starts_of_node(domi_cluster_gateway *gateway, const domi_heartbeat *beat)
{
    domus_cluster *cluster = gateway->cluster;

    if (strcmp(beat->name, cluster->options.node) == 0 &&
        /* the heartbeat is from an earlier start of this node that still runs */
        beat->incarnation < cluster->incarnation) {
        cluster->has_rival = true;
        return false;
    }
    for (uint32_t i = 0; i < cluster->nodes_used; i++) {
        domi_node_record *other = cluster->nodes[i];
        if (other == NULL || other->id == beat->id || strcmp(other->name, beat->name) != 0)
            continue;
        bool is_heard = other->state == DOMUS_NODE_UP || other->state == DOMUS_NODE_HEARD;
        if (is_heard && other->incarnation > beat->incarnation)
            return false;
        if (other->state != DOMUS_NODE_ENDED) {
            set_node_state(other, DOMUS_NODE_ENDED, domus_now_ns(gateway->stack));
            (void)domus_remote_node_set(gateway->stack, other->id, -ESTALE);
        }
    }
    return true;
}

/* Handle a heartbeat of a node that is in the table. Under the cluster's lock. Returns whether the
 * node's state changes. */
static bool update_known_node_by_heartbeat(domi_cluster_gateway *gateway, domi_node_record *record,
                                           const domi_heartbeat *beat)
{
    uint64_t now_ns = domus_now_ns(gateway->stack);
    bool hears = domi_heartbeat_lists_node(beat, gateway->cluster->id);

    if (record->state == DOMUS_NODE_ENDED)
        return false;
    record->heard_ns = now_ns;
    if (hears)
        record->hears_ns = now_ns;
    record->is_leaving = beat->state != DOMI_BEAT_UP;
    record->hosts_grains = beat->hosts_grains;
    if (beat->state == DOMI_BEAT_LEFT)
        set_node_state(record, DOMUS_NODE_ENDED, now_ns);
    else if (hears && record->state != DOMUS_NODE_UP)
        set_node_state(record, DOMUS_NODE_UP, now_ns);
    else
        return false;
    (void)domus_remote_node_set(gateway->stack, record->id, errno_of_messages_to_node(record));
    return true;
}

domi_nodes_news domi_nodes_update_by_heartbeat(domi_cluster_gateway *gateway,
                                               const domi_heartbeat *beat)
{
    domus_cluster *cluster = gateway->cluster;
    domi_nodes_news news = {.has_changed = false};

    if (beat->id == cluster->id)
        return news;
    domi_lock_take(&cluster->lock);
    if (strcmp(beat->name, cluster->options.node) == 0 &&
        beat->incarnation > cluster->incarnation && beat->state == DOMI_BEAT_UP) {
        cluster->is_rival = true;
        atomic_store_explicit(&cluster->parts->ends_lease, true, memory_order_relaxed);
    }
    domi_node_record *record = domi_node_find(cluster, beat->id);
    bool is_known =
        record != NULL && (!was_node_never_heard(record) || record->state == DOMUS_NODE_ENDED);
    if (!is_known && beat->state != DOMI_BEAT_LEFT && beat->gateways <= DOMI_GATEWAYS_MAX &&
        end_earlier_starts_of_node(gateway, beat)) {
        record = store_first_heartbeat_of_node(gateway, record, beat);
        news.is_new = record != NULL;
    }
    if (record != NULL && (!was_node_never_heard(record) || beat->state == DOMI_BEAT_LEFT))
        news.has_changed = update_known_node_by_heartbeat(gateway, record, beat) || !is_known;
    domi_lock_release(&cluster->lock);
    return news;
}

void domi_nodes_mark_node_up_after_batch(domi_cluster_gateway *gateway, domi_node_record *record)
{
    uint64_t now_ns = domus_now_ns(gateway->stack);

    domi_lock_take(&gateway->cluster->lock);
    if (record->state == DOMUS_NODE_HEARD) {
        record->heard_ns = record->hears_ns = now_ns;
        set_node_state(record, DOMUS_NODE_UP, now_ns);
        (void)domus_remote_node_set(gateway->stack, record->id, errno_of_messages_to_node(record));
    }
    domi_lock_release(&gateway->cluster->lock);
}

/* --- silent nodes ----------------------------------------------------------------------------- */

/* Change the state of a node if it is silent for too long. Under the cluster's lock. Returns
 * whether the state changes. */
static bool update_state_of_silent_node(domi_cluster_gateway *gateway, domi_node_record *record)
{
    uint64_t now_ns = domus_now_ns(gateway->stack);
    uint64_t after_ns = gateway->cluster->options.down_after_ns;
    /* another gateway, whose clock is read later than this one's, has heard the node since */
    if (now_ns < record->heard_ns)
        now_ns = record->heard_ns;
    bool is_silent = now_ns - record->heard_ns > after_ns;
    bool is_one_way = record->state == DOMUS_NODE_UP && now_ns - record->hears_ns > after_ns;

    if (is_one_way ||
        (is_silent && (record->state == DOMUS_NODE_UP || record->state == DOMUS_NODE_HEARD)))
        set_node_state(record, DOMUS_NODE_DOWN, now_ns);
    else if (record->state == DOMUS_NODE_DOWN &&
             now_ns - record->heard_ns >
                 (record->hears_ns == 0 ? FORGET_AFTER * after_ns : FORGET_NS))
        set_node_state(record, DOMUS_NODE_ENDED, now_ns);
    else
        return false;
    (void)domus_remote_node_set(gateway->stack, record->id, errno_of_messages_to_node(record));
    return true;
}

domi_nodes_news domi_nodes_check_for_silence(domi_cluster_gateway *gateway)
{
    domus_cluster *cluster = gateway->cluster;
    domi_nodes_news news = {.has_changed = false};

    domi_lock_take(&cluster->lock);
    for (uint32_t i = 0; i < cluster->nodes_used; i++) {
        domi_node_record *record = cluster->nodes[i];
        if (record == NULL)
            continue;
        if (record->state == DOMUS_NODE_ENDED && record->holders == 0) {
            cluster->nodes[i] = NULL;
            free(record);
        } else if (update_state_of_silent_node(gateway, record)) {
            news.has_changed = true;
        }
    }
    domi_lock_release(&cluster->lock);
    return news;
}

/* --- the heartbeat of this node --------------------------------------------------------------- */

uint32_t domi_nodes_write_own_heartbeat(domi_cluster_gateway *gateway, uint8_t state,
                                        unsigned char *bytes)
{
    domus_cluster *cluster = gateway->cluster;
    uint64_t heard[DOMUS_CLUSTER_NODES_MAX];
    uint64_t now_ns = domus_now_ns(gateway->stack);
    domi_heartbeat beat = {
        .id = cluster->id,
        .incarnation = cluster->incarnation,
        .gateways = (uint16_t)cluster->gateways,
        .state = state,
        .hosts_grains = domi_cluster_should_have_parts(cluster, gateway->stack),
    };

    memcpy(beat.name, cluster->options.node, strlen(cluster->options.node) + 1);
    domi_lock_take(&cluster->lock);
    for (uint32_t i = 0; i < cluster->nodes_used; i++) {
        const domi_node_record *record = cluster->nodes[i];
        if (record != NULL && record->state != DOMUS_NODE_ENDED && !was_node_never_heard(record) &&
            now_ns <= record->heard_ns + cluster->options.down_after_ns)
            heard[beat.heard_count++] = record->id;
    }
    domi_lock_release(&cluster->lock);
    return domi_heartbeat_write(&beat, heard, bytes);
}

/* --- information for programs ----------------------------------------------------------------- */

domus_cluster_counts domus_cluster_count(const domus_cluster *cluster)
{
    return (domus_cluster_counts){
        .sent = load_relaxed_counter(&cluster->sent),
        .received = load_relaxed_counter(&cluster->received),
        .refused = load_relaxed_counter(&cluster->refused),
        .lost = load_relaxed_counter(&cluster->lost),
        .resent = load_relaxed_counter(&cluster->resent),
        .dropped = load_relaxed_counter(&cluster->dropped),
        .wrong = load_relaxed_counter(&cluster->wrong),
    };
}

domus_node domus_cluster_here(domus_cluster *cluster)
{
    return (domus_node){cluster, cluster->id};
}

/* Make the information about another node that programs get. Under the cluster's lock. */
static domus_node_info info_of_other_node(domus_cluster *cluster, const domi_node_record *record)
{
    domus_node_info info = {
        .node = {cluster, record->id},
        .state = record->state,
        .is_leaving = record->is_leaving,
        .threads = record->gateways,
        .since_ns = record->since_ns,
        .rtt_ns = load_relaxed_counter(&record->rtt_ns),
        .queued_bytes = load_relaxed_counter(&record->queued_bytes),
        .sent = load_relaxed_counter(&record->sent),
        .received = load_relaxed_counter(&record->received),
        .refused = load_relaxed_counter(&record->refused),
        .lost = load_relaxed_counter(&record->lost),
        .resent = load_relaxed_counter(&record->resent),
    };

    memcpy(info.name, record->name, sizeof info.name);
    return info;
}

/* Make the information about this node that programs get. Under the cluster's lock. */
static domus_node_info info_of_this_node(domus_cluster *cluster)
{
    bool is_up = cluster->options.servers == NULL || cluster->is_connected;
    domus_node_info info = {
        .node = {cluster, cluster->id},
        .state = is_up && !cluster->is_rival ? DOMUS_NODE_UP : DOMUS_NODE_DOWN,
        .is_here = true,
        .threads = (uint16_t)cluster->gateways,
        .since_ns = cluster->connected_ns,
    };

    memcpy(info.name, cluster->options.node, strlen(cluster->options.node) + 1);
    return info;
}

uint32_t domus_cluster_nodes(domus_cluster *cluster, domus_node_info *ret_nodes, uint32_t room)
{
    uint32_t count = 1;

    domi_lock_take(&cluster->lock);
    if (room > 0)
        ret_nodes[0] = info_of_this_node(cluster);
    for (uint32_t i = 0; i < cluster->nodes_used; i++) {
        if (cluster->nodes[i] == NULL || was_node_never_heard(cluster->nodes[i]))
            continue;
        if (count < room)
            ret_nodes[count] = info_of_other_node(cluster, cluster->nodes[i]);
        count++;
    }
    domi_lock_release(&cluster->lock);
    return count;
}

int domus_cluster_find_node(domus_cluster *cluster, const char *name, domus_node *ret_node)
{
    int error = -ENOENT;

    if (strcmp(name, cluster->options.node) == 0) {
        *ret_node = domus_cluster_here(cluster);
        return 0;
    }
    domi_lock_take(&cluster->lock);
    for (uint32_t i = 0; i < cluster->nodes_used && error != 0; i++) {
        const domi_node_record *record = cluster->nodes[i];
        if (record == NULL || record->state != DOMUS_NODE_UP || strcmp(record->name, name) != 0)
            continue;
        *ret_node = (domus_node){cluster, record->id};
        error = 0;
    }
    domi_lock_release(&cluster->lock);
    return error;
}
