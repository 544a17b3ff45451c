/* The calls on sockets that io makes, for the simulated network. Each does what the system call
 * of its name does, as far as io relies on that. */
#include "runtime/network/parts.h"

#include "base/check.h"
#include "io/resources/endpoint.h"
#include "runtime/network/ready.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>

/* bits of the argument `type` of socket(2) that are the type itself, without flags such as
 * SOCK_NONBLOCK */
#define TYPE_MASK 0xf

static domi_net *get_network_of_ring(void *ring)
{
    return ((domi_net_ring *)ring)->net;
}

static domi_net_socket *find_socket_of_ring(void *ring, int fd)
{
    return domi_net_socket_find_by_descriptor(get_network_of_ring(ring), fd);
}

static domus_endpoint endpoint_of_sockaddr(const struct sockaddr *address, socklen_t size)
{
    struct sockaddr_storage storage = {.ss_family = AF_UNSPEC};
    domus_endpoint endpoint;

    memcpy(&storage, address, size < sizeof storage ? size : sizeof storage);
    domi_endpoint_from_socket_address(&storage, size, &endpoint);
    return endpoint;
}

static int net_make_socket(void *ring, int family, int type)
{
    domi_net *net = get_network_of_ring(ring);
    int result = domi_net_draw_socket_failure(net);

    if (result != 0)
        return result;
    if (family != AF_INET && family != AF_INET6 && family != AF_UNIX)
        return -EAFNOSUPPORT;
    if ((type & TYPE_MASK) != SOCK_STREAM && (type & TYPE_MASK) != SOCK_DGRAM)
        return -ESOCKTNOSUPPORT;
    domi_net_socket *socket = domi_net_socket_new(net, (uint16_t)family);
    if (socket == NULL)
        return -ENOMEM;
    if ((type & TYPE_MASK) == SOCK_DGRAM)
        socket->state = DOMI_NET_DATAGRAMS;
    result = domi_net_socket_add_descriptor(socket);
    if (result < 0)
        domi_net_socket_free(socket);
    return result;
}

static int net_bind_socket(void *ring, int fd, const struct sockaddr *address, socklen_t size)
{
    domi_net_socket *socket = find_socket_of_ring(ring, fd);
    domus_endpoint at = endpoint_of_sockaddr(address, size);

    if (socket == NULL)
        return -EBADF;
    if (at.family != socket->local.family)
        return -EAFNOSUPPORT;
    return domi_net_bind_socket(socket, &at);
}

static int net_listen_on_socket(void *ring, int fd, int backlog)
{
    domi_net_socket *socket = find_socket_of_ring(ring, fd);

    return socket != NULL ? domi_net_socket_listen(socket, backlog) : -EBADF;
}

/* Reset the connection of a stream socket, which can then be used like a new one. */
static int disconnect_socket(domi_net_socket *socket)
{
    domi_net_connection *connection = socket->connection;

    if (socket->local.family == AF_UNIX)
        return -EINVAL;
    if (connection != NULL) {
        socket->aborts = true;
        domi_net_close_side_of_connection(connection, socket->side);
    }
    socket->connection = NULL;
    socket->state = DOMI_NET_FRESH;
    socket->is_dead = false;
    return 0;
}

static int net_connect_socket(void *ring, int fd, const struct sockaddr *address, socklen_t size)
{
    domi_net_socket *socket = find_socket_of_ring(ring, fd);

    if (socket == NULL)
        return -EBADF;
    domus_endpoint to = endpoint_of_sockaddr(address, size);
    if (socket->state == DOMI_NET_DATAGRAMS)
        return domi_net_datagram_connect(socket, &to);
    if (address->sa_family == AF_UNSPEC)
        return disconnect_socket(socket);
    int result = domi_net_socket_connect(socket, &to);
    return result == 0 && socket->state == DOMI_NET_CONNECTING ? -EINPROGRESS : result;
}

static int net_accept_connection(void *ring, int listener_fd)
{
    domi_net_socket *listener = find_socket_of_ring(ring, listener_fd);

    if (listener == NULL || listener->state != DOMI_NET_LISTENING)
        return -EINVAL;
    if (listener->waiting_count == 0)
        return -EAGAIN;
    int result = domi_net_draw_socket_failure(listener->net);
    return result == 0 ? domi_net_socket_add_descriptor(domi_net_socket_accept(listener)) : result;
}

static int net_shutdown_socket(void *ring, int fd, int how)
{
    domi_net_socket *socket = find_socket_of_ring(ring, fd);

    if (socket == NULL)
        return -EBADF;
    if (socket->state == DOMI_NET_LISTENING && how != SHUT_WR) {
        domi_net_socket_reset_unaccepted(socket);
        socket->state = DOMI_NET_FRESH;
        return 0;
    }
    bool is_of_datagrams = socket->state == DOMI_NET_DATAGRAMS;
    if (is_of_datagrams ? socket->mail.peer.family == 0
                        : socket->state != DOMI_NET_CONNECTED || socket->is_dead)
        return -ENOTCONN;
    if (how != SHUT_WR)
        socket->reads_no_more = true;
    if (how != SHUT_RD && !is_of_datagrams)
        domi_net_finish_stream_of_side(socket->connection, socket->side);
    domi_net_socket_notify_change(socket);
    return 0;
}

