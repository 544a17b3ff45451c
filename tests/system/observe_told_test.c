/* The observation port tells a running program's configuration, log and stalls, and changes what
 * the program measures. */
#include "tests/support/crowd.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"
#include "tests/system/judges.h"
#include "tests/system/observe.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* libdomus-observe: the answers of /config, /log and /stalls about a program of domus_main(). */

#define FOLLOW "GET /log?follow=1 HTTP/1.1\r\nHost: localhost\r\n\r\n"

static domt_observed web;
static domt_tree tree;
static char text[1 << 18];

static void expect_answer_of_port(const char *request, const char *part)
{
    domt_site_expect_answer(&web.port, request, NULL, 200, part);
}

/* Request a path of the port again and again until the answer contains this text. */
static void await_answer_of_port(const char *request, const char *part)
{
    for (int i = 0; i < 500; i++) {
        if (domt_site_ask(&web.port, request, "", NULL) == 200 &&
            strstr(web.port.body, part) != NULL)
            return;
        domt_sleep_ms(10);
    }
    ck_abort_msg("no '%s' in: %s", part, web.port.body);
}

/* --- /config ---------------------------------------------------------------------------------- */

DOMT_TEST(each_key_is_shown_with_its_value_and_origin)
{
    char path[PATH_MAX], part[PATH_MAX + 128];

    domt_tree_make(&tree);
    domt_tree_write(&tree, "more.yaml",
                    "scheduler:\n  ioRatio: 55\nweb:\n  kv: {password: sesame}\n");
    snprintf(path, sizeof path, "%s/more.yaml", tree.root);
    domt_observed_start_web(&web, (const char *const[]){"web.kv.shards=8", NULL}, path);
    expect_answer_of_port("GET /config",
                          "{\"key\":\"web.kv.shards\",\"value\":\"8\",\"origin\":\"--set\"}");
    expect_answer_of_port(
        "GET /config", "{\"key\":\"io.buffers.size\",\"value\":\"4KiB\",\"origin\":\"default\"}");
    snprintf(part, sizeof part,
             "{\"key\":\"scheduler.ioRatio\",\"value\":\"55\",\"origin\":\"%s:2\"}", path);
    expect_answer_of_port("GET /config", part);
    snprintf(part, sizeof part,
             "{\"key\":\"web.kv.password\",\"value\":\"***\",\"origin\":\"%s:4\"}", path);
    expect_answer_of_port("GET /config", part);
    ck_assert_ptr_null(strstr(web.port.answer, "sesame"));
    expect_answer_of_port("GET /config", "/examples/web/web.yaml:");
    domt_site_expect_answer(&web.port, "POST /log?level=error", NULL, 200, "error\n");
    expect_answer_of_port("GET /config",
                          "{\"key\":\"log.level\",\"value\":\"error\",\"origin\":\"port\"}");
    domt_observed_stop_web(&web);
    domt_tree_remove_copy(&tree);
}

DOMT_TEST(the_configuration_and_the_stalls_are_json)
{
    if (!domt_are_judges_installed("curl python3"))
        return;
    domt_make_directory_for_judges(&tree);
    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    domt_run_judge_command(
        &tree, &web.port,
        "curl -sf $URL/config >$T/text && curl -sf $URL/stalls >$T/stalls || exit 1\n"
        "/usr/bin/python3 - $T/text $T/stalls <<END\n"
        "import json, sys\n"
        "keys = json.load(open(sys.argv[1]))[\"keys\"]\n"
        "assert all(set(k) == {\"key\", \"value\", \"origin\"} for k in keys)\n"
        "names = [k[\"key\"] for k in keys]\n"
        "assert len(names) > 150 and len(set(names)) == len(names)\n"
        "assert \"listeners.web.address\" in names and \"web.root\" in names\n"
        "assert isinstance(json.load(open(sys.argv[2]))[\"stalls\"], list)\n"
        "END\n");
    domt_observed_stop_web(&web);
    domt_tree_remove_copy(&tree);
}

/* --- PUT /config/KEY -------------------------------------------------------------------------- */

static void expect_answer_to_put_of_key(const char *key, const char *value, uint16_t status,
                                        const char *part)
{
    char line[256];

    snprintf(line, sizeof line, "PUT /config/%s", key);
    domt_site_expect_answer(&web.port, line, value, status, part);
}

