/* The examples `echo` and `rooms` over loopback: bytes come back in order, lines come to all
 * guests of a room, and a guest who does not read delays nobody. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The echo service over loopback: every byte comes back, in order, whatever the clients do. */

static domt_service service;
static domt_crowd crowd;

/* Some clients send in small pieces, some in large ones, so that reads and writes are cut
 * anywhere. */
static void make_clients_with_streams(uint32_t count, uint64_t bytes)
{
    domt_crowd_init(&crowd, service.port, count);
    for (uint32_t i = 0; i < count; i++) {
        crowd.clients[i].bytes = bytes / 2 + (i * 7919) % (bytes / 2);
        crowd.clients[i].piece_max = i % 3 == 0 ? 7 : (i % 3 == 1 ? 1000 : 16384);
        if (i % 3 == 0)
            crowd.clients[i].bytes /= 50;
    }
    domt_crowd_connect_clients(&crowd, 0, count);
}

static uint64_t count_bytes_of_crowd(void)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < crowd.count; i++)
        sum += crowd.clients[i].bytes;
    return sum;
}

DOMT_TEST(every_byte_of_many_clients_comes_back_in_order)
{
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS());
    make_clients_with_streams(60, 200000);
    ck_assert(domt_crowd_run_until(&crowd, domt_crowd_all_are_closed, 30000));
    domt_crowd_check_echoes(&crowd);
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "received bytes"),
                      count_bytes_of_crowd());
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "sent bytes"),
                      count_bytes_of_crowd());
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "accepted"), crowd.count);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels closed"), crowd.count);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels reset"), 0);
    domt_crowd_fini(&crowd);
}

/* The service has the smallest number of buffers: the share of a channel is one, and all channels
 * wait for buffers now and then. */
DOMT_TEST(few_buffers_and_small_queues_lose_nothing)
{
    domt_service_start(
        &service,
        DOMT_ECHO_ARGUMENTS("--set", "io.buffers.count=16", "--set", "io.buffers.size=256B",
                            "--set", "io.ringEntries=16", "--set", "io.completionEntries=32",
                            "--set", "io.completionsPerPoll=3", "--set", "channel.sendHigh=1000B",
                            "--set", "channel.sendLow=100B", ));
    make_clients_with_streams(50, 30000);
    ck_assert(domt_crowd_run_until(&crowd, domt_crowd_all_are_closed, 30000));
    domt_crowd_check_echoes(&crowd);
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "sent bytes"),
                      count_bytes_of_crowd());
    domt_crowd_fini(&crowd);
}

DOMT_TEST(a_half_closed_connection_is_answered_to_the_end)
{
    char bytes[100000];
    size_t have = 0;
    ssize_t size;

    domt_service_start(&service, DOMT_ECHO_ARGUMENTS());
    int silent = domt_connect_to_port(service.port);
    ck_assert_int_eq(shutdown(silent, SHUT_WR), 0); /* the client sends no byte before FIN */
    ck_assert_int_eq(recv(silent, bytes, 1, 0), 0);
    for (int i = 0; i < 20; i++) {
        int fd = domt_connect_to_port(service.port);
        for (size_t at = 0; at < sizeof bytes; at++)
            bytes[at] = (char)(at * 7);
        ck_assert_int_eq(send(fd, bytes, sizeof bytes, 0), (ssize_t)sizeof bytes);
        ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
        for (have = 0; (size = recv(fd, bytes, sizeof bytes, 0)) > 0; have += (size_t)size) {
            for (ssize_t at = 0; at < size; at++)
                ck_assert(bytes[at] == (char)((have + (size_t)at) * 7));
        }
        ck_assert_int_eq(size, 0);
        ck_assert_uint_eq(have, sizeof bytes);
        close(fd);
    }
    close(silent);
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels reset"), 0);
}

/* Every other client resets its connection somewhere in its stream; the remaining clients notice
 * nothing. */
