/* Viewers of the observation port: its live page, its sockets, and its answers while the program
 * stops. The program goes on whatever viewers do. */
#include "tests/support/crowd.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"
#include "tests/system/observe.h"
#include "tests/system/talks.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* The live page of the observation port and its stream /live. tests/system/page_browser.py uses
 * the page in headless Chromium as a person does; without Chromium that part is left out. */

#define WAIT_MS 10000
#define TICK_MS 250

static domt_observed web;

static uint64_t monotonic_ms(void)
{
    return domt_monotonic_ns() / 1000000;
}

/* A viewer of /live, and all bytes that it has read. */
struct viewer {
    int fd;
    size_t size;
    char text[65536];
};

static struct viewer viewers[3];

static void begin_viewer_of_stream(struct viewer *viewer)
{
    viewer->fd = domt_connect_to_port(web.port.web);
    viewer->size = 0;
    domt_send_text(viewer->fd, "GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

/* Let the viewer read for so many ms. Returns false at the end of the connection. */
static bool read_bytes_of_stream(struct viewer *viewer, int wait_ms)
{
    struct pollfd waiting = {.fd = viewer->fd, .events = POLLIN};

    if (poll(&waiting, 1, wait_ms) != 1)
        return true;
    ssize_t size = recv(viewer->fd, viewer->text + viewer->size,
                        sizeof viewer->text - 1 - viewer->size, MSG_DONTWAIT);
    if (size <= 0)
        return false;
    viewer->size += (size_t)size;
    viewer->text[viewer->size] = '\0';
    return true;
}

static uint32_t count_part_in_text(const char *text, const char *part)
{
    uint32_t found = 0;

    while ((text = strstr(text, part)) != NULL) {
        found++;
        text += strlen(part);
    }
    return found;
}

/* Let the viewer read until a text has come `times` times. */
static void await_text_in_stream(struct viewer *viewer, const char *part, uint32_t times)
{
    uint64_t until_ms = monotonic_ms() + WAIT_MS;

    viewer->text[viewer->size] = '\0';
    while (count_part_in_text(viewer->text, part) < times) {
        ck_assert_msg(monotonic_ms() < until_ms, "no %u of '%s' in: %s", times, part, viewer->text);
        ck_assert_msg(read_bytes_of_stream(viewer, 100), "the stream has ended: %s", viewer->text);
    }
}

DOMT_TEST(samples_come_four_times_a_second)
{
    domt_observed_start_web(&web, (const char *const[]){"web.kv.shards=8", NULL}, NULL);
    begin_viewer_of_stream(&viewers[0]);
    await_text_in_stream(&viewers[0], "]}\n\n", 2);
    /* living actors of the behaviour `shard` of the key-value store (web.kv.shards), on both
     * threads together */
    uint32_t shards = 0;
    const char *row = strstr(viewers[0].text, "[\"shard\",\"state\",");
    ck_assert_ptr_nonnull(row);
    (void)sscanf(row, "[\"shard\",\"state\",%*u,%*u,%*u,%*u,%*u,%*u,%u,", &shards);
    ck_assert_uint_eq(shards, 8);
    ck_assert_ptr_nonnull(strstr(viewers[0].text, "Content-Type: text/event-stream\r\n"));
    ck_assert_ptr_nonnull(strstr(viewers[0].text, "\"phases\":[\"submit\",\"sleep\","));
    ck_assert_ptr_nonnull(strstr(viewers[0].text, "\"threads\":2,"));
    ck_assert_ptr_nonnull(strstr(viewers[0].text, "{\"serial\":1,"));
    uint64_t begun_ms = monotonic_ms();
    await_text_in_stream(&viewers[0], "event: sample\n", 5);
    uint64_t took_ms = monotonic_ms() - begun_ms;
    ck_assert_uint_ge(took_ms, 4 * TICK_MS - 60);
    /* the bound is high, because the machine may be busy */
    ck_assert_uint_le(took_ms, 20 * TICK_MS);
    ck_assert_uint_eq(count_part_in_text(viewers[0].text, "event: names\n"), 1);

    /* a viewer that begins between two ticks gets the last sample in full, at once */
    begin_viewer_of_stream(&viewers[1]);
    await_text_in_stream(&viewers[1], "event: sample\n", 2);
    const char *first = strstr(viewers[1].text, "{\"serial\":");
    const char *second = strstr(first + 1, "{\"serial\":");
    ck_assert_uint_eq(strtoul(second + 10, NULL, 10), strtoul(first + 10, NULL, 10) + 1);
    /* this actor's figures do not change, so only the first sample has it */
    const char *idle = strstr(first, "[\"clock\",\"state\",");
    ck_assert(idle != NULL && idle < second && strstr(second, "[\"clock\",") == NULL);
    close(viewers[0].fd);
    close(viewers[1].fd);
    domt_observed_stop_web(&web);
}

DOMT_TEST(first_viewer_after_a_pause_begins_the_samples_again)
{
    domt_observed_start_web(&web, (const char *const[]){"observe.viewersMax=1", NULL}, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        begin_viewer_of_stream(&viewers[0]);
        await_text_in_stream(&viewers[0], "event: sample\n", 2);
        ck_assert_uint_eq(count_part_in_text(viewers[0].text, "event: names\n"), 1);
        ck_assert_ptr_nonnull(strstr(viewers[0].text, ",\"counters\":[[0,"));
        close(viewers[0].fd);
        usleep(3 * TICK_MS * 1000);
    }
    domt_observed_stop_web(&web);
}

DOMT_TEST(streams_leave_half_of_the_places_to_others)
{
    domt_observed_start_web(&web, (const char *const[]){"observe.viewersMax=4", NULL}, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        begin_viewer_of_stream(&viewers[i]);
        await_text_in_stream(&viewers[i], "event: sample\n", 1);
    }
    begin_viewer_of_stream(&viewers[2]);
    await_text_in_stream(&viewers[2], "HTTP/1.1 503 ", 1);
    close(viewers[2].fd);
    domt_site_expect_answer(&web.port, "GET /health", NULL, 200, NULL);
    close(viewers[0].fd); /* the service notices at the next tick that the viewer has left */
    usleep(3 * TICK_MS * 1000);
    begin_viewer_of_stream(&viewers[2]);
    await_text_in_stream(&viewers[2], "event: sample\n", 1);
    close(viewers[1].fd);
    close(viewers[2].fd);
    domt_observed_stop_web(&web);
}

DOMT_TEST(streams_end_when_the_program_begins_to_stop)
{
    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    begin_viewer_of_stream(&viewers[0]);
    await_text_in_stream(&viewers[0], "event: sample\n", 2);
    uint64_t begun_ms = monotonic_ms();
    ck_assert_int_eq(kill(web.site.service.pid, SIGTERM), 0);
    await_text_in_stream(&viewers[0], "\r\n0\r\n\r\n", 1); /* the last chunk of the stream's body */
    ck_assert_uint_lt(monotonic_ms() - begun_ms, 1000);
    close(viewers[0].fd);
    ck_assert_int_eq(domt_service_wait(&web.site.service, WAIT_MS), 0);
}

/* The page needs no other files, and its content security policy names the hashes of its script and
 * its style. */
DOMT_TEST(browsers_get_the_page_and_others_a_list)
{
    static const struct {
        const char *fields, *part;
    } rows[] = {
        {"", "/live     counters"},
        {"Accept: */*\r\n", "/live     counters"},
        {"Accept: text/html;q=0\r\n", "/live     counters"},
        {"Accept: text/html, */*;q=0.8\r\n", "<!doctype html>"},
        {"Accept: text/html\r\nAccept-Encoding: gzip;q=0, br\r\n", "<!doctype html>"},
        {"Accept: text/html\r\nAccept-Encoding: br, gzip;q=0.5\r\n", "Content-Encoding: gzip\r\n"},
        {"Accept: text/html\r\n", "default-src 'none'; connect-src 'self'; img-src data:; "
                                  "script-src 'sha256-"}};

    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_uint_eq(domt_site_ask(&web.port, "GET /", rows[i].fields, NULL), 200);
        ck_assert_msg(strstr(web.port.answer, rows[i].part) != NULL, "%s", rows[i].fields);
    }
    ck_assert_ptr_null(strstr(web.port.answer, "'unsafe-"));
    domt_observed_stop_web(&web);
}

DOMT_TEST(each_part_of_the_page_works_in_a_browser)
{
    char command[512];

    if (system("command -v chromium >/dev/null && command -v python3 >/dev/null") != 0) {
        printf("chromium or python3 is not installed, so the page is not tried\n");
        return;
    }
    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    snprintf(command, sizeof command,
             "timeout -k 5 120 python3 -B " DOMT_SOURCE_DIR
             "/tests/system/page_browser.py %u %u " DOMT_BIN_DIR "/../axe",
             web.port.web, web.site.web);
    ck_assert_int_eq(system(command), 0);
    domt_observed_stop_web(&web);
}

/* --- observe viewers -------------------------------------------------------------------------- */

/* libdomus-observe: the sockets of the port, its viewers, and its answers while the program stops.
 * The program goes on whatever viewers do. */

#define VIEWERS 1000
#define ASK     "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"

static domt_tree tree;

/* --- Unix sockets ----------------------------------------------------------------------------- */

static int listen_at_unix_socket(const char *path, int backlog)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    if (backlog > 0)
        ck_assert_int_eq(listen(fd, backlog), 0);
    return fd;
}

