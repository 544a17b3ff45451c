/* The calls on sockets that io makes. Each does what the system call of its name does, as far as io
 * relies on that. */
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

#define TYPE_MASK 0xf /* bits of a socket's type, without flags such as SOCK_NONBLOCK */

static domi_net *get_network_of_ring(void *ring)
{
    return ((domi_net_ring *)ring)->net;
}

static domi_net_socket *find_socket(void *ring, int fd)
{
    return domi_net_socket_find(get_network_of_ring(ring), fd);
}

static domus_endpoint read_endpoint(const struct sockaddr *address, socklen_t size)
{
    struct sockaddr_storage storage = {.ss_family = AF_UNSPEC};
    domus_endpoint endpoint;

    memcpy(&storage, address, size < sizeof storage ? size : sizeof storage);
    domi_endpoint_from_socket(&storage, size, &endpoint);
    return endpoint;
}

static int net_socket(void *ring, int family, int type)
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

static int net_bind(void *ring, int fd, const struct sockaddr *address, socklen_t size)
{
    domi_net_socket *socket = find_socket(ring, fd);
    domus_endpoint at = read_endpoint(address, size);

    if (socket == NULL)
        return -EBADF;
    if (at.family != socket->local.family)
        return -EAFNOSUPPORT;
    return domi_net_bind(socket, &at);
}

static int net_listen(void *ring, int fd, int backlog)
{
    domi_net_socket *socket = find_socket(ring, fd);

    return socket != NULL ? domi_net_socket_listen(socket, backlog) : -EBADF;
}

/* Reset the connection of a socket, which can then be used like a new one. */
static int disconnect_socket(domi_net_socket *socket)
{
    domi_net_connection *connection = socket->connection;

    if (socket->local.family == AF_UNIX)
        return -EINVAL;
    if (connection != NULL) {
        socket->aborts = true;
        domi_net_close_side(connection, socket->side);
    }
    socket->connection = NULL;
    socket->state = DOMI_NET_FRESH;
    socket->is_dead = false;
    return 0;
}

static int net_connect(void *ring, int fd, const struct sockaddr *address, socklen_t size)
{
    domi_net_socket *socket = find_socket(ring, fd);

    if (socket == NULL)
        return -EBADF;
    domus_endpoint to = read_endpoint(address, size);
    if (socket->state == DOMI_NET_DATAGRAMS)
        return domi_net_datagram_connect(socket, &to);
    if (address->sa_family == AF_UNSPEC)
        return disconnect_socket(socket);
    int result = domi_net_socket_connect(socket, &to);
    return result == 0 && socket->state == DOMI_NET_CONNECTING ? -EINPROGRESS : result;
}

static int net_accept(void *ring, int listener_fd)
{
    domi_net_socket *listener = find_socket(ring, listener_fd);

    if (listener == NULL || listener->state != DOMI_NET_LISTENING)
        return -EINVAL;
    if (listener->waiting_count == 0)
        return -EAGAIN;
    int result = domi_net_draw_socket_failure(listener->net);
    return result == 0 ? domi_net_socket_add_descriptor(domi_net_socket_accept(listener)) : result;
}

