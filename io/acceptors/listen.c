/* This file makes a listening socket from an address such as "127.0.0.1:7000" or "[::1]:7000". Any
 * thread. */
#include "io/acceptors/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MS_NS     UINT64_C(1000000)
#define SECOND_NS (1000 * MS_NS)

/* Parse a numeric address with a port. Returns the length of the socket address; -EINVAL. */
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

static uint64_t round_up(uint64_t ns, uint64_t unit_ns)
{
    return (ns + unit_ns - 1) / unit_ns;
}

static bool set_option(int fd, int level, int name, uint64_t value)
{
    int number = (int)value;

    return setsockopt(fd, level, name, &number, sizeof number) == 0;
}

/* Set the sizes of the socket buffers. The receive buffer has to be set before listen(), because
 * the first packet tells the scale of the window. */
static bool set_buffers(int fd, const domus_config *config)
{
    uint64_t unsent = config->sockets.unsent_max_bytes;
    uint64_t send = config->sockets.send_buffer_bytes;
    uint64_t receive = config->sockets.receive_buffer_bytes;

    return (unsent == 0 || set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, unsent)) &&
           (send == 0 || set_option(fd, SOL_SOCKET, SO_SNDBUF, send)) &&
           (receive == 0 || set_option(fd, SOL_SOCKET, SO_RCVBUF, receive));
}

/* Set the options that accepted sockets inherit, so that no system call per connection is needed.
 */
static bool set_inherited(int fd, const domus_config *config)
{
    uint64_t idle_s = round_up(config->connection.keepalive.idle_ns, SECOND_NS);
    uint64_t interval_s = round_up(config->connection.keepalive.interval_ns, SECOND_NS);
    uint64_t user_ms = round_up(config->connection.user_timeout_ns, MS_NS);

    if (idle_s != 0 &&
        !(set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle_s) &&
          set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, interval_s) &&
          set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, config->connection.keepalive.count) &&
          set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1)))
        return false;
    if (!set_buffers(fd, config))
        return false;
    if (user_ms != 0 && !set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, user_ms))
        return false;
    return set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
}

int domi_acceptor_listen(const char *address, uint32_t backlog, const domus_config *config,
                         uint16_t *ret_port)
{
    struct sockaddr_storage socket_address;
    int length = parse_address(address, &socket_address);

    if (length < 0)
        return length;
    int fd = socket(socket_address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    socklen_t size = (socklen_t)length;
    if (!set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1) || !set_inherited(fd, config) ||
        bind(fd, (struct sockaddr *)&socket_address, size) != 0 || listen(fd, (int)backlog) != 0 ||
        getsockname(fd, (struct sockaddr *)&socket_address, &size) != 0) {
        int error = -errno;
        (void)close(fd);
        return error;
    }
    /* The port stands at the same place in both families. */
    if (ret_port != NULL)
        *ret_port = ntohs(((struct sockaddr_in *)&socket_address)->sin_port);
    return fd;
}