/* Start the example web with its port at a Unix socket, and wait until it is ready. */
static void start_web_with_observation_port_at(const char *setting)
{
    const char *arguments[64];

    domt_site_gather_arguments((const char *const[]){setting, NULL}, arguments, 64);
    domt_site_start_by_arguments(&web.site, arguments);
}

DOMT_TEST(a_unix_socket_is_its_owners_and_goes_with_the_program)
{
    char path[PATH_MAX], setting[PATH_MAX + 32];
    struct stat status;

    domt_tree_make(&tree);
    snprintf(path, sizeof path, "%s/x.sock", tree.root);
    snprintf(setting, sizeof setting, "observe.listen=unix:%s", path);
    close(listen_at_unix_socket(path, 0)); /* leaves a socket file without a listener */
    ck_assert_int_eq(chmod(path, 0777), 0);

    start_web_with_observation_port_at(setting);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(status.st_mode, S_IFSOCK | 0600);
    domt_observed_expect_answer_over_unix(path, "/health", 200, "ok\n");
    domt_observed_expect_answer_over_unix(path, "/metrics", 200, "domus_asks_total{thread=\"0\"} ");
    domt_observed_expect_answer_over_unix(path, "/actors", 200, "thread 0: ");
    domt_site_stop_program(&web.site);
    ck_assert_int_ne(stat(path, &status), 0);
    snprintf(setting, sizeof setting, "listening observe unix:%s\n", path);
    ck_assert_ptr_nonnull(strstr(web.site.service.said, setting));
    domt_tree_remove_copy(&tree);
}

