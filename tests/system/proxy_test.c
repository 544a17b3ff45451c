/* The example `proxy` before the echo service: the bytes of a client come back through both, each
 * direction can be closed separately, and the end of one side ends the other. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static domt_service echo;
static domt_service proxy;
static domt_crowd crowd;

static void start_proxy(uint16_t upstream_port)
{
    char upstream[64];

    snprintf(upstream, sizeof upstream, "proxy.upstream=127.0.0.1:%u", upstream_port);
    domt_service_start(&proxy, (const char *const[]){DOMT_BIN_DIR "/proxy", "--config",
                                                     DOMT_SOURCE_DIR "/examples/proxy.yaml",
                                                     "--set", "listeners.proxy.address=127.0.0.1:0",
                                                     "--set", upstream, NULL});
}

static void start_echo_and_proxy(void)
{
    domt_service_start(&echo, DOMT_ECHO_ARGUMENTS());
    start_proxy(echo.port);
}

static void stop_proxy_and_echo(void)
{
    domt_service_stop(&proxy);
    domt_service_stop(&echo);
}

/* Listen as the server behind the proxy, which is played by this test. */
static int listen_as_upstream(uint16_t *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, 64), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static void reset_connection(int fd)
{
    struct linger now = {.l_onoff = 1};

    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    close(fd);
}

/* Read a connection to its end. Returns 0 if it ended by FIN, or the negative errno. */
static int read_to_end_of_connection(int fd)
{
    char bytes[1024];
    ssize_t size;

    do
        size = recv(fd, bytes, sizeof bytes, 0);
    while (size > 0);
    return size == 0 ? 0 : -errno;
}

static void make_clients_with_streams(uint32_t count, uint64_t bytes)
{
    domt_crowd_init(&crowd, proxy.port, count);
    for (uint32_t i = 0; i < count; i++) {
        crowd.clients[i].bytes = bytes / 2 + (i * 7919) % (bytes / 2);
        crowd.clients[i].piece_max = i % 3 == 0 ? 7 : 16384;
        if (i % 3 == 0)
            crowd.clients[i].bytes /= 50;
    }
}

DOMT_TEST(every_byte_goes_through_both_ways)
{
    start_echo_and_proxy();
    make_clients_with_streams(DOMT_SCALE(100, 30), 1000000);
    domt_crowd_connect_clients(&crowd, 0, crowd.count);
    ck_assert(domt_crowd_run_until(&crowd, domt_crowd_all_are_closed, 30000));
    domt_crowd_check_echoes(&crowd);
    domt_crowd_fini(&crowd);
    stop_proxy_and_echo();
    ck_assert_uint_eq(domt_service_count_in_profile(&proxy, "channels reset"), 0);
    ck_assert_uint_eq(domt_service_count_in_profile(&proxy, "received bytes"),
                      domt_service_count_in_profile(&proxy, "sent bytes"));
}

/* Half of the clients reset their connections; the echo service gets as many resets, and the other
 * clients notice nothing. */
DOMT_TEST(resets_go_through_and_hurt_nobody_else)
{
    start_echo_and_proxy();
    make_clients_with_streams(100, 200000);
    for (uint32_t i = 0; i < crowd.count; i += 2) {
        crowd.clients[i].reset_at = 1 + (i * 2791) % crowd.clients[i].bytes;
        crowd.clients[i].deaf = i % 4 == 0;
    }
    domt_crowd_connect_clients(&crowd, 0, crowd.count);
    ck_assert(domt_crowd_run_until(&crowd, domt_crowd_all_are_closed, 30000));
    domt_crowd_check_echoes(&crowd);
    domt_crowd_fini(&crowd);
    stop_proxy_and_echo();
    ck_assert_uint_eq(domt_service_count_in_profile(&proxy, "channels closed"),
                      domt_service_count_in_profile(&proxy, "channels opened"));
}

/* The client finishes sending first, and the server answers later; then the other way round. */
DOMT_TEST(each_half_of_a_proxied_connection_is_closed_alone)
{
    uint16_t port;
    int listener = listen_as_upstream(&port);
    char bytes[16];

    start_proxy(port);
    for (int server_is_first = 0; server_is_first < 2; server_is_first++) {
        int client = domt_connect_to_port(proxy.port);
        int server = accept(listener, NULL, NULL);
        int first = server_is_first ? server : client;
        int second = server_is_first ? client : server;

        ck_assert_int_ge(server, 0);
        ck_assert_int_eq(send(first, "question", 8, 0), 8);
        ck_assert_int_eq(shutdown(first, SHUT_WR), 0);
        ck_assert_int_eq(recv(second, bytes, sizeof bytes, MSG_WAITALL), 8);
        ck_assert_int_eq(send(second, "answer", 6, 0), 6);
        ck_assert_int_eq(recv(first, bytes, 6, MSG_WAITALL), 6);
        ck_assert_int_eq(recv(first, bytes, 1, MSG_DONTWAIT), -1);
        ck_assert_int_eq(errno, EAGAIN);
        ck_assert_int_eq(shutdown(second, SHUT_WR), 0);
        ck_assert_int_eq(read_to_end_of_connection(first), 0);
        close(client);
        close(server);
    }
    close(listener);
    domt_service_stop(&proxy);
    ck_assert_uint_eq(domt_service_count_in_profile(&proxy, "channels reset"), 0);
}

