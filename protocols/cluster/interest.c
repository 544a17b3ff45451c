/* Nodes tell each other for which groups they have members.
 *
 * Gateway 0 of each node sends gateway 0 of each other node the changes that it has not sent there
 * yet, in order and in parts. Each part names the change behind which it begins, and is accepted
 * only by a node that has all changes before; the answer tells which ones it has. Changes that were
 * not confirmed between two heartbeats are sent again, so a broken link needs no special care. A
 * node that was down may have forgotten this one, so it is sent all changes from the first one on,
 * until it tells what it has. A node cannot always see which of the two was down, for instance when
 * its machine was paused: so the last change is sent again now and then, and the receiver tells if
 * it misses earlier ones.
 *
 * The changes that a node has of another one stay in force until that node has ended, even while it
 * is down. */
#include "protocols/cluster/inside.h"

#include <errno.h>
#include <string.h>

#define PART_MAX 128u /* changes of groups in one part that is sent, at most */
/* changes of groups that are on the way to one node unconfirmed, about at most */
#define UNHELD_MAX 1024u
#define LOOKS      1024u /* groups whose members are checked with one heartbeat */
#define SURE_BEATS 60u   /* heartbeats until the last change of groups is sent again, to be sure */
/* bytes of a change before the group's name: whether the group has members, and the name's
 * length */
#define RECORD_BYTES  2u
#define PART_SIZE_MAX (PART_MAX * (RECORD_BYTES + DOMI_WIDE_NAME_MAX))

/* --- sending changes -------------------------------------------------------------------------- */

static uint32_t write_changes_of_groups(const domi_wide_change *changes, uint32_t count,
                                        unsigned char *bytes)
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

/* Send a peer the next changes of groups, up to PART_MAX, if there are any. Returns whether it was
 * sent. */
static bool send_next_changes_of_groups(domi_cluster_gateway *gateway, domi_peer *peer)
{
    domi_wide_change changes[PART_MAX];
    unsigned char bytes[PART_SIZE_MAX];
    uint64_t to = peer->told;
    uint32_t count =
        domi_wide_copy_oldest_changes(&gateway->cluster->wide, peer->told, changes, PART_MAX, &to);

    if (count == 0)
        return false;
    const domi_wire_envelope envelope = {.kind = DOMI_TO_INTEREST,
                                         .time_ns = peer->told,
                                         .id = to,
                                         .rest = bytes,
                                         .rest_size =
                                             write_changes_of_groups(changes, count, bytes)};
    if (domi_add_envelope_to_batch_of_link(gateway, peer, 0, &envelope) != 0)
        return false;
    peer->told = to;
    return true;
}

static void send_changes_of_groups_to_peer(domi_cluster_gateway *gateway, domi_peer *peer)
{
    while (peer->told - peer->held < UNHELD_MAX && send_next_changes_of_groups(gateway, peer))
        ;
}

/* List the ids of the other nodes that are up. */
static uint32_t list_ids_of_nodes_that_are_up(domus_cluster *cluster, uint64_t *ids)
{
    uint32_t count = 0;

    domi_lock_take(&cluster->lock);
    for (uint32_t i = 0; i < cluster->nodes_used; i++) {
        if (cluster->nodes[i] != NULL && cluster->nodes[i]->state == DOMUS_NODE_UP)
            ids[count++] = cluster->nodes[i]->id;
    }
    domi_lock_release(&cluster->lock);
    return count;
}

/* Send changes of groups to all nodes that are up. With `again`, the unconfirmed changes are sent
 * again to each node that has confirmed nothing since the last heartbeat. */
static void send_changes_of_groups_to_all(domi_cluster_gateway *gateway, bool again)
{
    uint64_t ids[DOMUS_CLUSTER_NODES_MAX];
    uint64_t changes = domi_wide_last_change_number(&gateway->cluster->wide);

    if (gateway->index != 0 || changes == 0)
        return;
    uint32_t count = list_ids_of_nodes_that_are_up(gateway->cluster, ids);
    for (uint32_t i = 0; i < count; i++) {
        domi_peer *peer = domi_peer_find_or_make(gateway, ids[i]);
        if (peer == NULL)
            continue;
        if (again && peer->held != peer->told && peer->held == peer->held_before)
            peer->told = peer->held;
        else if (again && peer->held == peer->told && peer->told != 0 &&
                 gateway->beats % SURE_BEATS == 0)
            peer->told = --peer->held;
        if (again)
            peer->held_before = peer->held;
        send_changes_of_groups_to_peer(gateway, peer);
    }
}

