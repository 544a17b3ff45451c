/* io/acceptors/listen.c: the addresses that a listener may have, and the port that the
 * kernel chose. */
#include "io/acceptors/listen.h"

#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <unistd.h>

DOMT_TEST(addresses_are_numbers)
{
    static const char *const wrong[] = {
        "",           "7000",          ":7000",        "localhost:7000",  "127.0.0.1",
        "127.0.0.1:", "127.0.0.1:x",   "127.0.0.1:-1", "127.0.0.1:65536", "127.0.0.1:80x",
        "[::1:7000",  "::1]:7000",     "[]:7000",      "[127.0.0.1]:70",  "1.2.3:70",
        "[::1]7000",  "127.0.0.1 :70",
    };

    domus_config config;

    domus_config_init(&config);
    const domi_io io = {.backend = &domi_backend_uring, .config = &config};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        int result = domi_acceptor_listen(&io, wrong[i], &(domi_listen_plan){.backlog = 1}, NULL);
        ck_assert_msg(result == -EINVAL, "%s: %d", wrong[i], result);
    }
}

DOMT_TEST(a_port_that_the_kernel_chose_is_told_and_may_be_taken_once)
{
    static const char *const hosts[] = {"127.0.0.1", "[::1]"};
    domus_config config;

    domus_config_init(&config);
    const domi_io io = {.backend = &domi_backend_uring, .config = &config};
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        char text[64];
        uint16_t port = 0;
        uint16_t again = 0;
        snprintf(text, sizeof text, "%s:0", hosts[i]);
        int fd = domi_acceptor_listen(&io, text, &(domi_listen_plan){.backlog = 1}, &port);
        if (fd == -EADDRNOTAVAIL || fd == -EAFNOSUPPORT)
            continue; /* a machine without IPv6 */
        ck_assert_int_ge(fd, 0);
        ck_assert_uint_ne(port, 0);
        ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
        snprintf(text, sizeof text, "%s:%u", hosts[i], port);
        ck_assert_int_eq(domi_acceptor_listen(&io, text, &(domi_listen_plan){.backlog = 1}, &again),
                         -EADDRINUSE);
        ck_assert_uint_eq(again, 0);
        close(fd);
    }
}

static int option(int fd, int level, int name)
{
    int value = -1;
    socklen_t size = sizeof value;

    ck_assert_int_eq(getsockopt(fd, level, name, &value, &size), 0);
    return value;
}

/* The accepted end of a connection to a listener with these options. */
static int accept_by(const domus_config *config, const domi_channel_settings *settings)
{
    const domi_io io = {.backend = &domi_backend_uring, .config = config};
    struct sockaddr_in address = {.sin_family = AF_INET};
    uint16_t port = 0;
    const domi_listen_plan plan = {.backlog = 1, .settings = settings};
    int listener = domi_acceptor_listen(&io, "127.0.0.1:0", &plan, &port);
    int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert(listener >= 0 && peer >= 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    ck_assert_int_eq(connect(peer, (struct sockaddr *)&address, sizeof address), 0);
    int fd = accept(listener, NULL, NULL);
    ck_assert_int_ge(fd, 0);
    close(listener);
    close(peer);
    return fd;
}

static int accept_with(const domus_config *config)
{
    return accept_by(config, NULL);
}

DOMT_TEST(accepted_sockets_inherit_the_options_of_their_listener)
{
    const domus_channel_options options = {
        .keepalive_idle_ns = UINT64_C(30000000000),
        .keepalive_count = 3,
        .user_timeout_ns = UINT64_C(7000000000),
        .unsent_max_bytes = DOMUS_NONE,
        .receive_buffer_bytes = 20000,
    };
    domi_channel_settings settings;
    domus_config config;

    domus_config_init(&config);
    config.connection.keepalive.interval_ns = UINT64_C(5000000000);
    domi_settings_resolve(&config, &options, &settings);
    int fd = accept_by(&config, &settings);
    ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 30);
    ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 5); /* as the configuration says */
    ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_KEEPCNT), 3);
    ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 7000);
    ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT), 0);
    ck_assert_int_eq(option(fd, SOL_SOCKET, SO_RCVBUF), 40000);
    close(fd);
}

DOMT_TEST(accepted_sockets_inherit_keep_alive_and_the_user_time_out)
{
    domus_config config;

    domus_config_init(&config);
    int fd = accept_with(&config);
    ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_NODELAY), 1);
    ck_assert_int_eq(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 60);
    ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 10);
    ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_KEEPCNT), 6);
    ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
    close(fd);

    config.connection.keepalive.idle_ns = UINT64_C(1); /* the kernel counts whole units */
    config.connection.keepalive.interval_ns = UINT64_C(32400000000000);
    config.connection.keepalive.count = 127;
    config.connection.user_timeout_ns = UINT64_C(1500001);
    fd = accept_with(&config);
    ck_assert_int_eq(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 1);
    ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 32400);
    ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_KEEPCNT), 127);
    ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 2);
    close(fd);

    config.connection.keepalive.idle_ns = 0;
    fd = accept_with(&config);
    ck_assert_int_eq(option(fd, SOL_SOCKET, SO_KEEPALIVE), 0);
    close(fd);
}

DOMT_TEST(accepted_sockets_inherit_the_bounds_of_their_buffers)
{
    domus_config config;

    domus_config_init(&config);
    int fd = accept_with(&config);
    ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT), 131072);
    int own_send = option(fd, SOL_SOCKET, SO_SNDBUF);
    int own_receive = option(fd, SOL_SOCKET, SO_RCVBUF);
    close(fd);

    config.sockets.unsent_max_bytes = 4096;
    config.sockets.send_buffer_bytes = 40000;
    config.sockets.receive_buffer_bytes = 20000;
    fd = accept_with(&config);
    ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT), 4096);
    ck_assert_int_eq(option(fd, SOL_SOCKET, SO_SNDBUF), 80000); /* the kernel doubles them */
    ck_assert_int_eq(option(fd, SOL_SOCKET, SO_RCVBUF), 40000);
    close(fd);

    config.sockets.unsent_max_bytes = 0;
    config.sockets.send_buffer_bytes = 0;
    config.sockets.receive_buffer_bytes = 0;
    fd = accept_with(&config);
    ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT), 0); /* the kernel's own rule */
    ck_assert_int_eq(option(fd, SOL_SOCKET, SO_SNDBUF), own_send);
    ck_assert_int_eq(option(fd, SOL_SOCKET, SO_RCVBUF), own_receive);
    close(fd);
}

DOMT_TEST(small_sends_leave_at_once_unless_the_options_say_otherwise)
{
    const domus_channel_options off = {.no_delay = DOMUS_NONE}, on = {.no_delay = 1};
    domi_channel_settings settings;
    domus_config config;

    domus_config_init(&config);
    for (int i = 0; i < 4; i++) {
        config.sockets.no_delay = i < 2;
        domi_settings_resolve(&config, i == 1 ? &off : i == 3 ? &on : NULL, &settings);
        int fd = accept_by(&config, &settings);
        ck_assert_int_eq(option(fd, IPPROTO_TCP, TCP_NODELAY), i == 0 || i == 3);
        close(fd);
    }
}

DOMT_SUITE(20)
