/* This file makes listening sockets, and sets the options that their connections inherit. */
#include "io/acceptors/listen.h"

#include "io/resources/endpoint.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#define MS_NS     UINT64_C(1000000)
#define SECOND_NS (1000 * MS_NS)

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

/* Set the options of a TCP listener. Accepted sockets inherit them, so that no system call per
 * connection is needed. */
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
        {IPPROTO_TCP, TCP_USER_TIMEOUT, user_ms},
        {IPPROTO_TCP, TCP_NODELAY, 1},
    };

    return set_options(io, fd, options, sizeof options / sizeof options[0]);
}

/* Set the options that listeners of every family have. The receive buffer has to be set before
 * listen(), because the first packet tells the scale of the window. */
static int set_common(const domi_io *io, int fd, bool shares_port)
{
    const option options[] = {
        {SOL_SOCKET, SO_SNDBUF, io->config->sockets.send_buffer_bytes},
        {SOL_SOCKET, SO_RCVBUF, io->config->sockets.receive_buffer_bytes},
        {SOL_SOCKET, SO_REUSEPORT, shares_port},
    };

    return set_options(io, fd, options, sizeof options / sizeof options[0]);
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
    int result = set_common(io, fd, shares_port);
    if (result == 0 && storage.ss_family != AF_UNIX)
        result = set_inherited(io, fd);
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
