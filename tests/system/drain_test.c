/* A drain loses no acknowledged byte, or counts the lost ones: peers that read slowly and go on
 * sending, peers that wait to be accepted, and peers that never read. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static domt_service service;

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
    ck_assert_uint_eq(domt_service_profile_count(&service, "channels cut"), 0);
    ck_assert_uint_eq(domt_service_profile_count(&service, "cut bytes"), 0);
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
    ck_assert_uint_eq(domt_service_profile_count(&service, "cut bytes"), 0);
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
    ck_assert_uint_eq(domt_service_profile_count(&service, "accepted"), held + waiting);
    ck_assert_uint_eq(domt_service_profile_count(&service, "channels cut"), 0);
}

DOMT_TEST(peers_that_wait_at_the_most_connections_are_answered)
{
    check_drain_with_waiting_peers(10, 200);
}

/* Cut bytes are those that the service has received, less those known to have been echoed. */
DOMT_TEST(peers_that_never_read_are_cut_counted_and_tell_by_the_status)
{
    enum { COUNT = 5 };
    uint64_t missing = 0;

    domt_service_start(&service,
                       DOMT_ECHO_ARGUMENTS(IN_KERNEL, "--set", "shutdown.drainTimeout=300ms",
                                           "--set", "shutdown.cutStatus=77", ));
    int fds[COUNT];
    for (int i = 0; i < COUNT; i++) {
        fds[i] = connect_with_receive_buffer(4096);
        send_all_expected_bytes(fds[i], SLOW_BYTES);
        wait_until_acknowledged(fds[i]);
    }
    domt_service_signal(&service, SIGTERM);
    ck_assert_int_eq(domt_service_wait(&service, 10000), 77);
    for (int i = 0; i < COUNT; i++) {
        uint32_t received = read_slowly_and_send_on(fds[i], 0);
        missing += SLOW_BYTES - received;
        close(fds[i]);
    }
    uint64_t cut = domt_service_profile_count(&service, "cut bytes");
    ck_assert_uint_gt(missing, 0);
    ck_assert_msg(missing <= cut, "%llu bytes are missing, %llu were counted",
                  (unsigned long long)missing, (unsigned long long)cut);
    /* the service counts hardly more bytes as cut than are missing */
    ck_assert_uint_le(cut, missing + (uint64_t)COUNT * 65536);
    ck_assert_uint_eq(domt_service_profile_count(&service, "channels cut"), COUNT);
    char line[128];
    snprintf(line, sizeof line, "5 channels had not drained and were cut, and with them %llu bytes",
             (unsigned long long)cut);
    ck_assert_msg(strstr(service.error, line) != NULL, "%s", line);
}

DOMT_SUITE(120)
