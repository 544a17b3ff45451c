/* The calls that programs make on stream sockets of the simulated network (parts.h). */
#include "runtime/network/parts.h"

#include "base/check.h"

#include <errno.h>
#include <poll.h>

static void close_and_free_socket(domi_net_socket *socket)
{
    if (socket->connection != NULL)
        domi_net_close_side_of_connection(socket->connection, socket->side);
    socket->connection = NULL;
    /* a closed socket gives up its name, so that no connect or datagram finds it any more */
    domi_net_remove_name_of_socket(socket);
    if (socket->state == DOMI_NET_DATAGRAMS)
        domi_net_datagram_notify_senders(socket);
    domi_net_socket_free(socket);
}

void domi_net_socket_reset_unaccepted(domi_net_socket *listener)
{
    for (domi_net_socket *one = domi_net_socket_accept(listener); one != NULL;
         one = domi_net_socket_accept(listener)) {
        one->aborts = true;
        close_and_free_socket(one);
    }
}

void domi_net_socket_close(domi_net_socket *socket)
{
    domi_net_socket_reset_unaccepted(socket);
    close_and_free_socket(socket);
}

int domi_net_socket_listen(domi_net_socket *socket, int backlog)
{
    if (!socket->is_bound || socket->connection != NULL ||
        (socket->state != DOMI_NET_FRESH && socket->state != DOMI_NET_LISTENING))
        return -EINVAL;
    socket->state = DOMI_NET_LISTENING;
    socket->backlog = backlog > 0 ? (uint32_t)backlog : 0;
    return 0;
}

domi_net_socket *domi_net_socket_accept(domi_net_socket *listener)
{
    domi_net_connection *connection = domi_net_waiting_take(&listener->waiting);

    if (connection == NULL)
        return NULL;
    listener->waiting_count--;
    return connection->sockets[1];
}

int domi_net_socket_connect(domi_net_socket *socket, const domus_endpoint *to)
{
    if (socket->state == DOMI_NET_CONNECTING)
        return -EALREADY;
    if (socket->state != DOMI_NET_FRESH)
        return socket->state == DOMI_NET_CONNECTED ? -EISCONN : -EINVAL;
    if (to->family != socket->local.family)
        return -EAFNOSUPPORT;
    if (to->family == AF_UNIX)
        return domi_net_connect_unix(socket, to);
    int result = domi_net_bind_if_unbound(socket, to);
    return result == 0 ? domi_net_begin_connect(socket, to) : result;
}

int domi_net_socket_take_error(domi_net_socket *socket)
{
    int error = socket->error;

    socket->error = 0;
    return error;
}

/* get_pipe_to_socket() returns the pipe whose bytes go to this socket, and get_pipe_from_socket()
 * the pipe of the bytes that come from the socket; NULL if the socket has no connection. */
static domi_net_pipe *get_pipe_to_socket(const domi_net_socket *socket)
{
    return socket->connection != NULL ? &socket->connection->pipes[socket->side] : NULL;
}

static domi_net_pipe *get_pipe_from_socket(const domi_net_socket *socket)
{
    return socket->connection != NULL ? &socket->connection->pipes[!socket->side] : NULL;
}

int domi_net_socket_receive(domi_net_socket *socket, void *data, uint32_t size)
{
    domi_net_pipe *in = get_pipe_to_socket(socket);
    uint64_t ready = in != NULL ? domi_net_pipe_count_readable(in) : 0;

    if (ready != 0) {
        uint32_t count = ready < size ? (uint32_t)ready : size;

        domi_net_pipe_receive_bytes(in, data, count);
        socket->net->totals.received += count;
        /* the reader has made room in the receive buffer, so bytes that wait at the sender can
         * leave */
        domi_net_send_waiting_bytes(socket->connection, socket->side);
        return (int)count;
    }
    if (socket->error != 0)
        return -domi_net_socket_take_error(socket);
    if (socket->is_dead || socket->reads_no_more)
        return 0;
    if (socket->state != DOMI_NET_CONNECTED)
        return socket->state == DOMI_NET_CONNECTING ? -EAGAIN : -ENOTCONN;
    /* the pipe exists, because a socket in the state CONNECTED has a connection */
    DOMI_CHECK(in != NULL);
    return in->end_arrived ? 0 : -EAGAIN;
}

/* True if the peer of a Unix socket has stopped reading or has closed, so that nobody would read
 * what is sent. */
static bool has_peer_stopped_reading(const domi_net_socket *socket, const domi_net_pipe *out)
{
    return socket->local.family == AF_UNIX &&
           (socket->connection->sockets[!socket->side] == NULL || out->reader_gone);
}

int domi_net_socket_send(domi_net_socket *socket, const void *data, uint32_t size)
{
    domi_net_pipe *out = get_pipe_from_socket(socket);

    if (socket->error != 0)
        return -domi_net_socket_take_error(socket);
    if (socket->is_dead)
        return -EPIPE;
    if (socket->state != DOMI_NET_CONNECTED)
        return socket->state == DOMI_NET_CONNECTING ? -EAGAIN : -ENOTCONN;
    DOMI_CHECK(out != NULL);
    if (out->is_finished || has_peer_stopped_reading(socket, out))
        return -EPIPE;
    uint64_t room = domi_net_pipe_count_room(out);
    if (room == 0)
        return -EAGAIN;
    uint32_t count = room < size ? (uint32_t)room : size;
    if (!domi_net_pipe_append_bytes(out, data, count))
        return -ENOMEM;
    socket->net->totals.sent += count;
    domi_net_send_waiting_bytes(socket->connection, !socket->side);
    return (int)count;
}

uint32_t domi_net_socket_get_poll_events(const domi_net_socket *socket)
{
    const domi_net_pipe *in = get_pipe_to_socket(socket);
    const domi_net_pipe *out = get_pipe_from_socket(socket);
    uint32_t events = socket->error != 0 ? POLLERR : 0;

    if (socket->state == DOMI_NET_DATAGRAMS)
        return domi_net_datagram_get_poll_events(socket);
    if (socket->state == DOMI_NET_LISTENING)
        return socket->waiting_count != 0 ? POLLIN : 0;
    if (socket->state == DOMI_NET_WAKE)
        return socket->wakes != 0 ? POLLIN : 0;
    if (socket->is_dead)
        return events | POLLIN | POLLOUT | POLLHUP | POLLRDHUP;
    if (socket->state == DOMI_NET_CONNECTING)
        return events;
    if (socket->state == DOMI_NET_FRESH)
        return events | POLLOUT | POLLHUP;
    DOMI_CHECK(in != NULL && out != NULL);
    if (in->end_arrived || socket->reads_no_more)
        events |= POLLIN | POLLRDHUP;
    if (domi_net_pipe_count_readable(in) != 0)
        events |= POLLIN;
    if (in->end_arrived && out->is_finished)
        events |= POLLHUP;
    if (out->is_finished || domi_net_pipe_count_room(out) != 0 ||
        has_peer_stopped_reading(socket, out))
        events |= POLLOUT;
    return events;
}