DOMT_TEST(live_keys_change_over_the_port)
{
    domt_observed_start_web(&web, (const char *const[]){"observe.change=true", NULL}, NULL);
    expect_answer_to_put_of_key("scheduler.ioRatio", "70\n", 200, "scheduler.ioRatio: 70\n");
    expect_answer_of_port("GET /config",
                          "{\"key\":\"scheduler.ioRatio\",\"value\":\"70\",\"origin\":\"port\"}");
    await_answer_of_port("GET /log",
                         "info: the configuration changes: scheduler.ioRatio from 50 to 70");
    expect_answer_to_put_of_key("listeners.web.channel.linger", "2s", 200,
                                "listeners.web.channel.linger: 2s\n");
    expect_answer_of_port(
        "GET /config",
        "{\"key\":\"listeners.web.channel.linger\",\"value\":\"2s\",\"origin\":\"port\"}");
    expect_answer_to_put_of_key("scheduler.ioRatio", "101", 400,
                                "scheduler.ioRatio: must be auto or 1..100, is 101\n");
    expect_answer_to_put_of_key("scheduler.ioRatio", "", 400, "found nothing\n");
    expect_answer_to_put_of_key("channel.sendLow", "1GiB", 400,
                                "channel.sendLow: channel.sendHigh: must be at least");
    expect_answer_to_put_of_key("names.max", "9", 409, "names.max: it counts at a start\n");
    expect_answer_to_put_of_key("tls.keyFile", "a", 404, "tls.keyFile: there is no such key\n");
    expect_answer_to_put_of_key("channel.maxConnections", "1048576", 400, "so many descriptors\n");
    expect_answer_to_put_of_key("listeners.nobody.channel.linger", "2s", 404, "no such key");
    expect_answer_to_put_of_key("listeners.web.tls.keyFile", "a", 409, "it counts at a start\n");
    domt_service_signal(&web.site.service, SIGHUP);
    await_answer_of_port("GET /log", "Z info: SIGHUP: the configuration was read again");
    expect_answer_of_port(
        "GET /config", "{\"key\":\"scheduler.ioRatio\",\"value\":\"50\",\"origin\":\"default\"}");
    ck_assert_ptr_null(strstr(web.port.body, "listeners.web.channel.linger"));
    domt_observed_stop_web(&web);
}

DOMT_TEST(keys_do_not_change_without_leave_or_for_another_site)
{
    static const char request[] = "PUT /config/scheduler.ioRatio HTTP/1.1\r\nHost: localhost\r\n"
                                  "Origin: http://a.example\r\nContent-Length: 2\r\n\r\n70";

    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    expect_answer_to_put_of_key("scheduler.ioRatio", "70", 403,
                                "observe.change is false: nothing is changed\n");
    domt_observed_stop_web(&web);
    domt_observed_start_web(&web, (const char *const[]){"observe.change=true", NULL}, NULL);
    int fd = domt_connect_to_port(web.port.web);
    domt_send_text(fd, request);
    domt_read_until_text(fd, "HTTP/1.1 403 ", text, sizeof text);
    close(fd);
    expect_answer_of_port(
        "GET /config", "{\"key\":\"scheduler.ioRatio\",\"value\":\"50\",\"origin\":\"default\"}");
    domt_observed_stop_web(&web);
}

/* --- /log ------------------------------------------------------------------------------------- */

DOMT_TEST(the_log_has_what_the_program_has_written)
{
    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    await_answer_of_port("GET /log", "Z info: pid ");
    domt_service_signal(&web.site.service, SIGHUP);
    await_answer_of_port("GET /log", "Z info: SIGHUP: ");
    expect_answer_of_port("GET /log?level=error", NULL);
    ck_assert_ptr_null(strstr(web.port.body, "pid "));
    domt_observed_stop_web(&web);
}

DOMT_TEST(the_log_level_of_the_configuration_holds_at_the_start)
{
    domt_observed_start_web(&web, (const char *const[]){"log.level=warning", NULL}, NULL);
    expect_answer_of_port("GET /config",
                          "{\"key\":\"log.level\",\"value\":\"warning\",\"origin\":\"--set\"}");
    domt_observed_stop_web(&web);
}

/* The port goes on while the program drains, and a viewer receives the end; but no viewer keeps the
 * program from ending, whether it reads or not. */
