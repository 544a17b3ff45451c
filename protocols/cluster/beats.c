/* Sends the heartbeats of this node to all other nodes. */
#include "protocols/cluster/inside.h"

void domi_heartbeat_publish(domi_cluster_gateway *gateway, uint8_t state)
{
    unsigned char bytes[DOMI_HEARTBEAT_MAX];
    domus_slice slice;

    if (domus_slice_copy(bytes, domi_nodes_write_own_heartbeat(gateway, state, bytes), &slice) == 0)
        domi_publish_on_cluster_subject(gateway, "b", slice);
    gateway->beat_ns = domus_now_ns(gateway->stack);
}

/* The rate of heartbeats is limited, so that a stranger who makes up nodes cannot make this node
 * send heartbeats all the time. */
void domi_heartbeat_publish_unless_recent(domi_cluster_gateway *gateway)
{
    uint64_t since_ns = domus_now_ns(gateway->stack) - gateway->beat_ns;

    if (since_ns >= gateway->cluster->options.heartbeat_ns / 10 && !gateway->is_leaving)
        domi_heartbeat_publish(gateway, DOMI_BEAT_UP);
}

void domi_tell_gateways_that_nodes_changed(domi_cluster_gateway *gateway)
{
    domi_peers_follow_downs_of_nodes(gateway);
    domi_log_changes_of_nodes(gateway);
    if (!domi_cluster_is_open(gateway->cluster))
        /* gateways that are not open yet read the table of nodes at their first heartbeat */
        return;
    for (uint32_t i = 1; i < gateway->cluster->gateways; i++)
        (void)domus_notice(gateway->stack, gateway->cluster->addresses[i], &domi_follow_type, NULL);
}
