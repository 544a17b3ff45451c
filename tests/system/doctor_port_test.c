/* /doctor of the observation port: which requests are allowed, how many clients may ask at a time,
 * and when a look ends. */
#include "tests/support/crowd.h"
#include "tests/support/suite.h"
#include "tests/system/observe.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CROWD 1000

static domt_observed web;

static int send_request(const char *path)
{
    char request[256];
    int fd = domt_connect_to_port(web.port.web);

    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    domt_send_text(fd, request);
    return fd;
}

static void wait_for_status(const char *path, unsigned status)
{
    for (int i = 0; i < 200; i++) {
        if (domt_site_ask(&web.port, path, "", NULL) == status)
            return;
        domt_sleep_ms(10);
    }
    ck_abort_msg("%s: %s", path, web.port.answer);
}

DOMT_TEST(a_visit_takes_its_time_and_says_what_was_seen)
{
    static const struct {
        const char *request, *fields;
        unsigned status;
        const char *part;
    } rows[] = {
        {"GET /doctor?seconds=1", "", 200, "web (pid "},
        {"GET /doctor?seconds=1s&format=json", "", 200, "{\"program\":\"web\",\"pid\":"},
        {"GET /doctor?seconds=1", "Accept: text/html, application/json\r\n", 200, "\"findings\":["},
        {"GET /doctor?seconds=0", "", 400, "1..60"},
        {"GET /doctor?seconds=61", "", 400, "1..60"},
        {"GET /doctor?seconds=", "", 400, "1..60"},
        {"GET /doctor?seconds=1&format=xml", "", 400, "text or json"},
        {"POST /doctor?seconds=1", "", 405, NULL},
        {"GET /doctor?seconds=1", "Sec-Fetch-Site: cross-site\r\n", 403, NULL},
        {"GET /profile?machine=2", "", 400, "0 or 1"},
        {"GET /profile?machine=1", "", 200, "\"machine\":{\"cpus\":"},
        {"GET /profile?machine=1", "", 200, "\"scheduler.ioRatio\":50"},
    };

    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_msg(domt_site_ask(&web.port, rows[i].request, rows[i].fields, NULL) ==
                          rows[i].status,
                      "%s: %s", rows[i].request, web.port.answer);
        ck_assert_msg(rows[i].part == NULL || strstr(web.port.body, rows[i].part) != NULL, "%s: %s",
                      rows[i].request, web.port.body);
    }
    domt_site_expect_answer(&web.port, "POST /profile?level=off", NULL, 200, NULL);
    domt_site_expect_answer(&web.port, "GET /doctor?seconds=1", NULL, 409, "profile.level");
    domt_observed_stop_web(&web);
}

/* The doctor's rules use the settings at the time of the look, not those at the start. */
DOMT_TEST(a_look_has_the_keys_as_they_are_now)
{
    domt_observed_start_web(&web, (const char *const[]){"observe.change=true", NULL}, NULL);
    domt_site_expect_answer(&web.port, "GET /profile?machine=1", NULL, 200,
                            "\"channel.requestsMax\":128,\"listeners.channel.requestsMax\":0,");
    domt_site_expect_answer(&web.port, "PUT /config/channel.requestsMax", "7\n", 200, NULL);
    domt_site_expect_answer(&web.port, "PUT /config/scheduler.ioRatio", "auto\n", 200, NULL);
    domt_site_expect_answer(&web.port, "GET /profile?machine=1", NULL, 200,
                            "\"channel.requestsMax\":7,\"listeners.channel.requestsMax\":0,");
    domt_site_expect_answer(&web.port, "GET /profile?machine=1", NULL, 200,
                            "\"scheduler.ioRatio\":4294967295,");
    domt_observed_stop_web(&web);
}

DOMT_TEST(viewers_that_wait_keep_nobody_out_and_a_stop_ends_their_wait)
{
    char text[4096];
    int fds[17];

    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    for (int i = 0; i < 16; i++)
        fds[i] = send_request("/doctor?seconds=60");
    domt_sleep_ms(300);
    /* this look joins one that has begun earlier, so it covers more than a second */
    domt_site_expect_answer(&web.port, "GET /doctor?seconds=1", NULL, 200, "web (pid ");
    ck_assert_ptr_null(strstr(web.port.body, "), 1.0 s"));
    close(fds[0]);
    /* this look has just begun, and is too short for a result when the program stops */
    fds[0] = send_request("/doctor?seconds=60");
    domt_sleep_ms(60);
    time_t began = time(NULL);
    domt_service_signal(&web.site.service, SIGTERM);
    for (int i = 0; i < 16; i++) {
        domt_read_until_text(fds[i], "web (pid ", text, sizeof text);
        close(fds[i]);
    }
    ck_assert_int_eq(domt_service_wait(&web.site.service, 10000), 0);
    ck_assert_int_le(time(NULL) - began, 5);
}

/* Many viewers use all places of the port, and some leave while they wait: the others are answered
 * or refused, and the program is as before. */
DOMT_TEST(a_crowd_at_the_doctor_does_no_harm)
{
    static int fds[CROWD];

    domt_observed_start_web(&web, (const char *const[]){"observe.viewersMax=2000", NULL}, NULL);
    for (int i = 0; i < CROWD; i++)
        fds[i] = send_request(i % 2 == 0 ? "/doctor?seconds=1" : "/doctor?seconds=60&format=json");
    domt_site_expect_answer(&web.site, "GET /json", NULL, 200, "hello");
    for (int i = 0; i < CROWD; i += 3)
        close(fds[i]);
    for (int i = 0; i < CROWD; i++)
        if (i % 3 != 0)
            close(fds[i]);
    wait_for_status("GET /doctor?seconds=1", 200);
    domt_observed_stop_web(&web);
}

DOMT_SUITE(60)
