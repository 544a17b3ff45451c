/* The example `web` at its limits: each limit is reached, is reported to the client, and no longer
 * holds when there is room again. */
#include "tests/support/crowd.h"
#include "tests/support/suite.h"
#include "tests/system/redis.h"
#include "tests/system/site.h"
#include "tests/system/talks.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define KIB 1024u

static domt_site site;

/* Returns `count` letters, valid until the next call. */
static const char *make_letters(size_t size)
{
    static char text[2048 * KIB];

    ck_assert_uint_lt(size, sizeof text);
    memset(text, 'a', size);
    text[size] = '\0';
    return text;
}

DOMT_TEST(a_value_of_the_store_is_bounded)
{
    char text[512];

    domt_site_start_program(&site, (const char *const[]){"web.valueMax=8KiB", NULL});
    domt_site_expect_answer(&site, "PUT /kv/a", make_letters(8 * KIB), 204, NULL);
    domt_site_expect_answer(&site, "PUT /kv/b", make_letters(8 * KIB + 1), 413, NULL);
    domt_site_expect_answer(&site, "GET /kv/b", NULL, 404, NULL);
    /* a body that is too large is refused before it is sent */
    ck_assert_uint_eq(
        domt_site_ask(&site, "PUT /kv/b", "Expect: 100-continue\r\nContent-Length: 8193\r\n", NULL),
        413);
    ck_assert(strstr(site.answer, "100 Continue") == NULL);
    /* this body is too large, and its length is not announced */
    int fd = domt_connect_to_port(site.web);
    domt_send_text(fd, "PUT /kv/b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    domt_send_text(fd, "2001\r\n");
    domt_send_all(fd, make_letters(0x2001), 0x2001);
    domt_read_until_text(fd, "HTTP/1.1 413 ", text, sizeof text);
    close(fd);
    domt_site_expect_answer(&site, "GET /kv/b", NULL, 404, NULL);
    domt_site_stop_program(&site);
}

/* Begin to put a value into the store, and never send its last part. */
static int begin_to_put_value(void)
{
    int fd = domt_connect_to_port(site.web);

    domt_send_text(fd, "PUT /kv/a HTTP/1.1\r\nHost: a\r\nContent-Length: 600000\r\n\r\n");
    /* the service may refuse the value while it is sent */
    (void)send(fd, make_letters(500000), 500000, MSG_NOSIGNAL);
    return fd;
}

/* Two values that have come in part use the room of a third one; when one of them is gone, there is
 * room again. While all three are still coming, any of them may be refused. */
DOMT_TEST(values_that_have_come_in_part_are_bounded_together)
{
    int fds[2] = {-1, -1};
    bool are_waiting = false;
    char byte;

    domt_site_start_program(
        &site, (const char *const[]){"web.valueMax=1MiB", "web.gatheredMax=1MiB", NULL});
    for (unsigned status = 0; status != 503 || !are_waiting;) {
        are_waiting = true;
        for (int i = 0; i < 2; i++) {
            if (fds[i] >= 0 && recv(fds[i], &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN)
                continue;
            are_waiting = false;
            close(fds[i]);
            fds[i] = begin_to_put_value();
        }
        status = domt_site_ask(&site, "PUT /kv/b", "", make_letters(100000));
    }
    close(fds[0]);
    while (domt_site_ask(&site, "PUT /kv/b", "", make_letters(100000)) != 204)
        domt_sleep_ms(2);
    close(fds[1]);
    domt_site_stop_program(&site);
}

DOMT_TEST(a_full_store_refuses_values_with_507)
{
    domt_site_start_program(
        &site, (const char *const[]){"web.kv.maxMemory=1MiB", "web.kv.shards=1", NULL});
    for (int i = 0; i < 20 && site.status != 507; i++) {
        char request[32];
        snprintf(request, sizeof request, "PUT /kv/%d", i);
        (void)domt_site_ask(&site, request, "", make_letters(100 * KIB));
    }
    ck_assert_uint_eq(site.status, 507);
    domt_site_expect_answer(&site, "GET /kv/0", NULL, 200, NULL);
    domt_site_expect_answer(&site, "DELETE /kv/0", NULL, 204, NULL);
    domt_site_expect_answer(&site, "PUT /kv/0", make_letters(50 * KIB), 204, NULL);
    domt_site_stop_program(&site);
}

DOMT_TEST(a_store_with_a_password_refuses_requests_by_http)
{
    domt_site_start_program(&site, (const char *const[]){"web.kv.password=secret", NULL});
    int kv = domt_connect_to_port(site.kv);
    domt_resp_expect_trace(kv, "AUTH secret", "+OK\r\n");
    domt_resp_expect_trace(kv, "SET a 1", "+OK\r\n");
    close(kv);
    domt_site_expect_answer(&site, "GET /kv/a", NULL, 403, NULL);
    domt_site_expect_answer(&site, "PUT /kv/a", "2", 403, NULL);
    domt_site_expect_answer(&site, "DELETE /kv/a", NULL, 403, NULL);
    domt_site_stop_program(&site);
}

DOMT_TEST(a_key_of_the_store_is_bounded)
{
    char request[1024];

    domt_site_start_program(&site, (const char *const[]){NULL});
    snprintf(request, sizeof request, "PUT /kv/%.512s", make_letters(512));
    domt_site_expect_answer(&site, request, "1", 204, NULL);
    snprintf(request, sizeof request, "PUT /kv/%.513s", make_letters(513));
    domt_site_expect_answer(&site, request, "1", 400, "cannot be a key");
    domt_site_stop_program(&site);
}

/* A body that is announced as too long is refused; a body that turns out to be too long is cut, so
 * that a part is never stored as the whole. */
DOMT_TEST(a_body_that_is_echoed_is_bounded)
{
    char text[4096];
    ssize_t size;

    domt_site_start_program(&site, (const char *const[]){"web.bodyMax=8KiB", NULL});
    domt_site_expect_answer(&site, "POST /echo", make_letters(8 * KIB), 200, make_letters(8 * KIB));
    domt_site_expect_answer(&site, "POST /echo", make_letters(8 * KIB + 1), 413, NULL);
    int fd = domt_connect_to_port(site.web);
    domt_send_text(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    domt_send_text(fd, "1\r\na\r\n");
    domt_read_until_text(fd, "1\r\na\r\n", text, sizeof text);
    domt_send_text(fd, "2000\r\n");
    /* the service may reset the connection while the piece is sent */
    (void)send(fd, make_letters(0x2000), 0x2000, MSG_NOSIGNAL);
    while ((size = recv(fd, text, sizeof text, 0)) > 0)
        ck_assert(memmem(text, (size_t)size, "0\r\n\r\n", 5) == NULL);
    close(fd);
    domt_site_stop_program(&site);
}

/* A page that disconnects, in any state, frees its place. A second stream behind the first one of a
 * connection could never begin, so it takes no place. */
DOMT_TEST(pages_with_events_are_bounded)
{
    static const char request[] = "GET /events HTTP/1.1\r\nHost: a\r\n\r\n";
    static char text[65536];
    int fds[2];

    domt_site_start_program(&site,
                            (const char *const[]){"web.eventsMax=2", "web.tick=100ms", NULL});
    for (int i = 0; i < 2; i++) {
        fds[i] = domt_connect_to_port(site.web);
        domt_send_text(fds[i], request);
        domt_send_text(fds[i], request);
        domt_read_until_text(fds[i], "retry: ", text, sizeof text);
    }
    domt_site_expect_answer(&site, "GET /events", NULL, 503, "too many pages");
    close(fds[0]);
    for (unsigned status = 503; status == 503;) {
        int fd = domt_connect_to_port(site.web);
        domt_send_text(fd, request);
        domt_read_until_text(fd, "\r\n\r\n", text, sizeof text);
        status = (unsigned)strtoul(text + 9, NULL, 10);
        close(fd);
    }
    domt_read_until_text(fds[1], "event: rate", text, sizeof text);
    close(fds[1]);
    domt_site_stop_program(&site);
}

/* A HEAD request takes a place only while it is answered, and its connection goes on. */
DOMT_TEST(a_head_request_for_events_takes_no_place)
{
    static char text[65536];

    domt_site_start_program(&site, (const char *const[]){"web.eventsMax=1", NULL});
    int fd = domt_connect_to_port(site.web);
    domt_send_text(fd, "HEAD /events HTTP/1.1\r\nHost: a\r\n\r\n");
    domt_send_text(fd, "GET /json HTTP/1.1\r\nHost: a\r\n\r\n");
    domt_read_until_text(fd, "}\n", text, sizeof text);
    ck_assert(strstr(text, "Content-Type: text/event-stream\r\n") != NULL);
    int other = domt_connect_to_port(site.web);
    domt_send_text(other, "GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
    domt_read_until_text(other, "retry: ", text, sizeof text);
    close(other);
    close(fd);
    domt_site_stop_program(&site);
}

/* Close a connection by a reset, which the other side notices at once. */
static void reset_connection(int fd)
{
    struct linger none = {.l_onoff = 1, .l_linger = 0};

    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none), 0);
    close(fd);
}

/* Pages that have disconnected before a tick do not delay other pages' events, however many they
 * are. */
DOMT_TEST(pages_that_come_and_go_take_nothing_from_others)
{
    static const char request[] = "GET /events HTTP/1.1\r\nHost: a\r\n\r\n";
    static char text[65536];
    int fd = -1;

    domt_site_start_program(&site, (const char *const[]){"web.eventsMax=1", "web.tick=1m", NULL});
    for (int came = 0; came < 4;) {
        fd = domt_connect_to_port(site.web);
        domt_send_text(fd, request);
        domt_read_until_text(fd, "\r\n\r\n", text, sizeof text);
        bool is_in = strncmp(text, "HTTP/1.1 200 ", 13) == 0;
        came += is_in;
        /* the next page may connect before the reset page's place is free */
        if (!is_in || came < 4)
            reset_connection(fd);
    }
    domt_service_signal(&site.service, SIGTERM);
    domt_read_until_text(fd, "0\r\n\r\n", text,
                         sizeof text); /* the last page's stream ends properly */
    close(fd);
    ck_assert_int_eq(domt_service_wait(&site.service, 10000), 0);
}

/* A page that never reads is cut at channel.sendTimeout, and other pages get their events
 * meanwhile. */
DOMT_TEST(a_page_that_does_not_read_holds_up_nobody)
{
    static char text[65536];

    domt_site_start_program(&site, (const char *const[]){"web.tick=100ms", NULL});
    int deaf = domt_connect_with_small_buffers(&site.service);
    int fd = domt_connect_to_port(site.web);
    domt_send_text(deaf, "GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
    domt_send_text(fd, "GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
    for (int i = 0; i < 3; i++)
        domt_read_until_text(fd, "event: rate", text, sizeof text);
    close(deaf);
    close(fd);
    domt_site_stop_program(&site);
}

/* A page whose name points to the loopback address only now gets nothing of the site. */
DOMT_TEST(a_site_on_loopback_answers_to_its_own_names)
{
    static const struct {
        const char *host;
        const char *begin;
    } hosts[] = {
        {"Host: localhost\r\n", "HTTP/1.1 200 "},
        {"Host: LocalHost:7005\r\n", "HTTP/1.1 200 "},
        {"Host: my.localhost\r\n", "HTTP/1.1 200 "},
        {"Host: 127.0.0.1:1\r\n", "HTTP/1.1 200 "},
        {"Host: 127.255.1.2\r\n", "HTTP/1.1 200 "},
        {"Host: [::1]:80\r\n", "HTTP/1.1 200 "},
        {"Host: [::ffff:127.0.0.1]\r\n", "HTTP/1.1 200 "},
        {"Host: evil.example\r\n", "HTTP/1.1 421 "},
        {"Host: localhost.evil.example\r\n", "HTTP/1.1 421 "},
        {"Host: evillocalhost\r\n", "HTTP/1.1 421 "},
        {"Host: 127.0.0.1.evil.example\r\n", "HTTP/1.1 421 "},
        {"Host: 128.0.0.1\r\n", "HTTP/1.1 421 "},
        {"Host: [::2]\r\n", "HTTP/1.1 421 "},
        {"Host: 0\r\n", "HTTP/1.1 421 "},
    };
    char text[1024];

    domt_site_start_program(&site, (const char *const[]){"web.checkHost=true", NULL});
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        int fd = domt_connect_to_port(site.web);
        snprintf(text, sizeof text, "GET /json HTTP/1.1\r\n%s\r\n", hosts[i].host);
        domt_send_text(fd, text);
        domt_read_until_text(fd, hosts[i].begin, text, sizeof text);
        close(fd);
    }
    domt_site_stop_program(&site);
}

DOMT_SUITE(30)
