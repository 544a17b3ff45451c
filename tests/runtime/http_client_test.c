/* The client of HTTP in a test kit, whose servers are scripts of the test: connections that are
 * kept, requests that are sent again, redirects, bounds and times. */
#include "tests/runtime/clients.h"
#include "tests/support/suite.h"

#include <domus/http_client.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS (DOMT_NET_SECOND / 1000)

static domus_testkit *kit;
static domus_probe *probe;
static domus_address client;

/* A server, with the connection that it has accepted last. */
typedef struct server {
    domus_peer_listener *listener;
    domus_peer *peer;
} server;

static server one, two;

static void run_kit(void)
{
    domt_net_ok(kit, domus_testkit_run(kit));
}

static void begin_kit(const domus_http_client_options *options)
{
    kit = domt_net_kit("10.0.0.3:80", 7);
    probe = domt_new_probe(kit);
    domt_net_ok(kit, domus_peer_listen(kit, "10.0.0.1:80", 0, &one.listener));
    domt_net_ok(kit, domus_peer_listen(kit, "10.0.0.2:81", 0, &two.listener));
    ck_assert_int_eq(domus_http_client_open_outside(domus_testkit_system(kit), options, &client),
                     0);
    run_kit();
}

static void end_kit(void)
{
    domt_net_ok(kit, domus_probe_expect_nothing(probe, 100 * MS));
    domus_testkit_free(kit);
}

static domus_slice make_slice(const char *text)
{
    domus_slice made;

    ck_assert_int_eq(domus_slice_copy(text, strlen(text), &made), 0);
    return made;
}

static void ask_with(domus_http_method method, const char *url, const char *fields,
                     const char *body)
{
    const domus_http_request request = {.method = (uint8_t)method,
                                        .target = make_slice(url),
                                        .fields = make_slice(fields),
                                        .body = make_slice(body)};

    ck_assert_int_eq(domus_probe_ask(probe, client, &domus_http_request_type, &request), 0);
}

static void send_get(const char *url)
{
    ask_with(DOMUS_HTTP_GET, url, "", "");
}

static void accept_at(server *at)
{
    domt_net_ok(kit, domus_peer_accept(at->listener, 10 * DOMT_NET_SECOND, &at->peer));
}

static void expect_request(const server *at, const char *text)
{
    domt_net_ok(kit, domus_peer_expect(at->peer, text, strlen(text), DOMT_NET_SECOND));
}

/* Let a server answer its last request. */
static void send_answer(const server *at, const char *text)
{
    run_kit();
    domt_net_ok(kit, domus_peer_send(at->peer, text, strlen(text)));
}

static void expect_answer(unsigned status, const char *body)
{
    domus_http_response response;

    domt_net_ok(kit,
                domus_probe_expect(probe, &domus_http_response_type, DOMT_NET_SECOND, &response));
    ck_assert_uint_eq(response.status, status);
    ck_assert(domus_slice_equals(response.body, body, strlen(body)));
    domus_http_response_type.release(&response);
}

static void expect_error(int error)
{
    domt_net_ok(kit, domus_probe_expect_error(probe, error, 5 * DOMT_NET_SECOND));
}

#define OK(text)  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" text
#define TO(where) "HTTP/1.1 302 Found\r\nLocation: " where "\r\nContent-Length: 4\r\n\r\ngone"

