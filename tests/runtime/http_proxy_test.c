/* The reverse proxy in a test kit: which requests, answers and bodies it passes on, how it changes
 * header fields, and how it reports errors. */
#include "tests/runtime/proxied.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

/* The begin of an answer with a known size, the begin of an answer in chunks, and the end of the
 * heads that the client gets. */
#define SIZED(size) "HTTP/1.1 200 OK\r\nContent-Length: " size "\r\n"
#define CHUNKED     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
#define VIA         "Via: 1.1 domus\r\n\r\n"

/* Begin with a request of the client that the proxy has passed on to the server. */
static void begin_with_request_passed_on(void)
{
    domt_proxied_begin(&domt_proxied_edge);
    domt_relay_request(GET, GOT);
}

DOMT_TEST(requests_and_answers_are_passed_on)
{
    domt_proxied_begin(&domt_proxied_edge);
    domt_relay_request(
        "GET /p/a?b HTTP/1.1\r\nHost: h:1\r\nAccept: x\r\nTE: y\r\nConnection: close, foo\r\n"
        "Foo: bar\r\nKeep-Alive: z\r\nUpgrade: q\r\n\r\n",
        "GET /a?b HTTP/1.1\r\nHost: h:1\r\nAccept: x\r\n" FOR("h:1") VIA);
    domt_relay_answer(
        "HTTP/1.1 404 Nope\r\nServer: s\r\nContent-Length: 3\r\nConnection: bar\r\nBar: 1\r\n\r\n"
        "abc",
        "HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\nConnection: close\r\nServer: s\r\n" VIA
        "abc");
    domt_proxied_end();
}

DOMT_TEST(fields_of_earlier_proxies_are_kept)
{
    domt_proxied_begin(&domt_proxied_edge);
    domt_edge.proxy.name = "edge";
    domt_edge.proxy.host = "inside";
    domt_edge.proxy.trusts_clients = true;
    domt_relay_request(
        "GET http://out/p? HTTP/1.1\r\nHost: out\r\nX-Forwarded-For: 1.2.3.4\r\nVia: 1.0 x\r\n"
        "X-Forwarded-Proto: https\r\nForwarded: for=1.2.3.4\r\n"
        "x-forwarded-for: 5.6.7.8\r\n\r\n",
        "GET /? HTTP/1.1\r\nHost: inside\r\nX-Forwarded-Proto: https\r\nForwarded: for=1.2.3.4\r\n"
        "X-Forwarded-For: 1.2.3.4, 5.6.7.8, 127.0.0.1\r\nX-Forwarded-Host: out\r\n"
        "Via: 1.0 x, 1.1 edge\r\n\r\n");
    domt_relay_answer("HTTP/1.1 204 No Content\r\nVia: 1.1 y\r\n\r\n",
                      "HTTP/1.1 204 No Content\r\nVia: 1.1 y, 1.1 edge\r\n\r\n");
    domt_edge.proxy.host = NULL;
    domt_relay_request("GET /past/p HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
                       "GET /past/p HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 127.0.0.1\r\n"
                       "X-Forwarded-Proto: http\r\n"
                       "Via: 1.0 edge\r\n\r\n");
    domt_relay_answer(
        "HTTP/1.1 304 Not Modified\r\nETag: e\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nConnection: keep-alive\r\nETag: e\r\nVia: 1.1 edge\r\n\r\n");
    domt_relay_request("HEAD /px HTTP/1.1\r\nHost: h\r\n\r\n",
                       "HEAD /px HTTP/1.1\r\nHost: h\r\n" FOR("h") "Via: 1.1 edge\r\n\r\n");
    domt_relay_answer(SIZED("1234567") "\r\n",
                      "HTTP/1.1 200 OK\r\nContent-Length: 1234567\r\nVia: 1.1 edge\r\n\r\n");
    domt_edge.proxy.name = NULL;
    domt_relay_request("HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n",
                       "HEAD /a HTTP/1.1\r\nHost: h\r\n" ADDED);
    domt_relay_answer(CHUNKED "\r\n", CHUNKED VIA);
    domt_relay_request(GET, GOT);
    domt_relay_answer(SIZED("0") "\r\n", SIZED("0") VIA);
    domt_proxied_end();
}

