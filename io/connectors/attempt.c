/* Lets one socket connect to one address.
 *
 * The socket is made with SOCK_NONBLOCK, because the kernel would wait otherwise. The flag is
 * removed when the socket is connected: a ring would get -EAGAIN for each receive that finds
 * nothing. */
#include "io/connectors/connect.h"

#include "base/check.h"
#include "io/resources/endpoint.h"
#include "io/resources/options.h"
#include "io/resources/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>

static uint64_t make_user_data_of_attempt(const domi_attempt *attempt)
{
    return (uint64_t)DOMI_OP_CONNECT << 56 | (uintptr_t)attempt;
}

static void close_socket_of_attempt(domi_attempt *attempt)
{
    if (attempt->fd >= 0)
        domi_socket_close_used_in_ring(attempt->of->io, attempt->fd);
    attempt->fd = -1;
}

/* Bind the socket to the local address that the options name. connect(), which knows the peer,
 * chooses the port, so more connections fit than there are ports. */
static int bind_local_address(const domi_attempt *attempt)
{
    const domi_socket_option late[] = {{IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1, false}};
    const domus_endpoint *own = &attempt->of->wanted;
    const domi_io *io = attempt->of->io;
    struct sockaddr_storage storage;

    if (own->family == 0)
        return 0;
    if (own->family != attempt->to.family)
        return -EAFNOSUPPORT;
    int length = domi_endpoint_to_socket_address(own, &storage);
    if (length < 0)
        return -EINVAL;
    if (own->family != AF_UNIX && own->port == 0)
        (void)domi_socket_set_int_options(io, attempt->fd, late, 1);
    return io->backend->sockets->bind(io->ring, attempt->fd, (struct sockaddr *)&storage,
                                      (socklen_t)length);
}

static int open_socket_of_attempt(domi_attempt *attempt)
{
    const domi_io *io = attempt->of->io;
    int fd =
        io->backend->sockets->socket(io->ring, attempt->to.family, SOCK_STREAM | SOCK_NONBLOCK);

    if (fd < 0)
        return fd;
    attempt->fd = fd;
    int result = domi_socket_set_buffer_sizes(io, fd, attempt->of->settings);
    if (result == 0 && attempt->to.family != AF_UNIX)
        result = domi_socket_set_tcp_options(io, fd, attempt->of->settings, false);
    if (result == 0)
        result = bind_local_address(attempt);
    return result;
}

/* Prepare a connected socket for a channel, and find its endpoints. A socket that the kernel has
 * connected to itself is not a connection: no socket listens at that port, and the kernel has
 * chosen the same port for this side. Returns 0; the error. */
static int prepare_connected_socket(domi_attempt *attempt)
{
    domi_connect *connect = attempt->of;
    const domi_io *io = connect->io;
    int nonblocking = 0;

    (void)io->backend->sockets->ioctl(io->ring, attempt->fd, FIONBIO, &nonblocking);
    int result = domi_endpoint_of_socket(io, attempt->fd, false, &connect->local);
    if (attempt->to.family == AF_UNIX) {
        connect->peer = attempt->to;
        return 0; /* this end of a Unix connection mostly has no name */
    }
    if (result == 0)
        result = domi_endpoint_of_socket(io, attempt->fd, true, &connect->peer);
    if (result == 0 && domus_endpoint_is_same(&connect->local, &connect->peer))
        result = -ECONNREFUSED;
    return result;
}

/* Handle the result of connect(2) or of the poll that has waited for it. Closes the socket if the
 * result is an error. */
static int handle_connect_result(domi_attempt *attempt, int result)
{
    if (result == 0)
        result = prepare_connected_socket(attempt);
    if (result == 0)
        return 0;
    close_socket_of_attempt(attempt);
    return result;
}

int domi_attempt_try_connect(domi_attempt *attempt)
{
    const domi_io *io = attempt->of->io;
    struct sockaddr_storage storage;
    int length = domi_endpoint_to_socket_address(&attempt->to, &storage);
    int result =
        length < 0 ? length
                   : io->backend->sockets->connect(io->ring, attempt->fd,
                                                   (struct sockaddr *)&storage, (socklen_t)length);

    /* the Unix listener has no room for this connection; the socket can be used for the next try */
    attempt->waits = result == -EAGAIN && attempt->to.family == AF_UNIX;
    if (attempt->waits)
        return -EAGAIN;
    if (result != -EINPROGRESS)
        return handle_connect_result(attempt, result);
    attempt->is_polled = true;
    attempt->of->polls++;
    io->backend->poll_once(io->ring, attempt->fd, POLLOUT, make_user_data_of_attempt(attempt));
    return -EINPROGRESS;
}

int domi_attempt_begin_connect(domi_attempt *attempt)
{
    int result = open_socket_of_attempt(attempt);

    return result == 0 ? domi_attempt_try_connect(attempt) : handle_connect_result(attempt, result);
}

int domi_attempt_handle_poll_result(domi_attempt *attempt, int result)
{
    const domi_io *io = attempt->of->io;
    int error = 0;
    socklen_t size = sizeof error;

    DOMI_CHECK(attempt->is_polled);
    attempt->is_polled = false;
    attempt->of->polls--;
    if (attempt->is_dropped)
        result = -ECANCELED;
    if (result >= 0)
        result = io->backend->sockets->option_get(io->ring, attempt->fd, SOL_SOCKET, SO_ERROR,
                                                  &error, &size);
    return handle_connect_result(attempt, result < 0 ? result : -error);
}

void domi_attempt_give_up(domi_attempt *attempt)
{
    const domi_io *io = attempt->of->io;

    attempt->waits = false;
    if (!attempt->is_polled) {
        close_socket_of_attempt(attempt);
        return;
    }
    if (attempt->is_dropped)
        return;
    attempt->is_dropped = true;
    io->backend->cancel(io->ring, attempt->fd, make_user_data_of_attempt(attempt), DOMI_OP_IGNORED);
}
