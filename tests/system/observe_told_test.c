/* libdomus-observe: the answers of /config, /log and /stalls about a program of domus_main(). */
#include "tests/support/crowd.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"
#include "tests/system/judges.h"
#include "tests/system/observe.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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
    if (!domt_are_judges_there("curl python3"))
        return;
    domt_judges_make_directory(&tree);
    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    domt_run_judge(&tree, &web.port,
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

DOMT_TEST(nothing_changes_without_leave_or_for_another_site)
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

DOMT_TEST(the_level_of_the_configuration_holds_at_the_start)
{
    domt_observed_start_web(&web, (const char *const[]){"log.level=warning", NULL}, NULL);
    expect_answer_of_port("GET /config",
                          "{\"key\":\"log.level\",\"value\":\"warning\",\"origin\":\"--set\"}");
    domt_observed_stop_web(&web);
}

/* The port goes on while the program drains, and a viewer receives the end; but no viewer keeps the
 * program from ending, whether it reads or not. */
DOMT_TEST(followers_see_the_end_of_the_program_and_do_not_put_it_off)
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

DOMT_SUITE(60)