static int net_shutdown(void *ring, int fd, int how)
{
    domi_net_socket *socket = find_socket(ring, fd);

    if (socket == NULL)
        return -EBADF;
    if (socket->state == DOMI_NET_LISTENING && how != SHUT_WR) {
        domi_net_socket_reset_waiting(socket);
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
        domi_net_finish_stream(socket->connection, socket->side);
    domi_net_socket_notify_change(socket);
    return 0;
}

/* Close a descriptor. The check makes sure that no operation on it is in flight, or its completion
 * would reach the socket that gets the same descriptor next. */
static int net_close(void *ring, int fd)
{
    domi_net_socket *socket = find_socket(ring, fd);

    if (socket == NULL)
        return -EBADF;
    DOMI_CHECK((socket->state != DOMI_NET_CONNECTED && socket->state != DOMI_NET_DATAGRAMS) ||
               (socket->input_data == 0 && socket->output_data == 0 && socket->polls == NULL));
    domi_net_socket_close(socket);
    return 0;
}

/* --- socket options -------------------------------------------------------------------------- */

/* Get the peer's name for SO_PEERNAME. Returns -EINVAL, as the kernel does, if more bytes are asked
 * for than the name has. */
static int get_peer_name(const domi_net_socket *socket, void *value, socklen_t size)
{
    struct sockaddr_storage address = {.ss_family = socket->local.family};

    if (socket->connection == NULL)
        return -ENOTCONN;
    int length = domi_endpoint_to_socket(&socket->connection->ends[!socket->side], &address);
    if (length < 0)
        length = sizeof address.ss_family; /* a Unix socket without a name */
    address.ss_family = socket->local.family;
    if ((socklen_t)length < size)
        return -EINVAL;
    memcpy(value, &address, size);
    return 0;
}

/* For a listener `tcpi_unacked` is the number of connections that wait to be accepted, as in
 * Linux. */
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

/* Fill the figures of SO_MEMINFO; only the number of dropped datagrams is simulated. */
static int get_so_meminfo(const domi_net_socket *socket, void *value, socklen_t *size)
{
    const uint32_t figures[SK_MEMINFO_VARS] = {[SK_MEMINFO_DROPS] = socket->mail.dropped};

    if (*size > sizeof figures)
        *size = sizeof figures;
    memcpy(value, figures, *size);
    return 0;
}

static int net_get_option(void *ring, int fd, int level, int name, void *value, socklen_t *size)
{
    domi_net_socket *socket = find_socket(ring, fd);
    int number = 0;

    if (socket == NULL)
        return -EBADF;
    if (level == IPPROTO_TCP && name == TCP_INFO)
        return get_tcp_info(socket, value, size);
    if (level == SOL_SOCKET && name == SO_PEERNAME)
        return get_peer_name(socket, value, *size);
    if (level == SOL_SOCKET && name == SO_MEMINFO)
        return get_so_meminfo(socket, value, size);
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

/* Options without an effect in the simulation are accepted. */
static int net_set_option(void *ring, int fd, int level, int name, const void *value,
                          socklen_t size)
{
    domi_net_socket *socket = find_socket(ring, fd);

    if (socket == NULL)
        return -EBADF;
    if (level == IPPROTO_TCP &&
        (socket->local.family == AF_UNIX || socket->state == DOMI_NET_DATAGRAMS))
        return -EOPNOTSUPP;
    if (level == SOL_SOCKET)
        set_socket_option(socket, name, value, size);
    return 0;
}

static int net_ioctl(void *ring, int fd, unsigned long request, int *ret_value)
{
    const domi_net_socket *socket = find_socket(ring, fd);

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
        /* the end of the stream, while it is on its way, counts as one byte */
        bool has_end = socket->local.family != AF_UNIX && out->is_finished && !out->end_arrived;
        *ret_value = socket->is_dead ? 0 : (int)(out->tail - out->arrived) + has_end;
    } else {
        return -ENOTTY;
    }
    return 0;
}

/* Returns the address of the socket's peer; NULL: the socket is not connected. */
static const domus_endpoint *get_peer_endpoint(const domi_net_socket *socket)
{
    if (socket->state == DOMI_NET_DATAGRAMS)
        return socket->mail.peer.family != 0 ? &socket->mail.peer : NULL;
    if (socket->connection == NULL || socket->is_dead || socket->state != DOMI_NET_CONNECTED)
        return NULL;
    return &socket->connection->ends[!socket->side];
}

static int net_get_address(void *ring, int fd, bool is_peer, struct sockaddr *address,
                           socklen_t *size)
{
    const domi_net_socket *socket = find_socket(ring, fd);
    struct sockaddr_storage storage = {.ss_family = AF_UNSPEC};

    if (socket == NULL)
        return -EBADF;
    const domus_endpoint *named = is_peer ? get_peer_endpoint(socket) : &socket->local;
    if (named == NULL)
        return -ENOTCONN;
    int length = domi_endpoint_to_socket(named, &storage);
    if (length < 0)
        length = sizeof storage.ss_family; /* a Unix socket without a name */
    storage.ss_family = socket->local.family;
    memcpy(address, &storage, (socklen_t)length < *size ? (socklen_t)length : *size);
    *size = (socklen_t)length;
    return 0;
}

/* --- waking a thread ------------------------------------------------------------------------- */

static int net_open_wake(void *ring)
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

static void net_wake(void *ring, int fd)
{
    domi_net_socket *socket = find_socket(ring, fd);

    socket->wakes++;
    domi_net_socket_notify_change(socket);
}

/* Return at once: the test kit itself knows when a thread sleeps and when it is woken. */
static void net_wait_for_wake(void *ring, int fd, uint64_t timeout_ns)
{
    (void)ring, (void)fd, (void)timeout_ns;
}

/* Return at once: a refused enter is tried again in the next step, and waiting takes no time. */
static void net_pause(void *ring, uint64_t ns)
{
    (void)ring, (void)ns;
}

const domi_sockets domi_net_sockets = {
    .socket = net_socket,
    .bind = net_bind,
    .listen = net_listen,
    .connect = net_connect,
    .accept = net_accept,
    .shutdown = net_shutdown,
    .close = net_close,
    .option_get = net_get_option,
    .option_set = net_set_option,
    .ioctl = net_ioctl,
    .address = net_get_address,
    .wake_open = net_open_wake,
    .wake = net_wake,
    .wake_wait = net_wait_for_wake,
    .pause = net_pause,
};
