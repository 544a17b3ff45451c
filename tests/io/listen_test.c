/* Listeners. io/acceptors/listen.c: the addresses that a listener may have, and the port that the
 * kernel chose. io/acceptors/backlog.c: connections that wait to be accepted when the system drains
 * are handed over, or counted. */
#include "base/memory.h"
#include "house/family/life.h"
#include "io/acceptors/acceptors.h"
#include "tests/io/bed.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

DOMT_TEST(only_numeric_addresses_can_be_listened_at)
{
    static const char *const wrong[] = {
        "",         "[::1:7000",   "127.0.0.1:80x",   "7000",      "::1]:7000",   "127.0.0.1 :70",
        ":7000",    "[::1]7000",   "localhost:7000",  "[]:7000",   "127.0.0.1:",  "[127.0.0.1]:70",
        "1.2.3:70", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1", "127.0.0.1:-1"};

    domus_config config;

    domus_config_init(&config);
    const domi_io io = {.backend = &domi_backend_uring, .config = &config};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        int result =
            domi_acceptor_listen_at_address(&io, wrong[i], &(domi_listen_plan){.backlog = 1}, NULL);
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
        int fd =
            domi_acceptor_listen_at_address(&io, text, &(domi_listen_plan){.backlog = 1}, &port);
        if (fd == -EADDRNOTAVAIL || fd == -EAFNOSUPPORT)
            continue; /* the machine has no IPv6, so this address is not tried */
        ck_assert_int_ge(fd, 0);
        ck_assert_uint_ne(port, 0);
        ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
        snprintf(text, sizeof text, "%s:%u", hosts[i], port);
        ck_assert_int_eq(
            domi_acceptor_listen_at_address(&io, text, &(domi_listen_plan){.backlog = 1}, &again),
            -EADDRINUSE);
        ck_assert_uint_eq(again, 0);
        close(fd);
    }
}

static int read_socket_option(int fd, int level, int name)
{
    int value = -1;
    socklen_t size = sizeof value;

    ck_assert_int_eq(getsockopt(fd, level, name, &value, &size), 0);
    return value;
}

/* Returns the accepted end of a connection to a listener with these options. */
static int accept_with_settings(const domus_config *config, const domi_channel_settings *settings)
{
    const domi_io io = {.backend = &domi_backend_uring, .config = config};
    struct sockaddr_in address = {.sin_family = AF_INET};
    uint16_t port = 0;
    const domi_listen_plan plan = {.backlog = 1, .settings = settings};
    int listener = domi_acceptor_listen_at_address(&io, "127.0.0.1:0", &plan, &port);
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

static int accept_with_configuration(const domus_config *config)
{
    return accept_with_settings(config, NULL);
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
    domi_settings_compute_all(&config, &options, &settings);
    int fd = accept_with_settings(&config, &settings);
    ck_assert_int_eq(read_socket_option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 30);
    /* the option is not set for the listener, so the configuration's value holds */
    ck_assert_int_eq(read_socket_option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 5);
    ck_assert_int_eq(read_socket_option(fd, IPPROTO_TCP, TCP_KEEPCNT), 3);
    ck_assert_int_eq(read_socket_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 7000);
    ck_assert_int_eq(read_socket_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT), 0);
    ck_assert_int_eq(read_socket_option(fd, SOL_SOCKET, SO_RCVBUF), 40000);
    close(fd);
}

