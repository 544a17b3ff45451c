/* libdomus-observe: a client of the port changes how much a program measures, and the figures
 * change accordingly. */
#include "tests/support/suite.h"
#include "tests/support/tree.h"
#include "tests/system/observe.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static domt_observed web;

/* --- the level of measuring ------------------------------------------------------------------- */

DOMT_TEST(the_level_is_changed_by_its_word)
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
    char text[512];

    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *level = rows[i].status == 200 ? "counters" : "spans";
        snprintf(text, sizeof text,
                 "POST /profile?level=%s HTTP/1.1\r\nHost: localhost:1\r\n%s"
                 "Content-Length: 0\r\nConnection: close\r\n\r\n",
                 level, rows[i].fields);
        unsigned status = domt_site_send_request(&web.port, text);
        ck_assert_msg(status == rows[i].status, "%s: %u", rows[i].fields, status);
        domt_site_expect_answer(&web.port, "GET /profile", NULL, 200, "\"level\":\"counters\"");
    }
    static const char *const paths[] = {"/actors", "/live", "/log", "/log?follow=1", "/stalls"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        snprintf(text, sizeof text,
                 "GET %s HTTP/1.1\r\nHost: localhost:1\r\nSec-Fetch-Site: cross-site\r\n"
                 "Connection: close\r\n\r\n",
                 paths[i]);
        ck_assert_uint_eq(domt_site_send_request(&web.port, text), 403);
    }
    /* a request without Host cannot come from a page of this port */
    ck_assert_uint_eq(domt_site_send_request(&web.port, "POST /profile?level=spans HTTP/1.0\r\n"
                                                        "Origin: http://\r\n\r\n"),
                      403);
    domt_observed_stop_web(&web);
}

static uint64_t number_behind_name(const char *name)
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
    uint64_t first_ns = number_behind_name("{\"now_ns\":"),
             up_ns = number_behind_name("\"uptime_ns\":");
    ck_assert_int_eq((int64_t)number_behind_name("\"pid\":"), web.site.service.pid);
    domt_site_expect_answer(&web.port, "GET /profile", NULL, 200, NULL);
    ck_assert_uint_gt(number_behind_name("{\"now_ns\":"), first_ns);
    ck_assert_uint_lt(number_behind_name("\"uptime_ns\":"), 60000000000u);
    ck_assert_uint_eq(number_behind_name("\"uptime_ns\":") - up_ns,
                      number_behind_name("{\"now_ns\":") - first_ns);
    domt_observed_stop_web(&web);
}

/* --- histograms ------------------------------------------------------------------------------- */

DOMT_TEST(histograms_of_json_and_of_metrics_are_the_same)
{
    domt_observed_run_judge(&web, "histograms", (const char *const[]){NULL}, NULL);
}

DOMT_TEST(listeners_count_their_connections)
{
    domt_observed_run_judge(
        &web, "listeners",
        (const char *const[]){"channel.maxConnections=16", "channel.maxPerLoopback=50%", NULL},
        NULL);
}

/* Check that each metric that the dashboard uses exists in a program with a pool, at the level
 * histograms. */
DOMT_TEST(dashboard_for_grafana_names_metrics_that_there_are)
{
    char path[PATH_MAX];
    domt_tree tree;

    domt_tree_make(&tree);
    domt_tree_write(&tree, "pools.yaml", "pools: [{name: work, runners: 1}]\n");
    snprintf(path, sizeof path, "%s/pools.yaml", tree.root);
    domt_observed_run_judge(&web, "dashboard",
                            (const char *const[]){"profile.level=histograms", NULL}, path);
    domt_tree_remove_copy(&tree);
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
