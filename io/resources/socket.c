/* This file asks the kernel about sockets, and ends connections (socket.h). */
#include "io/resources/socket.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <unistd.h>

uint64_t domi_socket_bytes(int fd, unsigned long request)
{
    int bytes = 0;

    return fd >= 0 && ioctl(fd, request, &bytes) == 0 && bytes > 0 ? (uint64_t)bytes : 0;
}

static bool ask_peer(int fd, struct sockaddr_storage *address, size_t bytes)
{
    socklen_t size = (socklen_t)bytes;

    return getsockopt(fd, SOL_SOCKET, SO_PEERNAME, address, &size) == 0;
}

/* A multishot accept cannot tell the address, and getpeername() fails if the peer has already reset
 * the connection. SO_PEERNAME works then, but only if it is asked for no more bytes than the
 * address has: an IPv4 address has the fewest, and a Unix socket may have no name, only a family.
 */
void domi_socket_name_peer(int fd, struct sockaddr_storage *ret_address)
{
    *ret_address = (struct sockaddr_storage){.ss_family = AF_UNSPEC};
    if (!ask_peer(fd, ret_address, sizeof(struct sockaddr_in)))
        (void)ask_peer(fd, ret_address, sizeof ret_address->ss_family);
    else if (ret_address->ss_family == AF_INET6)
        (void)ask_peer(fd, ret_address, sizeof(struct sockaddr_in6));
}

void domi_socket_abort_at_close(int fd)
{
    static const struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void domi_socket_reset(int fd)
{
    domi_socket_abort_at_close(fd);
    (void)close(fd);
}

void domi_socket_disconnect(int fd)
{
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};

    (void)connect(fd, &nobody, sizeof nobody);
    (void)shutdown(fd, SHUT_RDWR); /* this is for a Unix socket, which cannot be disconnected */
}
