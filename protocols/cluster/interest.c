/* Nodes tell each other of which groups they have members. Gateway 0 of each node tells gateway 0
 * of each other one the changes that it has not been sent, in order and in parts. Each part names
 * the change behind which it begins, and is taken only by a node that holds all changes until then;
 * the answer says which ones it holds. Changes that were not confirmed between two heartbeats are
 * told again, so a link that breaks needs nothing of its own. A node that was down may have
 * forgotten this one, so it is told from the first change on, until it says what it holds. Which of
 * both was down is not always seen here, as when this machine was paused: so a node is told the
 * last change again now and then, and says if it misses those before.
 *
 * The changes that a node holds of another one are in force until that one has ended, also while it
 * is down. */
#include "protocols/cluster/inside.h"

#include <errno.h>
#include <string.h>

#define PART_MAX      128u  /* changes of one part */
#define UNHELD_MAX    1024u /* changes that are on the way to one node, about */
#define LOOKS         1024u /* groups that one heartbeat looks at */
#define SURE_BEATS    60u   /* heartbeats until the last change is told again */
#define RECORD_BYTES  2u    /* before the name: whether there are members, and its length */
#define PART_SIZE_MAX (PART_MAX * (RECORD_BYTES + DOMI_WIDE_NAME_MAX))

/* --- telling ---------------------------------------------------------------------------------- */

static uint32_t write_part(const domi_wide_change *changes, uint32_t count, unsigned char *bytes)
{
    uint32_t size = 0;

    for (uint32_t i = 0; i < count; i++) {
        size_t length = strlen(changes[i].name);
        bytes[size] = changes[i].has_members ? 1 : 0;
        bytes[size + 1] = (unsigned char)length;
        memcpy(bytes + size + RECORD_BYTES, changes[i].name, length);
        size += RECORD_BYTES + (uint32_t)length;
    }
    return size;
}

/* Send the next part, if there is one. Returns whether it was sent. */
static bool tell_part(domi_cluster_gateway *gateway, domi_peer *peer)
{
    domi_wide_change changes[PART_MAX];
    unsigned char bytes[PART_SIZE_MAX];
    uint64_t to = peer->told;
    uint32_t count =
        domi_wide_copy_changes(&gateway->cluster->wide, peer->told, changes, PART_MAX, &to);

    if (count == 0)
        return false;
    const domi_wire_envelope envelope = {.kind = DOMI_TO_INTEREST,
                                         .time_ns = peer->told,
                                         .id = to,
                                         .rest = bytes,
                                         .rest_size = write_part(changes, count, bytes)};
    if (domi_send(gateway, peer, 0, &envelope) != 0)
        return false;
    peer->told = to;
    return true;
}

static void tell_interest_to_peer(domi_cluster_gateway *gateway, domi_peer *peer)
{
    while (peer->told - peer->held < UNHELD_MAX && tell_part(gateway, peer))
        ;
}

/* The ids of the nodes that are up. */
static uint32_t read_ids_of_up_nodes(domus_cluster *cluster, uint64_t *ids)
{
    uint32_t count = 0;

    domi_lock_take(&cluster->lock);
    for (uint32_t i = 0; i < cluster->nodes_used; i++) {
        if (cluster->nodes[i] != NULL && cluster->nodes[i]->state == DOMUS_NODE_UP)
            ids[count++] = cluster->nodes[i]->id;
    }
    domi_lock_give(&cluster->lock);
    return count;
}

/* Tell all nodes that are up. With `again`, what was not confirmed since the last time, too. */
static void tell_interest_to_all_nodes(domi_cluster_gateway *gateway, bool again)
{
    uint64_t ids[DOMUS_CLUSTER_NODES_MAX];
    uint64_t changes = domi_wide_changes(&gateway->cluster->wide);

    if (gateway->index != 0 || changes == 0)
        return;
    uint32_t count = read_ids_of_up_nodes(gateway->cluster, ids);
    for (uint32_t i = 0; i < count; i++) {
        domi_peer *peer = domi_peer_of(gateway, ids[i]);
        if (peer == NULL)
            continue;
        if (again && peer->held != peer->told && peer->held == peer->held_before)
            peer->told = peer->held;
        else if (again && peer->held == peer->told && peer->told != 0 &&
                 gateway->beats % SURE_BEATS == 0)
            peer->told = --peer->held;
        if (again)
            peer->held_before = peer->held;
        tell_interest_to_peer(gateway, peer);
    }
}

