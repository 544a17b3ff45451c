/* This file makes a listening socket from an address such as "127.0.0.1:7000" or "[::1]:7000". Any
 * thread. */
#include "io/acceptors/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

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

typedef struct option {
    int level;      /* of setsockopt(2), as SOL_SOCKET */
    int name;       /* of setsockopt(2), as SO_RCVBUF */
    uint64_t value; /* 0: the kernel's default stays */
} option;

/* Set the options of a socket, up to the first that fails. Returns 0; a negative errno. */
static int set_options(const domi_io *io, int fd, const option *options, size_t count)
{
    int result = 0;

    for (size_t i = 0; i < count && result == 0; i++) {
        int value = (int)options[i].value;
        if (value != 0)
            result = io->backend->sockets->option_set(io->ring, fd, options[i].level,
                                                      options[i].name, &value, sizeof value);
    }
    return result;
}

/* Set the options of a listener. Accepted sockets inherit them, so that no system call per
 * connection is needed. The receive buffer has to be set before listen(), because the first packet
 * tells the scale of the window. */
static int set_inherited(const domi_io *io, int fd)
{
    const domus_config *config = io->config;
    uint64_t idle_s = round_up(config->connection.keepalive.idle_ns, SECOND_NS);
    uint64_t interval_s = round_up(config->connection.keepalive.interval_ns, SECOND_NS);
    uint64_t user_ms = round_up(config->connection.user_timeout_ns, MS_NS);
    const option options[] = {
        {SOL_SOCKET, SO_REUSEADDR, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, idle_s},
        {IPPROTO_TCP, TCP_KEEPINTVL, idle_s != 0 ? interval_s : 0},
        {IPPROTO_TCP, TCP_KEEPCNT, idle_s != 0 ? config->connection.keepalive.count : 0},
        {SOL_SOCKET, SO_KEEPALIVE, idle_s != 0},
        {IPPROTO_TCP, TCP_NOTSENT_LOWAT, config->sockets.unsent_max_bytes},
        {SOL_SOCKET, SO_SNDBUF, config->sockets.send_buffer_bytes},
        {SOL_SOCKET, SO_RCVBUF, config->sockets.receive_buffer_bytes},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, user_ms},
        {IPPROTO_TCP, TCP_NODELAY, 1},
    };

    return set_options(io, fd, options, sizeof options / sizeof options[0]);
}

int domi_acceptor_listen(const domi_io *io, const char *address, uint32_t backlog,
                         uint16_t *ret_port)
{
    const domi_sockets *sockets = io->backend->sockets;
    struct sockaddr_storage storage;
    struct sockaddr *socket_address = (struct sockaddr *)&storage;
    int length = parse_address(address, &storage);

    if (length < 0)
        return length;
    int fd = sockets->socket(io->ring, storage.ss_family, SOCK_STREAM);
    if (fd < 0)
        return fd;
    socklen_t size = (socklen_t)length;
    int result = set_inherited(io, fd);
    if (result == 0)
        result = sockets->bind(io->ring, fd, socket_address, size);
    if (result == 0)
        result = sockets->listen(io->ring, fd, (int)backlog);
    if (result == 0)
        result = sockets->address(io->ring, fd, false, socket_address, &size);
    if (result != 0) {
        (void)sockets->close(io->ring, fd);
        return result;
    }
    /* The port stands at the same place in both families. */
    if (ret_port != NULL)
        *ret_port = ntohs(((struct sockaddr_in *)&storage)->sin_port);
    return fd;
}
