/* Sockets and descriptors of the simulated network. The lowest free descriptor is given out first,
 * as by a kernel, so a program that uses a descriptor after its close soon meets another socket. */
#include "runtime/network/parts.h"

#include "base/check.h"
#include "base/memory.h"

#include <errno.h>
#include <string.h>

#define TABLE_FIRST 64u /* number of descriptors for which the network's first table has room */

domi_net_socket *domi_net_socket_new(domi_net *net, uint16_t family)
{
    const domus_net_faults *faults = &net->faults;
    domi_net_socket *socket = domi_memory_new(sizeof *socket);

    if (socket == NULL)
        return NULL;
    socket->net = net;
    socket->number = ++net->socket_number;
    socket->fd = -1;
    socket->local.family = family;
    socket->local.size = family == AF_INET6 ? 16 : family == AF_INET ? 4 : 0;
    socket->send_max =
        faults->send_buffer_bytes != 0 ? faults->send_buffer_bytes : DOMUS_NET_BUFFER_BYTES;
    socket->receive_max =
        faults->receive_buffer_bytes != 0 ? faults->receive_buffer_bytes : DOMUS_NET_BUFFER_BYTES;
    return socket;
}

static bool grow_table_of_descriptors(domi_net *net)
{
    uint32_t capacity = net->socket_capacity != 0 ? net->socket_capacity * 2 : TABLE_FIRST;
    domi_net_socket **sockets = domi_memory_new(capacity * sizeof(domi_net_socket *));

    if (sockets == NULL)
        return false;
    if (net->socket_capacity != 0)
        memcpy(sockets, net->sockets, net->socket_capacity * sizeof(domi_net_socket *));
    domi_memory_free(net->sockets);
    net->sockets = sockets;
    net->socket_capacity = capacity;
    return true;
}

int domi_net_socket_add_descriptor(domi_net_socket *socket)
{
    domi_net *net = socket->net;
    uint32_t at = 0;

    if (net->socket_count == net->socket_capacity && !grow_table_of_descriptors(net))
        return -ENOMEM;
    while (net->sockets[at] != NULL)
        at++;
    net->sockets[at] = socket;
    net->socket_count++;
    socket->fd = DOMI_NET_FIRST_FD + (int)at;
    return socket->fd;
}

domi_net_socket *domi_net_socket_find_by_descriptor(const domi_net *net, int fd)
{
    uint32_t at = (uint32_t)(fd - DOMI_NET_FIRST_FD);

    return fd >= DOMI_NET_FIRST_FD && at < net->socket_capacity ? net->sockets[at] : NULL;
}

void domi_net_socket_free(domi_net_socket *socket)
{
    domi_net *net = socket->net;

    if (socket->connection != NULL && socket->connection->sockets[socket->side] == socket)
        socket->connection->sockets[socket->side] = NULL;
    domi_net_remove_name_of_socket(socket);
    domi_net_socket_drop_operations(socket);
    while (socket->mail.inbox.head != NULL) {
        domi_memory_free(domi_net_datagrams_take(&socket->mail.inbox));
        net->datagrams.unclaimed++;
    }
    if (socket->fd >= 0) {
        net->sockets[socket->fd - DOMI_NET_FIRST_FD] = NULL;
        net->socket_count--;
    }
    domi_memory_free(socket);
}

void domi_net_socket_notify_change(domi_net_socket *socket)
{
    if (socket->changed != NULL)
        socket->changed(socket);
}

void domi_net_socket_drop_operations(domi_net_socket *socket)
{
    if (socket->is_listed)
        domi_net_ready_remove(socket->listed_in, socket);
    socket->is_listed = false;
    socket->input_data = socket->output_data = 0;
    while (socket->polls != NULL) {
        domi_net_poll *poll = socket->polls;

        socket->polls = poll->next;
        domi_memory_free(poll);
    }
}
