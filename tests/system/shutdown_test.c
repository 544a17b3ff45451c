/* The end of a service: signals have the documented effect, bytes that were acknowledged are
 * answered or counted, and the end comes in time. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* A program ends at once when it is idle, after it has answered every byte that came under load,
 * and in time when a peer never reads. Signals have the documented effect. */

#define MIB (UINT64_C(1) << 20)

static domt_service service;
static domt_crowd crowd;
static uint64_t until_ns;

static bool is_time_over(const domt_crowd *unused)
{
    return domt_monotonic_ns() >= until_ns;
}

static void run_crowd_for_ms(uint32_t ms)
{
    until_ns = domt_monotonic_ns() + ms * UINT64_C(1000000);
    (void)domt_crowd_run_until(&crowd, is_time_over, 2 * ms + 1000);
}

/* Make clients that send for as long as the service accepts bytes. */
static void begin_endless_clients(uint32_t count, uint32_t piece_max, bool deaf)
{
    domt_crowd_init(&crowd, service.port, count);
    for (uint32_t i = 0; i < count; i++) {
        crowd.clients[i].bytes = UINT64_MAX / 2;
        crowd.clients[i].piece_max = piece_max;
        crowd.clients[i].stays = true;
        crowd.clients[i].deaf = deaf;
    }
    domt_crowd_connect_clients(&crowd, 0, count);
}

static void expect_service_ends_within(int status, uint32_t ms_max)
{
    uint64_t start_ns = domt_monotonic_ns();
    int got = domt_service_wait(&service, 20000);
    double took_ms = (double)(domt_monotonic_ns() - start_ns) / 1e6;

    ck_assert_msg(got == status, "it ended with %d: %s", got, service.error);
    ck_assert_msg(took_ms <= ms_max, "it took %.0f ms", took_ms);
}

DOMT_TEST(an_idle_service_ends_at_once)
{
    static const int signals[] = {SIGTERM, SIGINT};

    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        domt_service_start(&service, DOMT_ECHO_ARGUMENTS());
        domt_service_signal(&service, signals[i]);
        expect_service_ends_within(0, DOMT_SCALE(1500, 3000));
        domt_service_check_profile(&service);
        ck_assert_ptr_null(strstr(service.error, "drained"));
    }
}

DOMT_TEST(who_is_connected_and_silent_gets_a_fin)
{
    int fds[10];
    char byte;

    domt_service_start(&service, DOMT_ECHO_ARGUMENTS());
    for (int i = 0; i < 10; i++) {
        fds[i] = domt_connect_to_port(service.port);
        ck_assert(domt_send_and_get_echo(fds[i], "hello"));
    }
    domt_service_signal(&service, SIGTERM);
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(recv(fds[i], &byte, 1, 0), 0);
        close(fds[i]);
    }
    expect_service_ends_within(0, DOMT_SCALE(1500, 3000));
    domt_service_check_profile(&service);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels reset"), 0);
}

/* Each client gets the beginning of what it sent, then FIN and no reset; and the service echoes
 * every byte that it has received. */
static void check_stop_under_load(uint32_t count, uint32_t piece_max)
{
    uint64_t received = 0;

    /* the clients share a thread, so they may notice and answer FIN late */
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS("--set", "channel.linger=15s", "--set",
                                                     "shutdown.drainTimeout=20s", ));
    begin_endless_clients(count, piece_max, false);
    run_crowd_for_ms(300);
    domt_service_signal(&service, SIGTERM);
    ck_assert(domt_crowd_run_until(&crowd, domt_crowd_all_are_closed, 15000));
    expect_service_ends_within(0, DOMT_SCALE(2000, 5000));
    domt_service_check_profile(&service);
    for (uint32_t i = 0; i < count; i++) {
        const domt_client *client = &crowd.clients[i];
        ck_assert_msg(client->error == 0 && client->ended, "client %u: %s", i,
                      strerror(client->error));
        ck_assert_uint_eq(client->wrong, 0);
        ck_assert_uint_gt(client->received, 0);
        received += client->received;
    }
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "sent bytes"), received);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "received bytes"), received);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels reset"), 0);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels closed"), count);
    domt_crowd_fini(&crowd);
}

DOMT_TEST(under_load_every_byte_that_was_received_is_echoed_and_then_fin)
{
    check_stop_under_load(50, 16384);
    check_stop_under_load(200, 100);
}

