/* The example `rooms`: lines come to all guests of a room and to no others, however the lines were
 * cut, and a guest who does not read is dropped without delaying the others. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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
    ck_assert_uint_eq(domt_service_profile_count(&rooms, "channels refused"), 1);
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
    ck_assert_uint_eq(domt_service_profile_count(&rooms, "channels reset"), 1);
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
        /* the error of the second join comes when the first join is done */
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
