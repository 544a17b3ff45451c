/* protocols/observe/log.c: a viewer that follows the log gets every line, or is told how many lines
 * it misses; it takes bounded memory when it does not read, and cannot keep the port from being
 * closed. */
#include "tests/runtime/port.h"
#include "tests/support/crowd.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define CROWD 1000
#define LOT   100
#define KEPT  DOMUS_LOG_KEPT

static char *const text = domt_port_text; /* text of the port's last answer */

/* --- a log ------------------------------------------------------------------------------------ */

/* number of the newest line of the log, which keeps its last KEPT lines */
static _Atomic uint64_t newest;
static _Atomic uint64_t reads;
static atomic_bool endless; /* true: each read of the log adds one line, so the log never ends */

static int read_lines_of_endless_log(void *context, uint64_t from, domus_log_line *ret_line)
{
    uint64_t last = atomic_load(&endless) ? atomic_fetch_add(&newest, 1) + 1 : atomic_load(&newest);
    uint64_t oldest = last > KEPT ? last - KEPT + 1 : 1;

    ck_assert_ptr_eq(context, &newest);
    atomic_fetch_add(&reads, 1);
    if (from < oldest)
        from = oldest;
    if (from > last)
        return -ENOENT;
    *ret_line = (domus_log_line){
        .number = from, .utc_ns = UINT64_C(1700000000123456789), .thread = DOMUS_LOG_OUTSIDE};
    ret_line->level = (domus_log_level)(from % 3);
    snprintf(ret_line->text, sizeof ret_line->text, "line %07llu %0400d", (unsigned long long)from,
             0);
    return 0;
}

static const domus_log_source source = {.read = read_lines_of_endless_log, .context = &newest};

static domus_system *start_system(uint32_t viewers)
{
    domus_config config = domt_config_of_threads(1);
    atomic_store(&newest, 0);
    atomic_store(&endless, false);
    config.observe.viewers_max = viewers;
    return domt_port_start_and_open(&config);
}

/* Read the stream of the log into `text` until it contains `part`. */
static void read_stream_until_text(int fd, const char *part)
{
    (void)domt_read_until_text(fd, part, text, sizeof domt_port_text);
}

/* --- lines ------------------------------------------------------------------------------------ */

DOMT_TEST(port_without_a_source_of_log_lines_answers_404)
{
    domus_system *system = start_system(4);

    ck_assert_uint_eq(domt_port_request_and_read("GET /log"), 404);
    ck_assert_uint_eq(domt_port_request_and_read("GET /log?follow=1"), 404);
    domus_observe_front.set_log(NULL, &source);
    ck_assert_uint_eq(domt_port_request_and_read("GET /log"), 404);
    domus_observe_front.set_log(domt_port, &source);
    ck_assert_uint_eq(domt_port_request_and_read("GET /log"), 200);
    ck_assert_ptr_nonnull(strstr(text, "Content-Length: 0\r\n"));
    domt_port_close_and_end(system);
}

DOMT_TEST(lines_have_their_time_and_level)
{
    domus_system *system = start_system(4);

    domus_observe_front.set_log(domt_port, &source);
    atomic_store(&newest, 4);
    ck_assert_uint_eq(domt_port_request_and_read("GET /log"), 200);
    ck_assert_ptr_nonnull(strstr(text, "\n2023-11-14T22:13:20.123Z warning: line 0000001 0"));
    ck_assert_ptr_nonnull(strstr(text, "\n2023-11-14T22:13:20.123Z info: line 0000002 0"));
    ck_assert_ptr_nonnull(strstr(text, "\n2023-11-14T22:13:20.123Z error: line 0000003 0"));
    ck_assert_uint_eq(domt_port_request_and_read("GET /log?level=warning"), 200);
    ck_assert_ptr_null(strstr(text, "info: "));
    ck_assert_ptr_nonnull(strstr(text, " error: line 0000003 "));
    ck_assert_ptr_nonnull(strstr(text, " warning: line 0000004 "));
    ck_assert_uint_eq(domt_port_request_and_read("GET /log?level=error&follow=0"), 200);
    ck_assert_ptr_null(strstr(text, "warning: "));
    ck_assert_ptr_nonnull(strstr(text, " error: line 0000003 "));
    ck_assert_uint_eq(domt_port_request_and_read("HEAD /log?follow=1"), 200);
    domt_port_close_and_end(system);
}