static bool have_clients_sent_all(const domt_crowd *of)
{
    for (uint32_t i = 0; i < of->count; i++) {
        if (of->clients[i].sent < of->clients[i].bytes)
            return false;
    }
    return true;
}

/* The service is suspended while clients send, so that all bytes wait in its sockets when it is
 * told to stop; and it may read only a few bytes at a time. */
DOMT_TEST(what_had_come_before_the_signal_comes_back)
{
    enum { COUNT = 200, BYTES = 40000 };

    domt_service_start(&service, DOMT_ECHO_ARGUMENTS("--set", "channel.sendHigh=1000B", "--set",
                                                     "channel.sendLow=100B", "--set",
                                                     "io.buffers.count=16", ));
    domt_crowd_init(&crowd, service.port, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        crowd.clients[i].bytes = 10;
        crowd.clients[i].stays = true;
    }
    domt_crowd_connect_clients(&crowd, 0, COUNT);
    ck_assert(domt_crowd_run_until(&crowd, domt_crowd_has_all_echoes, 15000));
    domt_service_signal(&service, SIGSTOP);
    for (uint32_t i = 0; i < COUNT; i++)
        crowd.clients[i].bytes = BYTES;
    ck_assert(domt_crowd_run_until(&crowd, have_clients_sent_all, 15000));
    domt_service_signal(&service, SIGTERM);
    domt_service_signal(&service, SIGCONT);
    ck_assert(domt_crowd_run_until(&crowd, domt_crowd_all_are_closed, 15000));
    domt_crowd_check_echoes(&crowd);
    expect_service_ends_within(0, DOMT_SCALE(2000, 5000));
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "sent bytes"), COUNT * BYTES);
    domt_crowd_fini(&crowd);
}

DOMT_TEST(who_never_reads_is_reset_when_the_time_is_over)
{
    enum { COUNT = 5 };

    domt_service_start(&service, DOMT_ECHO_ARGUMENTS("--set", "shutdown.drainTimeout=400ms", ));
    begin_endless_clients(COUNT, 16384, true);
    run_crowd_for_ms(700);
    uint64_t start_ns = domt_monotonic_ns();
    domt_service_signal(&service, SIGTERM);
    expect_service_ends_within(0, DOMT_SCALE(2000, 5000));
    ck_assert_uint_ge(domt_monotonic_ns() - start_ns, UINT64_C(400000000));
    ck_assert_msg(
        strstr(service.error, "5 channels had not drained and were cut, and with them ") != NULL,
        "%s", service.error);
    domt_service_check_profile(&service);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels reset"), COUNT);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels cut"), COUNT);
    for (int i = 0; i < COUNT; i++) {
        char bytes[65536];
        ssize_t size;
        while ((size = recv(crowd.clients[i].fd, bytes, sizeof bytes, 0)) > 0)
            continue;
        ck_assert_int_eq(size, -1);
        ck_assert_int_eq(errno, ECONNRESET);
    }
    domt_crowd_fini(&crowd);
}

DOMT_TEST(a_later_second_signal_ends_the_service_at_once)
{
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS());
    begin_endless_clients(2, 16384, true);
    run_crowd_for_ms(300);
    domt_service_signal(&service, SIGTERM);
    domt_sleep_ms(1500);
    domt_service_signal(&service, SIGINT);
    expect_service_ends_within(128 + SIGINT, DOMT_SCALE(1500, 3000));
    ck_assert_ptr_nonnull(strstr(service.error, "a second signal: ending at once"));
    domt_crowd_fini(&crowd);
}

DOMT_TEST(usr1_prints_the_profile_and_changes_nothing)
{
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS());
    int fd = domt_connect_to_port(service.port);
    for (uint32_t round = 1; round <= 3; round++) {
        ck_assert(domt_send_and_get_echo(fd, "0123456789"));
        domt_sleep_ms(50);
        for (int i = 0; i < 1000; i++) {
            /* a thread that lost its CPU within a phase counts that phase only afterwards */
            if (i % 100 == 0)
                domt_service_signal(&service, SIGUSR1);
            domt_sleep_ms(10);
            domt_service_read_error(&service);
            if (strstr(service.error, "\nwall ") != NULL &&
                domt_service_count_in_profile(&service, "received bytes") == 10 * (uint64_t)round &&
                domt_service_phases_fill_wall_time(&service))
                break;
        }
        ck_assert_uint_eq(domt_service_count_in_profile(&service, "received bytes"),
                          10 * (uint64_t)round);
        domt_service_check_profile(&service);
    }
    close(fd);
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "sent bytes"), 30);
}

