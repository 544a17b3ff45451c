/* Links between the simulated machines, which a test may break. While a link is broken, the
 * events of its connections wait, and its datagrams are lost. */
#include "runtime/network/parts.h"

#include <errno.h>
#include <string.h>

bool domi_net_is_same_host(const domus_endpoint *one, const domus_endpoint *other)
{
    domus_endpoint a = *one, b = *other;

    a.port = b.port = 0;
    return domus_endpoint_is_same(&a, &b);
}

static bool is_endpoint_on_machine(const domus_endpoint *machine, const domus_endpoint *end)
{
    return machine->family == 0 || domi_net_is_same_host(machine, end);
}

bool domi_net_is_link_broken(const domi_net *net, const domus_endpoint *one,
                             const domus_endpoint *other)
{
    for (uint32_t i = 0; i < net->partition_count; i++) {
        const domi_net_partition *broken = &net->partitions[i];
        if ((is_endpoint_on_machine(&broken->one, one) &&
             is_endpoint_on_machine(&broken->other, other)) ||
            (is_endpoint_on_machine(&broken->one, other) &&
             is_endpoint_on_machine(&broken->other, one)))
            return true;
    }
    return false;
}

bool domi_net_is_connection_blocked(const domi_net_connection *connection)
{
    return connection->is_held ||
           domi_net_is_link_broken(connection->net, &connection->ends[0], &connection->ends[1]);
}

static domus_endpoint get_machine_of_endpoint(const domus_endpoint *endpoint)
{
    domus_endpoint machine = {0};

    if (endpoint != NULL)
        machine = *endpoint;
    machine.port = 0;
    return machine;
}

int domi_net_break_link(domi_net *net, const domus_endpoint *one, const domus_endpoint *other)
{
    if (net->partition_count == DOMI_NET_PARTITIONS_MAX)
        return -ENOSPC;
    net->partitions[net->partition_count++] = (domi_net_partition){
        .one = get_machine_of_endpoint(one), .other = get_machine_of_endpoint(other)};
    return 0;
}

int domi_net_repair_link(domi_net *net, const domus_endpoint *one, const domus_endpoint *other)
{
    const domus_endpoint first = get_machine_of_endpoint(one);
    const domus_endpoint second = get_machine_of_endpoint(other);

    for (uint32_t i = 0; i < net->partition_count; i++) {
        const domi_net_partition *link = &net->partitions[i];
        if (!domus_endpoint_is_same(&link->one, &first) ||
            !domus_endpoint_is_same(&link->other, &second))
            continue;
        net->partitions[i] = net->partitions[--net->partition_count];
        return 0;
    }
    return -ENOENT;
}
