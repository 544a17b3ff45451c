/* libdomus-observe: traces and CPU profiles of a running program, for viewers that wait for them,
 * leave, come in crowds, or do not read. */
#include "tests/support/crowd.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"
#include "tests/system/observe.h"
#include "tests/system/talks.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CROWD  200 /* number of viewers that request a trace */
#define UNREAD 60  /* number of viewers that do not read; each has up to 256 KiB waiting */

/* Wait until a condition is true, and fail after `seconds` seconds. */
#define WAIT_FOR(seconds, condition)                                                               \
    do {                                                                                           \
        int left = (seconds)*100;                                                                  \
        while (!(condition) && left-- > 0)                                                         \
            domt_sleep_ms(10);                                                                     \
        ck_assert_msg(left > 0, "%s", #condition);                                                 \
    } while (0)

static domt_observed web;

DOMT_TEST(traces_and_cpu_profiles_are_made_one_at_a_time)
{
    domt_observed_run_python_judge(&web, "recordings", (const char *const[]){NULL}, NULL);
}

DOMT_TEST(wrong_requests_for_recordings_are_refused)
{
    static const struct {
        const char *request;
        unsigned status;
    } rows[] = {
        {"GET /trace?seconds=61", 400},
        {"GET /trace?seconds=-1", 400},
        {"GET /trace?seconds=", 400},
        {"GET /trace?seconds=1.5", 400},
        {"GET /trace?seconds=1m", 400},
        {"GET /trace?seconds=99999999999999999999999", 400},
        {"GET /trace?seconds=1%00", 400},
        {"GET /trace?seconds=%zz", 400},
        {"POST /trace?seconds=1", 405},
        {"GET /trace", 409},
        {"GET /trace?seconds=0s", 409},
        {"GET /profile?cpu=0", 400},
        {"GET /profile?cpu=61s", 400},
        {"GET /profile?cpu", 400},
        {"GET /profile?cpu=1ss", 400},
        {"GET /profile?cpu=1s&hz=0", 400},
        {"GET /profile?cpu=1s&hz=1001", 400},
        {"GET /profile?cpu=1s&hz=99s", 400},
        {"GET /profile?cpu=1s&format=png", 400},
        {"GET /profile?cpu=1s&format=", 400},
    };
    static const char *const paths[] = {"/trace?seconds=1", "/profile?cpu=1s"};
    char text[512];

    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        domt_site_expect_answer(&web.port, rows[i].request, rows[i].request[0] == 'P' ? "" : NULL,
                                rows[i].status, NULL);
    for (size_t i = 0; i < 2; i++) {
        snprintf(text, sizeof text,
                 "GET %s HTTP/1.1\r\nHost: localhost:1\r\nSec-Fetch-Site: cross-site\r\n"
                 "Connection: close\r\n\r\n",
                 paths[i]);
        ck_assert_uint_eq(domt_site_send_raw_request(&web.port, text), 403);
    }
    domt_site_expect_answer(&web.port, "GET /profile", NULL, 200, "\"level\":\"counters\"");
    domt_observed_stop_web(&web);
}

static int connect_and_send_get(const char *path)
{
    int fd = domt_connect_to_port(web.port.web);
    char text[256];

    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    domt_send_text(fd, text);
    return fd;
}

static bool is_profile_at_level(const char *level)
{
    char part[64];

    snprintf(part, sizeof part, "\"level\":\"%s\"", level);
    domt_site_expect_answer(&web.port, "GET /profile", NULL, 200, NULL);
    return strstr(web.port.body, part) != NULL;
}

/* Recordings of a minute end early when their viewer closes its connection, or has finished
 * sending. */
DOMT_TEST(nothing_is_recorded_for_viewers_that_are_gone)
{
    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    for (int round = 0; round < 2; round++) {
        int trace = connect_and_send_get("/trace?seconds=60"),
            cpu = connect_and_send_get("/profile?cpu=60s");

        WAIT_FOR(10, is_profile_at_level("spans"));
        WAIT_FOR(10, domt_site_ask(&web.port, "GET /profile?cpu=0", "", NULL) == 409);
        if (round == 1) {
            ck_assert_int_eq(shutdown(trace, SHUT_WR), 0);
            ck_assert_int_eq(shutdown(cpu, SHUT_WR), 0);
        } else {
            close(trace);
            close(cpu);
        }
        WAIT_FOR(2, is_profile_at_level("counters"));
        /* the port can begin another recording, whose trace may be empty */
        WAIT_FOR(2, (domt_site_ask(&web.port, "GET /trace", "", NULL),
                     strstr(web.port.body, "under way") == NULL));
        WAIT_FOR(2, domt_site_ask(&web.port, "GET /profile?cpu=0", "", NULL) == 400);
        if (round == 1) {
            close(trace);
            close(cpu);
        }
    }
    domt_observed_stop_web(&web);
}

/* The program stops during recordings: their viewers get what was recorded until then. */
DOMT_TEST(a_stop_does_not_wait_for_recordings)
{
    char text[4096];

    domt_observed_start_web(&web, (const char *const[]){"profile.level=spans", NULL}, NULL);
    domt_site_expect_answer(&web.site, "GET /json", NULL, 200, "hello");
    int trace = connect_and_send_get("/trace?seconds=60"),
        cpu = connect_and_send_get("/profile?cpu=60s&format=svg");
    WAIT_FOR(10, domt_site_ask(&web.port, "GET /trace", "", NULL) == 409);
    WAIT_FOR(10, domt_site_ask(&web.port, "GET /profile?cpu=0", "", NULL) == 409);
    time_t began = time(NULL);
    domt_service_signal(&web.site.service, SIGTERM);
    domt_read_until_text(trace, "HTTP/1.1 200", text, sizeof text);
    /* under a sanitizer finding the names may take longer than the stop waits for the port */
    if (!DOMT_SANITIZED)
        domt_read_until_text(cpu, "Content-Type: image/svg+xml\r\n", text, sizeof text);
    close(trace);
    close(cpu);
    ck_assert_int_eq(domt_service_wait(&web.site.service, 10000), 0);
    ck_assert_int_le(time(NULL) - began, 5);
}

/* Only one viewer of a crowd gets a trace; all others are refused at once. */
DOMT_TEST(a_crowd_that_wants_traces_is_refused)
{
    static int fds[CROWD];
    char text[4096];
    int refused = 0;

    domt_observed_start_web(&web, (const char *const[]){"observe.viewersMax=300", NULL}, NULL);
    int first = connect_and_send_get("/trace?seconds=60");
    WAIT_FOR(10, is_profile_at_level("spans"));
    for (int i = 0; i < CROWD; i++)
        fds[i] = connect_and_send_get("/trace?seconds=60");
    for (int i = 0; i < CROWD; i++) {
        domt_read_until_text(fds[i], "another viewer\n", text, sizeof text);
        refused += strncmp(text, "HTTP/1.1 409", 12) == 0;
        close(fds[i]);
    }
    ck_assert_int_eq(refused, CROWD);
    close(first);
    WAIT_FOR(2, is_profile_at_level("counters"));
    domt_observed_stop_web(&web);
}

/* While viewers leave many bytes unread, the program queues nothing large for them. */
DOMT_TEST(nothing_large_is_made_while_much_is_unread)
{
    static const char metrics[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static char many[64 * sizeof metrics];
    static int fds[UNREAD];
    domt_service port;

    for (size_t i = 0; i < 64; i++)
        memcpy(many + i * (sizeof metrics - 1), metrics, sizeof metrics);
    domt_observed_start_web(&web, (const char *const[]){"observe.viewersMax=300", NULL}, NULL);
    port.port = web.port.web;
    for (int i = 0; i < UNREAD; i++) {
        fds[i] = domt_connect_with_small_buffers(&port);
        domt_send_text(fds[i], many);
    }
    WAIT_FOR(10, domt_site_ask(&web.port, "GET /trace", "", NULL) == 503);
    domt_site_expect_answer(&web.port, "GET /profile?cpu=1s", NULL, 503, "have not read");
    domt_site_expect_answer(&web.port, "GET /profile", NULL, 200, "\"level\":\"counters\"");
    for (int i = 0; i < UNREAD; i++)
        close(fds[i]);
    WAIT_FOR(10, domt_site_ask(&web.port, "GET /trace", "", NULL) == 409);
    domt_observed_stop_web(&web);
}

DOMT_SUITE(60)