DOMT_TEST(accepted_sockets_inherit_keep_alive_and_the_user_time_out)
{
    domus_config config;

    domus_config_init(&config);
    int fd = accept_with_configuration(&config);
    ck_assert_int_eq(read_socket_option(fd, IPPROTO_TCP, TCP_NODELAY), 1);
    ck_assert_int_eq(read_socket_option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    ck_assert_int_eq(read_socket_option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 60);
    ck_assert_int_eq(read_socket_option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 10);
    ck_assert_int_eq(read_socket_option(fd, IPPROTO_TCP, TCP_KEEPCNT), 6);
    ck_assert_int_eq(read_socket_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
    close(fd);

    /* idle_ns is below a second, the kernel's unit, and is rounded up */
    config.connection.keepalive.idle_ns = UINT64_C(1);
    config.connection.keepalive.interval_ns = UINT64_C(32400000000000);
    config.connection.keepalive.count = 127;
    config.connection.user_timeout_ns = UINT64_C(1500001);
    fd = accept_with_configuration(&config);
    ck_assert_int_eq(read_socket_option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    ck_assert_int_eq(read_socket_option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 1);
    ck_assert_int_eq(read_socket_option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 32400);
    ck_assert_int_eq(read_socket_option(fd, IPPROTO_TCP, TCP_KEEPCNT), 127);
    ck_assert_int_eq(read_socket_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 2);
    close(fd);

    config.connection.keepalive.idle_ns = 0;
    fd = accept_with_configuration(&config);
    ck_assert_int_eq(read_socket_option(fd, SOL_SOCKET, SO_KEEPALIVE), 0);
    close(fd);
}

DOMT_TEST(accepted_sockets_inherit_the_bounds_of_their_buffers)
{
    domus_config config;

    domus_config_init(&config);
    int fd = accept_with_configuration(&config);
    ck_assert_int_eq(read_socket_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT), 131072);
    int own_send = read_socket_option(fd, SOL_SOCKET, SO_SNDBUF);
    int own_receive = read_socket_option(fd, SOL_SOCKET, SO_RCVBUF);
    close(fd);

    config.sockets.unsent_max_bytes = 4096;
    config.sockets.send_buffer_bytes = 40000;
    config.sockets.receive_buffer_bytes = 20000;
    fd = accept_with_configuration(&config);
    ck_assert_int_eq(read_socket_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT), 4096);
    /* the kernel doubles the sizes of socket buffers that it is asked for */
    ck_assert_int_eq(read_socket_option(fd, SOL_SOCKET, SO_SNDBUF), 80000);
    ck_assert_int_eq(read_socket_option(fd, SOL_SOCKET, SO_RCVBUF), 40000);
    close(fd);

    config.sockets.unsent_max_bytes = 0;
    config.sockets.send_buffer_bytes = 0;
    config.sockets.receive_buffer_bytes = 0;
    fd = accept_with_configuration(&config);
    ck_assert_int_eq(read_socket_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT),
                     0); /* the option's value 0 stands for the kernel's own rule */
    ck_assert_int_eq(read_socket_option(fd, SOL_SOCKET, SO_SNDBUF), own_send);
    ck_assert_int_eq(read_socket_option(fd, SOL_SOCKET, SO_RCVBUF), own_receive);
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
        domi_settings_compute_all(&config, i == 1 ? &off : i == 3 ? &on : NULL, &settings);
        int fd = accept_with_settings(&config, &settings);
        ck_assert_int_eq(read_socket_option(fd, IPPROTO_TCP, TCP_NODELAY), i == 0 || i == 3);
        close(fd);
    }
}

#define WAITING     5
#define WAITING_MAX 40

static domus_address address;
static int listener;
static int waiting[WAITING_MAX];
static int waiting_count;

static void begin_listening(void)
{
    domt_bed_start();
    domi_acceptor *acceptor = domt_bed_make_acceptor(WAITING_MAX);
    listener = acceptor->fd;
    address = domt_bed_spawn_actor(&domi_acceptor_behaviour, &acceptor);
    domt_bed_take_turn();
}

static void end_listening(void)
{
    (void)domi_house_ask_to_stop(&bed->manager, address);
    domt_bed_settle();
    ck_assert_int_lt(fcntl(listener, F_GETFD), 0);
    domt_bed_end();
}

/* Make connections that wait in the backlog, each of which has sent a byte. */
static void make_connections_that_wait(int count)
{
    struct sockaddr_in at;
    socklen_t size = sizeof at;

    waiting_count = count;
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&at, &size), 0);
    for (int i = 0; i < count; i++) {
        waiting[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(connect(waiting[i], (struct sockaddr *)&at, sizeof at), 0);
        ck_assert_int_eq(send(waiting[i], "w", 1, 0), 1);
    }
}

static void end_listening_and_close_peers(void)
{
    end_listening();
    for (int i = 0; i < waiting_count; i++)
        close(waiting[i]);
}

static void allow_or_deny_descriptors(bool none_left)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = none_left ? 3 : limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void begin_drain_of_listener(void)
{
    domi_io_drain_accepted_channels(&bed->io);
    ck_assert_uint_eq(bed->io.counters.listeners_open, 1);
    domt_fake_complete_cancel(bed->fake);
    domt_bed_take_turn();
    domt_bed_take_turn();
}

DOMT_TEST(a_drain_hands_over_all_waiting_connections)
{
    bed->config.channel.connections_max = 1;
    begin_listening();
    /* the peer of a connection that is served, and of one beyond the limit of connections */
    int early[2];
    for (int i = 0; i < 2; i++) {
        int ours;
        domt_bed_make_connection(&ours, &early[i]);
        domt_fake_complete_operation(
            bed->fake, domt_fake_find_operation(bed->fake, DOMT_ACCEPT, listener), ours, DOMI_MORE);
        domt_bed_take_turn();
    }
    ck_assert_uint_eq(bed->opened, 1);
    make_connections_that_wait(WAITING);
    domi_io_drain_accepted_channels(&bed->io);
    if (domt_fake_find_operation(bed->fake, DOMT_CANCEL, -1) != NULL)
        domt_fake_complete_cancel(bed->fake);
    for (int i = 0; i < 3; i++)
        domt_bed_take_turn();
    ck_assert_uint_eq(bed->opened, 2 + WAITING);
    ck_assert_int_lt(fcntl(listener, F_GETFD), 0);
    ck_assert_uint_eq(bed->io.counters.listeners_open, 0);
    ck_assert_uint_eq(bed->io.turned_away, 0);
    end_listening_and_close_peers();
}