void domi_interest_send_changes_to_all_nodes(domi_cluster_gateway *gateway)
{
    send_changes_of_groups_to_all(gateway, false);
}

void domi_interest_forget_what_peer_knows(domi_peer *peer)
{
    peer->told = peer->held = peer->held_before = 0;
}

void domi_interest_check_groups_at_heartbeat(domi_cluster_gateway *gateway)
{
    domi_wide *wide = &gateway->cluster->wide;

    if (gateway->index != 0)
        return;
    for (uint32_t i = 0; i < LOOKS; i++) {
        if (domi_wide_group_by_number(wide, gateway->wide_cursor).group == NULL) {
            gateway->wide_cursor = 0;
            break;
        }
        (void)domi_wide_update_local_members(wide, gateway->wide_cursor++);
    }
    send_changes_of_groups_to_all(gateway, true);
}

int domi_tell_nodes_of_first_group_member(domus_stack *stack, void *self, const void *payload)
{
    domi_cluster_gateway *gateway = self;
    const domus_remote_joined *joined = payload;

    gateway->stack = stack;
    if (domi_wide_update_local_members(&gateway->cluster->wide, joined->outlet.number))
        send_changes_of_groups_to_all(gateway, false);
    return 0;
}

void domi_interest_store_confirmed_by_peer(domi_cluster_gateway *gateway, domi_peer *peer,
                                           uint64_t held)
{
    if (gateway->index != 0 || held > domi_wide_last_change_number(&gateway->cluster->wide))
        return; /* the confirmation is invalid, because this node has made no such change */
    if (held > peer->told) /* the peer has got these changes before it was down */
        peer->told = held;
    peer->held = held;
    send_changes_of_groups_to_peer(gateway, peer);
}

/* --- receiving changes ------------------------------------------------------------------------ */

/* Read one change of a group at `at`. Returns how many bytes it takes; 0 if it is invalid. */
static uint32_t read_change_of_group(const unsigned char *at, uint32_t left, bool *ret_has_members,
                                     const char **ret_name)
{
    if (left < RECORD_BYTES || at[0] > 1 || at[1] > left - RECORD_BYTES)
        return 0;
    *ret_has_members = at[0] == 1;
    *ret_name = (const char *)at + RECORD_BYTES;
    return domi_wide_is_valid_name(*ret_name, at[1]) ? RECORD_BYTES + at[1] : 0;
}

/* Store changes of a peer's groups that have come in one part. Returns false if a change is
 * invalid; changes before it are stored. */
static bool store_changes_of_peer(domi_cluster_gateway *gateway, const domi_peer *peer,
                                  const domi_wire_envelope *envelope)
{
    uint32_t size = 0;

    for (uint32_t at = 0; at < envelope->rest_size; at += size) {
        const char *name;
        bool has_members;
        size = read_change_of_group(envelope->rest + at, envelope->rest_size - at, &has_members,
                                    &name);
        if (size == 0)
            return false;
        if (domi_wide_record_members_of_node(&gateway->cluster->wide, name, size - RECORD_BYTES,
                                             peer->id, has_members) != 0)
            /* the change cannot be stored, so publications of this group will not be sent to the
             * peer */
            domi_count_wrong_message_of_server(gateway);
    }
    return true;
}

void domi_interest_store_changes_of_peer(domi_cluster_gateway *gateway, domi_peer *peer,
                                         uint16_t from_gateway, const domi_wire_envelope *envelope)
{
    if (gateway->index != 0 || from_gateway != 0 || envelope->id <= envelope->time_ns) {
        domi_count_wrong_message_of_server(gateway);
        return;
    }
    if (envelope->time_ns <= peer->holds) {
        if (!store_changes_of_peer(gateway, peer, envelope)) {
            domi_count_wrong_message_of_server(gateway);
            return;
        }
        if (envelope->id > peer->holds)
            peer->holds = envelope->id;
    }
    const domi_wire_envelope answer = {.kind = DOMI_TO_HELD, .id = peer->holds};
    (void)domi_add_envelope_to_batch_of_link(gateway, peer, 0, &answer);
}
