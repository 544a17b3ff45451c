/* The reverse proxy in a test kit: the client and the server are both scripts of the test. */
#include "tests/runtime/network.h"
#include "tests/runtime/pipes.h"
#include "tests/support/suite.h"

#include <domus/http_proxy.h>

#include <errno.h>
#include <string.h>

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND

static domus_testkit *kit;
static domus_peer_listener *listener;
static domus_peer *client, *server;
static domus_http_proxy proxy;

static int serve(domus_stack *stack, void *self, const void *payload)
{
    (void)self;
    return domus_http_pass(stack, payload, &proxy);
}

static const domus_http_options streams = {.streams = true, .no_date = true};
static const domus_http_options whole = {.no_date = true};
static const domus_pipeline streaming = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, &streams}, {NULL, NULL}}};
static const domus_pipeline gathering = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, &whole}, {NULL, NULL}}};
static const domus_on_peer rows[] = {
    {&domus_http_request_type, serve, DOMUS_HTTP_PROXY_FRAME, 0, NULL}, {.type = NULL}};
static const domus_on_peer frameless[] = {{.type = &domus_http_request_type, .handle = serve},
                                          {.type = NULL}};
static const domus_behaviour edge = {
    .name = "edge", .kind = DOMUS_CHANNELS, .pipeline = &streaming, .on_peer = rows};
static const domus_behaviour gathering_edge = {
    .name = "edge", .kind = DOMUS_CHANNELS, .pipeline = &gathering, .on_peer = rows};
static const domus_behaviour frameless_edge = {
    .name = "edge", .kind = DOMUS_CHANNELS, .pipeline = &streaming, .on_peer = frameless};

static void begin_with(const domus_behaviour *behaviour)
{
    static const domus_pool_options options = {.behaviour = &domus_http_streaming_connection,
                                               .connections_max = 2,
                                               .queue_max = 1,
                                               .repeatable = domus_http_repeatable,
                                               .on_demand = true};

    proxy = (domus_http_proxy){.path = "/p", .timeout_ns = 100 * MS};
    kit = domt_pipes_kit(NULL, behaviour, 1);
    domt_net_ok(kit, domus_peer_listen(kit, "10.0.0.9:80", 0, &listener));
    ck_assert_int_eq(domus_outside_pool_open(domus_testkit_system(kit), "10.0.0.9:80", &options,
                                             &proxy.upstream),
                     0);
    client = domt_pipes_peer(kit);
    server = NULL;
}

static void begin(void)
{
    begin_with(&edge);
}

static void end(void)
{
    domus_peer_close(client);
    domt_pipes_end(kit);
}

/* The client sends, and the server gets what is expected. */
static void goes(const char *sent, const char *expected)
{
    domt_pipes_send(kit, client, sent);
    if (server == NULL)
        domt_net_ok(kit, domus_peer_accept(listener, SECOND, &server));
    domt_pipes_expect(kit, server, expected);
}

static void comes(const char *sent, const char *expected)
{
    domt_pipes_send(kit, server, sent);
    domt_pipes_expect(kit, client, expected);
}

static void fails(const char *status)
{
    size_t size;

    domt_net_ok(kit, domus_testkit_run(kit));
    const char *got = domus_peer_got(client, &size);
    ck_assert_msg(size > strlen(status) && memcmp(got, status, strlen(status)) == 0, "%.*s",
                  (int)size, got);
    domus_peer_take(client, size);
}

/* Fields that the proxy adds. */
#define ADDED "X-Forwarded-For: 127.0.0.1\r\nVia: 1.1 domus\r\n\r\n"
#define GET   "GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
#define GOT   "GET /a HTTP/1.1\r\nHost: h\r\n" ADDED

/* Begin with a request that is on its way. */
static void begin_asked(void)
{
    begin();
    goes(GET, GOT);
}

START_TEST(requests_and_answers_are_passed_on)
{
    begin();
    goes("GET /p/a?b HTTP/1.1\r\nHost: h:1\r\nAccept: x\r\nTE: y\r\nConnection: close, foo\r\n"
         "Foo: bar\r\nKeep-Alive: z\r\nUpgrade: q\r\n\r\n",
         "GET /a?b HTTP/1.1\r\nHost: h:1\r\nAccept: x\r\n" ADDED);
    comes("HTTP/1.1 404 Nope\r\nServer: s\r\nContent-Length: 3\r\nConnection: bar\r\nBar: 1\r\n\r\n"
          "abc",
          "HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\nConnection: close\r\nServer: s\r\n"
          "Via: 1.1 domus\r\n\r\nabc");
    end();
}
END_TEST

