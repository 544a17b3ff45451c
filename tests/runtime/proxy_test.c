/* Connections that come through proxies: the PROXY header names the client, limits for each address
 * hold for the client, and only trusted proxies can claim an address. */
#include "tests/runtime/running.h"
#include "tests/support/crowd.h"

#include <domus/endpoint.h>

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

static _Atomic uint32_t opened;
static _Atomic uint32_t closed;

/* Greet a client with its own endpoint and the endpoint of the connection. */
static int on_open_greet_with_endpoints(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    domus_endpoint peer, direct;
    domus_buffer *buffer;
    char text[2 * DOMUS_ENDPOINT_TEXT_MAX];

    atomic_fetch_add(&opened, 1);
    ck_assert_int_eq(domus_channel_peer(event->channel, &peer), 0);
    ck_assert_int_eq(domus_channel_direct_peer(event->channel, &direct), 0);
    size_t size = domus_endpoint_text(&peer, text, sizeof text);
    text[size++] = ' ';
    if (direct.family != AF_UNIX)
        direct.port = 1; /* the kernel has chosen this port, so a fixed number stands for it */
    size += domus_endpoint_text(&direct, text + size, sizeof text - size);
    text[size++] = '\n';
    ck_assert_int_eq(domus_buffer_new(stack, size, &buffer), 0);
    memcpy(domus_buffer_data(buffer), text, size);
    return domus_channel_write(stack, event->channel, buffer);
}

static int on_read_echo_bytes(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    return domus_channel_write(stack, event->channel, event->bytes);
}

static int on_close_count(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&closed, 1);
    return 0;
}

static const domus_behaviour greeting = {.name = "greeting",
                                         .kind = DOMUS_CHANNELS,
                                         .on_open = {on_open_greet_with_endpoints, 0},
                                         .on_read = {on_read_echo_bytes, 0},
                                         .on_close = {on_close_count, 0}};

static domus_system *system_;
static uint16_t port;
static pthread_mutex_t logged = PTHREAD_MUTEX_INITIALIZER; /* guards `first_line` and `lines` */
static char first_line[256];
static uint32_t lines;

static void keep_warning_of_listener(void *context, domus_log_level level, uint32_t thread,
                                     const char *text)
{
    pthread_mutex_lock(&logged);
    if (level == DOMUS_LOG_WARNING && strncmp(text, "listener ", 9) == 0 && lines++ == 0)
        (void)snprintf(first_line, sizeof first_line, "%s", text);
    pthread_mutex_unlock(&logged);
}

/* Check that one warning was logged since the last call of this function, however many connections
 * were refused. */
static void check_one_warning_was_logged(const char *expected)
{
    pthread_mutex_lock(&logged);
    ck_assert_str_eq(first_line, expected);
    ck_assert_uint_eq(lines, 1);
    first_line[0] = '\0';
    lines = 0;
    pthread_mutex_unlock(&logged);
}
static uint32_t thread_count = 2;
/* share of all 20 connections that one address on loopback may have, in percent */
static uint32_t loopback_percent = 5;

/* Start a system that trusts proxies in these networks; each client may have a tenth of 20
 * connections. */
static void begin_system_trusting_networks(const char *networks, uint64_t first_byte_ns)
{
    const domus_listener_config listener = {
        .name = "behind", .address = "127.0.0.1:0", .backlog = 64, .proxy_from = networks};
    domus_config config = domt_config_of_threads(thread_count);

    config.listeners = &listener;
    config.listener_count = 1;
    config.channel.connections_max = 20;
    config.connection.address_percent = 10;
    config.connection.loopback_percent = loopback_percent;
    config.connection.first_byte_timeout_ns = first_byte_ns;
    const domus_hooks hooks = {.log = keep_warning_of_listener};
    ck_assert_int_eq(domus_system_new_with(&config, &hooks, NULL, 0, &system_), 0);
    ck_assert_int_eq(domus_system_start(system_), 0);
    ck_assert_int_eq(domus_serve(system_, "behind", &greeting, NULL, &port), 0);
}

static void start_trusting_usual_proxies(void)
{
    begin_system_trusting_networks("192.0.2.0/24, 127.0.0.0/8", 10000 * MS);
}