DOMT_TEST(bodies_are_passed_on_while_they_come)
{
    domt_proxied_begin(&domt_proxied_edge);
    domt_relay_request(
        "PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n",
        "PUT /a HTTP/1.1\r\nContent-Length: 10\r\nHost: h\r\n" ADDED);
    domt_pipes_peer_expect(domt_edge.kit, domt_edge.client, "HTTP/1.1 100 Continue\r\n\r\n");
    domt_relay_request("hello", "hello");
    domt_relay_request("there", "there");
    domt_relay_answer(SIZED("4") "\r\nab", SIZED("4") VIA "ab");
    domt_relay_answer("cd", "cd");
    domt_relay_request(
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: h\r\n" ADDED "3\r\nabc\r\n");
    domt_relay_request("0\r\nTrailer: x\r\n\r\n", "0\r\n\r\n");
    domt_relay_answer(CHUNKED "\r\n2\r\nab\r\n", CHUNKED VIA "2\r\nab\r\n");
    domt_relay_answer("0\r\nA: b\r\n\r\n", "0\r\n\r\n");
    domt_proxied_end();
}

DOMT_TEST(request_and_answer_bodies_pass_at_the_same_time)
{
    domt_proxied_begin(&domt_proxied_edge);
    domt_relay_request("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
                       "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: h\r\n" ADDED);
    domt_relay_answer(CHUNKED "\r\n", CHUNKED VIA);
    for (uint32_t i = 0; i < 3; i++) {
        domt_relay_request("1\r\na\r\n", "1\r\na\r\n");
        domt_relay_answer("1\r\nb\r\n", "1\r\nb\r\n");
    }
    domt_relay_request("0\r\n\r\n", "0\r\n\r\n");
    domt_relay_answer("1\r\nc\r\n0\r\n\r\n", "1\r\nc\r\n0\r\n\r\n");
    domt_relay_request(GET, GOT); /* this request uses the same two connections again */
    domt_relay_empty_answer();
    domt_proxied_end();
}

DOMT_TEST(a_whole_body_is_passed_on)
{
    domt_proxied_begin(&domt_proxied_gathering_edge);
    domt_relay_request(
        "PUT /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "PUT /a HTTP/1.1\r\nContent-Length: 5\r\nHost: h\r\n" ADDED "hello");
    domus_peer_finish(domt_edge.server); /* a PUT may be sent again when its connection ends */
    domt_edge.server = NULL;
    domt_relay_request("", "PUT /a HTTP/1.1\r\nContent-Length: 5\r\nHost: h\r\n" ADDED "hello");
    domt_relay_answer(SIZED("0") "\r\n", SIZED("0") VIA);
    domt_proxied_end();
}

DOMT_TEST(a_refused_body_is_not_sent_on)
{
    domt_proxied_begin(&domt_proxied_edge);
    domt_relay_request("PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhello",
                       "PUT /a HTTP/1.1\r\nContent-Length: 10\r\nHost: h\r\n" ADDED "hello");
    domt_relay_answer(
        "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nn",
        "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\nVia: 1.1 domus\r\n\r\nn");
    domt_pipes_peer_send(domt_edge.kit, domt_edge.client, "the");
    domt_net_check_ok(domt_edge.kit, domus_peer_expect_nothing(domt_edge.server, MS));
    domt_relay_answer("o", "o");
    domt_net_check_ok(domt_edge.kit, domus_peer_expect_reset(domt_edge.server, SECOND));
    domt_edge.server = NULL;
    domt_relay_request("re" GET, GOT);
    domt_relay_empty_answer();
    domt_proxied_end();
}

DOMT_TEST(errors_of_the_server_have_a_status)
{
    begin_with_request_passed_on();
    domt_pipes_peer_send(domt_edge.kit, domt_edge.server,
                         "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n");
    domt_net_check_ok(domt_edge.kit, domus_peer_accept(domt_edge.listener, SECOND,
                                                       &domt_edge.server)); /* proxy tries again */
    domt_net_check_ok(domt_edge.kit, domus_testkit_run(domt_edge.kit));
    domus_peer_reset(domt_edge.server);
    domt_expect_answer_status("HTTP/1.1 502 Bad Gateway\r\n");
    domt_edge.server = NULL;
    domt_relay_request(GET, GOT);
    domt_net_check_ok(domt_edge.kit, domus_testkit_advance(domt_edge.kit, 101 * MS));
    domt_expect_answer_status("HTTP/1.1 504 Gateway Timeout\r\n");
    domt_net_check_ok(domt_edge.kit, domus_peer_expect_reset(domt_edge.server, SECOND));
    domus_peer_listener_close(domt_edge.listener);
    domt_pipes_peer_send(domt_edge.kit, domt_edge.client, GET);
    domt_expect_answer_status("HTTP/1.1 502 Bad Gateway\r\n");
    domt_pipes_peer_send(domt_edge.kit, domt_edge.client,
                         "PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
    domt_expect_answer_status("HTTP/1.1 502 Bad Gateway\r\n");
    domt_net_check_ok(domt_edge.kit, domus_peer_expect_nothing(domt_edge.client, MS));
    domt_proxied_end();
}

DOMT_TEST(requests_beyond_the_connections_and_the_queue_get_503)
{
    domus_peer *others[3];

    domt_proxied_begin(&domt_proxied_edge);
    for (uint32_t i = 0; i < 3; i++) {
        others[i] = domt_pipes_connect_peer(domt_edge.kit);
        domt_pipes_peer_send(domt_edge.kit, others[i], GET);
        domt_net_check_ok(domt_edge.kit, domus_testkit_run(domt_edge.kit));
    }
    domt_pipes_peer_send(domt_edge.kit, domt_edge.client, GET);
    domt_expect_answer_status("HTTP/1.1 503 Service Unavailable\r\n");
    for (uint32_t i = 0; i < 3; i++)
        domus_peer_close(others[i]);
    domt_proxied_end();
}

DOMT_TEST(cut_answer_of_the_server_resets_the_client)
{
    begin_with_request_passed_on();
    domt_relay_answer(CHUNKED "\r\n1\r\na\r\n", CHUNKED VIA "1\r\na\r\n");
    domus_peer_finish(domt_edge.server);
    domt_net_check_ok(domt_edge.kit, domus_peer_expect_reset(domt_edge.client, SECOND));
    domt_proxied_end();
}

DOMT_TEST(a_client_that_goes_frees_its_connection)
{
    begin_with_request_passed_on();
    domt_relay_answer(SIZED("100") "\r\na", SIZED("100") VIA "a");
    domus_peer_reset(domt_edge.client);
    domt_net_check_ok(domt_edge.kit, domus_testkit_run(domt_edge.kit));
    domt_net_check_ok(domt_edge.kit, domus_testkit_advance(domt_edge.kit, 10 * MS));
    ck_assert(domus_peer_has_end(domt_edge.server) || domus_peer_error(domt_edge.server) != 0);
    domt_edge.client = domt_pipes_connect_peer(domt_edge.kit);
    domt_edge.server = NULL;
    domt_relay_request("PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhello",
                       "PUT /a HTTP/1.1\r\nContent-Length: 10\r\nHost: h\r\n" ADDED "hello");
    domus_peer_reset(domt_edge.client);
    domt_net_check_ok(domt_edge.kit, domus_peer_expect_reset(domt_edge.server, SECOND));
    domt_edge.client = domt_pipes_connect_peer(domt_edge.kit);
    domt_proxied_end();
}

DOMT_TEST(a_client_that_finishes_does_not_wait_for_the_answer)
{
    domt_proxied_begin(&domt_proxied_edge);
    domt_edge.proxy.timeout_ns = 10 * SECOND;
    domt_relay_request(GET, GOT);
    domus_peer_finish(domt_edge.client);
    domt_net_check_ok(domt_edge.kit, domus_testkit_advance(domt_edge.kit, 10 * MS));
    ck_assert(domus_peer_has_end(domt_edge.client));
    domus_peer_close(domt_edge.client);
    domt_pipes_peer_send(domt_edge.kit, domt_edge.server, SIZED("1") "\r\na");
    domt_edge.client = domt_pipes_connect_peer(domt_edge.kit);
    domt_relay_request(GET, GOT); /* the connection to the server was kept */
    domt_relay_answer(SIZED("100") "\r\na", SIZED("100") VIA "a");
    domus_peer_finish(domt_edge.client);
    domt_net_check_ok(domt_edge.kit, domus_peer_expect_reset(domt_edge.client, SECOND));
    domt_edge.client = domt_pipes_connect_peer(domt_edge.kit);
    domt_proxied_end();
}

DOMT_TEST(requests_that_come_together_are_passed_on_one_by_one)
{
    domt_proxied_begin(&domt_proxied_edge);
    domt_relay_request(GET "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab" GET, GOT);
    domt_relay_empty_answer();
    domt_relay_request("", "POST /b HTTP/1.1\r\nContent-Length: 2\r\nHost: h\r\n" ADDED "ab");
    domt_relay_empty_answer();
    domt_relay_request("", GOT);
    domt_relay_empty_answer();
    domt_proxied_end();
}

DOMT_TEST(malformed_body_of_the_client_is_answered_by_400)
{
    domt_proxied_begin(&domt_proxied_edge);
    domt_relay_request("PUT /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
                       "PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: h\r\n" ADDED
                       "1\r\na\r\n");
    domt_pipes_peer_send(domt_edge.kit, domt_edge.client, "x\r\n");
    domt_expect_answer_status("HTTP/1.1 400 Bad Request\r\n");
    domt_net_check_ok(domt_edge.kit, domus_peer_expect_reset(domt_edge.server, SECOND));
    domt_proxied_end();
}

DOMT_TEST(proxy_on_a_row_without_a_frame_answers_500)
{
    domt_proxied_begin(&domt_proxied_frameless_edge);
    domt_pipes_peer_send(domt_edge.kit, domt_edge.client, GET);
    domt_expect_answer_status("HTTP/1.1 500 Internal Server Error\r\n");
    domt_proxied_end();
}

/* --- fields ----------------------------------------------------------------------------------- */

/* Send a request with the header lines `fields`, and check which lines the server gets. */
static void expect_fields(const char *fields, const char *expected)
{
    char sent[1024], got[1024];

    (void)snprintf(sent, sizeof sent, "GET /a HTTP/1.1\r\nHost: h\r\n%s\r\n", fields);
    (void)snprintf(got, sizeof got, "GET /a HTTP/1.1\r\nHost: h\r\n%s\r\n", expected);
    domt_relay_request(sent, got);
    domt_relay_empty_answer();
}

DOMT_TEST(strangers_cannot_set_the_address_of_the_client)
{
    domt_proxied_begin(&domt_proxied_edge);
    expect_fields(
        "X-Forwarded-For: 1.2.3.4\r\nx-forwarded-proto: https\r\nX-Forwarded-Host: evil\r\n"
        "X-Forwarded-Port: 1\r\nX-FORWARDED-ANYTHING: 2\r\nForwarded: for=1.2.3.4\r\n"
        "X-Real-IP: 1.2.3.4\r\nX_Forwarded_For: 1.2.3.4\r\nX-Forwarded_Proto: https\r\n"
        "x_real_ip: 1.2.3.4\r\nForwardedness: kept\r\nX-Real-IPs: kept\r\n"
        "X-Forwarded: kept\r\nConnection: x-forwarded-for, via\r\n",
        "Forwardedness: kept\r\nX-Real-IPs: kept\r\nX-Forwarded: kept\r\n" FOR(
            "h") "Via: 1.1 domus\r\n");
    domt_edge.proxy.secure = true;
    expect_fields("", "X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: https\r\n"
                      "X-Forwarded-Host: h\r\nVia: 1.1 domus\r\n");
    domt_edge.proxy.trusts_clients = true;
    expect_fields(
        "X-Forwarded-Host: before\r\nX-Forwarded-Proto: http\r\nX-Forwarded-For: 1.2.3.4\r\n"
        "X-Real-IP: 1.2.3.4\r\n",
        "X-Forwarded-Host: before\r\nX-Forwarded-Proto: http\r\nX-Real-IP: 1.2.3.4\r\n"
        "X-Forwarded-For: 1.2.3.4, 127.0.0.1\r\nVia: 1.1 domus\r\n");
    domt_proxied_end();
}

/* A client that comes by a Unix socket has no address that would help the server. */
DOMT_TEST(clients_are_named_by_their_address_alone)
{
    static const char *const clients[][3] = {{"[::1]:80", "[2001:db8::7]:4000", "2001:db8::7"},
                                             {"127.0.0.1:80", "9.8.7.6:5", "9.8.7.6"},
                                             {"unix:@edge", "unix:@me", "unknown"}};
    char got[256];

    for (size_t i = 0; i < sizeof clients / sizeof clients[0]; i++) {
        domt_pipe_at = clients[i][0];
        domt_proxied_begin(&domt_proxied_edge);
        domus_peer_close(domt_edge.client);
        domt_net_check_ok(domt_edge.kit, domus_peer_connect(domt_edge.kit, domt_pipe_at,
                                                            clients[i][1], &domt_edge.client));
        (void)snprintf(got, sizeof got,
                       "GET /a HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: %s\r\n"
                       "X-Forwarded-Proto: http\r\nX-Forwarded-Host: h\r\nVia: 1.1 domus\r\n\r\n",
                       clients[i][2]);
        domt_relay_request(GET, got);
        domt_proxied_end();
    }
}

typedef struct location {
    const char *sent, *expected; /* locations of the server and for the client (NULL: the same) */
} location;

/* Check how the proxy changes the locations in answers to requests for the host `h:81`. */
static void check_changed_locations(const location *locations, size_t count, const char *host)
{
    char sent[1024], got[1024];

    for (size_t i = 0; i < count; i++) {
        const location *is = &locations[i];
        (void)snprintf(got, sizeof got,
                       "GET /a HTTP/1.1\r\nHost: %s\r\nX-Forwarded-For: 127.0.0.1\r\n"
                       "X-Forwarded-Proto: %s\r\nX-Forwarded-Host: h:81\r\n" VIA,
                       host, domt_edge.proxy.secure ? "https" : "http");
        domt_relay_request(domt_edge.proxy.path != NULL ? "GET /p/a HTTP/1.1\r\nHost: h:81\r\n\r\n"
                                                        : "GET /a HTTP/1.1\r\nHost: h:81\r\n\r\n",
                           got);
        (void)snprintf(sent, sizeof sent,
                       "HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", is->sent);
        (void)snprintf(got, sizeof got,
                       "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: %s\r\n" VIA,
                       is->expected != NULL ? is->expected : is->sent);
        domt_relay_answer(sent, got);
    }
}

#define REWRITES(locations, host)                                                                  \
    check_changed_locations(locations, sizeof(locations) / sizeof((locations)[0]), host)

DOMT_TEST(locations_of_the_server_become_those_of_the_proxy)
{
    static const location known[] = {
        {"/", "/p/"},
        {"/b?c#d", "/p/b?c#d"},
        {"/p", NULL}, /* this server's location already contains the path of the proxy */
        {"/p/b", NULL},
        {"/p?b", NULL},
        {"http://h:81/p/b", "/p/b"},
        {"/pb", "/p/pb"},
        {"b", NULL},
        {"../b", NULL},
        {"?b", NULL},
        {"#b", NULL},
        {"", NULL},
        {"//h:81/b", NULL},
        {"http://h:81/b", "/p/b"},
        {"HTTP://H:81/b?c#d", "/p/b?c#d"},
        {"http://h:81", "/p/"},
        {"http://h:81?b", "/p/?b"},
        {"http://h:81#b", "/p/#b"},
        {"http://h:81//x/b", "/p//x/b"},
        {"http://h/b", NULL},
        {"http://h:811/b", NULL},
        {"http://h:81.x/b", NULL},
        {"http://u@h:81/b", NULL},
        {"http://x/h:81/b", NULL},
        {"ftp://h:81/b", NULL},
        {"https://h:81/b", "https://h:81/p/b"}, /* this server redirects to https */
        {"https://h:81", "https://h:81/p/"},
        {"https://h/b", NULL},
    };
    static const location named[] = {
        {"http://inside/b", "/p/b"},
        {"http://inside:80/b", "/p/b"},
        {"http://10.0.0.9:8080/b", "/p/b"},
        {"http://h:81/b", "/p/b"},
        {"https://inside/b", NULL},
        {"https://10.0.0.9:8080/b", NULL},
        {"https://h:81/b", "https://h:81/p/b"},
    };

    domt_proxied_begin(&domt_proxied_edge);
    REWRITES(known, "h:81");
    domt_edge.proxy.path = "/p/";
    domt_edge.proxy.host = "inside";
    domt_edge.proxy.origin = "10.0.0.9:8080";
    REWRITES(named, "inside");
    domt_proxied_end();
}

DOMT_TEST(locations_without_a_path_of_the_proxy_lead_to_no_other_host)
{
    static const location rootless[] = {
        {"/b", NULL},
        {"http://h:81/p/b", "/p/b"},
        {"http://h:81//evil/b", "/.//evil/b"},
        {"http://h:81/\\evil/b", "/./\\evil/b"},
        {"https://h:81//b", "https://h:81//b"},
    };
    static const location kept[] = {{"/b", NULL}, {"http://h:81/b", NULL}};
    static const location secure[] = {
        {"https://h:81/b", "/p/b"}, {"http://h:81/b", "/p/b"}, {"https://x/b", NULL}};

    domt_proxied_begin(&domt_proxied_edge);
    domt_edge.proxy.secure = true;
    REWRITES(secure, "h:81");
    domt_edge.proxy.secure = false;
    domt_edge.proxy.keeps_location = true;
    REWRITES(kept, "h:81");
    domt_edge.proxy.keeps_location = false;
    domt_edge.proxy.path = NULL;
    REWRITES(rootless, "h:81");
    domt_proxied_end();
}

DOMT_TEST(a_path_that_leads_upwards_is_refused)
{
    static const char *const wrong[] = {
        "/p/..",         "/p/../b",     "/p/./b",      "/p/%2e%2E/b", "/p/.%2e",
        "/%2e/p/b",      "/p/b/%2E",    "/p/../../",   "/..",         "/p/..?b=c",
        "http://h/p/..", "/p/a/..%2Fb", "/p/a%2f../b", "/p/a%2f..",   "/p/..\\b",
        "/p/a%5C%2e%2e", "/p/a/..;/b",  "/p/..;c=d",   "/p/%2E%2e;"};
    char text[128];

    domt_proxied_begin(&domt_proxied_edge);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        (void)snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", wrong[i]);
        domt_pipes_peer_send(domt_edge.kit, domt_edge.client, text);
        domt_expect_answer_status("HTTP/1.1 400 Bad Request\r\n");
    }
    domt_relay_request("GET /p/...%2f.a/b..;../%2/;..?../ HTTP/1.1\r\nHost: h\r\n\r\n",
                       "GET /...%2F.a/b..;../%2/;..?../ HTTP/1.1\r\nHost: h\r\n" ADDED);
    domt_relay_empty_answer();
    domt_proxied_end();
}

DOMT_TEST(trailers_are_passed_if_they_may_be)
{
    domt_proxied_begin(&domt_proxied_edge);
    domt_edge.proxy.passes_trailers = true;
    domt_relay_request("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n"
                       "TE: gzip, Trailers\r\n\r\n3\r\nabc\r\n",
                       "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: h\r\n" ADDED
                       "3\r\nabc\r\n");
    domt_relay_request("0\r\nSum: 1\r\nAuthorization: x\r\nX-Forwarded-For: 1.2.3.4\r\n"
                       "Content-Type: a\r\nif-match: b\r\nCookie: c\r\nOther: 2\r\n\r\n",
                       "0\r\nSum: 1\r\nOther: 2\r\n\r\n");
    domt_relay_answer(CHUNKED "\r\n2\r\nab\r\n", CHUNKED VIA "2\r\nab\r\n");
    domt_relay_answer("0\r\nSum: 3\r\nSet-Cookie: d\r\n\r\n", "0\r\nSum: 3\r\n\r\n");
    domt_relay_request(GET, GOT); /* this client accepts no compressed bodies */
    domt_relay_answer(CHUNKED "\r\n0\r\nA: b\r\n\r\n", CHUNKED VIA "0\r\n\r\n");
    domt_proxied_end();
}

/* The text "hello", compressed by gzip. */
static const unsigned char hello[] = {0x1f, 0x8b, 8,    0,    0,    0,    0, 0, 0,
                                      3,    0xcb, 0x48, 0xcd, 0xc9, 0xc9, 7, 0, 0x86,
                                      0xa6, 0x10, 0x36, 5,    0,    0,    0};

static const domus_http_options unzipping_options = {
    .role = DOMUS_ROLE_CLIENT, .unzip = true, .body_max = 25};
static const domus_type *const unzipping_encodes[] = {&domus_http_request_type,
                                                      &domus_http_repeatable_type, NULL};
static const domus_pipeline unzipping_pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, &unzipping_options}, {NULL, NULL}},
    .encodes = unzipping_encodes,
    .inflight_max = 1};
static const domus_behaviour unzipping = {
    .name = "unzipping", .kind = DOMUS_CHANNELS, .pipeline = &unzipping_pipeline};

DOMT_TEST(a_decompressed_answer_does_not_say_that_it_is_compressed)
{
    char sent[256];

    domt_proxied_begin_with(&domt_proxied_edge, &unzipping);
    int size = snprintf(sent, sizeof sent,
                        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
                        "ETag: \"a\"\r\nContent-Length: %zu\r\n"
                        "Content-Type: b\r\nLocation: /c\r\n\r\n",
                        sizeof hello);
    memcpy(sent + size, hello, sizeof hello);
    domt_relay_request(GET, "GET /a HTTP/1.1\r\nAccept-Encoding: gzip\r\nHost: h\r\n" ADDED);
    domt_net_check_ok(domt_edge.kit,
                      domus_peer_send(domt_edge.server, sent, (size_t)size + sizeof hello));
    domt_relay_answer("", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: b\r\n"
                          "Location: /p/c\r\nVia: 1.1 domus\r\n\r\nhello");
    domt_proxied_end();
}

DOMT_SUITE(60)
