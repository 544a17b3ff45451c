/* The example `web`: each route, its methods, and the data that it shares with the other ports. */
#include "tests/support/crowd.h"
#include "tests/support/suite.h"
#include "tests/system/redis.h"
#include "tests/system/site.h"
#include "tests/system/talks.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static domt_site site;

static void start_web_with_shards(void)
{
    domt_site_start_program(&site, (const char *const[]){"web.kv.shards=3", NULL});
}

DOMT_TEST(every_route_has_its_methods)
{
    static const struct {
        const char *request, *body;
        unsigned status;
        const char *part;
    } rows[] = {
        {"GET /", NULL, 200, "<title>domus</title>"},
        {"HEAD /", NULL, 200, "Content-Type: text/html; charset=utf-8\r\n"},
        {"POST /", "a", 405, "Allow: GET, HEAD, OPTIONS\r\n"},
        {"GET /static/page.css", NULL, 200, "Content-Type: text/css; charset=utf-8\r\n"},
        {"GET /static/page.js", NULL, 200, "Content-Type: text/javascript; charset=utf-8\r\n"},
        {"GET /static/nothing", NULL, 404, NULL},
        {"GET /static/../main.c", NULL, 404, NULL},
        {"GET /static/%2e%2e/main.c", NULL, 404, NULL},
        {"GET /json", NULL, 200, "Content-Type: application/json\r\n"},
        {"GET /json?a=b", NULL, 200, "{\"message\":\"hello\",\"threads\":2,\"requests\":"},
        {"HEAD /json", NULL, 200, "Content-Length: "},
        {"POST /json", "a", 405, "Allow: GET, HEAD, OPTIONS\r\n"},
        {"OPTIONS /json", NULL, 204, "Allow: GET, HEAD, OPTIONS\r\n"},
        {"GET /hello", NULL, 200, "<p>Hello, !</p>"},
        {"GET /hello?name=%3Cb%3E+%26", NULL, 200, "<p>Hello, &lt;b&gt; &amp;!</p>"},
        {"GET /hello?name=%zz", NULL, 400, NULL},
        {"POST /echo", "hello", 200, "\r\n\r\nhello"},
        {"POST /echo", NULL, 200, "Content-Length: 0\r\n"},
        {"GET /echo", NULL, 405, "Allow: POST, OPTIONS\r\n"},
        {"PUT /kv/a", "one", 204, NULL},
        {"GET /kv/a", NULL, 200, "\r\n\r\none"},
        {"HEAD /kv/a", NULL, 200, "Content-Length: 3\r\n"},
        {"DELETE /kv/a", NULL, 204, NULL},
        {"DELETE /kv/a", NULL, 404, "no such key"},
        {"GET /kv/a", NULL, 404, "no such key"},
        {"POST /kv/a", "one", 405, "Allow: GET, HEAD, PUT, DELETE, OPTIONS\r\n"},
        {"GET /kv/", NULL, 404, NULL},
        {"GET /kv/a/b", NULL, 404, NULL},
        {"GET /kv/%zz", NULL, 400, "cannot be a key"},
        {"DELETE /events", NULL, 405, "Allow: GET, HEAD, OPTIONS\r\n"},
        {"GET /metrics", NULL, 404, NULL}, /* metrics are on the observation port */
        {"GET /nothing", NULL, 404, NULL},
        {"GET /proxy/json", NULL, 404, "no web.upstream"},
        {"BREW /", NULL, 501, NULL},
    };

    start_web_with_shards();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        domt_site_expect_answer(&site, rows[i].request, rows[i].body, rows[i].status, rows[i].part);
    domt_site_expect_answer(&site, "HEAD /json", NULL, 200, NULL);
    ck_assert_str_eq(site.body, "");
    domt_site_stop_program(&site);
}

DOMT_TEST(answers_are_compressed_for_those_who_accept_it)
{
    static const char accepts[] = "Accept-Encoding: gzip\r\n";

    start_web_with_shards();
    ck_assert_uint_eq(domt_site_ask(&site, "GET /static/page.js", accepts, NULL), 200);
    ck_assert(strstr(site.answer, "Content-Encoding: gzip\r\n") != NULL);
    ck_assert(strstr(site.answer, "Vary: Accept-Encoding\r\n") != NULL);
    ck_assert_int_eq(memcmp(site.body, "\x1f\x8b", 2), 0);
    ck_assert_uint_eq(domt_site_ask(&site, "GET /static/index.html", accepts, NULL), 200);
    ck_assert(strstr(site.answer, "Content-Encoding: gzip\r\n") != NULL);
    ck_assert_uint_eq(domt_site_ask(&site, "GET /static/page.js", "", NULL), 200);
    ck_assert(strstr(site.answer, "Content-Encoding") == NULL);
    domt_site_stop_program(&site);

    domt_site_start_program(&site, (const char *const[]){"web.gzipStreams=0", NULL});
    ck_assert_uint_eq(domt_site_ask(&site, "GET /static/index.html", accepts, NULL), 200);
    ck_assert(strstr(site.answer, "Content-Encoding") == NULL);
    domt_site_stop_program(&site);
}

