/* The reverse proxy in a test kit: requests, answers and their bodies, and what fails. */
#include "tests/runtime/proxied.h"
#include "tests/support/suite.h"

/* Begin with a request that is on its way. */
static void begin_asked(void)
{
    domt_proxied_begin(&domt_proxied_edge);
    domt_proxied_goes(GET, GOT);
}

DOMT_TEST(requests_and_answers_are_passed_on)
{
    domt_proxied_begin(&domt_proxied_edge);
    domt_proxied_goes(
        "GET /p/a?b HTTP/1.1\r\nHost: h:1\r\nAccept: x\r\nTE: y\r\nConnection: close, foo\r\n"
        "Foo: bar\r\nKeep-Alive: z\r\nUpgrade: q\r\n\r\n",
        "GET /a?b HTTP/1.1\r\nHost: h:1\r\nAccept: x\r\n" FOR("h:1") "Via: 1.1 domus\r\n\r\n");
    domt_proxied_comes(
        "HTTP/1.1 404 Nope\r\nServer: s\r\nContent-Length: 3\r\nConnection: bar\r\nBar: 1\r\n\r\n"
        "abc",
        "HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\nConnection: close\r\nServer: s\r\n"
        "Via: 1.1 domus\r\n\r\nabc");
    domt_proxied_end();
}

DOMT_TEST(what_proxies_before_have_said_is_kept)
{
    domt_proxied_begin(&domt_proxied_edge);
    domt_edge.proxy.name = "edge";
    domt_edge.proxy.host = "inside";
    domt_edge.proxy.trusts_clients = true;
    domt_proxied_goes(
        "GET http://out/p? HTTP/1.1\r\nHost: out\r\nX-Forwarded-For: 1.2.3.4\r\nVia: 1.0 x\r\n"
        "X-Forwarded-Proto: https\r\nForwarded: for=1.2.3.4\r\n"
        "x-forwarded-for: 5.6.7.8\r\n\r\n",
        "GET /? HTTP/1.1\r\nHost: inside\r\nX-Forwarded-Proto: https\r\nForwarded: for=1.2.3.4\r\n"
        "X-Forwarded-For: 1.2.3.4, 5.6.7.8, 127.0.0.1\r\nX-Forwarded-Host: out\r\n"
        "Via: 1.0 x, 1.1 edge\r\n\r\n");
    domt_proxied_comes("HTTP/1.1 204 No Content\r\nVia: 1.1 y\r\n\r\n",
                       "HTTP/1.1 204 No Content\r\nVia: 1.1 y, 1.1 edge\r\n\r\n");
    domt_edge.proxy.host = NULL;
    domt_proxied_goes("GET /past/p HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
                      "GET /past/p HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 127.0.0.1\r\n"
                      "X-Forwarded-Proto: http\r\n"
                      "Via: 1.0 edge\r\n\r\n");
    domt_proxied_comes(
        "HTTP/1.1 304 Not Modified\r\nETag: e\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nConnection: keep-alive\r\nETag: e\r\nVia: 1.1 edge\r\n\r\n");
    domt_proxied_goes("HEAD /px HTTP/1.1\r\nHost: h\r\n\r\n",
                      "HEAD /px HTTP/1.1\r\nHost: h\r\n" FOR("h") "Via: 1.1 edge\r\n\r\n");
    domt_proxied_comes("HTTP/1.1 200 OK\r\nContent-Length: 1234567\r\n\r\n",
                       "HTTP/1.1 200 OK\r\nContent-Length: 1234567\r\nVia: 1.1 edge\r\n\r\n");
    domt_edge.proxy.name = NULL;
    domt_proxied_goes("HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n",
                      "HEAD /a HTTP/1.1\r\nHost: h\r\n" ADDED);
    domt_proxied_comes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nVia: 1.1 domus\r\n\r\n");
    domt_proxied_goes(GET, GOT);
    domt_proxied_comes("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
                       "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nVia: 1.1 domus\r\n\r\n");
    domt_proxied_end();
}

