/* /socket of the example `web`: browsers, and clients of the port for lines, are guests of the same
 * rooms. */
#include "tests/support/crowd.h"
#include "tests/support/suite.h"
#include "tests/system/site.h"
#include "tests/system/talks.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* largest number of bytes in a text: those of a line in the rooms without the name, ": " and the
 * line end */
#define TEXT_MAX 473u
#define UPGRADE                                                                                    \
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"                   \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

static const char handshake[] = "GET /socket HTTP/1.1\r\nHost: localhost\r\n" UPGRADE "\r\n";

static domt_site site;

/* Begin a WebSocket on a connection, and wait for the server's answer. */
static void send_upgrade_and_expect_101(int fd, const char *target)
{
    char text[1024];

    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n" UPGRADE "\r\n", target);
    domt_send_text(fd, text);
    domt_read_until_text(fd, "\r\n\r\n", text, sizeof text);
    ck_assert_msg(strncmp(text, "HTTP/1.1 101 ", 13) == 0, "%s", text);
    ck_assert(strcasestr(text, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n") != NULL);
}

static int open_websocket(const char *target)
{
    int fd = domt_connect_to_port(site.web);

    send_upgrade_and_expect_101(fd, target);
    return fd;
}

/* Send a frame of a WebSocket, masked by zeros. */
static void send_masked_frame(int fd, unsigned char kind, const char *bytes, size_t size)
{
    unsigned char head[8] = {0x80 | kind, 0x80 | 126, (unsigned char)(size >> 8),
                             (unsigned char)size};

    if (size < 126) {
        head[1] = (unsigned char)(0x80 | size);
        domt_send_all(fd, (const char *)head, 2);
        domt_send_all(fd, "\0\0\0", 4);
    } else {
        domt_send_all(fd, (const char *)head, 8);
    }
    domt_send_all(fd, bytes, size);
}

static void send_text_frame(int fd, const char *text)
{
    send_masked_frame(fd, 1, text, strlen(text));
}

/* Check that the next frame is a text with exactly these bytes. */
static void expect_text_frame(int fd, const char *text)
{
    char frame[1024];
    size_t size = strlen(text), head = size < 126 ? 2 : 4;

    ck_assert_int_eq(recv(fd, frame, head + size, MSG_WAITALL), (ssize_t)(head + size));
    ck_assert_int_eq(frame[0], (char)0x81);
    ck_assert_int_eq(frame[1], (char)(size < 126 ? size : 126));
    ck_assert_msg(memcmp(frame + head, text, size) == 0, "%.*s", (int)size, frame + head);
}

/* Check that the next frame is a close with this code, answer it, and check that the connection
 * ends. */
static void expect_close_frame(int fd, unsigned code)
{
    unsigned char frame[128];

    ck_assert_int_eq(recv(fd, frame, 4, MSG_WAITALL), 4);
    ck_assert_uint_eq(frame[0], 0x88);
    ck_assert_uint_eq(frame[2] * 256u + frame[3], code);
    ck_assert_int_eq(recv(fd, frame + 4, frame[1] - 2u, MSG_WAITALL), frame[1] - 2);
    send_masked_frame(fd, 8, (const char *)frame + 2, 2);
    ck_assert_int_eq(recv(fd, frame, 1, 0), 0);
    close(fd);
}

/* Connect to the port for lines, and wait until lines of the room come to this connection. */
static int join_room_by_lines(const char *room)
{
    char text[64];
    int fd = domt_connect_to_port(site.rooms);

    snprintf(text, sizeof text, "/join %s\nI am here\n", room);
    domt_send_text(fd, text);
    ck_assert(domt_does_answer_match_pattern(fd, "I am here\n"));
    return fd;
}

/* Start the site, with one guest of each kind in the room garden. */
static void start_site_with_two_guests(const char *target, int *ret_ada, int *ret_lines)
{
    domt_site_start_program(&site, (const char *const[]){NULL});
    *ret_ada = open_websocket(target);
    *ret_lines = join_room_by_lines("garden");
    expect_text_frame(*ret_ada, "I am here");
}

DOMT_TEST(guests_by_lines_and_by_websocket_hear_each_other)
{
    int ada, lines;

    start_site_with_two_guests("/socket?room=garden&name=ada%20l", &ada, &lines);
    int nameless = open_websocket("/socket");
    send_text_frame(ada, "hello \xc3\xa9");
    ck_assert(domt_does_answer_match_pattern(lines, "ada l: hello \xc3\xa9\n"));
    expect_text_frame(ada, "ada l: hello \xc3\xa9");
    domt_send_text(lines, "hello ada\r\n");
    expect_text_frame(ada, "hello ada");
    send_text_frame(nameless, "alone in the lobby");
    expect_text_frame(nameless, "alone in the lobby");
    domt_send_text(lines, "/join lobby\nnow here\n");
    /* the first line that comes is this one: no line of the garden came before */
    expect_text_frame(nameless, "now here");
    close(lines);
    close(ada);
    close(nameless);
    domt_site_stop_program(&site);
}

DOMT_TEST(a_handshake_is_refused_with_a_status)
{
    static const struct {
        const char *request, *fields;
        unsigned status;
    } rows[] = {
        {"GET /socket", "", 426},
        {"POST /socket", UPGRADE, 405},
        {"GET /socket?room=cellar", UPGRADE, 404},
        {"GET /socket?room=%zz", UPGRADE, 404},
        {"GET /socket?name=123456789012345678901234567890123", UPGRADE, 400},
        {"GET /socket?name=%zz", UPGRADE, 400},
        {"GET /socket", UPGRADE "Origin: http://localhost.example\r\n", 403},
        {"GET /socket", UPGRADE "Origin: http://example\r\n", 403},
        {"GET /socket", UPGRADE "Origin: null\r\n", 403},
        {"GET /socket", UPGRADE "Origin: \r\n", 403},
    };
    int fd;

    domt_site_start_program(&site, (const char *const[]){NULL});
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsigned got = domt_site_ask(&site, rows[i].request, rows[i].fields, NULL);
        ck_assert_msg(got == rows[i].status, "row %zu: %u: %s", i, got, site.answer);
    }
    fd = domt_connect_to_port(site.web);
    /* an ordinary request on the connection comes before the WebSocket's */
    domt_send_text(fd, "GET /json HTTP/1.1\r\nHost: a\r\n\r\n");
    domt_read_until_text(fd, "}\n", site.answer, sizeof site.answer);
    send_upgrade_and_expect_101(fd, "/socket?name=12345678901234567890123456789012");
    send_text_frame(fd, "here");
    expect_text_frame(fd, "12345678901234567890123456789012: here");
    close(fd);
    domt_site_stop_program(&site);
}

/* No text can become two lines, and no line can end a browser's connection. */
DOMT_TEST(a_text_stays_one_line_and_a_line_stays_a_valid_text)
{
    char text[TEXT_MAX + 2], line[1024];
    int ada, lines;

    start_site_with_two_guests("/socket?room=garden&name=a%0Ad%1B", &ada, &lines);
    send_text_frame(ada, "one\ntwo\r\x1b[2J/join lobby\x7f");
    ck_assert(domt_does_answer_match_pattern(lines, "a d : one two  [2J/join lobby \n"));
    expect_text_frame(ada, "a d : one two  [2J/join lobby ");
    domt_send_text(lines, "caf\xc3\xa9 \xff\xfe\n");
    /* invalid UTF-8 in a line is replaced, because a text has to be valid as a whole */
    expect_text_frame(ada, "caf?? ??");
    domt_send_text(lines, "\n");
    expect_text_frame(ada, "");
    send_masked_frame(ada, 1, "", 0);
    expect_text_frame(ada, "a d : ");
    ck_assert(domt_does_answer_match_pattern(lines, "caf\xc3\xa9 \xff\xfe\n\na d : \n"));
    memset(text, 'a', sizeof text);
    send_masked_frame(ada, 1, text, TEXT_MAX);
    text[TEXT_MAX] = '\0';
    snprintf(line, sizeof line, "a d : %s", text);
    expect_text_frame(ada, line);
    text[TEXT_MAX] = 'a';
    send_masked_frame(ada, 1, text, TEXT_MAX + 1);
    expect_close_frame(ada, 1009);
    int eve = open_websocket("/socket");
    send_masked_frame(eve, 2, "a", 1);
    expect_close_frame(eve, 1003);
    eve = open_websocket("/socket");
    send_masked_frame(eve, 1, "\xff", 1);
    expect_close_frame(eve, 1007);
    domt_send_text(lines, "still here\n");
    close(lines);
    domt_site_stop_program(&site);
}

/* The deaf browser is dropped when rooms.slowBytes wait for it; the others get every line. */
DOMT_TEST(a_browser_that_does_not_read_is_dropped)
{
    static char text[TEXT_MAX + 1];

    domt_site_start_program(&site, (const char *const[]){"web.rooms.slowBytes=1KiB",
                                                         "channel.socket.sendBuffer=8KiB", NULL});
    int deaf = domt_connect_with_small_buffers(&site.service);
    send_upgrade_and_expect_101(deaf, "/socket");
    int good = open_websocket("/socket");
    memset(text, 'x', TEXT_MAX);
    for (int i = 0; i < 1000; i++) {
        send_text_frame(good, text);
        expect_text_frame(good, text);
    }
    while (recv(deaf, site.answer, sizeof site.answer, 0) > 0)
        continue;
    ck_assert_int_eq(errno, ECONNRESET);
    close(deaf);
    send_masked_frame(good, 8, "\x03\xe8", 2);
    /* the service answers with the same close, and ends the connection */
    ck_assert_int_eq(recv(good, site.answer, 5, MSG_WAITALL), 4);
    close(good);
    domt_site_stop_program(&site);
    ck_assert_uint_eq(domt_service_count_in_profile(&site.service, "channels reset"), 1);
}

/* A refused handshake takes no place in the room, and a guest who leaves frees its place. */
DOMT_TEST(a_full_room_refuses_a_handshake)
{
    domt_site_start_program(&site, (const char *const[]){"groups.membersMax=1", NULL});
    int refused = domt_connect_to_port(site.web);
    domt_send_text(refused, "GET /socket HTTP/1.1\r\nHost: a\r\n\r\n");
    domt_read_until_text(refused, "HTTP/1.1 426 ", site.answer, sizeof site.answer);
    int fd = open_websocket("/socket");
    ck_assert_uint_eq(domt_site_ask(&site, "GET /socket", UPGRADE, NULL), 503);
    int other = open_websocket("/socket?room=garden");
    send_masked_frame(fd, 8, "\x03\xe8", 2);
    ck_assert_int_eq(recv(fd, site.answer, 5, MSG_WAITALL), 4);
    close(fd);
    unsigned status = 503;
    while (status == 503) {
        fd = domt_connect_to_port(site.web);
        domt_send_text(fd, handshake);
        domt_read_until_text(fd, "\r\n\r\n", site.answer, sizeof site.answer);
        status = (unsigned)strtoul(site.answer + 9, NULL, 10);
        close(fd);
    }
    ck_assert_uint_eq(status, 101);
    close(refused);
    close(other);
    domt_site_stop_program(&site);
}

DOMT_TEST(browsers_hear_that_the_program_ends)
{
    domt_site_start_program(&site, (const char *const[]){NULL});
    int fd = open_websocket("/socket");
    send_text_frame(fd, "here");
    expect_text_frame(fd, "here");
    domt_service_signal(&site.service, SIGTERM);
    expect_close_frame(fd, 1001);
    ck_assert_int_eq(domt_service_wait(&site.service, 10000), 0);
}

DOMT_SUITE(30)