DOMT_TEST(wrong_queries_of_the_log_are_refused)
{
    static const char *const wrong[] = {"level=",           "level=debug",
                                        "level=Error",      "level=error%00",
                                        "level=%zz",        "level=errorrr",
                                        "follow=2",         "follow=",
                                        "follow=11",        "follow=%31%31",
                                        "level=error%20",   "level=-1",
                                        "follow=1&level=x", "level=aaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    domus_system *system = start_system(4);
    char request[128];

    domus_observe_front.set_log(domt_port, &source);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        snprintf(request, sizeof request, "GET /log?%s", wrong[i]);
        unsigned status = domt_port_request_and_read(request);
        ck_assert_msg(status == 400, "%s: %u", wrong[i], status);
        snprintf(request, sizeof request, "POST /log?%s", wrong[i]);
        status = domt_port_request_and_read(request);
        ck_assert_msg(status == 400, "%s: %u", wrong[i], status);
    }
    ck_assert_int_eq(domus_system_log_level(system), DOMUS_LOG_INFO);
    ck_assert_uint_eq(domt_port_request_and_read("POST /log"), 400);
    ck_assert_uint_eq(domt_port_request_and_read("POST /log?level=%65rror"), 200);
    ck_assert_ptr_nonnull(strstr(text, "\r\n\r\nerror\n"));
    ck_assert_int_eq(domus_system_log_level(system), DOMUS_LOG_ERROR);
    ck_assert_uint_eq(domt_port_request_and_read("POST /log?level=warning"), 200);
    ck_assert_int_eq(domus_system_log_level(system), DOMUS_LOG_WARNING);
    domt_port_close_and_end(system);
}

/* A page of another site that a browser of this machine shows can change nothing at the port. */
DOMT_TEST(pages_of_other_sites_cannot_change_log_level)
{
    static const char post[] = "POST /log?level=error HTTP/1.1\r\nHost: localhost\r\n"
                               "Origin: http://evil.example\r\nConnection: close\r\n\r\n";
    domus_system *system = start_system(4);
    int fd = domt_connect_to_port(domt_port_number);

    ck_assert_int_eq(send(fd, post, sizeof post - 1, MSG_NOSIGNAL), (int)sizeof post - 1);
    read_stream_until_text(fd, "HTTP/1.1 403 ");
    ck_assert_int_eq(domus_system_log_level(system), DOMUS_LOG_INFO);
    close(fd);
    domt_port_close_and_end(system);
}

/* --- followers -------------------------------------------------------------------------------- */

DOMT_TEST(a_follower_gets_lines_as_they_come)
{
    domus_system *system = start_system(4);

    domus_observe_front.set_log(domt_port, &source);
    atomic_store(&newest, 2);
    int fd = domt_port_send_request("GET /log?follow=1");
    read_stream_until_text(fd, "line 0000002 ");
    ck_assert_ptr_nonnull(strstr(text, "HTTP/1.1 200 OK\r\n"));
    ck_assert_ptr_nonnull(strstr(text, "Transfer-Encoding: chunked\r\n"));
    ck_assert_ptr_nonnull(strstr(text, "Cache-Control: no-store\r\n"));
    ck_assert_ptr_nonnull(strstr(text, "line 0000001 "));
    atomic_store(&newest, 3);
    read_stream_until_text(fd, "line 0000003 ");
    atomic_store(&newest, 100);
    read_stream_until_text(fd, "line 0000100 ");
    ck_assert_ptr_nonnull(strstr(text, "line 0000099 "));
    ck_assert_ptr_null(strstr(text, "dropped"));
    atomic_store(&newest, 100 + KEPT + 7);
    read_stream_until_text(fd, "line 0000363 ");
    ck_assert_ptr_nonnull(strstr(text, "\n7 lines were dropped\n"));
    close(fd);
    domt_port_close_and_end(system);
}

static void *read_stream_to_the_end(void *fd)
{
    read_stream_until_text(*(const int *)fd, "\r\n0\r\n\r\n");
    close(*(const int *)fd);
    return NULL;
}

/* The follower's stream is not cut, and the close does not wait for the second that a drain may
 * last. */
DOMT_TEST(a_follower_gets_the_last_lines_and_the_end)
{
    domus_system *system = start_system(4);
    pthread_t reader;

    domus_observe_front.set_log(domt_port, &source);
    int fd = domt_port_send_request("GET /log?follow=1&level=error");
    read_stream_until_text(fd, "\r\n\r\n");
    ck_assert_int_eq(pthread_create(&reader, NULL, read_stream_to_the_end, &fd), 0);
    atomic_store(&newest, 200);
    uint64_t began_ns = domt_now_ns();
    domus_observe_front.close(domt_port);
    ck_assert_uint_lt(domt_now_ns() - began_ns, 900 * DOMT_MS);
    pthread_join(reader, NULL);
    ck_assert_ptr_nonnull(strstr(text, "error: line 0000198 "));
    ck_assert_ptr_null(strstr(text, "info: "));
    domt_end_system(system);
}

/* Connect to the port with a small receive buffer, and send a request. Returns the connection. */
static int request_with_small_receive_buffer(const char *request)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(domt_port_number)};
    int bytes = 4096, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes), 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    ck_assert_int_eq(send(fd, request, strlen(request), MSG_NOSIGNAL), (int)strlen(request));
    return fd;
}

/* Wait until no more lines of the log are read, because no viewer takes more bytes. */
static void wait_until_log_is_not_read(void)
{
    uint64_t before;
    do {
        before = atomic_load(&reads);
        domt_pause_ns(120 * DOMT_MS);
    } while (before == 0 || before != atomic_load(&reads));
}