DOMT_TEST(followers_of_the_log_see_its_end_and_do_not_delay_it)
{
    int fds[4];

    domt_observed_start_web(&web, (const char *const[]){"shutdown.drainTimeout=20s", NULL}, NULL);
    for (int i = 0; i < 4; i++) {
        fds[i] = domt_connect_to_port(web.port.web);
        domt_send_text(fds[i], FOLLOW);
    }
    domt_read_until_text(fds[0], "info: pid ", text, sizeof text);
    domt_service_signal(&web.site.service, SIGHUP);
    domt_read_until_text(fds[0], "info: SIGHUP: ", text, sizeof text);
    uint64_t began_ns = domt_monotonic_ns();
    domt_service_signal(&web.site.service, SIGTERM);
    ck_assert_int_eq(domt_service_wait(&web.site.service, 10000), 0);
    ck_assert_uint_lt(domt_monotonic_ns() - began_ns, UINT64_C(3000000000));
    domt_read_until_text(fds[0], "0\r\n\r\n", text, sizeof text);
    for (int i = 0; i < 4; i++)
        close(fds[i]);
}

/* --- observe measure -------------------------------------------------------------------------- */

/* libdomus-observe: a client of the port changes how much a program measures, and the figures
 * change accordingly. */

/* --- the level of measuring ------------------------------------------------------------------- */

DOMT_TEST(the_profile_level_is_changed_by_its_word)
{
    static const struct {
        const char *request;
        unsigned status;
        const char *part;
    } rows[] = {
        {"POST /profile?level=spans", 200, "\r\n\r\nspans\n"},
        {"GET /profile", 200, "\"level\":\"spans\",\"threads\":[{\"thread\":0,\"counters\":{"},
        {"POST /profile?level=off", 200, "\r\n\r\noff\n"},
        {"GET /profile", 200, "\"level\":\"off\""},
        {"POST /profile?level=histogram", 400, "off, counters, histograms or spans"},
        {"POST /profile?level=span", 400, ""},
        {"POST /profile?level=spans%00", 400, ""},
        {"POST /profile?level=Spans", 400, ""},
        {"POST /profile?level=", 400, ""},
        {"POST /profile?level=3", 400, ""},
        {"POST /profile?level=countersandhistogramsandspans", 400, ""},
        {"POST /profile?level=%zz", 400, ""},
        {"POST /profile", 400, ""},
        {"GET /profile?level=spans", 200, "\"level\":\"off\""},
        {"POST /profile?level=counters", 200, ""},
        {"POST /profile?level=histograms", 200, ""},
        {"GET /profile", 200, "\"level\":\"histograms\""},
        {"PUT /profile?level=spans", 405, "Allow: GET, HEAD, POST, OPTIONS\r\n"},
    };

    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        domt_site_expect_answer(&web.port, rows[i].request, rows[i].request[0] == 'P' ? "" : NULL,
                                rows[i].status, rows[i].part);
    domt_observed_stop_web(&web);
}

/* A page of another site could send a request to the port without seeing the answer, so such
 * requests are refused. */
DOMT_TEST(pages_of_other_sites_change_nothing)
{
    static const struct {
        const char *fields;
        unsigned status;
    } rows[] = {
        {"", 200},
        {"Origin: http://localhost:1\r\n", 200},
        {"Origin: https://LOCALHOST:1\r\n", 200},
        {"Sec-Fetch-Site: same-origin\r\nOrigin: http://localhost:1\r\n", 200},
        {"Sec-Fetch-Site: none\r\n", 200},
        {"Origin: http://localhost\r\n", 403},
        {"Origin: http://localhost:12\r\n", 403},
        {"Origin: http://localhost:2\r\n", 403},
        {"Origin: ftp://localhost:1\r\n", 403},
        {"Origin: http://evil.example\r\n", 403},
        {"Origin: null\r\n", 403},
        {"Origin:\r\n", 403},
        {"Origin: http://localhost:1\r\norigin: http://evil.example\r\n", 403},
        {"Sec-Fetch-Site: cross-site\r\n", 403},
        {"sec-fetch-site: same-site\r\n", 403},
        {"Sec-Fetch-Site:\r\n", 403},
    };
    char answer[512];

    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *level = rows[i].status == 200 ? "counters" : "spans";
        snprintf(answer, sizeof answer,
                 "POST /profile?level=%s HTTP/1.1\r\nHost: localhost:1\r\n%s"
                 "Content-Length: 0\r\nConnection: close\r\n\r\n",
                 level, rows[i].fields);
        unsigned status = domt_site_send_raw_request(&web.port, answer);
        ck_assert_msg(status == rows[i].status, "%s: %u", rows[i].fields, status);
        domt_site_expect_answer(&web.port, "GET /profile", NULL, 200, "\"level\":\"counters\"");
    }
    static const char *const paths[] = {"/actors", "/live", "/log", "/log?follow=1", "/stalls"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        snprintf(answer, sizeof answer,
                 "GET %s HTTP/1.1\r\nHost: localhost:1\r\nSec-Fetch-Site: cross-site\r\n"
                 "Connection: close\r\n\r\n",
                 paths[i]);
        ck_assert_uint_eq(domt_site_send_raw_request(&web.port, answer), 403);
    }
    /* a request without Host cannot come from a page of this port */
    ck_assert_uint_eq(domt_site_send_raw_request(&web.port, "POST /profile?level=spans HTTP/1.0\r\n"
                                                            "Origin: http://\r\n\r\n"),
                      403);
    domt_observed_stop_web(&web);
}