/* Each piece of the body comes back before the next one is sent, so the service does not collect
 * the body. */
DOMT_TEST(an_echo_begins_before_its_body_has_ended)
{
    char text[1024];

    start_web_with_shards();
    int fd = domt_connect_to_port(site.web);
    domt_send_text(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    domt_send_text(fd, "3\r\none\r\n");
    domt_read_until_text(fd, "3\r\none\r\n", text, sizeof text);
    ck_assert(strstr(text, "Transfer-Encoding: chunked\r\n") != NULL);
    domt_send_text(fd, "5\r\nthree\r\n");
    domt_read_until_text(fd, "5\r\nthree\r\n", text, sizeof text);
    domt_send_text(fd, "0\r\n\r\n");
    domt_read_until_text(fd, "0\r\n\r\n", text, sizeof text);
    domt_send_text(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\nseven");
    domt_read_until_text(fd, "\r\n\r\nseven", text, sizeof text);
    ck_assert(strstr(text, "Content-Length: 7\r\n") != NULL);
    domt_send_text(fd, "th");
    domt_read_until_text(fd, "th", text, sizeof text);
    close(fd);
    domt_site_stop_program(&site);
}

/* Bytes that are not UTF-8, and a key that has to be escaped, are the same over HTTP and over the
 * port of kv. */
DOMT_TEST(kv_has_the_same_keys_by_http_and_by_redis_protocol)
{
    char reply[DOMT_REPLY_MAX];

    start_web_with_shards();
    int kv = domt_connect_to_port(site.kv);
    domt_site_expect_answer(&site, "PUT /kv/greeting", "hello", 204, NULL);
    domt_resp_expect_trace(kv, "GET greeting", "$5\r\nhello\r\n");
    domt_resp_expect_trace(kv, "SET a/b?c 1", "+OK\r\n");
    domt_site_expect_answer(&site, "GET /kv/a%2Fb%3Fc", NULL, 200, "\r\n\r\n1");
    domt_site_expect_answer(&site, "PUT /kv/%C3%A9+%20", "\xff\xfe", 204, NULL);
    domt_resp_expect_trace(kv, "GET \"\xc3\xa9+ \"", "$2\r\n\xff\xfe\r\n");
    domt_site_expect_answer(&site, "GET /kv/%C3%A9+%20", NULL, 200, "\r\n\r\n\xff\xfe");
    domt_site_expect_answer(&site, "PUT /kv/empty", "", 204, NULL);
    domt_site_expect_answer(&site, "GET /kv/empty", NULL, 200, "Content-Length: 0\r\n");
    domt_resp_expect_trace(kv, "SET long %5000", "+OK\r\n");
    ck_assert_uint_eq(domt_site_ask(&site, "GET /kv/long", "", NULL), 200);
    domt_resp_ask_for_reply(kv, "GET long", reply);
    ck_assert(strncmp(site.body, strchr(reply, '\n') + 1, 5000) == 0);
    domt_resp_expect_trace(kv, "RPUSH list 1", ":1\r\n");
    domt_site_expect_answer(&site, "GET /kv/list", NULL, 409, "no string");
    domt_site_expect_answer(&site, "DELETE /kv/list", NULL, 204, NULL);
    domt_resp_expect_trace(kv, "EXISTS list", ":0\r\n");
    domt_site_expect_answer(&site, "PUT /kv/greeting", "41", 204, NULL);
    domt_resp_expect_trace(kv, "INCR greeting", ":42\r\n");
    close(kv);
    domt_site_stop_program(&site);
}

DOMT_TEST(events_come_at_each_tick_and_end_with_the_program)
{
    static char text[65536];

    domt_site_start_program(&site, (const char *const[]){"web.tick=100ms", NULL});
    int fd = domt_connect_to_port(site.web);
    domt_send_text(fd, "GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
    domt_read_until_text(fd, "retry: 3000\n\n", text, sizeof text);
    ck_assert(strstr(text, "Content-Type: text/event-stream\r\n") != NULL);
    for (int i = 0; i < 3; i++) {
        domt_read_until_text(fd, "}\n\n\r\n", text, sizeof text);
        ck_assert(strstr(text, "event: rate\ndata: {\"requests\":") != NULL);
    }
    domt_service_signal(&site.service, SIGTERM);
    domt_read_until_text(fd, "0\r\n\r\n", text, sizeof text);
    ck_assert_int_eq(recv(fd, text, 1, 0), 0); /* the connection ends by FIN, not by a reset */
    close(fd);
    ck_assert_int_eq(domt_service_wait(&site.service, 10000), 0);
}

/* Run the example web with a wrong setting. Returns its exit status. */
static int run_with_wrong_setting(const char *setting)
{
    const char *arguments[64];

    domt_site_gather_arguments((const char *const[]){setting, NULL}, arguments, 64);
    domt_service_spawn(&site.service, arguments);
    return domt_service_wait(&site.service, 10000);
}

DOMT_TEST(a_wrong_setting_ends_the_start)
{
    ck_assert_int_eq(run_with_wrong_setting("web.root=/nowhere"), 1);
    ck_assert_ptr_nonnull(strstr(site.service.error, "web.root: cannot open /nowhere"));
    ck_assert_int_eq(run_with_wrong_setting("web.root=" DOMT_SOURCE_DIR "/examples/web/main.c"), 1);
    ck_assert_int_eq(run_with_wrong_setting("web.upstream=nothing"), 1);
    ck_assert_ptr_nonnull(strstr(site.service.error, "web.upstream: nothing is no address"));
    ck_assert_int_eq(run_with_wrong_setting("listeners.kv.address=unix:/nowhere/kv"), 1);
    ck_assert_int_eq(run_with_wrong_setting("web.valueMax=0"), 2);
    ck_assert_int_eq(run_with_wrong_setting("web.kv.shards=257"), 2);
    ck_assert_ptr_nonnull(strstr(site.service.error, "web.kv.shards"));
}

/* A listener that the configuration does not name is not started, and the others are. */
DOMT_TEST(a_listener_may_be_left_out)
{
    static const char text[] = "listeners: [{name: web, address: \"127.0.0.1:0\"}]\n"
                               "web: {root: " DOMT_SOURCE_DIR "/examples/web/static}\n";
    char path[] = "/tmp/domt-web-XXXXXX";
    int file = mkstemp(path);

    ck_assert(file >= 0 && write(file, text, sizeof text - 1) == (ssize_t)sizeof text - 1);
    close(file);
    domt_service_start(&site.service,
                       (const char *const[]){DOMT_BIN_DIR "/web", "--config", path, NULL});
    unlink(path);
    site.web = site.service.port;
    domt_site_expect_answer(&site, "PUT /kv/a", "one", 204, NULL);
    domt_site_expect_answer(&site, "GET /kv/a", NULL, 200, "\r\n\r\none");
    domt_site_stop_program(&site);
    ck_assert_ptr_null(strstr(site.service.said, "listening kv"));
}

/* The site `web` is a proxy for a second one, of which it has only the port. */
DOMT_TEST(requests_are_handed_on_to_another_server)
{
    static domt_site front;
    char setting[64];

    start_web_with_shards();
    snprintf(setting, sizeof setting, "web.upstream=127.0.0.1:%u", site.web);
    domt_site_start_program(&front, (const char *const[]){setting, NULL});
    domt_site_expect_answer(&front, "PUT /proxy/kv/a%2Fb", "one", 204, NULL);
    domt_site_expect_answer(&front, "GET /proxy/kv/a%2Fb", NULL, 200, "\r\n\r\none");
    domt_site_expect_answer(&site, "GET /kv/a%2Fb", NULL, 200, "\r\n\r\none");
    domt_site_expect_answer(&front, "GET /kv/a%2Fb", NULL, 404, NULL);
    domt_site_expect_answer(&front, "HEAD /proxy/json?a=b", NULL, 200, "Content-Length: ");
    domt_site_expect_answer(&front, "POST /proxy/echo", "there and back", 200, "there and back");
    domt_site_expect_answer(&front, "POST /proxy/json", "a", 405, "Allow: GET, HEAD, OPTIONS\r\n");
    domt_site_expect_answer(&front, "GET /proxy/", NULL, 200, "<title>domus</title>");
    int fd = domt_connect_to_port(front.web);
    domt_send_text(fd, "GET /proxy/events HTTP/1.1\r\nHost: a\r\n\r\n");
    domt_read_until_text(fd, "retry: 3000\n\n", front.answer, sizeof front.answer);
    close(fd);
    domt_site_stop_program(&site);
    domt_site_expect_answer(&front, "GET /proxy/json", NULL, 502, NULL);
    domt_site_stop_program(&front);
}

DOMT_TEST(one_process_serves_all_ports)
{
    start_web_with_shards();
    int fd = domt_connect_to_port(site.echo);
    ck_assert(domt_send_and_get_echo(fd, "hello"));
    close(fd);
    fd = domt_connect_to_port(site.rooms);
    domt_send_text(fd, "hello\n");
    ck_assert(domt_does_answer_match_pattern(fd, "hello\n"));
    close(fd);
    domt_site_stop_program(&site);
}

DOMT_SUITE(30)