DOMT_TEST(a_socket_of_another_program_is_left_alone)
{
    char path[PATH_MAX], setting[PATH_MAX + 32];
    struct stat status;

    domt_tree_make(&tree);
    snprintf(path, sizeof path, "%s/x.sock", tree.root);
    snprintf(setting, sizeof setting, "observe.listen=unix:%s", path);
    int other = listen_at_unix_socket(path, 4);
    ck_assert_int_eq(
        domt_observed_run_with_wrong_setting(&web, (const char *const[]){setting, NULL}), 1);
    ck_assert_ptr_nonnull(strstr(web.site.service.error, "Address already in use"));
    ck_assert_int_eq(stat(path, &status), 0);
    close(other);

    /* another program's socket will replace this one while the program runs */
    start_web_with_observation_port_at(setting);
    ck_assert_int_eq(unlink(path), 0);
    other = listen_at_unix_socket(path, 4);
    domt_site_stop_program(&web.site);
    ck_assert_int_eq(stat(path, &status), 0);
    close(other);
    domt_tree_remove_copy(&tree);
}

/* --- a stop ----------------------------------------------------------------------------------- */

/* A request whose body does not end keeps the drain waiting. */
DOMT_TEST(a_program_that_drains_is_not_ready_and_can_be_observed)
{
    char text[4096];

    domt_observed_start_web(&web, (const char *const[]){"shutdown.drainTimeout=20s", NULL}, NULL);
    int fd = domt_connect_to_port(web.site.web);
    domt_send_text(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\none");
    domt_read_until_text(fd, "\r\n\r\none", text, sizeof text);
    domt_site_expect_answer(&web.port, "GET /ready", NULL, 200, "ready\n");
    domt_service_signal(&web.site.service, SIGTERM);
    for (int i = 0; i < 1000 && domt_site_ask(&web.port, "GET /ready", "", NULL) == 200; i++)
        domt_sleep_ms(10);
    domt_site_expect_answer(&web.port, "GET /ready", NULL, 503, "not ready\n");
    domt_site_expect_answer(&web.port, "GET /health", NULL, 200, "ok\n");
    domt_site_expect_answer(&web.port, "GET /metrics", NULL, 200, "domus_drained_idle_total");
    domt_site_expect_answer(&web.port, "GET /profile", NULL, 200, "\"threads\":[{");
    ck_assert_uint_ne(domt_site_ask(&web.port, "GET /actors", "", NULL), 0);
    domt_send_text(fd, "two");
    domt_read_until_text(fd, "two", text, sizeof text);
    close(fd);
    ck_assert_int_eq(domt_service_wait(&web.site.service, 10000), 0);
}

/* --- viewers ---------------------------------------------------------------------------------- */

static void raise_limit_of_descriptors(void)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

DOMT_TEST(a_thousand_viewers_are_answered)
{
    static int fds[VIEWERS];
    char text[1024];

    raise_limit_of_descriptors();
    domt_observed_start_web(&web, (const char *const[]){"observe.viewersMax=1000", NULL}, NULL);
    for (int i = 0; i < VIEWERS; i++) {
        fds[i] = domt_connect_to_port(web.port.web);
        domt_send_text(fds[i], ASK);
    }
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < VIEWERS; i++) {
            domt_read_until_text(fds[i], "ok\n", text, sizeof text);
            if (round == 0)
                domt_send_text(fds[i], ASK);
        }
        domt_site_expect_answer(&web.site, "GET /json", NULL, 200, "hello");
    }
    for (int i = 0; i < VIEWERS; i++)
        close(fds[i]);
    domt_observed_stop_web(&web);
}