static uint64_t number_behind_name_in_body(const char *name)
{
    const char *at = strstr(web.port.body, name);

    ck_assert_ptr_nonnull(at);
    return strtoull(at + strlen(name), NULL, 10);
}

DOMT_TEST(the_profile_says_of_what_program_and_moment_it_is)
{
    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    domt_site_expect_answer(&web.port, "GET /profile", NULL, 200,
                            "\"program\":\"web\",\"version\":\"0.");
    uint64_t first_ns = number_behind_name_in_body("{\"now_ns\":"),
             up_ns = number_behind_name_in_body("\"uptime_ns\":");
    ck_assert_int_eq((int64_t)number_behind_name_in_body("\"pid\":"), web.site.service.pid);
    domt_site_expect_answer(&web.port, "GET /profile", NULL, 200, NULL);
    ck_assert_uint_gt(number_behind_name_in_body("{\"now_ns\":"), first_ns);
    ck_assert_uint_lt(number_behind_name_in_body("\"uptime_ns\":"), 60000000000u);
    ck_assert_uint_eq(number_behind_name_in_body("\"uptime_ns\":") - up_ns,
                      number_behind_name_in_body("{\"now_ns\":") - first_ns);
    domt_observed_stop_web(&web);
}

/* --- histograms ------------------------------------------------------------------------------- */

DOMT_TEST(histograms_of_json_and_of_metrics_are_the_same)
{
    domt_observed_run_python_judge(&web, "histograms", (const char *const[]){NULL}, NULL);
}

DOMT_TEST(listeners_count_their_connections)
{
    domt_observed_run_python_judge(
        &web, "listeners",
        (const char *const[]){"channel.maxConnections=16", "channel.maxPerLoopback=50%", NULL},
        NULL);
}

/* Check that each metric that the dashboard uses exists in a program with a pool, at the level
 * histograms. */
DOMT_TEST(dashboard_for_grafana_names_metrics_that_there_are)
{
    char path[PATH_MAX];
    domt_tree copy;

    domt_tree_make(&copy);
    domt_tree_write(&copy, "pools.yaml", "pools: [{name: work, runners: 1}]\n");
    snprintf(path, sizeof path, "%s/pools.yaml", copy.root);
    domt_observed_run_python_judge(&web, "dashboard",
                                   (const char *const[]){"profile.level=histograms", NULL}, path);
    domt_tree_remove_copy(&copy);
}

DOMT_TEST(a_wrong_kind_of_histograms_is_refused)
{
    static const char *const wrong[] = {
        "", "0", "2", "11", "iteratio", "iteration%00", "phase", "iteration_and_much_more", "%zz"};
    char start[128];

    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        snprintf(start, sizeof start, "GET /profile?histograms=%s", wrong[i]);
        domt_site_expect_answer(&web.port, start, NULL, 400, "histograms is 1, or a kind");
    }
    domt_site_expect_answer(&web.port, "GET /profile?histograms=reaction", NULL, 200,
                            "\"reaction\":{");
    domt_observed_stop_web(&web);
}

DOMT_SUITE(60)
