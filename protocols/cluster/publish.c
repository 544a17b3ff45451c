/* Publications over the cluster: a gateway receives what actors here publish (domus/remote.h), and
 * sends it once to each node that has members; there it is published in the name of its publisher.
 *
 * All publications of an actor go from its home's gateway to one gateway of each other node. So
 * they stay in the order of a mailbox, of a link, and of a gateway's puts. */
#include "protocols/cluster/inside.h"

#include <errno.h>
#include <string.h>

/* --- opening groups --------------------------------------------------------------------------- */

/* Make the outlet of a group: an address on this node, as if the node were another one. Its home is
 * gateway 0, which thereby learns when the group gets its first member. Returns 0; -ENOENT before
 * gateways are there. */
static int make_outlet_of_group_if_none(domus_stack *stack, domus_cluster *cluster, uint32_t number)
{
    const domus_remote_name name = {.node = cluster->id, .number = number, .lease = 1};
    domus_group group = domi_wide_group_by_number(&cluster->wide, number);
    domus_address outlet;

    if (domi_wide_has_group_outlet(&cluster->wide, number))
        return 0;
    int error = domus_remote_address(stack, &name, &outlet);
    if (error == 0)
        error = domus_remote_join(stack, group, outlet);
    if (error == 0)
        domi_wide_record_outlet(&cluster->wide, number);
    /* -EALREADY: another gateway is making the outlet now, and records whether it could */
    return error == -EALREADY ? 0 : error;
}

int domus_cluster_group_open(domus_stack *stack, domus_cluster *cluster, const char *name,
                             domus_group *ret_group)
{
    domus_group group;
    uint32_t number;
    int error = domus_group_open(stack, name, &group);

    if (error == 0 && !domi_cluster_has_no_servers(cluster)) {
        error = domi_wide_open_or_add_group(&cluster->wide, name, group, &number);
        if (error == 0)
            error = make_outlet_of_group_if_none(stack, cluster, number);
        /* domi_wide_make_outlets_of_groups() makes the outlet later, before anything is published
         */
        if (error == -ENOENT)
            error = 0;
    }
    if (error == 0)
        *ret_group = group;
    return error;
}

int domi_wide_make_outlets_of_groups(domi_cluster_gateway *gateway)
{
    domus_cluster *cluster = gateway->cluster;
    int error = domi_cluster_has_no_servers(cluster)
                    ? 0
                    : domus_remote_node_open(gateway->stack, cluster->id, 0);

    if (error == -EALREADY) /* another gateway has made the outlet of the group already */
        error = 0;
    for (uint32_t i = 0; error == 0 && domi_wide_group_by_number(&cluster->wide, i).group != NULL;
         i++)
        error = make_outlet_of_group_if_none(gateway->stack, cluster, i);
    return error;
}

/* --- publications of actors here -------------------------------------------------------------- */

static bool may_publish_to_peer(domi_cluster_gateway *gateway, const domi_peer *peer)
{
    domi_lock_take(&gateway->cluster->lock);
    bool may = peer->record->state == DOMUS_NODE_UP && !peer->record->is_full;
    domi_lock_release(&gateway->cluster->lock);
    return may;
}

static void count_refused_publication(domi_cluster_gateway *gateway)
{
    atomic_fetch_add_explicit(&gateway->cluster->refused, 1, memory_order_relaxed);
}

/* Write a publication: its message, followed by the name of the group. Returns its bytes; a
 * negative errno. */
static int write_publication(domi_cluster_gateway *gateway, const domus_type *type,
                             const void *payload, const char *name)
{
    size_t length = strlen(name);
    int bytes = domi_gateway_pickle_message(gateway, type, payload);

    if (bytes < 0)
        return bytes;
    memcpy(gateway->message + bytes, name, length);
    gateway->message[(size_t)bytes + length] = (unsigned char)length;
    return bytes + (int)length + 1;
}

void domi_publication_send_to_nodes(domi_cluster_gateway *gateway,
                                    const domus_remote_message *message, const void *payload)
{
    uint64_t nodes[DOMUS_CLUSTER_NODES_MAX];
    char name[DOMI_WIDE_TAIL];
    uint32_t count = domi_wide_copy_nodes_with_members(&gateway->cluster->wide, message->to.number,
                                                       name, nodes, DOMUS_CLUSTER_NODES_MAX);
    if (count == 0)
        return;
    int bytes = write_publication(gateway, message->type, payload, name);
    if (bytes < 0) {
        domi_log_type_without_pickling_once(gateway, message->type, bytes);
        count_refused_publication(gateway);
        return;
    }
    domi_wire_envelope envelope = {
        .kind = DOMI_TO_PUBLISH, .rest = gateway->message, .rest_size = (uint32_t)bytes};
    domi_name_of_address_on_wire(gateway, domus_sender(gateway->stack), &envelope.from);
    for (uint32_t i = 0; i < count; i++) {
        domi_peer *peer = domi_peer_find_or_make(gateway, nodes[i]);
        if (peer == NULL)
            count_refused_publication(gateway); /* the node with members has ended just now */
        else if (!may_publish_to_peer(gateway, peer) ||
                 domi_add_envelope_to_batch_of_link(
                     gateway, peer, domi_gateway_index_at_peer(gateway, peer), &envelope) != 0)
            DOMI_COUNT(gateway, peer->record, refused, 1);
    }
}

/* --- publications of other nodes -------------------------------------------------------------- */

int domi_publication_cut_off_group_name(domi_cluster_gateway *gateway, domus_slice *message,
                                        domus_group *ret_group)
{
    const char *data = domus_slice_data(*message);
    uint32_t length = message->size != 0 ? (unsigned char)data[message->size - 1] : 0;

    if (length == 0 || length >= message->size)
        return -EBADMSG;
    const char *name = data + message->size - 1 - length;
    if (!domi_wide_is_valid_name(name, length))
        return -EBADMSG;
    *ret_group = domi_wide_find_opened_group(&gateway->cluster->wide, name, length);
    if (ret_group->group == NULL)
        return -ENOENT;
    message->size -= 1 + length;
    return 0;
}