DOMT_TEST(viewers_beyond_the_limit_wait_for_a_place)
{
    int fds[3];
    char text[1024];

    domt_observed_start_web(&web, (const char *const[]){"observe.viewersMax=2", NULL}, NULL);
    for (int i = 0; i < 3; i++) {
        fds[i] = domt_connect_to_port(web.port.web);
        domt_send_text(fds[i], ASK);
        if (i < 2)
            domt_read_until_text(fds[i], "ok\n", text, sizeof text);
    }
    domt_sleep_ms(100);
    ck_assert_int_eq(recv(fds[2], text, sizeof text, MSG_DONTWAIT), -1);
    close(fds[0]);
    domt_read_until_text(fds[2], "ok\n", text, sizeof text);
    close(fds[1]);
    close(fds[2]);
    domt_observed_stop_web(&web);
}

/* Viewers that request much and read nothing use no more memory than their answers, and delay no
 * other viewer. */
DOMT_TEST(viewers_that_do_not_read_hold_up_nobody)
{
    static const char ask[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static char many[64 * sizeof ask];
    int fds[32];

    for (size_t i = 0; i < 64; i++)
        memcpy(many + i * (sizeof ask - 1), ask, sizeof ask);
    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    uint64_t before = domt_service_rss_bytes(&web.site.service);
    domt_service port = {.port = web.port.web};
    for (int i = 0; i < 32; i++) {
        fds[i] = domt_connect_with_small_buffers(&port);
        domt_send_text(fds[i], many);
    }
    for (int i = 0; i < 20; i++) {
        domt_site_expect_answer(&web.port, "GET /health", NULL, 200, "ok\n");
        domt_site_expect_answer(&web.port, "GET /actors", NULL, 200, "thread 0: ");
        domt_site_expect_answer(&web.site, "GET /json", NULL, 200, "hello");
    }
    if (!DOMT_SANITIZED) /* 32 viewers, each with 256 KiB, at which a channel is no longer read */
        ck_assert_uint_lt(domt_service_rss_bytes(&web.site.service), before + (24u << 20));
    for (int i = 0; i < 32; i++)
        close(fds[i]);
    domt_observed_stop_web(&web);
}

/* Bytes that are no request end only the connection on which they came. */
DOMT_TEST(bytes_that_are_no_request_are_refused)
{
    static const struct {
        const char *request;
        unsigned status;
    } rows[] = {
        {"\x16\x03\x01\x02\x01 GET\r\n\r\n", 400},
        {"GET /health HTTP/2.0\r\n\r\n", 505},
        {"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 400},
        {"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 501},
        {"OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 204},
        {"GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
         400},
    };
    static char text[20000];

    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsigned status = domt_site_send_raw_request(&web.port, rows[i].request);
        ck_assert_msg(status == rows[i].status, "%s: %u", rows[i].request, status);
    }
    snprintf(text, sizeof text, "GET /%02500d HTTP/1.1\r\nHost: localhost\r\n\r\n", 1);
    ck_assert_uint_eq(domt_site_send_raw_request(&web.port, text), 414);
    snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: localhost\r\nA: %017000d\r\n\r\n", 1);
    ck_assert_uint_eq(domt_site_send_raw_request(&web.port, text), 431);
    domt_site_expect_answer(&web.port, "GET /health", NULL, 200, "ok\n");
    domt_observed_stop_web(&web);
}

DOMT_SUITE(150)
