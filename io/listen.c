/* Listening sockets: from "127.0.0.1:7000" or "[::1]:7000" to a descriptor. Any thread. */
#include "io/acceptor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Numeric addresses only. Returns the length of the socket address; -EINVAL. */
static int parse_address(const char *address, struct sockaddr_storage *ret_socket)
{
    char host[64];
    const char *colon = strrchr(address, ':');
    char *end = NULL;

    if (colon == NULL || colon == address || (size_t)(colon - address) >= sizeof host)
        return -EINVAL;
    long port = strtol(colon + 1, &end, 10);
    if (end == colon + 1 || *end != '\0' || port < 0 || port > 65535)
        return -EINVAL;
    memcpy(host, address, (size_t)(colon - address));
    host[colon - address] = '\0';

    memset(ret_socket, 0, sizeof *ret_socket);
    struct sockaddr_in *v4 = (struct sockaddr_in *)ret_socket;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret_socket;
    size_t length = strlen(host);
    if (host[0] == '[' && host[length - 1] == ']') {
        host[length - 1] = '\0';
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        return inet_pton(AF_INET6, host + 1, &v6->sin6_addr) == 1 ? (int)sizeof *v6 : -EINVAL;
    }
    v4->sin_family = AF_INET;
    v4->sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, host, &v4->sin_addr) == 1 ? (int)sizeof *v4 : -EINVAL;
}

int domi_acceptor_listen(const char *address, uint32_t backlog, uint16_t *ret_port)
{
    struct sockaddr_storage socket_address;
    int length = parse_address(address, &socket_address);
    int on = 1;

    if (length < 0)
        return length;
    int fd = socket(socket_address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    socklen_t size = (socklen_t)length;
    /* Accepted sockets inherit TCP_NODELAY: no system call per connection. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
        bind(fd, (struct sockaddr *)&socket_address, size) != 0 || listen(fd, (int)backlog) != 0 ||
        getsockname(fd, (struct sockaddr *)&socket_address, &size) != 0) {
        int error = -errno;
        (void)close(fd);
        return error;
    }
    /* The port is at the same place in both families. */
    if (ret_port != NULL)
        *ret_port = ntohs(((struct sockaddr_in *)&socket_address)->sin_port);
    return fd;
}