/* New connections are refused as soon as the drain has begun. */
DOMT_TEST(nobody_is_accepted_while_it_drains)
{
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS("--set", "shutdown.drainTimeout=2s", ));
    begin_endless_clients(1, 16384, true);
    run_crowd_for_ms(300);
    uint64_t begun_ns = domt_monotonic_ns();
    domt_service_signal(&service, SIGTERM);
    while (domt_port_has_listener(service.port))
        domt_sleep_ms(5);
    ck_assert_uint_lt(domt_monotonic_ns() - begun_ns, UINT64_C(1500000000));
    expect_service_ends_within(0, DOMT_SCALE(4000, 7000));
    domt_crowd_fini(&crowd);
}

/* --- drain ------------------------------------------------------------------------------------ */

/* A drain loses no acknowledged byte, or counts the lost ones: peers that read slowly and go on
 * sending, peers that wait to be accepted, and peers that never read. */

/* Give the clients small receive buffers, so that answers wait in the kernel and not in the
 * service. */
#define IN_KERNEL "--set", "channel.socket.unsentMax=0"

/* A client of the test may be slow on a busy machine, and must not be cut for that, so the service
 * lingers for longer than the default of channel.linger. */
#define PATIENT "--set", "shutdown.drainTimeout=60s"

/* Wait until the service's kernel has acknowledged all bytes that the clients have sent. */
static void wait_until_acknowledged(int fd)
{
    int left = 1;

    for (int i = 0; i < 5000 && left != 0; i++) {
        ck_assert_int_eq(ioctl(fd, SIOCOUTQ, &left), 0);
        domt_sleep_ms(1);
    }
    ck_assert_int_eq(left, 0);
}

static int connect_with_receive_buffer(int receive_bytes)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(service.port)};
    struct timeval patience = {.tv_sec = 10};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(int)), 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static char expected_byte_at(uint32_t place)
{
    return (char)(place * 131 + (place >> 8) * 7);
}

#define SLOW_BYTES 600000u

static void send_all_expected_bytes(int fd, uint32_t size)
{
    static char bytes[SLOW_BYTES];

    for (uint32_t i = 0; i < size; i++)
        bytes[i] = expected_byte_at(i);
    for (uint32_t sent = 0; sent < size;) {
        ssize_t result = send(fd, bytes + sent, size - sent, MSG_NOSIGNAL);
        ck_assert_int_gt(result, 0);
        sent += (uint32_t)result;
    }
}

/* Read 4 KiB at a time, and send a byte each time, as a peer that has not noticed the stop. Some of
 * these bytes may be echoed too. Returns how many of the first bytes came back. */
static uint32_t read_slowly_and_send_on(int fd, uint32_t pause_ms)
{
    char bytes[4096];
    uint32_t received = 0;
    ssize_t size;

    while ((size = recv(fd, bytes, sizeof bytes, 0)) > 0) {
        for (ssize_t i = 0; i < size; i++) {
            ck_assert_int_eq(bytes[i], received < SLOW_BYTES ? expected_byte_at(received) : 'x');
            received += received < SLOW_BYTES;
        }
        (void)!send(fd, "x", 1, MSG_NOSIGNAL);
        domt_sleep_ms(pause_ms);
    }
    return received;
}

DOMT_TEST(a_peer_that_reads_slowly_and_goes_on_sending_gets_every_byte)
{
    domt_service_start(&service,
                       DOMT_ECHO_ARGUMENTS("--set", "channel.linger=400ms", PATIENT, IN_KERNEL, ));
    int fd = connect_with_receive_buffer(4096);
    send_all_expected_bytes(fd, SLOW_BYTES);
    wait_until_acknowledged(fd);
    domt_service_signal(&service, SIGTERM);
    uint32_t received = read_slowly_and_send_on(fd, 5);
    ck_assert_msg(received == SLOW_BYTES, "%u of %u echoed", received, SLOW_BYTES);
    close(fd);
    ck_assert_int_eq(domt_service_wait(&service, 20000), 0);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels cut"), 0);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "cut bytes"), 0);
    ck_assert_ptr_null(strstr(service.error, "drained"));
}