DOMT_TEST(resets_in_the_middle_hurt_nobody_else)
{
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS());
    for (int round = 0; round < 2; round++) {
        make_clients_with_streams(100, 200000);
        for (uint32_t i = 0; i < crowd.count; i += 2) {
            crowd.clients[i].reset_at = 1 + (i * 2791) % crowd.clients[i].bytes;
            /* deaf clients reset while many bytes wait for them */
            crowd.clients[i].deaf = i % 4 == 0;
        }
        ck_assert(domt_crowd_run_until(&crowd, domt_crowd_all_are_closed, 30000));
        domt_crowd_check_echoes(&crowd);
        domt_crowd_fini(&crowd);
    }
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels closed"),
                      domt_service_count_in_profile(&service, "channels opened"));
}

DOMT_TEST(five_thousand_connections_are_served_at_once)
{
    uint32_t count = domt_tests_are_long() ? DOMT_SCALE(5000, 800) : 800;

    if (!domt_raise_descriptor_limit(count + 100)) {
        fprintf(stderr, "too few descriptors for %u connections: 500 instead\n", count);
        count = 500;
    }
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS());
    domt_crowd_init(&crowd, service.port, count);
    domt_crowd_connect_clients(&crowd, 0, count);
    for (int round = 1; round <= 2; round++) {
        for (uint32_t i = 0; i < count; i++) {
            crowd.clients[i].bytes = (uint64_t)round * 100;
            crowd.clients[i].stays = round < 2;
        }
        ck_assert(domt_crowd_run_until(&crowd, domt_crowd_has_all_echoes, 30000));
    }
    ck_assert(domt_crowd_run_until(&crowd, domt_crowd_all_are_closed, 30000));
    domt_crowd_check_echoes(&crowd);
    domt_crowd_fini(&crowd);
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "accepted"), count);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "received bytes"),
                      200 * (uint64_t)count);
}

DOMT_TEST(connections_that_come_and_go_leave_nothing_behind)
{
    enum { AT_ONCE = 50 };
    uint32_t rounds = 20;
    uint64_t rss_bytes = 0;

    /* With few buffers the service has used all of them by half-time, so memory must not grow in
     * the second half. */
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS("--set", "io.buffers.count=64", ));
    for (uint32_t round = 0; round < rounds; round++) {
        domt_crowd_init(&crowd, service.port, AT_ONCE);
        for (uint32_t i = 0; i < AT_ONCE; i++)
            crowd.clients[i].bytes = 10 + i * 20;
        domt_crowd_connect_clients(&crowd, 0, AT_ONCE);
        ck_assert(domt_crowd_run_until(&crowd, domt_crowd_all_are_closed, 30000));
        domt_crowd_check_echoes(&crowd);
        domt_crowd_fini(&crowd);
        if (round == rounds / 2)
            rss_bytes = domt_service_rss_bytes(&service);
    }
    if (!DOMT_SANITIZED) /* sanitizers keep freed memory to find later uses of it */
        ck_assert_uint_le(domt_service_rss_bytes(&service), rss_bytes + (256 << 10));
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels closed"), AT_ONCE * rounds);
}

/* --- rooms ------------------------------------------------------------------------------------ */

/* The example `rooms`: lines come to all guests of a room and to no others, however the lines were
 * cut, and a guest who does not read is dropped without delaying the others. */

static domt_service rooms;

static void start_rooms(void)
{
    domt_service_start(&rooms,
                       (const char *const[]){DOMT_BIN_DIR "/rooms", "--config",
                                             DOMT_SOURCE_DIR "/examples/rooms/rooms.yaml", "--set",
                                             "listeners.rooms.address=127.0.0.1:0", NULL});
}

