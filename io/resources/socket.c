/* Reads properties of sockets, and ends connections (socket.h), all by the functions of the
 * backend. */
#include "io/resources/socket.h"

#include <netinet/in.h>
#include <stdbool.h>

uint64_t domi_socket_count_bytes_in_kernel(const domi_io *io, int fd, unsigned long request)
{
    int bytes = 0;

    if (fd < 0 || io->backend->sockets->ioctl(io->ring, fd, request, &bytes) != 0 || bytes < 0)
        return 0;
    return (uint64_t)bytes;
}

int domi_socket_take_error(const domi_io *io, int fd)
{
    int error = 0;
    socklen_t size = sizeof error;

    return io->backend->sockets->option_get(io->ring, fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0
               ? -error
               : 0;
}

static bool read_address_of_peer_by_option(const domi_io *io, int fd,
                                           struct sockaddr_storage *address, size_t bytes)
{
    socklen_t size = (socklen_t)bytes;

    return io->backend->sockets->option_get(io->ring, fd, SOL_SOCKET, SO_PEERNAME, address,
                                            &size) == 0;
}

/* A multishot accept cannot tell the address, and getpeername() fails if the peer has already reset
 * the connection. SO_PEERNAME works then, but only if it is asked for no more bytes than the
 * address has: an IPv4 address has the fewest, and a Unix socket may have no name, only a family.
 * An emulated kernel (qemu-user) may not know the option. */
void domi_socket_find_address_of_peer(const domi_io *io, int fd,
                                      struct sockaddr_storage *ret_address)
{
    *ret_address = (struct sockaddr_storage){.ss_family = AF_UNSPEC};
    if (!read_address_of_peer_by_option(io, fd, ret_address, sizeof(struct sockaddr_in)))
        (void)read_address_of_peer_by_option(io, fd, ret_address, sizeof ret_address->ss_family);
    else if (ret_address->ss_family == AF_INET6)
        (void)read_address_of_peer_by_option(io, fd, ret_address, sizeof(struct sockaddr_in6));
    if (ret_address->ss_family == AF_UNSPEC) {
        socklen_t size = sizeof *ret_address;
        (void)io->backend->sockets->address(io->ring, fd, true, (struct sockaddr *)ret_address,
                                            &size);
    }
}

void domi_socket_abort_at_close(const domi_io *io, int fd)
{
    static const struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    (void)io->backend->sockets->option_set(io->ring, fd, SOL_SOCKET, SO_LINGER, &at_once,
                                           sizeof at_once);
}

void domi_socket_reset(const domi_io *io, int fd)
{
    domi_socket_abort_at_close(io, fd);
    domi_socket_close(io, fd);
}

void domi_socket_disconnect(const domi_io *io, int fd)
{
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};

    (void)io->backend->sockets->connect(io->ring, fd, &nobody, sizeof nobody);
    /* a Unix socket needs the shutdown, because connect(2) cannot disconnect it */
    domi_socket_shutdown(io, fd, SHUT_RDWR);
}

void domi_socket_shutdown(const domi_io *io, int fd, int how)
{
    (void)io->backend->sockets->shutdown(io->ring, fd, how);
}

void domi_socket_close(const domi_io *io, int fd)
{
    (void)io->backend->sockets->close(io->ring, fd);
}

void domi_socket_close_used_in_ring(const domi_io *io, int fd)
{
    io->backend->forget(io->ring, fd);
    domi_socket_close(io, fd);
}