START_TEST(what_proxies_before_have_said_is_kept)
{
    begin();
    proxy.name = "edge";
    proxy.host = "inside";
    goes("GET http://out/p? HTTP/1.1\r\nHost: out\r\nX-Forwarded-For: 1.2.3.4\r\nVia: 1.0 x\r\n"
         "x-forwarded-for: 5.6.7.8\r\n\r\n",
         "GET /? HTTP/1.1\r\nHost: inside\r\nX-Forwarded-For: 1.2.3.4, 5.6.7.8, 127.0.0.1\r\n"
         "Via: 1.0 x, 1.1 edge\r\n\r\n");
    comes("HTTP/1.1 204 No Content\r\nVia: 1.1 y\r\n\r\n",
          "HTTP/1.1 204 No Content\r\nVia: 1.1 y, 1.1 edge\r\n\r\n");
    proxy.host = NULL;
    goes("GET /past/p HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
         "GET /past/p HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 127.0.0.1\r\n"
         "Via: 1.0 edge\r\n\r\n");
    comes(
        "HTTP/1.1 304 Not Modified\r\nETag: e\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nConnection: keep-alive\r\nETag: e\r\nVia: 1.1 edge\r\n\r\n");
    goes("HEAD /px HTTP/1.1\r\nHost: h\r\n\r\n", "HEAD /px HTTP/1.1\r\nHost: h\r\n"
                                                 "X-Forwarded-For: 127.0.0.1\r\n"
                                                 "Via: 1.1 edge\r\n\r\n");
    comes("HTTP/1.1 200 OK\r\nContent-Length: 1234567\r\n\r\n",
          "HTTP/1.1 200 OK\r\nContent-Length: 1234567\r\nVia: 1.1 edge\r\n\r\n");
    proxy.name = NULL;
    goes("HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n", "HEAD /a HTTP/1.1\r\nHost: h\r\n" ADDED);
    comes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nVia: 1.1 domus\r\n\r\n");
    goes(GET, GOT);
    comes("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
          "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nVia: 1.1 domus\r\n\r\n");
    end();
}
END_TEST

START_TEST(bodies_are_passed_on_while_they_come)
{
    begin();
    goes("PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n",
         "PUT /a HTTP/1.1\r\nContent-Length: 10\r\nHost: h\r\n" ADDED);
    domt_pipes_expect(kit, client, "HTTP/1.1 100 Continue\r\n\r\n");
    goes("hello", "hello");
    goes("there", "there");
    comes("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab",
          "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nVia: 1.1 domus\r\n\r\nab");
    comes("cd", "cd");
    goes("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
         "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: h\r\n" ADDED "3\r\nabc\r\n");
    goes("0\r\nTrailer: x\r\n\r\n", "0\r\n\r\n");
    comes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nVia: 1.1 domus\r\n\r\n2\r\nab\r\n");
    comes("0\r\nA: b\r\n\r\n", "0\r\n\r\n");
    end();
}
END_TEST

START_TEST(both_bodies_go_at_a_time)
{
    begin();
    goes("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
         "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: h\r\n" ADDED);
    comes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nVia: 1.1 domus\r\n\r\n");
    for (uint32_t i = 0; i < 3; i++) {
        goes("1\r\na\r\n", "1\r\na\r\n");
        comes("1\r\nb\r\n", "1\r\nb\r\n");
    }
    goes("0\r\n\r\n", "0\r\n\r\n");
    comes("1\r\nc\r\n0\r\n\r\n", "1\r\nc\r\n0\r\n\r\n");
    goes(GET, GOT); /* on the same connections */
    comes("HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 204 No Content\r\nVia: 1.1 domus\r\n\r\n");
    end();
}
END_TEST

START_TEST(a_whole_body_is_passed_on)
{
    begin_with(&gathering_edge);
    goes("PUT /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
         "PUT /a HTTP/1.1\r\nContent-Length: 5\r\nHost: h\r\n" ADDED "hello");
    domus_peer_finish(server); /* PUT may be done twice */
    server = NULL;
    goes("", "PUT /a HTTP/1.1\r\nContent-Length: 5\r\nHost: h\r\n" ADDED "hello");
    comes("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
          "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nVia: 1.1 domus\r\n\r\n");
    end();
}
END_TEST

