/* Sets the socket options of connections. Accepted sockets inherit them from their listener, so
 * that no system call for each connection is needed. */
#include "io/resources/options.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#define MS_NS     UINT64_C(1000000)
#define SECOND_NS (1000 * MS_NS)

static uint64_t round_up_to_time_unit(uint64_t ns, uint64_t unit_ns)
{
    return (ns + unit_ns - 1) / unit_ns;
}

int domi_socket_set_int_options(const domi_io *io, int fd, const domi_socket_option *options,
                                size_t count)
{
    int result = 0;

    for (size_t i = 0; i < count && result == 0; i++) {
        int value = (int)options[i].value;
        if (value != 0 || options[i].sets_zero)
            result = io->backend->sockets->option_set(io->ring, fd, options[i].level,
                                                      options[i].name, &value, sizeof value);
    }
    return result;
}

int domi_socket_set_buffer_sizes(const domi_io *io, int fd, const domi_channel_settings *settings)
{
    const domi_socket_option options[] = {
        {SOL_SOCKET, SO_SNDBUF, settings->send_buffer_bytes, false},
        {SOL_SOCKET, SO_RCVBUF, settings->receive_buffer_bytes, false},
    };

    return domi_socket_set_int_options(io, fd, options, sizeof options / sizeof options[0]);
}

int domi_socket_set_tcp_options(const domi_io *io, int fd, const domi_channel_settings *settings,
                                bool resets)
{
    uint64_t idle_s = round_up_to_time_unit(settings->keepalive_idle_ns, SECOND_NS);
    uint64_t interval_s = round_up_to_time_unit(settings->keepalive_interval_ns, SECOND_NS);
    uint64_t user_ms = round_up_to_time_unit(settings->user_timeout_ns, MS_NS);
    const domi_socket_option options[] = {
        /* the kernel refuses 0 for these three keep-alive options */
        {IPPROTO_TCP, TCP_KEEPIDLE, idle_s, false},
        {IPPROTO_TCP, TCP_KEEPINTVL, idle_s != 0 ? interval_s : 0, false},
        {IPPROTO_TCP, TCP_KEEPCNT, idle_s != 0 ? settings->keepalive_count : 0, false},
        {SOL_SOCKET, SO_KEEPALIVE, idle_s != 0, resets},
        {IPPROTO_TCP, TCP_NOTSENT_LOWAT, settings->unsent_max_bytes, resets},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, user_ms, resets},
        {IPPROTO_TCP, TCP_NODELAY, settings->no_delay, resets},
    };

    return domi_socket_set_int_options(io, fd, options, sizeof options / sizeof options[0]);
}
