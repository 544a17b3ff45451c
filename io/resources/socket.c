/* This file asks the kernel about sockets, and ends connections (socket.h). */
#include "io/resources/socket.h"

#include <netinet/in.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

uint64_t domi_socket_bytes(int fd, unsigned long request)
{
    int bytes = 0;

    return fd >= 0 && ioctl(fd, request, &bytes) == 0 && bytes > 0 ? (uint64_t)bytes : 0;
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
