/* The client of HTTP in a test kit sends requests whose bodies wait for 100 Continue; the server is
 * a script of the test. */
#include "tests/runtime/clients.h"
#include "tests/support/suite.h"

#include <domus/http_client.h>

#include <stdio.h>
#include <string.h>

#define MS (DOMT_NET_SECOND / 1000)

static domus_testkit *kit;
static domus_probe *probe;
static domus_address client;
static domus_peer_listener *listener;
static domus_peer *server; /* peer of the connection that the server has accepted last */

static void begin_kit_with_client(void)
{
    kit = domt_net_new_echo_kit("10.0.0.3:80", 7);
    probe = domt_new_probe(kit);
    domt_net_check_ok(kit, domus_peer_listen(kit, "10.0.0.1:80", 0, &listener));
    ck_assert_int_eq(domus_http_client_open_outside(domus_testkit_system(kit), NULL, &client), 0);
    domt_net_check_ok(kit, domus_testkit_run(kit));
}

static void end_kit_with_client(void)
{
    domt_net_check_ok(kit, domus_probe_expect_nothing(probe, 100 * MS));
    domus_testkit_free(kit);
}

static domus_slice make_slice_of_text(const char *text)
{
    domus_slice made;

    ck_assert_int_eq(domus_slice_copy(text, strlen(text), &made), 0);
    return made;
}

static void send_request_with_expect(domus_http_method method, const char *url, const char *body)
{
    const domus_http_request request = {.method = (uint8_t)method,
                                        .target = make_slice_of_text(url),
                                        .body = make_slice_of_text(body),
                                        .expects = true};

    ck_assert_int_eq(domus_probe_ask(probe, client, &domus_http_request_type, &request), 0);
}

static void accept_next_connection(void)
{
    domt_net_check_ok(kit, domus_peer_accept(listener, 10 * DOMT_NET_SECOND, &server));
}

static void expect_server_got_request(const char *text)
{
    domt_net_check_ok(kit, domus_peer_expect(server, text, strlen(text), DOMT_NET_SECOND));
}

/* Let the scripted server send this text. */
static void send_answer_of_server(const char *text)
{
    domt_net_check_ok(kit, domus_testkit_run(kit));
    domt_net_check_ok(kit, domus_peer_send(server, text, strlen(text)));
}

/* Check that the client gets an answer with this status and body. Returns whether the answer ends
 * the connection. */
static bool expect_client_got_answer(unsigned status, const char *body)
{
    domus_http_response response;

    domt_net_check_ok(
        kit, domus_probe_expect(probe, &domus_http_response_type, DOMT_NET_SECOND, &response));
    bool close = response.close;
    ck_assert_uint_eq(response.status, status);
    ck_assert(domus_slice_equals(response.body, body, strlen(body)));
    domus_http_response_type.release(&response);
    return close;
}

#define OK(text) "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" text

/* Check that the server gets the head of a request to `path` which announces the body "ab", and no
 * byte of the body. */
static void expect_server_got_only_head(const char *path)
{
    char head[256];

    (void)snprintf(head, sizeof head,
                   "POST %s HTTP/1.1\r\nHost: 10.0.0.1\r\nExpect: 100-continue\r\n"
                   "Content-Length: 2\r\n\r\n",
                   path);
    expect_server_got_request(head);
    domt_net_check_ok(kit, domus_peer_expect_nothing(server, 500 * MS));
}

static void post_two_bytes_with_expect(const char *path)
{
    char url[64];

    (void)snprintf(url, sizeof url, "http://10.0.0.1%s", path);
    send_request_with_expect(DOMUS_HTTP_POST, url, "ab");
}

/* The second request uses the same connection, because a body that was sent whole does not end
 * it. */