static void check_drain_tries_again(bool late)
{
    begin_listening();
    make_connections_that_wait(WAITING);
    allow_or_deny_descriptors(true);
    domi_io_drain_accepted_channels(&bed->io);
    /* The end of the accept operation, which comes before or after that of its cancel, says too
     * that no more connections come. */
    domt_op *accepting = domt_fake_find_operation(bed->fake, DOMT_ACCEPT, listener);
    if (late)
        domt_fake_complete_operation(
            bed->fake, domt_fake_find_operation(bed->fake, DOMT_CANCEL, -1), -ENOENT, 0);
    domt_bed_take_turn();
    domt_fake_complete_operation(bed->fake, accepting, -EMFILE, 0);
    domt_bed_take_turn();
    if (!late)
        domt_fake_complete_operation(
            bed->fake, domt_fake_find_operation(bed->fake, DOMT_CANCEL, -1), -ENOENT, 0);
    domt_bed_take_turn();
    ck_assert_uint_eq(bed->opened, 0);
    /* the listener is still open, because the drain waits for it */
    ck_assert_uint_eq(bed->io.counters.listeners_open, 1);
    allow_or_deny_descriptors(false);
    domt_bed_pass_ms(12);
    domt_bed_take_turn();
    ck_assert_uint_eq(bed->opened, WAITING);
    ck_assert_uint_eq(bed->io.counters.listeners_open, 0);
    end_listening_and_close_peers();
}

DOMT_TEST(without_descriptors_a_drain_tries_again)
{
    check_drain_tries_again(false);
    check_drain_tries_again(true);
}

DOMT_TEST(connections_that_wait_when_the_time_is_over_are_refused_and_counted)
{
    for (int without = 0; without < 2; without++) {
        begin_listening();
        make_connections_that_wait(WAITING);
        allow_or_deny_descriptors(true);
        begin_drain_of_listener();
        allow_or_deny_descriptors(without != 0);
        (void)domi_io_end_all_open_channels(&bed->io);
        /* without memory the connections are not accepted, so nobody knows their bytes */
        if (without != 0)
            (void)domi_house_ask_to_stop(&bed->manager, address);
        domt_bed_take_turn();
        allow_or_deny_descriptors(false);
        ck_assert_uint_eq(bed->opened, 0);
        ck_assert_uint_eq(bed->io.turned_away, WAITING);
        ck_assert_uint_eq(bed->io.turned_away_bytes, without != 0 ? 0 : WAITING);
        ck_assert_uint_eq(bed->io.counters.listeners_open, 0);
        end_listening_and_close_peers();
    }
}

#define TURN 32u /* number of completions in a turn (io.completionEntries) */

static void begin_listening_with_small_turns(void)
{
    bed->config.io.ring_entries = 16;
    bed->config.io.completion_entries = TURN;
    begin_listening();
    make_connections_that_wait(WAITING_MAX);
}

DOMT_TEST(a_turn_of_a_drain_accepts_so_many_and_the_next_one_the_rest)
{
    begin_listening_with_small_turns();
    begin_drain_of_listener();
    ck_assert_uint_eq(bed->opened, TURN);
    ck_assert_uint_eq(bed->io.counters.listeners_open, 1);
    domt_bed_pass_ms(2);
    domt_bed_take_turn();
    ck_assert_uint_eq(bed->opened, WAITING_MAX);
    ck_assert_uint_eq(bed->io.counters.listeners_open, 0);
    ck_assert_uint_eq(bed->io.turned_away, 0);
    end_listening_and_close_peers();
}

DOMT_TEST(a_turn_of_a_stop_turns_so_many_away_and_the_next_one_the_rest)
{
    begin_listening_with_small_turns();
    ck_assert_int_eq(domi_house_ask_to_stop(&bed->manager, address), 0);
    domt_bed_take_turn();
    domt_fake_complete_cancel(bed->fake);
    for (int i = 0; i < 3; i++)
        domt_bed_take_turn();
    ck_assert_uint_eq(bed->io.turned_away, TURN);
    ck_assert_uint_eq(bed->io.counters.listeners_open, 1);
    domt_bed_pass_ms(2);
    domt_bed_take_turn();
    ck_assert_uint_eq(bed->io.turned_away, WAITING_MAX);
    ck_assert_uint_eq(bed->io.counters.listeners_open, 0);
    ck_assert_uint_eq(bed->manager.births.houses, 1); /* the acceptor's actor has ended */
    end_listening_and_close_peers();
}

DOMT_SUITE(20)
