/* runtime/outside/outside.c and io/acceptors/listen.c: a listener serves a socket that was given to
 * the program. When the listener stops, the socket goes on listening for its other holders, with
 * the connections in its backlog. */
#include "tests/runtime/running.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CLIENTS 64

static int echo_bytes(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    return domus_channel_write(stack, event->channel, event->bytes);
}

static const domus_behaviour server = {
    .name = "server", .kind = DOMUS_CHANNELS, .on_read = {echo_bytes, 0}};

/* Returns a socket that listens on loopback, with a long backlog; `ret_at` gets its address. */
static int listen_at_loopback(struct sockaddr_in *ret_at)
{
    socklen_t size = sizeof *ret_at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *ret_at =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    ck_assert_int_eq(bind(fd, (struct sockaddr *)ret_at, size), 0);
    ck_assert_int_eq(listen(fd, 2 * CLIENTS), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)ret_at, &size), 0);
    return fd;
}

static int connect_and_send_byte(const struct sockaddr_in *at)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)at, sizeof *at), 0);
    ck_assert_int_eq(send(fd, "x", 1, MSG_NOSIGNAL), 1);
    return fd;
}

/* Wait until the byte that a client has sent comes back; then close the client's connection. */
static void expect_byte_is_echoed(int fd)
{
    char byte = 0;
    ck_assert_int_eq(recv(fd, &byte, 1, 0), 1);
    ck_assert_int_eq(byte, 'x');
    close(fd);
}

static domus_system *start_system(uint32_t connections_max)
{
    static const domus_listener_config listener = {
        .name = "echo", .address = "127.0.0.1:1", .backlog = 16};
    domus_config config = domt_config_of_threads(2);

    config.channel.connections_max = connections_max;
    config.listeners = &listener;
    config.listener_count = 1;
    return domt_start_system(&config);
}

static domus_system *serve_passed_socket(int listening, uint32_t connections_max)
{
    const domus_serve_options options = {.listening = dup(listening)};
    domus_system *system = start_system(connections_max);
    uint16_t port = 1;
    int result = domus_serve_with(system, "echo", &server, NULL, &options, &port);
    ck_assert_msg(result == 0, "%s", domus_system_error(system));
    return system;
}

static void expect_whether_descriptor_is_open(int fd, bool open)
{
    ck_assert_int_eq(fcntl(fd, F_GETFD) >= 0, open);
}

/* Clients that connect between two systems, or while one drains, wait in the backlog for the next
 * system. */
DOMT_TEST(no_connection_is_lost_between_two_systems_that_serve)
{
    struct sockaddr_in at;
    int listening = listen_at_loopback(&at), clients[CLIENTS];

    /* non-blocking, as a program that had the socket before may have left it */
    ck_assert_int_eq(fcntl(listening, F_SETFL, O_NONBLOCK), 0);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < CLIENTS; i++)
            clients[i] = connect_and_send_byte(&at);
        domus_system *system = serve_passed_socket(listening, 1000);
        for (int i = 0; i < CLIENTS; i++)
            expect_byte_is_echoed(clients[i]);
        domus_listener_profile profile;
        ck_assert_int_eq(domus_system_listener(system, 0, &profile), 0);
        ck_assert_int_eq(profile.port, ntohs(at.sin_port));
        char expected[32];
        snprintf(expected, sizeof expected, "127.0.0.1:%u", profile.port);
        ck_assert_str_eq(profile.address, expected);
        ck_assert_int_ge(domus_system_stop(system), 0);
        ck_assert_uint_eq(domt_profile_of_all_threads(system).channels_cut, 0);
        domt_end_system(system);
    }
    close(listening);
}

/* When a listener with a socket of its own stops, it accepts all connections in its backlog; one
 * with a passed socket must not. The first client has the only place, so the others wait, except a
 * few that came before the acceptor paused. */
DOMT_TEST(connections_that_wait_in_a_stop_stay_in_the_backlog)
{
    struct sockaddr_in at;
    int listening = listen_at_loopback(&at), clients[CLIENTS];
    domus_system *system = serve_passed_socket(listening, 1);

    clients[0] = connect_and_send_byte(&at);
    DOMT_WAIT_FOR(20, domt_profile_of_all_threads(system).sent_bytes == 1);
    for (int i = 1; i < CLIENTS; i++)
        clients[i] = connect_and_send_byte(&at);
    ck_assert_int_ge(domus_system_stop(system), 0);
    domus_profile profile = domt_profile_of_all_threads(system);
    ck_assert_uint_eq(profile.channels_cut, 0);
    ck_assert_uint_lt(profile.channels_opened, CLIENTS / 2);
    domt_end_system(system);
    system = serve_passed_socket(listening, 1000);
    for (int i = 0; i < CLIENTS; i++)
        expect_byte_is_echoed(clients[i]);
    domt_end_system(system);
    close(listening);
}

DOMT_TEST(passed_socket_gets_options_of_configuration)
{
    const domus_listener_config listener = {.name = "echo",
                                            .address = "127.0.0.1:1",
                                            .backlog = 16,
                                            .channel = {.receive_buffer_bytes = 65536}};
    domus_config config = domt_config_of_threads(1);
    struct sockaddr_in at;
    int listening = listen_at_loopback(&at), size = 0;
    socklen_t length = sizeof size;

    config.listeners = &listener;
    config.listener_count = 1;
    domus_system *system = domt_start_system(&config);
    const domus_serve_options options = {.listening = dup(listening)};
    ck_assert_int_eq(domus_serve_with(system, "echo", &server, NULL, &options, NULL), 0);
    ck_assert_int_eq(getsockopt(listening, SOL_SOCKET, SO_RCVBUF, &size, &length), 0);
    ck_assert_int_eq(size, 2 * 65536);
    domt_end_system(system);
    /* the library has closed the descriptor that it was given */
    expect_whether_descriptor_is_open(options.listening, false);
    close(listening);
}