DOMT_TEST(a_body_waits_until_the_server_wants_it)
{
    begin_kit_with_client();
    for (int i = 0; i < 2; i++) {
        post_two_bytes_with_expect("/");
        if (i == 0)
            accept_next_connection();
        expect_server_got_only_head("/");
        send_answer_of_server("HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 102 X\r\n\r\n");
        domt_net_check_ok(kit, domus_peer_expect_nothing(server, 100 * MS));
        send_answer_of_server("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n");
        expect_server_got_request("ab");
        send_answer_of_server(OK("ok"));
        expect_client_got_answer(200, "ok");
    }
    send_request_with_expect(DOMUS_HTTP_GET, "http://10.0.0.1/", "");
    expect_server_got_request("GET / HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
    send_answer_of_server(OK("ok"));
    ck_assert(!expect_client_got_answer(200, "ok"));
    end_kit_with_client();
}

/* The body also leaves without a 100, when the client has waited long enough, and a 100 may come
 * when no body waits for it. */
DOMT_TEST(a_body_waits_no_longer_than_it_may)
{
    begin_kit_with_client();
    post_two_bytes_with_expect("/");
    accept_next_connection();
    expect_server_got_only_head("/");
    domt_net_check_ok(kit, domus_peer_expect_nothing(server, 450 * MS));
    expect_server_got_request("ab");
    send_answer_of_server("HTTP/1.1 100 Continue\r\n\r\n" OK("ok"));
    ck_assert(!expect_client_got_answer(200, "ok"));
    post_two_bytes_with_expect("/");
    expect_server_got_only_head("/");
    send_answer_of_server("HTTP/1.1 100 Continue\r\n\r\n");
    expect_server_got_request("ab");
    send_answer_of_server(OK("ok"));
    ck_assert(!expect_client_got_answer(200, "ok"));
    end_kit_with_client();
}

/* If bytes of a refused body left, the server would read them as a request; if bytes were missing,
 * it would wait for a slow client. The time to wait for 100 may pass while the answer comes. */
DOMT_TEST(a_body_that_is_not_wanted_never_leaves)
{
    begin_kit_with_client();
    post_two_bytes_with_expect("/");
    accept_next_connection();
    expect_server_got_only_head("/");
    send_answer_of_server("HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n");
    domt_net_check_ok(kit, domus_peer_expect_nothing(server, 2 * DOMT_NET_SECOND));
    send_answer_of_server("no");
    ck_assert(expect_client_got_answer(401, "no"));
    domt_net_check_ok(kit, domus_peer_expect_end(server, DOMT_NET_SECOND));
    send_request_with_expect(DOMUS_HTTP_GET, "http://10.0.0.1/", "");
    accept_next_connection();
    expect_server_got_request("GET / HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
    send_answer_of_server(OK("ok"));
    ck_assert(!expect_client_got_answer(200, "ok"));
    end_kit_with_client();
}

/* After a 417 even a POST may be sent again, because no byte of its body was sent. */
DOMT_TEST(request_is_repeated_without_expect_after_417)
{
    begin_kit_with_client();
    post_two_bytes_with_expect("/");
    accept_next_connection();
    expect_server_got_only_head("/");
    send_answer_of_server("HTTP/1.1 417 X\r\nContent-Length: 2\r\n\r\nno");
    domus_peer *before = server;
    accept_next_connection();
    domt_net_check_ok(kit, domus_peer_expect_end(before, DOMT_NET_SECOND));
    expect_server_got_request("POST / HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: 2\r\n\r\nab");
    /* the client tries without Expect only once, so a second 417 is the answer */
    send_answer_of_server("HTTP/1.1 417 X\r\nContent-Length: 2\r\n\r\nno");
    ck_assert(!expect_client_got_answer(417, "no"));
    end_kit_with_client();
}

DOMT_TEST(a_body_waits_at_each_redirect)
{
    begin_kit_with_client();
    post_two_bytes_with_expect("/");
    accept_next_connection();
    expect_server_got_only_head("/");
    send_answer_of_server("HTTP/1.1 307 X\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n");
    accept_next_connection();
    expect_server_got_only_head("/b");
    send_answer_of_server("HTTP/1.1 100 Continue\r\n\r\n");
    expect_server_got_request("ab");
    send_answer_of_server("HTTP/1.1 308 X\r\nLocation: /c\r\nContent-Length: 0\r\n\r\n");
    expect_server_got_only_head("/c");
    send_answer_of_server("HTTP/1.1 100 Continue\r\n\r\n");
    expect_server_got_request("ab");
    send_answer_of_server("HTTP/1.1 303 X\r\nLocation: /d\r\nContent-Length: 0\r\n\r\n");
    /* this redirected request has no body, so it announces none */
    expect_server_got_request("GET /d HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
    send_answer_of_server(OK("ok"));
    ck_assert(!expect_client_got_answer(200, "ok"));
    end_kit_with_client();
}

DOMT_SUITE(60)