static void send_line(int fd, const char *text)
{
    ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Check that the next bytes that come are exactly `text`. */
static void expect_received_bytes(int fd, const char *text)
{
    char bytes[1024] = "";

    ck_assert_int_eq(recv(fd, bytes, strlen(text), MSG_WAITALL), (ssize_t)strlen(text));
    ck_assert_str_eq(bytes, text);
}

static bool is_connection_silent(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN;
}

/* Connect, and wait until lines of the room come to this connection. */
static int join_room(void)
{
    int fd = domt_connect_to_port(rooms.port);

    send_line(fd, "hello\n");
    expect_received_bytes(fd, "hello\n");
    return fd;
}

DOMT_TEST(a_line_comes_to_the_room_and_to_nobody_else)
{
    start_rooms();
    int one = join_room();
    int other = join_room();
    expect_received_bytes(one, "hello\n");
    send_line(other, "/join garden\nin the garden\n");
    expect_received_bytes(other, "in the garden\n");
    send_line(one, "in the ");
    send_line(one, "lobby\nand ag");
    expect_received_bytes(one, "in the lobby\n");
    send_line(one, "ain\n");
    expect_received_bytes(one, "and again\n");
    ck_assert(is_connection_silent(other));
    send_line(other, "/join cellar\n");
    expect_received_bytes(other, "no such room\n");
    send_line(other, "/join lobby\n/join lobby\nback\n");
    expect_received_bytes(other, "back\n");
    expect_received_bytes(one, "back\n");
    close(other);
    send_line(one, "alone\n");
    expect_received_bytes(one, "alone\n");
    close(one);
    domt_service_stop(&rooms);
}

DOMT_TEST(a_line_without_an_end_is_refused)
{
    char much[600];
    char byte;

    start_rooms();
    memset(much, 'a', sizeof much);
    int fd = join_room();
    int other = join_room();
    expect_received_bytes(fd, "hello\n");
    ck_assert_int_eq(send(fd, much, sizeof much, MSG_NOSIGNAL), (ssize_t)sizeof much);
    ck_assert_int_eq(recv(fd, &byte, 1, 0), -1);
    ck_assert_int_eq(errno, ECONNRESET);
    send_line(other, "still here\n");
    expect_received_bytes(other, "still here\n");
    close(fd);
    close(other);
    domt_service_stop(&rooms);
    ck_assert_uint_eq(domt_service_count_in_profile(&rooms, "channels refused"), 1);
}

/* The deaf guest is dropped when the kernel's buffers and slowBytes are full; the others
 * get every line. */
DOMT_TEST(a_guest_who_does_not_read_is_dropped)
{
    char line[500];
    char back[500];
    int size = 4096;
    int deaf = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    start_rooms();
    close(deaf);
    deaf = join_room();
    ck_assert_int_eq(setsockopt(deaf, SOL_SOCKET, SO_RCVBUF, &size, sizeof size), 0);
    int good = join_room();
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    for (int i = 0; i < 40000; i++) {
        ck_assert_int_eq(send(good, line, sizeof line, MSG_NOSIGNAL), (ssize_t)sizeof line);
        ck_assert_int_eq(recv(good, back, sizeof back, MSG_WAITALL), (ssize_t)sizeof back);
        ck_assert_int_eq(memcmp(line, back, sizeof line), 0);
    }
    while (recv(deaf, back, sizeof back, 0) > 0)
        continue;
    ck_assert_int_eq(errno, ECONNRESET);
    close(deaf);
    close(good);
    domt_service_stop(&rooms);
    ck_assert_uint_eq(domt_service_count_in_profile(&rooms, "channels reset"), 1);
}

/* Guests on all threads receive each line once and in order. */
DOMT_TEST(many_guests_hear_every_line_in_order)
{
    enum { GUESTS = 200, LINES = 20 };
    int fds[GUESTS];
    char line[32];

    start_rooms();
    for (int i = 0; i < GUESTS; i++)
        fds[i] = domt_connect_to_port(rooms.port);
    for (int i = 0; i < GUESTS; i++)
        send_line(fds[i], "/join garden\n/join nowhere\n");
    for (int i = 0; i < GUESTS; i++)
        /* "no such room" answers the second join, so the first one, of the room garden, is done by
         * then */
        expect_received_bytes(fds[i], "no such room\n");
    for (int number = 0; number < LINES; number++) {
        snprintf(line, sizeof line, "line %d\n", number);
        send_line(fds[number % GUESTS], line);
        for (int i = 0; i < GUESTS; i++)
            expect_received_bytes(fds[i], line);
    }
    for (int i = 0; i < GUESTS; i++) {
        ck_assert(is_connection_silent(fds[i]));
        close(fds[i]);
    }
    domt_service_stop(&rooms);
}

DOMT_SUITE(60)