DOMT_TEST(reset_of_one_side_ends_the_other_side)
{
    uint16_t port;
    int listener = listen_as_upstream(&port);

    start_proxy(port);
    for (int server_is_first = 0; server_is_first < 2; server_is_first++) {
        int client = domt_connect_to_port(proxy.port);
        int server = accept(listener, NULL, NULL);

        ck_assert_int_ge(server, 0);
        reset_connection(server_is_first ? server : client);
        ck_assert_int_eq(read_to_end_of_connection(server_is_first ? client : server), -ECONNRESET);
        close(server_is_first ? client : server);
    }
    close(listener);
    int refused = domt_connect_to_port(proxy.port); /* the proxy no longer listens */
    ck_assert_int_eq(read_to_end_of_connection(refused), -ECONNRESET);
    close(refused);
    domt_service_stop(&proxy);
}

/* A server that does not read slows the client down, and the proxy stores little. */
DOMT_TEST(what_one_side_does_not_read_the_other_cannot_send)
{
    static char bytes[65536];
    uint16_t port;
    int listener = listen_as_upstream(&port);
    uint64_t sent = 0;

    start_proxy(port);
    int client = domt_connect_to_port(proxy.port);
    int server = accept(listener, NULL, NULL);
    for (struct pollfd now = {.fd = client, .events = POLLOUT}; poll(&now, 1, 300) == 1;) {
        ssize_t size = send(client, bytes, sizeof bytes, MSG_DONTWAIT);
        sent += size > 0 ? (uint64_t)size : 0;
        ck_assert_uint_lt(sent, UINT64_C(256) << 20);
    }
    ck_assert_uint_gt(sent, 0);
    if (!DOMT_SANITIZED)
        ck_assert_uint_lt(domt_service_rss_bytes(&proxy), UINT64_C(24) << 20);
    ck_assert_int_eq(shutdown(client, SHUT_WR), 0);
    for (ssize_t size; (size = recv(server, bytes, sizeof bytes, 0)) != 0; sent -= (uint64_t)size)
        ck_assert_int_gt(size, 0);
    ck_assert_uint_eq(sent, 0);
    close(server);
    close(client);
    close(listener);
    domt_service_stop(&proxy);
}

#define PIECES   10
#define PAUSE_MS 200 /* pause between two pieces of a download */

/* SIGTERM during a download: the download goes on to its end, and then the proxy ends. */
DOMT_TEST(drain_waits_for_a_download_that_goes_on)
{
    uint16_t port = 0;
    int listener = listen_as_upstream(&port);
    char byte;

    start_proxy(port);
    int client = domt_connect_to_port(proxy.port);
    int server = accept(listener, NULL, NULL);
    ck_assert_int_ge(server, 0);
    for (int i = 0; i < PIECES; i++) {
        ck_assert_int_eq(send(server, "x", 1, MSG_NOSIGNAL), 1);
        ck_assert_int_eq(recv(client, &byte, 1, 0), 1);
        if (i == 0)
            domt_service_signal(&proxy, SIGTERM);
        domt_sleep_ms(PAUSE_MS);
    }
    close(server);
    ck_assert_int_eq(read_to_end_of_connection(client), 0);
    close(client);
    close(listener);
    ck_assert_int_eq(domt_service_wait(&proxy, 10000), 0);
    ck_assert_uint_eq(domt_service_count_in_profile(&proxy, "channels cut"), 0);
}

/* A download that does not end is cut when the drain's time is over, and the log says so. */
DOMT_TEST(relay_that_outlasts_the_drain_is_cut_and_said)
{
    uint16_t port = 0;
    int listener = listen_as_upstream(&port);
    char upstream[64];

    snprintf(upstream, sizeof upstream, "proxy.upstream=127.0.0.1:%u", port);
    domt_service_start(&proxy, (const char *const[]){DOMT_BIN_DIR "/proxy", "--config",
                                                     DOMT_SOURCE_DIR "/examples/proxy.yaml",
                                                     "--set", "listeners.proxy.address=127.0.0.1:0",
                                                     "--set", upstream, "--set",
                                                     "shutdown.drainTimeout=500ms", NULL});
    int client = domt_connect_to_port(proxy.port);
    int server = accept(listener, NULL, NULL);
    ck_assert_int_ge(server, 0);
    ck_assert_int_eq(send(server, "x", 1, MSG_NOSIGNAL), 1);
    char byte;
    ck_assert_int_eq(recv(client, &byte, 1, 0), 1);
    domt_service_signal(&proxy, SIGTERM);
    for (int i = 0; i < 8; i++) {
        (void)send(server, "x", 1, MSG_NOSIGNAL);
        domt_sleep_ms(100);
    }
    /* the connection is cut, so the client sees a reset */
    ck_assert_int_ne(read_to_end_of_connection(client), 0);
    close(client);
    close(server);
    close(listener);
    (void)domt_service_wait(&proxy, 10000);
    ck_assert_msg(domt_service_count_in_profile(&proxy, "channels cut") != 0 &&
                      strstr(proxy.error, "cut") != NULL,
                  "%s", proxy.error);
}

DOMT_SUITE(60)