static const struct option {
    /* a socket option, its value in the first system, and its value in the second system */
    int level, name, first, second;
} inherited[] = {
    {IPPROTO_TCP, TCP_NODELAY, 1, 0},
    {SOL_SOCKET, SO_KEEPALIVE, 1, 0},
    {IPPROTO_TCP, TCP_USER_TIMEOUT, 5000, 0},
    {IPPROTO_TCP, TCP_NOTSENT_LOWAT, 65536, 0},
};

static void serve_until_descriptor_is_closed(int listening, const domus_config *config)
{
    const domus_serve_options options = {.listening = dup(listening)};
    domus_system *system = domt_start_system(config);
    ck_assert_int_eq(domus_serve_with(system, "echo", &server, NULL, &options, NULL), 0);
    domt_end_system(system);
}

/* The socket outlives the first system, and options that the second system's configuration does not
 * set are set back. */
DOMT_TEST(passed_socket_loses_options_that_config_does_not_set)
{
    const domus_listener_config listener = {
        .name = "echo", .address = "127.0.0.1:1", .backlog = 16};
    domus_config config = domt_config_of_threads(1);
    struct sockaddr_in at;
    int listening = listen_at_loopback(&at);

    config.listeners = &listener;
    config.listener_count = 1;
    config.connection.keepalive.idle_ns = UINT64_C(60000000000);
    config.connection.user_timeout_ns = UINT64_C(5000000000);
    config.sockets.unsent_max_bytes = 65536;
    config.sockets.no_delay = true;
    for (int life = 1; life <= 2; life++) {
        serve_until_descriptor_is_closed(listening, &config);
        for (size_t i = 0; i < sizeof inherited / sizeof inherited[0]; i++) {
            const struct option *own = &inherited[i];
            int value = -1;
            socklen_t size = sizeof value;
            ck_assert_int_eq(getsockopt(listening, own->level, own->name, &value, &size), 0);
            ck_assert_msg(value == (life == 1 ? own->first : own->second),
                          "option %zu in life %d: %d", i, life, value);
        }
        config.connection.keepalive.idle_ns = 0;
        config.connection.user_timeout_ns = 0;
        config.sockets.unsent_max_bytes = 0;
        config.sockets.no_delay = false;
    }
    close(listening);
}

DOMT_TEST(passed_unix_socket_is_served)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    domus_listener_profile profile;

    snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "domus-passed-%d", (int)getpid());
    ck_assert_int_eq(bind(listening, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(listening, 8), 0);
    domus_system *system = serve_passed_socket(listening, 1000);
    int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(client, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(send(client, "x", 1, MSG_NOSIGNAL), 1);
    expect_byte_is_echoed(client);
    ck_assert_int_eq(domus_system_listener(system, 0, &profile), 0);
    ck_assert_msg(strncmp(profile.address, "unix:@domus-passed-", 19) == 0, "%s", profile.address);
    ck_assert_int_eq(profile.port, 0);
    domt_end_system(system);
    close(listening);
}

/* Serve a descriptor of a wrong kind. Returns the error; the descriptor stays open. */
static int error_of_serving_descriptor(domus_system *system, int fd)
{
    const domus_serve_options options = {.listening = fd};
    int result = domus_serve_with(system, "echo", &server, NULL, &options, NULL);

    ck_assert_ptr_nonnull(strstr(domus_system_error(system), "listener echo: descriptor "));
    ck_assert(!domus_listener_is_served(system, "echo"));
    if (result != -EBADF) {
        expect_whether_descriptor_is_open(fd, true);
        close(fd);
    }
    return result;
}

DOMT_TEST(serving_a_wrong_descriptor_is_refused)
{
    domus_system *system = start_system(1000);
    struct sockaddr_in at;
    int listening = listen_at_loopback(&at);

    ck_assert_int_eq(error_of_serving_descriptor(system, 999), -EBADF);
    ck_assert_int_eq(error_of_serving_descriptor(system, -5), -EBADF);
    ck_assert_int_eq(error_of_serving_descriptor(system, open("/dev/null", O_RDONLY | O_CLOEXEC)),
                     -ENOTSOCK);
    ck_assert_int_eq(
        error_of_serving_descriptor(system, socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)),
        -EPROTOTYPE);
    ck_assert_int_eq(
        error_of_serving_descriptor(system, socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)),
        -EPROTOTYPE);
    ck_assert_int_eq(
        error_of_serving_descriptor(system, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
        -ENOTCONN);
    ck_assert_ptr_nonnull(strstr(domus_system_error(system), ": it does not listen"));
    ck_assert_int_eq(error_of_serving_descriptor(system, connect_and_send_byte(&at)), -ENOTCONN);
    const domus_serve_options options = {.listening = listening};
    ck_assert_int_eq(domus_serve_with(system, "echo", &server, NULL, &options, NULL), 0);
    domt_end_system(system);
}

DOMT_SUITE(30)