static int connect_to_proxied_port(void)
{
    return domt_connect_to_port(port);
}

static void send_all_bytes(int fd, const char *bytes, size_t size)
{
    ck_assert_int_eq(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

/* Read one line from the connection, and check that it is `expected`. */
static void read_and_check_line(int fd, const char *expected)
{
    char line[256] = "";
    size_t size = 0;
    while (size < sizeof line - 1 && (size == 0 || line[size - 1] != '\n'))
        ck_assert_int_eq(recv(fd, line + size++, 1, 0), 1);
    line[size] = '\0';
    ck_assert_str_eq(line, expected);
}

static void expect_reset_and_close(int fd)
{
    char byte;
    ck_assert_int_eq(recv(fd, &byte, 1, 0), -1);
    ck_assert_int_eq(errno, ECONNRESET);
    close(fd);
}

#define REFUSED(field) domt_profile_of_all_threads(system_).field

/* The PROXY header and the client's bytes come in one piece, and then byte by byte. */
DOMT_TEST(proxy_header_names_the_client)
{
    static const char sent[] = "PROXY TCP4 203.0.113.7 127.0.0.1 4711 80\r\nhello\n";

    start_trusting_usual_proxies();
    int fd = connect_to_proxied_port();
    send_all_bytes(fd, sent, sizeof sent - 1);
    read_and_check_line(fd, "203.0.113.7:4711 127.0.0.1:1\n");
    read_and_check_line(fd, "hello\n");
    close(fd);
    fd = connect_to_proxied_port();
    for (size_t i = 0; i < sizeof sent - 1; i++) {
        send_all_bytes(fd, sent + i, 1);
        usleep(200);
    }
    read_and_check_line(fd, "203.0.113.7:4711 127.0.0.1:1\n");
    read_and_check_line(fd, "hello\n");
    close(fd);
    ck_assert_uint_eq(REFUSED(proxies_refused), 0);
    domt_end_system(system_);
}

DOMT_TEST(binary_proxy_header_names_the_client)
{
    static const char sent[] = "\r\n\r\n\0\r\nQUIT\n\x21\x21\0\x24"
                               "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07"
                               "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x12\x67\0\x50"
                               "hello\n";

    start_trusting_usual_proxies();
    int fd = connect_to_proxied_port();
    send_all_bytes(fd, sent, sizeof sent - 1);
    read_and_check_line(fd, "[2001:db8::7]:4711 127.0.0.1:1\n");
    read_and_check_line(fd, "hello\n");
    close(fd);
    domt_end_system(system_);
}

/* With LOCAL the proxy says that it connects for itself, for instance to check that the service
 * lives. */
DOMT_TEST(header_without_a_client_leaves_the_own_address)
{
    start_trusting_usual_proxies();
    int fd = connect_to_proxied_port();
    send_all_bytes(fd, "\r\n\r\n\0\r\nQUIT\n\x20\0\0\0", 16);
    char line[64] = "";
    ck_assert_int_gt(recv(fd, line, sizeof line - 1, 0), 0);
    ck_assert_ptr_nonnull(strstr(line, " 127.0.0.1:1\n"));
    ck_assert_int_eq(strncmp(line, "127.0.0.1:", 10), 0);
    close(fd);
    domt_end_system(system_);
}

DOMT_TEST(connection_without_proxy_header_is_reset_unseen_by_actors)
{
    start_trusting_usual_proxies();
    int fd = connect_to_proxied_port();
    send_all_bytes(fd, "GET / HTTP/1.1\r\n", 16);
    expect_reset_and_close(fd);
    fd = connect_to_proxied_port();
    send_all_bytes(fd, "PROXY TCP4 203.0.113.7 127.0.0.1 4711\r\n", 39);
    expect_reset_and_close(fd);
    DOMT_WAIT_FOR(10, REFUSED(proxies_refused) == 2);
    ck_assert_uint_eq(atomic_load(&opened), 0);
    ck_assert_uint_eq(atomic_load(&closed), 0);
    domt_end_system(system_);
}

/* The PROXY header is right, but is not even read, because the address is not trusted. */
DOMT_TEST(connection_from_an_untrusted_address_is_reset)
{
    begin_system_trusting_networks("192.0.2.0/24", 10000 * MS);
    int fd = connect_to_proxied_port();
    (void)send(fd, "PROXY TCP4 192.0.2.1 127.0.0.1 4711 80\r\n", 40, MSG_NOSIGNAL);
    char byte;
    ck_assert_int_le(recv(fd, &byte, 1, 0), 0);
    close(fd);
    DOMT_WAIT_FOR(10, REFUSED(proxies_refused) == 1);
    ck_assert_uint_eq(atomic_load(&opened), 0);
    domt_end_system(system_);
}

/* Strangers cannot fill the log, because each reason for a refusal is logged once. All connections
 * come to one thread. */
DOMT_TEST(warning_is_logged_once_for_many_refusals)
{
    thread_count = 1;
    begin_system_trusting_networks("192.0.2.0/24", 10000 * MS);
    for (uint32_t i = 0; i < 5; i++)
        close(connect_to_proxied_port());
    DOMT_WAIT_FOR(10, REFUSED(proxies_refused) == 5);
    check_one_warning_was_logged(
        "listener behind: 127.0.0.1 is in no network of proxyProtocol.from: its "
        "connections are reset");
    domt_end_system(system_);
    start_trusting_usual_proxies();
    for (uint32_t i = 0; i < 5; i++) {
        int fd = connect_to_proxied_port();
        send_all_bytes(fd, "GET / HTTP/1.1\r\n\r\n", 18);
        expect_reset_and_close(fd);
    }
    DOMT_WAIT_FOR(10, REFUSED(proxies_refused) == 5);
    check_one_warning_was_logged(
        "listener behind: a connection from 127.0.0.1 did not begin with a PROXY header, "
        "and was reset");
    int fds[5];
    for (uint32_t i = 0; i < 5; i++) {
        fds[i] = connect_to_proxied_port();
        send_all_bytes(fds[i], "PROXY TCP4 203.0.113.1 127.0.0.1 9 2\r\n", 38);
        if (i < 2)
            read_and_check_line(fds[i], "203.0.113.1:9 127.0.0.1:1\n");
        else
            expect_reset_and_close(fds[i]);
    }
    DOMT_WAIT_FOR(10, REFUSED(refused_by_address) == 3);
    check_one_warning_was_logged(
        "listener behind: 203.0.113.1, a client of a proxy, has as many connections as it "
        "may have: more are reset at once");
    close(fds[0]), close(fds[1]);
    domt_end_system(system_);
}

/* Each client may have a tenth of 20 connections, although all connections come from one
 * address, which may have only one. Connections whose PROXY header is not complete belong to no
 * client yet. */
DOMT_TEST(each_client_named_by_a_proxy_has_its_share_of_places)
{
    char header[64];
    int fds[6];

    start_trusting_usual_proxies();
    for (int i = 0; i < 6; i++) {
        fds[i] = connect_to_proxied_port();
        int size =
            snprintf(header, sizeof header, "PROXY TCP4 203.0.113.%d 127.0.0.1 1 2\r\n", i / 2);
        send_all_bytes(fds[i], header, (size_t)size);
        (void)snprintf(header, sizeof header, "203.0.113.%d:1 127.0.0.1:1\n", i / 2);
        read_and_check_line(fds[i], header);
    }
    int more = connect_to_proxied_port();
    send_all_bytes(more, "PROXY TCP4 203.0.113.1 127.0.0.1 9 2\r\n", 38);
    expect_reset_and_close(more);
    DOMT_WAIT_FOR(10, REFUSED(refused_by_address) == 1);
    close(fds[2]); /* this close gives back one of the client's places */
    DOMT_WAIT_FOR(10, atomic_load(&closed) == 1);
    more = connect_to_proxied_port();
    send_all_bytes(more, "PROXY TCP4 203.0.113.1 127.0.0.1 9 2\r\n", 38);
    read_and_check_line(more, "203.0.113.1:9 127.0.0.1:1\n");
    close(more);
    for (int i = 0; i < 6; i++)
        if (i != 2)
            close(fds[i]);
    domt_end_system(system_);
}

/* Half of the PROXY header comes, and the rest never. */
DOMT_TEST(proxy_header_has_to_come_in_time)
{
    begin_system_trusting_networks("127.0.0.1", 200 * MS);
    int fd = connect_to_proxied_port();
    send_all_bytes(fd, "PROXY TCP4 ", 11);
    struct pollfd one = {.fd = fd, .events = POLLIN};
    ck_assert_int_eq(poll(&one, 1, 5000), 1);
    char byte;
    ck_assert_int_le(recv(fd, &byte, 1, 0), 0);
    close(fd);
    DOMT_WAIT_FOR(10, REFUSED(channels_silent) == 1);
    ck_assert_uint_eq(atomic_load(&opened), 0);
    domt_end_system(system_);
}

/* A proxy that connects and closes without a header is no error, and a drain does not wait for a
 * header. */
DOMT_TEST(connection_closed_before_a_proxy_header_is_no_error)
{
    start_trusting_usual_proxies();
    close(connect_to_proxied_port());
    DOMT_WAIT_FOR(10, REFUSED(channels_closed) == 1);
    ck_assert_uint_eq(REFUSED(channels_reset), 0);
    ck_assert_uint_eq(REFUSED(proxies_refused), 0);
    int fd = connect_to_proxied_port();
    DOMT_WAIT_FOR(10, REFUSED(channels_opened) == 2);
    uint64_t before = domt_now_ns();
    domt_end_system(system_);
    ck_assert_uint_lt(domt_now_ns() - before, 5000 * MS);
    close(fd);
}

/* --- HAProxy as a judge, where it is installed ------------------------------------------------ */

#define HAPROXY "/usr/sbin/haproxy"

static uint16_t find_free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    close(fd);
    return ntohs(address.sin_port);
}

/* Start HAProxy in front of `port`, in the mode `how`. Returns its process; `ret_port` gets the
 * port of HAProxy. */
static pid_t start_haproxy(const char *how, uint16_t *ret_port)
{
    char path[] = "/tmp/domus-haproxy-XXXXXX";
    int fd = mkstemp(path);

    *ret_port = find_free_port();
    ck_assert_int_ge(fd, 0);
    ck_assert_int_gt(dprintf(fd,
                             "global\n maxconn 100\ndefaults\n mode tcp\n"
                             " timeout connect 5s\n timeout client 10s\n timeout server 10s\n"
                             "listen front\n bind 127.0.0.1:%u\n server one 127.0.0.1:%u %s\n",
                             *ret_port, port, how),
                     0);
    close(fd);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        (void)execl(HAPROXY, "haproxy", "-db", "-f", path, (char *)NULL);
        _exit(127);
    }
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(*ret_port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int is_up = -1;
    for (int i = 0; i < 1000 && is_up != 0; i++) {
        domt_pause_ns(10 * MS);
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        is_up = connect(fd, (struct sockaddr *)&address, sizeof address);
        close(fd);
    }
    (void)unlink(path);
    ck_assert_int_eq(is_up, 0);
    return child;
}

DOMT_TEST(headers_of_real_haproxy_are_understood)
{
    static const char *const hows[] = {"send-proxy", "send-proxy-v2",
                                       "send-proxy-v2 proxy-v2-options crc32c,unique-id"};
    struct sockaddr_in own;
    char expected[64];

    if (access(HAPROXY, X_OK) != 0)
        return;
    /* wait, because a connection that waited for HAProxy may end a little later */
    loopback_percent = 100;
    start_trusting_usual_proxies();
    for (size_t i = 0; i < sizeof hows / sizeof hows[0]; i++) {
        uint16_t behind = port, front;
        pid_t child = start_haproxy(hows[i], &front);
        port = front;
        int fd = connect_to_proxied_port();
        port = behind;
        socklen_t size = sizeof own;
        ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&own, &size), 0);
        (void)snprintf(expected, sizeof expected, "127.0.0.1:%u 127.0.0.1:1\n",
                       ntohs(own.sin_port));
        read_and_check_line(fd, expected);
        send_all_bytes(fd, "hello\n", 6);
        read_and_check_line(fd, "hello\n");
        close(fd);
        ck_assert_int_eq(kill(child, SIGKILL), 0);
        ck_assert_int_eq(waitpid(child, NULL, 0), child);
    }
    ck_assert_uint_eq(REFUSED(proxies_refused), 0);
    domt_end_system(system_);
}

DOMT_SUITE(60)