DOMT_TEST(bodies_are_passed_on_while_they_come)
{
    domt_proxied_begin(&domt_proxied_edge);
    domt_proxied_goes(
        "PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n",
        "PUT /a HTTP/1.1\r\nContent-Length: 10\r\nHost: h\r\n" ADDED);
    domt_pipes_expect(domt_edge.kit, domt_edge.client, "HTTP/1.1 100 Continue\r\n\r\n");
    domt_proxied_goes("hello", "hello");
    domt_proxied_goes("there", "there");
    domt_proxied_comes("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab",
                       "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nVia: 1.1 domus\r\n\r\nab");
    domt_proxied_comes("cd", "cd");
    domt_proxied_goes(
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: h\r\n" ADDED "3\r\nabc\r\n");
    domt_proxied_goes("0\r\nTrailer: x\r\n\r\n", "0\r\n\r\n");
    domt_proxied_comes(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nVia: 1.1 domus\r\n\r\n2\r\nab\r\n");
    domt_proxied_comes("0\r\nA: b\r\n\r\n", "0\r\n\r\n");
    domt_proxied_end();
}

DOMT_TEST(both_bodies_go_at_a_time)
{
    domt_proxied_begin(&domt_proxied_edge);
    domt_proxied_goes("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
                      "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: h\r\n" ADDED);
    domt_proxied_comes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nVia: 1.1 domus\r\n\r\n");
    for (uint32_t i = 0; i < 3; i++) {
        domt_proxied_goes("1\r\na\r\n", "1\r\na\r\n");
        domt_proxied_comes("1\r\nb\r\n", "1\r\nb\r\n");
    }
    domt_proxied_goes("0\r\n\r\n", "0\r\n\r\n");
    domt_proxied_comes("1\r\nc\r\n0\r\n\r\n", "1\r\nc\r\n0\r\n\r\n");
    domt_proxied_goes(GET, GOT); /* on the same connections */
    domt_proxied_comes("HTTP/1.1 204 No Content\r\n\r\n",
                       "HTTP/1.1 204 No Content\r\nVia: 1.1 domus\r\n\r\n");
    domt_proxied_end();
}

DOMT_TEST(a_whole_body_is_passed_on)
{
    domt_proxied_begin(&domt_proxied_gathering_edge);
    domt_proxied_goes(
        "PUT /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "PUT /a HTTP/1.1\r\nContent-Length: 5\r\nHost: h\r\n" ADDED "hello");
    domus_peer_finish(domt_edge.server); /* PUT may be done twice */
    domt_edge.server = NULL;
    domt_proxied_goes("", "PUT /a HTTP/1.1\r\nContent-Length: 5\r\nHost: h\r\n" ADDED "hello");
    domt_proxied_comes("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
                       "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nVia: 1.1 domus\r\n\r\n");
    domt_proxied_end();
}

DOMT_TEST(a_refused_body_is_not_sent_on)
{
    domt_proxied_begin(&domt_proxied_edge);
    domt_proxied_goes("PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhello",
                      "PUT /a HTTP/1.1\r\nContent-Length: 10\r\nHost: h\r\n" ADDED "hello");
    domt_proxied_comes(
        "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nn",
        "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\nVia: 1.1 domus\r\n\r\nn");
    domt_pipes_send(domt_edge.kit, domt_edge.client, "the");
    domt_net_ok(domt_edge.kit, domus_peer_expect_nothing(domt_edge.server, MS));
    domt_proxied_comes("o", "o");
    domt_net_ok(domt_edge.kit, domus_peer_expect_reset(domt_edge.server, SECOND));
    domt_edge.server = NULL;
    domt_proxied_goes("re" GET, GOT);
    domt_proxied_comes("HTTP/1.1 204 No Content\r\n\r\n",
                       "HTTP/1.1 204 No Content\r\nVia: 1.1 domus\r\n\r\n");
    domt_proxied_end();
}

DOMT_TEST(errors_of_the_server_have_a_status)
{
    begin_asked();
    domt_pipes_send(domt_edge.kit, domt_edge.server,
                    "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n");
    domt_net_ok(domt_edge.kit,
                domus_peer_accept(domt_edge.listener, SECOND, &domt_edge.server)); /* once more */
    domt_net_ok(domt_edge.kit, domus_testkit_run(domt_edge.kit));
    domus_peer_reset(domt_edge.server);
    domt_proxied_fails("HTTP/1.1 502 Bad Gateway\r\n");
    domt_edge.server = NULL;
    domt_proxied_goes(GET, GOT);
    domt_net_ok(domt_edge.kit, domus_testkit_advance(domt_edge.kit, 101 * MS));
    domt_proxied_fails("HTTP/1.1 504 Gateway Timeout\r\n");
    domt_net_ok(domt_edge.kit, domus_peer_expect_reset(domt_edge.server, SECOND));
    domus_peer_listener_close(domt_edge.listener);
    domt_pipes_send(domt_edge.kit, domt_edge.client, GET);
    domt_proxied_fails("HTTP/1.1 502 Bad Gateway\r\n");
    domt_pipes_send(domt_edge.kit, domt_edge.client,
                    "PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
    domt_proxied_fails("HTTP/1.1 502 Bad Gateway\r\n");
    domt_net_ok(domt_edge.kit, domus_peer_expect_nothing(domt_edge.client, MS));
    domt_proxied_end();
}

DOMT_TEST(requests_beyond_the_connections_and_the_queue_get_503)
{
    domus_peer *others[3];

    domt_proxied_begin(&domt_proxied_edge);
    for (uint32_t i = 0; i < 3; i++) {
        others[i] = domt_pipes_peer(domt_edge.kit);
        domt_pipes_send(domt_edge.kit, others[i], GET);
        domt_net_ok(domt_edge.kit, domus_testkit_run(domt_edge.kit));
    }
    domt_pipes_send(domt_edge.kit, domt_edge.client, GET);
    domt_proxied_fails("HTTP/1.1 503 Service Unavailable\r\n");
    for (uint32_t i = 0; i < 3; i++)
        domus_peer_close(others[i]);
    domt_proxied_end();
}

DOMT_TEST(an_answer_that_is_not_all_is_seen_as_that)
{
    begin_asked();
    domt_proxied_comes(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nVia: 1.1 domus\r\n\r\n1\r\na\r\n");
    domus_peer_finish(domt_edge.server);
    domt_net_ok(domt_edge.kit, domus_peer_expect_reset(domt_edge.client, SECOND));
    domt_proxied_end();
}

DOMT_TEST(a_client_that_goes_frees_its_connection)
{
    begin_asked();
    domt_proxied_comes("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\na",
                       "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nVia: 1.1 domus\r\n\r\na");
    domus_peer_reset(domt_edge.client);
    domt_net_ok(domt_edge.kit, domus_testkit_run(domt_edge.kit));
    domt_net_ok(domt_edge.kit, domus_testkit_advance(domt_edge.kit, 10 * MS));
    ck_assert(domus_peer_has_end(domt_edge.server) || domus_peer_error(domt_edge.server) != 0);
    domt_edge.client = domt_pipes_peer(domt_edge.kit);
    domt_edge.server = NULL;
    domt_proxied_goes("PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhello",
                      "PUT /a HTTP/1.1\r\nContent-Length: 10\r\nHost: h\r\n" ADDED "hello");
    domus_peer_reset(domt_edge.client);
    domt_net_ok(domt_edge.kit, domus_peer_expect_reset(domt_edge.server, SECOND));
    domt_edge.client = domt_pipes_peer(domt_edge.kit);
    domt_proxied_end();
}

DOMT_TEST(a_client_that_finishes_does_not_wait_for_the_answer)
{
    domt_proxied_begin(&domt_proxied_edge);
    domt_edge.proxy.timeout_ns = 10 * SECOND;
    domt_proxied_goes(GET, GOT);
    domus_peer_finish(domt_edge.client);
    domt_net_ok(domt_edge.kit, domus_testkit_advance(domt_edge.kit, 10 * MS));
    ck_assert(domus_peer_has_end(domt_edge.client));
    domus_peer_close(domt_edge.client);
    domt_pipes_send(domt_edge.kit, domt_edge.server,
                    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
    domt_edge.client = domt_pipes_peer(domt_edge.kit);
    domt_proxied_goes(GET, GOT); /* the answer went to nobody, and its connection goes on */
    domt_proxied_comes("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\na",
                       "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nVia: 1.1 domus\r\n\r\na");
    domus_peer_finish(domt_edge.client);
    domt_net_ok(domt_edge.kit, domus_peer_expect_reset(domt_edge.client, SECOND));
    domt_edge.client = domt_pipes_peer(domt_edge.kit);
    domt_proxied_end();
}

DOMT_TEST(requests_that_come_together_are_passed_on_one_by_one)
{
    domt_proxied_begin(&domt_proxied_edge);
    domt_proxied_goes(GET "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab" GET, GOT);
    domt_proxied_comes("HTTP/1.1 204 No Content\r\n\r\n",
                       "HTTP/1.1 204 No Content\r\nVia: 1.1 domus\r\n\r\n");
    domt_proxied_goes("", "POST /b HTTP/1.1\r\nContent-Length: 2\r\nHost: h\r\n" ADDED "ab");
    domt_proxied_comes("HTTP/1.1 204 No Content\r\n\r\n",
                       "HTTP/1.1 204 No Content\r\nVia: 1.1 domus\r\n\r\n");
    domt_proxied_goes("", GOT);
    domt_proxied_comes("HTTP/1.1 204 No Content\r\n\r\n",
                       "HTTP/1.1 204 No Content\r\nVia: 1.1 domus\r\n\r\n");
    domt_proxied_end();
}

DOMT_TEST(wrong_bodies_of_the_client_are_its_fault)
{
    domt_proxied_begin(&domt_proxied_edge);
    domt_proxied_goes("PUT /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
                      "PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: h\r\n" ADDED
                      "1\r\na\r\n");
    domt_pipes_send(domt_edge.kit, domt_edge.client, "x\r\n");
    domt_proxied_fails("HTTP/1.1 400 Bad Request\r\n");
    domt_net_ok(domt_edge.kit, domus_peer_expect_reset(domt_edge.server, SECOND));
    domt_proxied_end();
}

DOMT_TEST(a_row_without_a_frame_is_an_error)
{
    domt_proxied_begin(&domt_proxied_frameless_edge);
    domt_pipes_send(domt_edge.kit, domt_edge.client, GET);
    domt_proxied_fails("HTTP/1.1 500 Internal Server Error\r\n");
    domt_proxied_end();
}

DOMT_SUITE(60)