/* Close a descriptor of a socket. The check makes sure that no operation on it is in flight, or its
 * completion would reach the socket that gets the same descriptor next. */
static int net_close_descriptor(void *ring, int fd)
{
    domi_net_socket *socket = find_socket_of_ring(ring, fd);

    if (socket == NULL)
        return -EBADF;
    DOMI_CHECK((socket->state != DOMI_NET_CONNECTED && socket->state != DOMI_NET_DATAGRAMS) ||
               (socket->input_data == 0 && socket->output_data == 0 && socket->polls == NULL));
    domi_net_socket_close(socket);
    return 0;
}

/* --- socket options -------------------------------------------------------------------------- */

/* Get the name of a socket's peer, as SO_PEERNAME tells it. Returns -EINVAL, as the kernel does, if
 * more bytes are asked for than the name has. */
static int get_peer_name(const domi_net_socket *socket, void *value, socklen_t size)
{
    struct sockaddr_storage address = {.ss_family = socket->local.family};

    if (socket->connection == NULL)
        return -ENOTCONN;
    int length =
        domi_endpoint_to_socket_address(&socket->connection->ends[!socket->side], &address);
    if (length < 0)
        /* the name of a Unix socket without a name is only its family */
        length = sizeof address.ss_family;
    address.ss_family = socket->local.family;
    if ((socklen_t)length < size)
        return -EINVAL;
    memcpy(value, &address, size);
    return 0;
}

/* Fill the part of TCP_INFO that io reads. For a listener `tcpi_unacked` is the number of
 * connections that wait to be accepted, as in Linux. */
static int get_tcp_info(const domi_net_socket *socket, void *value, socklen_t *size)
{
    struct tcp_info info = {.tcpi_unacked = socket->waiting_count};

    if (socket->local.family == AF_UNIX || socket->state == DOMI_NET_DATAGRAMS)
        return -EOPNOTSUPP;
    if (*size > sizeof info)
        *size = sizeof info;
    memcpy(value, &info, *size);
    return 0;
}

/* Fill the figures that SO_MEMINFO tells; only the number of dropped datagrams is simulated. */
static int fill_socket_memory_info(const domi_net_socket *socket, void *value, socklen_t *size)
{
    const uint32_t figures[SK_MEMINFO_VARS] = {[SK_MEMINFO_DROPS] = socket->mail.dropped};

    if (*size > sizeof figures)
        *size = sizeof figures;
    memcpy(value, figures, *size);
    return 0;
}

static int net_get_socket_option(void *ring, int fd, int level, int name, void *value,
                                 socklen_t *size)
{
    domi_net_socket *socket = find_socket_of_ring(ring, fd);
    int number = 0;

    if (socket == NULL)
        return -EBADF;
    if (level == IPPROTO_TCP && name == TCP_INFO)
        return get_tcp_info(socket, value, size);
    if (level == SOL_SOCKET && name == SO_PEERNAME)
        return get_peer_name(socket, value, *size);
    if (level == SOL_SOCKET && name == SO_MEMINFO)
        return fill_socket_memory_info(socket, value, size);
    if (level == SOL_SOCKET && name == SO_ERROR)
        number = domi_net_socket_take_error(socket);
    else if (level == SOL_SOCKET && name == SO_DOMAIN)
        number = socket->local.family;
    else if (level == SOL_SOCKET && name == SO_TYPE)
        number = socket->state == DOMI_NET_DATAGRAMS ? SOCK_DGRAM : SOCK_STREAM;
    else if (level == SOL_SOCKET && name == SO_ACCEPTCONN)
        number = socket->state == DOMI_NET_LISTENING;
    else if (level == SOL_SOCKET && name == SO_SNDBUF)
        number = (int)socket->send_max;
    else if (level == SOL_SOCKET && name == SO_RCVBUF)
        number = (int)socket->receive_max;
    else
        return -ENOPROTOOPT;
    if (*size < sizeof number)
        return -EINVAL;
    *size = sizeof number;
    memcpy(value, &number, sizeof number);
    return 0;
}

static void set_socket_option(domi_net_socket *socket, int name, const void *value, socklen_t size)
{
    struct linger linger = {0};
    int number = 0;

    memcpy(&number, value, size < sizeof number ? size : sizeof number);
    if (name == SO_SNDBUF && number > 0) {
        socket->send_max = (uint32_t)number;
        socket->sets_send_max = true;
    } else if (name == SO_RCVBUF && number > 0) {
        socket->receive_max = (uint32_t)number;
        socket->sets_receive_max = true;
    } else if (name == SO_REUSEPORT)
        socket->shares_port = number != 0;
    else if (name == SO_LINGER && size >= sizeof linger) {
        memcpy(&linger, value, sizeof linger);
        socket->aborts = linger.l_onoff != 0 && linger.l_linger == 0;
    }
}