START_TEST(a_refused_body_is_not_sent_on)
{
    begin();
    goes("PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhello",
         "PUT /a HTTP/1.1\r\nContent-Length: 10\r\nHost: h\r\n" ADDED "hello");
    comes("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nn",
          "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\nVia: 1.1 domus\r\n\r\nn");
    domt_pipes_send(kit, client, "the");
    domt_net_ok(kit, domus_peer_expect_nothing(server, MS));
    comes("o", "o");
    domt_net_ok(kit, domus_peer_expect_reset(server, SECOND));
    server = NULL;
    goes("re" GET, GOT);
    comes("HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 204 No Content\r\nVia: 1.1 domus\r\n\r\n");
    end();
}
END_TEST

START_TEST(errors_of_the_server_have_a_status)
{
    begin_asked();
    domt_pipes_send(kit, server, "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n");
    domt_net_ok(kit, domus_peer_accept(listener, SECOND, &server)); /* once more */
    domt_net_ok(kit, domus_testkit_run(kit));
    domus_peer_reset(server);
    fails("HTTP/1.1 502 Bad Gateway\r\n");
    server = NULL;
    goes(GET, GOT);
    domt_net_ok(kit, domus_testkit_advance(kit, 101 * MS));
    fails("HTTP/1.1 504 Gateway Timeout\r\n");
    domt_net_ok(kit, domus_peer_expect_reset(server, SECOND));
    domus_peer_listener_close(listener);
    domt_pipes_send(kit, client, GET);
    fails("HTTP/1.1 502 Bad Gateway\r\n");
    domt_pipes_send(kit, client, "PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
    fails("HTTP/1.1 502 Bad Gateway\r\n");
    domt_net_ok(kit, domus_peer_expect_nothing(client, MS));
    end();
}
END_TEST

START_TEST(requests_beyond_the_connections_and_the_queue_get_503)
{
    domus_peer *others[3];

    begin();
    for (uint32_t i = 0; i < 3; i++) {
        others[i] = domt_pipes_peer(kit);
        domt_pipes_send(kit, others[i], GET);
        domt_net_ok(kit, domus_testkit_run(kit));
    }
    domt_pipes_send(kit, client, GET);
    fails("HTTP/1.1 503 Service Unavailable\r\n");
    for (uint32_t i = 0; i < 3; i++)
        domus_peer_close(others[i]);
    end();
}
END_TEST

START_TEST(an_answer_that_is_not_all_is_seen_as_that)
{
    begin_asked();
    comes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nVia: 1.1 domus\r\n\r\n1\r\na\r\n");
    domus_peer_finish(server);
    domt_net_ok(kit, domus_peer_expect_reset(client, SECOND));
    end();
}
END_TEST

START_TEST(a_client_that_goes_frees_its_connection)
{
    begin_asked();
    comes("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\na",
          "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nVia: 1.1 domus\r\n\r\na");
    domus_peer_reset(client);
    domt_net_ok(kit, domus_testkit_run(kit));
    domt_net_ok(kit, domus_testkit_advance(kit, 10 * MS));
    ck_assert(domus_peer_has_end(server) || domus_peer_error(server) != 0);
    client = domt_pipes_peer(kit);
    server = NULL;
    goes("PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhello",
         "PUT /a HTTP/1.1\r\nContent-Length: 10\r\nHost: h\r\n" ADDED "hello");
    domus_peer_reset(client);
    domt_net_ok(kit, domus_peer_expect_reset(server, SECOND));
    client = domt_pipes_peer(kit);
    end();
}
END_TEST

START_TEST(wrong_bodies_of_the_client_are_its_fault)
{
    begin();
    goes("PUT /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
         "PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: h\r\n" ADDED "1\r\na\r\n");
    domt_pipes_send(kit, client, "x\r\n");
    fails("HTTP/1.1 400 Bad Request\r\n");
    domt_net_ok(kit, domus_peer_expect_reset(server, SECOND));
    end();
}
END_TEST

START_TEST(a_row_without_a_frame_is_an_error)
{
    begin_with(&frameless_edge);
    domt_pipes_send(kit, client, GET);
    fails("HTTP/1.1 500 Internal Server Error\r\n");
    end();
}
END_TEST

DOMT_MAIN("http_proxy", 60, requests_and_answers_are_passed_on,
          what_proxies_before_have_said_is_kept, bodies_are_passed_on_while_they_come,
          both_bodies_go_at_a_time, a_whole_body_is_passed_on, a_refused_body_is_not_sent_on,
          errors_of_the_server_have_a_status, requests_beyond_the_connections_and_the_queue_get_503,
          an_answer_that_is_not_all_is_seen_as_that, a_client_that_goes_frees_its_connection,
          wrong_bodies_of_the_client_are_its_fault, a_row_without_a_frame_is_an_error)
