/* This file makes and frees a simulated network, and hands each due event to the file that
 * carries it out: connection.c or datagram.c. */
#include "runtime/network/parts.h"

#include "base/memory.h"

static void carry_out_event_of_network(domi_net *net, const domi_net_event *event)
{
    if (event->connection != NULL)
        domi_net_carry_out_connection_event(event);
    else
        domi_net_carry_out_datagram_event(net, event);
}

domi_net *domi_net_new(uint64_t seed, uint64_t now_ns)
{
    domi_net *net = domi_memory_new(sizeof *net);

    if (net == NULL)
        return NULL;
    domi_random_init(&net->random, seed);
    net->now_ns = now_ns;
    net->next_port = DOMI_NET_FIRST_PORT;
    net->carry_out = carry_out_event_of_network;
    return net;
}

void domi_net_free(domi_net *net)
{
    if (net == NULL)
        return;
    for (uint32_t i = 0; i < net->socket_capacity; i++)
        if (net->sockets[i] != NULL)
            domi_net_socket_free(net->sockets[i]);
    for (uint32_t i = 0; i < net->heap_count; i++) {
        domi_memory_free(net->heap[i]->datagram);
        domi_memory_free(net->heap[i]);
    }
    while (net->first != NULL)
        domi_net_connection_free(net->first);
    domi_memory_free(net->sockets);
    domi_memory_free(net->heap);
    domi_memory_free(net);
}

int domi_net_set_link_broken(domi_net *net, const domus_endpoint *one, const domus_endpoint *other,
                             bool is_broken)
{
    if (is_broken)
        return domi_net_break_link(net, one, other);
    int result = domi_net_repair_link(net, one, other);
    for (domi_net_connection *each = net->first; result == 0 && each != NULL; each = each->next)
        if (!domi_net_is_connection_blocked(each))
            domi_net_release_held_events(each);
    return result;
}