/* Set an option of a socket. Options that have no effect in the simulation are accepted. */
static int net_set_socket_option(void *ring, int fd, int level, int name, const void *value,
                                 socklen_t size)
{
    domi_net_socket *socket = find_socket_of_ring(ring, fd);

    if (socket == NULL)
        return -EBADF;
    if (level == IPPROTO_TCP &&
        (socket->local.family == AF_UNIX || socket->state == DOMI_NET_DATAGRAMS))
        return -EOPNOTSUPP;
    if (level == SOL_SOCKET)
        set_socket_option(socket, name, value, size);
    return 0;
}

static int net_ioctl_on_socket(void *ring, int fd, unsigned long request, int *ret_value)
{
    const domi_net_socket *socket = find_socket_of_ring(ring, fd);

    if (socket == NULL)
        return -EBADF;
    if (socket->state == DOMI_NET_DATAGRAMS && request == FIONREAD) {
        *ret_value = socket->mail.inbox.head != NULL ? (int)socket->mail.inbox.head->size : 0;
        return 0;
    }
    if (socket->connection == NULL)
        return -EINVAL;
    const domi_net_pipe *in = &socket->connection->pipes[socket->side];
    const domi_net_pipe *out = &socket->connection->pipes[!socket->side];
    if (request == FIONREAD) {
        *ret_value = (int)domi_net_pipe_count_readable(in);
    } else if (request == SIOCOUTQ) {
        /* as in the kernel, the end of the stream counts as one byte while it is on its way */
        bool has_end = socket->local.family != AF_UNIX && out->is_finished && !out->end_arrived;
        *ret_value = socket->is_dead ? 0 : (int)(out->tail - out->arrived) + has_end;
    } else {
        return -ENOTTY;
    }
    return 0;
}

/* Returns the address of the peer to which a socket is connected; NULL: it is not connected. */
static const domus_endpoint *get_peer_endpoint(const domi_net_socket *socket)
{
    if (socket->state == DOMI_NET_DATAGRAMS)
        return socket->mail.peer.family != 0 ? &socket->mail.peer : NULL;
    if (socket->connection == NULL || socket->is_dead || socket->state != DOMI_NET_CONNECTED)
        return NULL;
    return &socket->connection->ends[!socket->side];
}

static int net_get_socket_address(void *ring, int fd, bool is_peer, struct sockaddr *address,
                                  socklen_t *size)
{
    const domi_net_socket *socket = find_socket_of_ring(ring, fd);
    struct sockaddr_storage storage = {.ss_family = AF_UNSPEC};

    if (socket == NULL)
        return -EBADF;
    const domus_endpoint *named = is_peer ? get_peer_endpoint(socket) : &socket->local;
    if (named == NULL)
        return -ENOTCONN;
    int length = domi_endpoint_to_socket_address(named, &storage);
    if (length < 0)
        /* the name of a Unix socket without a name is only its family */
        length = sizeof storage.ss_family;
    storage.ss_family = socket->local.family;
    memcpy(address, &storage, (socklen_t)length < *size ? (socklen_t)length : *size);
    *size = (socklen_t)length;
    return 0;
}

/* --- waking a thread ------------------------------------------------------------------------- */

static int net_open_wake_descriptor(void *ring)
{
    domi_net_socket *socket = domi_net_socket_new(get_network_of_ring(ring), AF_UNSPEC);

    if (socket == NULL)
        return -ENOMEM;
    socket->state = DOMI_NET_WAKE;
    int result = domi_net_socket_add_descriptor(socket);
    if (result < 0)
        domi_net_socket_free(socket);
    return result;
}

static void net_wake_by_descriptor(void *ring, int fd)
{
    domi_net_socket *socket = find_socket_of_ring(ring, fd);

    socket->wakes++;
    domi_net_socket_notify_change(socket);
}

/* Does not wait for a wake-up, but returns at once: the test kit itself knows when a thread sleeps
 * and when it is woken. */
static void net_wait_for_wake(void *ring, int fd, uint64_t timeout_ns)
{
    (void)ring, (void)fd, (void)timeout_ns;
}

/* Does not pause, but returns at once: a refused enter is tried again in the next step, and waiting
 * would take no simulated time. */
static void net_pause_without_waiting(void *ring, uint64_t ns)
{
    (void)ring, (void)ns;
}

const domi_sockets domi_net_sockets = {
    .socket = net_make_socket,
    .bind = net_bind_socket,
    .listen = net_listen_on_socket,
    .connect = net_connect_socket,
    .accept = net_accept_connection,
    .shutdown = net_shutdown_socket,
    .close = net_close_descriptor,
    .option_get = net_get_socket_option,
    .option_set = net_set_socket_option,
    .ioctl = net_ioctl_on_socket,
    .address = net_get_socket_address,
    .wake_open = net_open_wake_descriptor,
    .wake = net_wake_by_descriptor,
    .wake_wait = net_wait_for_wake,
    .pause = net_pause_without_waiting,
};