void domi_interest_follow(domi_cluster_gateway *gateway)
{
    tell_interest_to_all_nodes(gateway, false);
}

void domi_interest_lose(domi_peer *peer)
{
    peer->told = peer->held = peer->held_before = 0;
}

void domi_interest_beat(domi_cluster_gateway *gateway)
{
    domi_wide *wide = &gateway->cluster->wide;

    if (gateway->index != 0)
        return;
    for (uint32_t i = 0; i < LOOKS; i++) {
        if (domi_wide_at(wide, gateway->wide_cursor).group == NULL) {
            gateway->wide_cursor = 0;
            break;
        }
        (void)domi_wide_look(wide, gateway->wide_cursor++);
    }
    tell_interest_to_all_nodes(gateway, true);
}

int domi_take_joined(domus_stack *stack, void *self, const void *payload)
{
    domi_cluster_gateway *gateway = self;
    const domus_remote_joined *joined = payload;

    gateway->stack = stack;
    if (domi_wide_look(&gateway->cluster->wide, joined->outlet.number))
        tell_interest_to_all_nodes(gateway, false);
    return 0;
}

void domi_interest_held(domi_cluster_gateway *gateway, domi_peer *peer, uint64_t held)
{
    if (gateway->index != 0 || held > domi_wide_changes(&gateway->cluster->wide))
        return;            /* there is no such change */
    if (held > peer->told) /* the peer was told before it went down */
        peer->told = held;
    peer->held = held;
    tell_interest_to_peer(gateway, peer);
}

/* --- hearing ---------------------------------------------------------------------------------- */

/* Read one record at `at`. Returns its bytes; 0: they cannot be one. */
static uint32_t read_record(const unsigned char *at, uint32_t left, bool *ret_has_members,
                            const char **ret_name)
{
    if (left < RECORD_BYTES || at[0] > 1 || at[1] > left - RECORD_BYTES)
        return 0;
    *ret_has_members = at[0] == 1;
    *ret_name = (const char *)at + RECORD_BYTES;
    return domi_wide_is_name(*ret_name, at[1]) ? RECORD_BYTES + at[1] : 0;
}

/* Returns false if the bytes cannot be a part. Records before a wrong one are taken. */
static bool take_part(domi_cluster_gateway *gateway, const domi_peer *peer,
                      const domi_wire_envelope *envelope)
{
    uint32_t size = 0;

    for (uint32_t at = 0; at < envelope->rest_size; at += size) {
        const char *name;
        bool has_members;
        size = read_record(envelope->rest + at, envelope->rest_size - at, &has_members, &name);
        if (size == 0)
            return false;
        if (domi_wide_note(&gateway->cluster->wide, name, size - RECORD_BYTES, peer->id,
                           has_members) != 0)
            domi_count_wrong(gateway); /* its publications will not come from here */
    }
    return true;
}

void domi_interest_hear(domi_cluster_gateway *gateway, domi_peer *peer, uint16_t from_gateway,
                        const domi_wire_envelope *envelope)
{
    if (gateway->index != 0 || from_gateway != 0 || envelope->id <= envelope->time_ns) {
        domi_count_wrong(gateway);
        return;
    }
    if (envelope->time_ns <= peer->holds) {
        if (!take_part(gateway, peer, envelope)) {
            domi_count_wrong(gateway);
            return;
        }
        if (envelope->id > peer->holds)
            peer->holds = envelope->id;
    }
    const domi_wire_envelope answer = {.kind = DOMI_TO_HELD, .id = peer->holds};
    (void)domi_send(gateway, peer, 0, &answer);
}