/* A peer has finished sending. Its channel must not end when the last byte was only given to the
 * kernel, not to the peer. */
DOMT_TEST(a_peer_that_has_finished_and_reads_slowly_gets_every_byte)
{
    domt_service_start(&service,
                       DOMT_ECHO_ARGUMENTS("--set", "channel.linger=400ms", PATIENT, IN_KERNEL, ));
    int fd = connect_with_receive_buffer(4096);
    send_all_expected_bytes(fd, SLOW_BYTES);
    wait_until_acknowledged(fd);
    domt_service_signal(&service, SIGTERM);
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    uint32_t received = read_slowly_and_send_on(fd, 5);
    ck_assert_msg(received == SLOW_BYTES, "%u of %u echoed", received, SLOW_BYTES);
    close(fd);
    ck_assert_int_eq(domt_service_wait(&service, 20000), 0);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "cut bytes"), 0);
}

/* At most `held` peers are served; the others wait, some accepted, most not. */
static void check_drain_with_waiting_peers(uint32_t held, uint32_t waiting)
{
    static int fds[512];
    uint32_t back = 0;
    char most[64];
    char byte;

    snprintf(most, sizeof most, "channel.maxConnections=%u", held);
    domt_service_start(
        &service, DOMT_ECHO_ARGUMENTS("--set", most, "--set", "channel.linger=100ms", PATIENT, ));
    for (uint32_t i = 0; i < held + waiting; i++) {
        fds[i] = domt_connect_to_port(service.port);
        if (i < held)
            ck_assert(domt_send_and_get_echo(fds[i], "held"));
    }
    for (uint32_t i = 0; i < held + waiting; i++) {
        ck_assert_int_eq(send(fds[i], "w", 1, MSG_NOSIGNAL), 1);
        wait_until_acknowledged(fds[i]);
    }
    domt_service_signal(&service, SIGTERM);
    for (uint32_t i = 0; i < held + waiting; i++) {
        back += recv(fds[i], &byte, 1, 0) == 1 && byte == 'w';
        close(fds[i]);
    }
    ck_assert_msg(back == held + waiting, "%u of %u were answered", back, held + waiting);
    ck_assert_int_eq(domt_service_wait(&service, 20000), 0);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "accepted"), held + waiting);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels cut"), 0);
}

DOMT_TEST(peers_that_wait_at_the_most_connections_are_answered)
{
    check_drain_with_waiting_peers(10, 200);
}

/* Cut bytes are those that the service has received, less those known to have been echoed. */
DOMT_TEST(peers_that_never_read_are_cut_counted_and_tell_by_the_status)
{
    enum { DRAIN_COUNT = 5 };
    uint64_t missing = 0;

    domt_service_start(&service,
                       DOMT_ECHO_ARGUMENTS(IN_KERNEL, "--set", "shutdown.drainTimeout=300ms",
                                           "--set", "shutdown.cutStatus=77", ));
    int fds[DRAIN_COUNT];
    for (int i = 0; i < DRAIN_COUNT; i++) {
        fds[i] = connect_with_receive_buffer(4096);
        send_all_expected_bytes(fds[i], SLOW_BYTES);
        wait_until_acknowledged(fds[i]);
    }
    domt_service_signal(&service, SIGTERM);
    ck_assert_int_eq(domt_service_wait(&service, 10000), 77);
    for (int i = 0; i < DRAIN_COUNT; i++) {
        uint32_t received = read_slowly_and_send_on(fds[i], 0);
        missing += SLOW_BYTES - received;
        close(fds[i]);
    }
    uint64_t cut = domt_service_count_in_profile(&service, "cut bytes");
    ck_assert_uint_gt(missing, 0);
    ck_assert_msg(missing <= cut, "%llu bytes are missing, %llu were counted",
                  (unsigned long long)missing, (unsigned long long)cut);
    /* the service counts hardly more bytes as cut than are missing */
    ck_assert_uint_le(cut, missing + (uint64_t)DRAIN_COUNT * 65536);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels cut"), DRAIN_COUNT);
    char line[128];
    snprintf(line, sizeof line, "5 channels had not drained and were cut, and with them %llu bytes",
             (unsigned long long)cut);
    ck_assert_msg(strstr(service.error, line) != NULL, "%s", line);
}

DOMT_SUITE(120)