/* A viewer that does not read gets as much of an endless log as fits into the buffers, and no other
 * viewer has to wait. */
DOMT_TEST(a_follower_that_does_not_read_holds_up_nobody)
{
    static const char follow[] = "GET /log?follow=1 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    domus_system *system = start_system(4);
    unsigned long long lost;

    domus_observe_front.set_log(domt_port, &source);
    atomic_store(&endless, true);
    int fd = request_with_small_receive_buffer(follow);
    wait_until_log_is_not_read();
    /* 20000 lines have 8 MB, most of which lie in buffers of the kernel */
    ck_assert_uint_lt(atomic_load(&reads), 20000);
    ck_assert_uint_eq(domt_port_request_and_read("GET /health"), 200);
    atomic_store(&endless, false);
    uint64_t sent = atomic_load(&newest);
    atomic_fetch_add(&newest, 100000);
    size_t size = 0;
    ssize_t got = 1;
    while (got > 0 && (size < 64 || memmem(text, size, "lines were dropped", 18) == NULL)) {
        /* keep only the end of the text, in which the dropped lines are told */
        if (size > sizeof domt_port_text / 2) {
            memmove(text, text + size - 64, 64);
            size = 64;
        }
        got = recv(fd, text + size, sizeof domt_port_text - 1 - size, 0);
        size += got > 0 ? (size_t)got : 0;
    }
    ck_assert_int_gt((int)got, 0);
    text[size] = '\0';
    const char *dropped = strstr(text, " lines were dropped");
    while (dropped[-1] >= '0' && dropped[-1] <= '9')
        dropped--;
    ck_assert_int_eq(sscanf(dropped, "%llu lines", &lost), 1);
    ck_assert_uint_eq(lost, atomic_load(&newest) - KEPT - sent);
    close(fd);
    domt_port_close_and_end(system);
}

DOMT_TEST(followers_that_do_not_read_end_with_the_port)
{
    static const char follow[] = "GET /log?follow=1 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    domus_system *system = start_system(8);
    int fds[4];

    domus_observe_front.set_log(domt_port, &source);
    atomic_store(&endless, true);
    for (int i = 0; i < 4; i++)
        fds[i] = request_with_small_receive_buffer(follow);
    wait_until_log_is_not_read();
    uint64_t began_ns = domt_now_ns();
    domus_observe_front.close(domt_port);
    ck_assert_uint_lt(domt_now_ns() - began_ns, 4000 * DOMT_MS);
    for (int i = 0; i < 4; i++)
        close(fds[i]);
    domt_end_system(system);
}

/* A viewer that reads an endless log without a pause does not keep the port from answering
 * others. */
DOMT_TEST(a_follower_that_reads_holds_up_nobody)
{
    domus_system *system = start_system(4);

    domus_observe_front.set_log(domt_port, &source);
    atomic_store(&endless, true);
    int fd = domt_port_send_request("GET /log?follow=1");
    for (int i = 0; i < 20; i++) {
        (void)recv(fd, text, sizeof domt_port_text, 0);
        ck_assert_uint_eq(domt_port_request_and_read("GET /health"), 200);
    }
    close(fd);
    domt_port_close_and_end(system);
}

static void raise_limit_of_descriptors(void)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* The place of a viewer that has gone is free again, even if no line comes in the log. */
DOMT_TEST(followers_of_a_log_have_few_places_that_become_free)
{
    static int fds[CROWD];
    uint32_t follow = 0, refused = 0;

    raise_limit_of_descriptors();
    domus_system *system = start_system(CROWD + 1);
    domus_observe_front.set_log(domt_port, &source);
    for (int i = 0; i < CROWD; i++) {
        /* wait after each lot, because more connects at once would not fit into the backlog */
        if (i % LOT == 0)
            for (int k = i; k < i + LOT; k++)
                fds[k] = domt_port_send_request("GET /log?follow=1");
        read_stream_until_text(fds[i], "\r\n\r\n");
        follow += strstr(text, "HTTP/1.1 200 OK") != NULL;
        refused += strstr(text, "HTTP/1.1 503 ") != NULL;
    }
    ck_assert_uint_eq(follow, DOMUS_OBSERVE_FOLLOWERS_MAX);
    ck_assert_uint_eq(refused, CROWD - DOMUS_OBSERVE_FOLLOWERS_MAX);
    ck_assert_uint_eq(domt_port_request_and_read("GET /health"), 200);
    for (int i = 0; i < CROWD; i++)
        close(fds[i]);
    bool found = false;
    for (int i = 0; i < 100 && !found; i++) {
        int fd = domt_port_send_request("GET /log?follow=1");
        read_stream_until_text(fd, "\r\n\r\n");
        found = strstr(text, "HTTP/1.1 200 OK") != NULL;
        close(fd);
        domt_pause_ns(20 * DOMT_MS);
    }
    ck_assert(found);
    domt_port_close_and_end(system);
}

DOMT_SUITE(60)