DOMT_TEST(connections_are_kept_for_their_origin)
{
    begin_kit(NULL);
    send_get("http://10.0.0.1/a?b#c");
    accept_at(&one);
    expect_request(&one, "GET /a?b HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
    send_answer(&one, OK("ab"));
    expect_answer(200, "ab");
    send_get("HTTP://10.0.0.1:80");
    expect_request(&one, "GET / HTTP/1.1\r\nHost: 10.0.0.1:80\r\n\r\n");
    send_answer(&one, OK("cd"));
    expect_answer(200, "cd");
    ask_with(DOMUS_HTTP_POST, "http://10.0.0.2:81/x", "A: b\r\n", "hello");
    accept_at(&two);
    expect_request(
        &two, "POST /x HTTP/1.1\r\nHost: 10.0.0.2:81\r\nContent-Length: 5\r\nA: b\r\n\r\nhello");
    send_answer(&two, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    expect_answer(404, "");
    /* the connection ends because it was idle */
    domt_net_ok(kit, domus_peer_expect_end(one.peer, 20 * DOMT_NET_SECOND));
    end_kit();
}

DOMT_TEST(requests_that_cannot_be_done_fail)
{
    const domus_http_request upgrade = {.target = make_slice("http://10.0.0.1/"), .upgrade = true};

    begin_kit(NULL);
    send_get("https://10.0.0.1/");
    expect_error(-EPROTONOSUPPORT);
    send_get("ftp://10.0.0.1/");
    expect_error(-EPROTONOSUPPORT);
    send_get("/a");
    expect_error(-EINVAL);
    send_get("http://10.0.0.1/\r\nX: y");
    expect_error(-EINVAL);
    ask_with(DOMUS_HTTP_GET, "http://10.0.0.1/", "A: b\r\n\r\n", "");
    expect_error(-EINVAL);
    ask_with(DOMUS_HTTP_CONNECT, "http://10.0.0.1/", "", "");
    expect_error(-EINVAL);
    ck_assert_int_eq(domus_probe_ask(probe, client, &domus_http_request_type, &upgrade), 0);
    expect_error(-EOPNOTSUPP);
    send_get("http://10.0.0.8/");
    expect_error(-ECONNREFUSED);
    end_kit();
}

DOMT_TEST(a_request_is_repeated_only_if_it_may_be)
{
    begin_kit(NULL);
    send_get("http://10.0.0.1/a");
    accept_at(&one);
    send_answer(&one, OK("ab"));
    expect_answer(200, "ab");
    expect_request(&one, "GET /a HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
    send_get("http://10.0.0.1/b");
    expect_request(&one, "GET /b HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
    domus_peer_finish(one.peer); /* the server does not keep the connection */
    accept_at(&one);
    expect_request(&one, "GET /b HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
    send_answer(&one, OK("cd"));
    expect_answer(200, "cd");
    ask_with(DOMUS_HTTP_POST, "http://10.0.0.1/c", "", "x");
    run_kit();
    domus_peer_reset(one.peer);
    expect_error(-EPIPE);
    send_get("http://10.0.0.1/d");
    accept_at(&one);
    run_kit();
    domus_peer_reset(one.peer);
    accept_at(&one);
    run_kit();
    domus_peer_reset(one.peer);
    expect_error(-EPIPE); /* a request is sent at most twice */
    end_kit();
}

DOMT_TEST(redirects_are_followed)
{
    begin_kit(NULL);
    send_get("http://10.0.0.1/a/b?c");
    accept_at(&one);
    expect_request(&one, "GET /a/b?c HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
    send_answer(&one, TO("../d#e"));
    expect_request(&one, "GET /d HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
    send_answer(&one, TO("//10.0.0.2:81/f"));
    accept_at(&two);
    expect_request(&two, "GET /f HTTP/1.1\r\nHost: 10.0.0.2:81\r\n\r\n");
    send_answer(&two, OK("ab"));
    expect_answer(200, "ab");
    end_kit();
}

#define SECRETS "Authorization: a\r\nAccept: b\r\ncookie: c\r\nProxy-Authorization: d\r\n"

/* Check that a request with a body, redirected with this status, becomes one that begins with
 * `expected`. */
static void expect_redirected(domus_http_method method, const char *status, const char *location,
                              const char *expected)
{
    bool leaves = strstr(location, "10.0.0.2") != NULL;
    char text[256];
    size_t size;

    begin_kit(NULL);
    ask_with(method, "http://10.0.0.1/a", SECRETS "Content-Type: e\r\n", "body");
    accept_at(&one);
    run_kit();
    (void)domus_peer_got(one.peer, &size);
    domus_peer_take(one.peer, size);
    (void)snprintf(text, sizeof text, "HTTP/1.1 %s X\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n",
                   status, location);
    send_answer(&one, text);
    if (leaves)
        accept_at(&two);
    run_kit();
    const char *seen = domus_peer_got(leaves ? two.peer : one.peer, &size);
    ck_assert_msg(size >= strlen(expected) && memcmp(seen, expected, strlen(expected)) == 0, "%.*s",
                  (int)size, seen);
    send_answer(leaves ? &two : &one, "HTTP/1.1 204 No Content\r\n\r\n");
    expect_answer(204, "");
    end_kit();
}

DOMT_TEST(methods_change_as_the_rfc_says)
{
    static const char get_b[] = "GET /b HTTP/1.1\r\nHost: 10.0.0.1\r\n" SECRETS "\r\n";
    static const char post_b[] =
        "POST /b HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: 4\r\n" SECRETS
        "Content-Type: e\r\n\r\nbody";
    static const char put_b[] = "PUT /b HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: 4\r\n" SECRETS
                                "Content-Type: e\r\n\r\nbody";

    expect_redirected(DOMUS_HTTP_POST, "301", "/b", get_b);
    expect_redirected(DOMUS_HTTP_POST, "302", "/b", get_b);
    expect_redirected(DOMUS_HTTP_POST, "303", "/b", get_b);
    expect_redirected(DOMUS_HTTP_POST, "307", "/b", post_b);
    expect_redirected(DOMUS_HTTP_POST, "308", "/b", post_b);
    expect_redirected(DOMUS_HTTP_PUT, "301", "/b", put_b);
    expect_redirected(DOMUS_HTTP_PUT, "303", "/b", get_b);
    expect_redirected(DOMUS_HTTP_HEAD, "303", "/b", "HEAD /b HTTP/1.1\r\n");
}

DOMT_TEST(secrets_stay_with_their_origin)
{
    expect_redirected(DOMUS_HTTP_PUT, "307", "http://10.0.0.2:81/b",
                      "PUT /b HTTP/1.1\r\nHost: 10.0.0.2:81\r\nContent-Length: 4\r\nAccept: b\r\n"
                      "Content-Type: e\r\n\r\nbody");
}

DOMT_TEST(a_redirect_that_cannot_be_followed_is_the_answer)
{
    static const char *const locations[] = {"https://10.0.0.1/",  "ftp://a/",
                                            "http://u@10.0.0.2/", "http://10.0.0.2:0/",
                                            "http://a b/",        "\xc3\xa4"};
    char text[256];

    begin_kit(NULL);
    send_get("http://10.0.0.1/a");
    accept_at(&one);
    for (size_t i = 0; i < sizeof locations / sizeof locations[0]; i++) {
        (void)snprintf(text, sizeof text,
                       "HTTP/1.1 301 X\r\nLocation: %s\r\nContent-Length: 2\r\n\r\nno",
                       locations[i]);
        send_answer(&one, text);
        expect_answer(301, "no");
        send_get("http://10.0.0.1/a");
    }
    send_answer(&one, "HTTP/1.1 302 X\r\nContent-Length: 2\r\n\r\nno");
    expect_answer(302, "no");
    send_get("http://10.0.0.1/a");
    send_answer(&one, "HTTP/1.1 304 X\r\nLocation: /b\r\n\r\n");
    expect_answer(304, "");
    end_kit();
}

DOMT_TEST(redirects_are_bounded)
{
    static const domus_http_client_options twice = {.redirects_max = 2};
    static const domus_http_client_options never = {.redirects_max = DOMUS_HTTP_NO_REDIRECTS};

    begin_kit(&twice);
    send_get("http://10.0.0.1/a");
    accept_at(&one);
    for (uint32_t i = 0; i < 3; i++)
        send_answer(&one, TO("/a"));
    expect_error(-ELOOP);
    end_kit();
    begin_kit(&never);
    send_get("http://10.0.0.1/a");
    accept_at(&one);
    send_answer(&one, TO("/a"));
    expect_answer(302, "gone");
    end_kit();
}

DOMT_TEST(a_request_takes_no_longer_than_it_may)
{
    static const domus_http_client_options options = {.timeout_ns = 100 * MS};

    begin_kit(&options);
    send_get("http://10.0.0.1/a");
    accept_at(&one);
    domt_net_ok(kit, domus_testkit_advance(kit, 60 * MS));
    send_answer(&one, TO("/a"));
    domt_net_ok(kit, domus_testkit_advance(kit, 35 * MS));
    ck_assert_int_eq(domus_probe_expect_nothing(probe, MS), 0);
    domt_net_ok(kit, domus_testkit_advance(kit, 10 * MS));
    domt_net_ok(kit, domus_probe_expect_error(probe, -ETIMEDOUT, MS));
    domt_net_ok(kit, domus_peer_expect_reset(one.peer, 10 * MS));
    end_kit();
}

DOMT_TEST(the_pool_that_was_idle_for_longest_ends)
{
    static const domus_http_client_options options = {.origins_max = 2};
    server three;

    begin_kit(&options);
    domt_net_ok(kit, domus_peer_listen(kit, "10.0.0.4:80", 0, &three.listener));
    send_get("http://10.0.0.1/a");
    accept_at(&one);
    send_answer(&one, OK("ab"));
    expect_request(&one, "GET /a HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
    expect_answer(200, "ab");
    send_get("http://10.0.0.2:81/a");
    accept_at(&two);
    send_get("http://10.0.0.4/a");
    accept_at(&three);
    domt_net_ok(kit, domus_peer_expect_end(one.peer, DOMT_NET_SECOND));
    send_get("http://10.0.0.1/a");
    expect_error(-EBUSY);
    send_answer(&two, OK("cd"));
    send_answer(&three, OK("ef"));
    expect_answer(200, "cd");
    expect_answer(200, "ef");
    send_get("http://10.0.0.1/a");
    accept_at(&one);
    send_answer(&one, OK("gh"));
    expect_answer(200, "gh");
    end_kit();
}

DOMT_TEST(requests_that_wait_are_bounded)
{
    static const domus_http_client_options options = {.connections_max = 1, .queue_max = 1};

    begin_kit(&options);
    send_get("http://10.0.0.1/a");
    accept_at(&one);
    send_get("http://10.0.0.1/b");
    run_kit();
    send_get("http://10.0.0.1/c");
    expect_error(-ENOBUFS);
    send_answer(&one, OK("ab"));
    expect_answer(200, "ab");
    send_answer(&one, OK("cd"));
    expect_answer(200, "cd");
    end_kit();
}

/* Bytes that an actor has read, which reads an answer in pieces. */
static uint64_t bytes_read;

static int ask_for_a(domus_stack *stack, domus_resumed *then)
{
    const domus_http_request request = {.target = make_slice("http://10.0.0.1/a")};

    return domus_ask(stack, client, &domus_http_request_type, &request, then);
}

DOMUS_SEQUENCE(read_on, domus_body)
{
    DOMUS_BEGIN;
    DOMUS_AWAIT(ask_for_a(stack, then));
    if (answer->error != 0)
        return answer->error;
    *frame = ((const domus_http_response *)answer->payload)->stream;
    while (frame->number != 0) {
        DOMUS_AWAIT(domus_body_read(stack, *frame, then));
        if (answer->error != 0)
            return answer->error;
        bytes_read += ((const domus_piece *)answer->payload)->bytes.size;
        if (((const domus_piece *)answer->payload)->last)
            frame->number = 0;
    }
    DOMUS_END;
}

static const domus_behaviour reader = {.name = "reader", DOMUS_ON_MOUNT(read_on)};

DOMT_TEST(bodies_come_in_pieces)
{
    static const domus_http_client_options options = {.connection =
                                                          &domus_http_streaming_connection};
    domus_address address;

    bytes_read = 0;
    begin_kit(&options);
    ck_assert_int_eq(domus_outside_spawn(domus_testkit_system(kit), &reader, NULL, &address), 0);
    run_kit();
    accept_at(&one);
    send_answer(&one, "HTTP/1.1 301 X\r\nLocation: /b\r\nTransfer-Encoding: chunked\r\n\r\n"
                      "5\r\nhello\r\n0\r\n\r\n");
    run_kit();
    send_answer(&one, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel");
    run_kit();
    ck_assert_uint_eq(bytes_read, 3);
    send_answer(&one, "lo");
    run_kit();
    ck_assert_uint_eq(bytes_read, 5);
    end_kit();
}

/* The time of a request also bounds the body of a redirect, which only the client reads. */
DOMT_TEST(the_body_of_a_redirect_takes_no_longer_than_its_request)
{
    static const domus_http_client_options options = {
        .connection = &domus_http_streaming_connection, .timeout_ns = 100 * MS};

    begin_kit(&options);
    send_get("http://10.0.0.1/a");
    accept_at(&one);
    send_answer(&one, "HTTP/1.1 302 X\r\nLocation: /b\r\nContent-Length: 100\r\n\r\na");
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(domus_probe_expect_nothing(probe, MS), 0);
        domt_net_ok(kit, domus_testkit_advance(kit, 40 * MS));
        send_answer(&one, "b");
        run_kit();
    }
    domt_net_ok(kit, domus_probe_expect_error(probe, -ETIMEDOUT, MS));
    expect_request(&one, "GET /a HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
    domt_net_ok(kit, domus_peer_expect_end(one.peer, DOMT_NET_SECOND));
    end_kit();
}

DOMT_TEST(wrong_options_are_refused)
{
    static const domus_behaviour bytes = {.name = "bytes", .kind = DOMUS_CHANNELS};
    static const domus_pipeline_stage nothing[] = {{NULL, NULL}};
    static const domus_http_client_options wrong[] = {
        {.connection = &bytes}, {.secure = nothing},
        {.origins_max = 65},    {.connections_max = 65},
        {.redirects_max = 21},  {.tries_max = 256},
        {.backoff_ns = 1},      {.backoff_ns = 2 * 3600 * DOMT_NET_SECOND},
    };
    domus_address address;

    begin_kit(NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(
            domus_http_client_open_outside(domus_testkit_system(kit), &wrong[i], &address),
            -EINVAL);
    end_kit();
}

/* An Expect field of the user's own is sent as it is: 100 is passed over, and 417 is an answer like
 * any other. */
DOMT_TEST(a_body_that_was_announced_leaves_at_once)
{
    begin_kit(NULL);
    ask_with(DOMUS_HTTP_PUT, "http://10.0.0.1/", "Expect: 100-continue\r\n", "ab");
    accept_at(&one);
    expect_request(&one, "PUT / HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: 2\r\n"
                         "Expect: 100-continue\r\n\r\nab");
    send_answer(&one, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 417 X\r\nContent-Length: 0\r\n\r\n");
    expect_answer(417, "");
    end_kit();
}

DOMT_SUITE(60)
