/* This file makes listening sockets, and sets their options. */
#include "io/acceptors/listen.h"

#include "io/resources/endpoint.h"
#include "io/resources/options.h"

#include <errno.h>
#include <sys/socket.h>

/* Set the options that a listener has for itself, and those that its connections inherit. */
static int set_options(const domi_io *io, int fd, int family, bool shares_port)
{
    const domi_socket_option options[] = {
        {SOL_SOCKET, SO_REUSEADDR, family != AF_UNIX},
        {SOL_SOCKET, SO_REUSEPORT, shares_port},
    };
    int result = domi_socket_set_options(io, fd, options, sizeof options / sizeof options[0]);

    if (result == 0)
        result = domi_socket_set_buffers(io, fd);
    if (result == 0 && family != AF_UNIX)
        result = domi_socket_set_tcp(io, fd);
    return result;
}

int domi_acceptor_open(const domi_io *io, const domus_endpoint *at, uint32_t backlog,
                       bool shares_port, domus_endpoint *ret_at)
{
    const domi_sockets *sockets = io->backend->sockets;
    struct sockaddr_storage storage;
    struct sockaddr *address = (struct sockaddr *)&storage;
    int length = domi_endpoint_to_socket(at, &storage);

    if (length < 0)
        return -EINVAL;
    int fd = sockets->socket(io->ring, storage.ss_family, SOCK_STREAM);
    if (fd < 0)
        return fd;
    socklen_t size = (socklen_t)length;
    int result = set_options(io, fd, storage.ss_family, shares_port);
    if (result == 0)
        result = sockets->bind(io->ring, fd, address, size);
    if (result == 0)
        result = sockets->listen(io->ring, fd, (int)backlog);
    if (result == 0)
        result = domi_endpoint_of(io, fd, false, ret_at);
    if (result != 0) {
        (void)sockets->close(io->ring, fd);
        return result;
    }
    return fd;
}

int domi_acceptor_listen(const domi_io *io, const char *address, uint32_t backlog,
                         uint16_t *ret_port)
{
    domus_endpoint at;
    int result = domus_endpoint_parse(address, &at);

    if (result != 0 || at.family == AF_UNIX)
        return -EINVAL;
    result = domi_acceptor_open(io, &at, backlog, false, &at);
    if (result >= 0 && ret_port != NULL)
        *ret_port = at.port;
    return result;
}
