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

/* A scripted server, with the connection that it has accepted last. */
typedef struct server {
    domus_peer_listener *listener;
    domus_peer *peer;
} server;

static server one, two;

static void run_kit_until_idle(void)
{
    domt_net_check_ok(kit, domus_testkit_run(kit));
}

static void begin_kit_with_client(const domus_http_client_options *options)
{
    kit = domt_net_new_echo_kit("10.0.0.3:80", 7);
    probe = domt_new_probe(kit);
    domt_net_check_ok(kit, domus_peer_listen(kit, "10.0.0.1:80", 0, &one.listener));
    domt_net_check_ok(kit, domus_peer_listen(kit, "10.0.0.2:81", 0, &two.listener));
    ck_assert_int_eq(domus_http_client_open_outside(domus_testkit_system(kit), options, &client),
                     0);
    run_kit_until_idle();
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

static void send_request_by_probe(domus_http_method method, const char *url, const char *fields,
                                  const char *body)
{
    const domus_http_request request = {.method = (uint8_t)method,
                                        .target = make_slice_of_text(url),
                                        .fields = make_slice_of_text(fields),
                                        .body = make_slice_of_text(body)};

    ck_assert_int_eq(domus_probe_ask(probe, client, &domus_http_request_type, &request), 0);
}

static void send_get_by_probe(const char *url)
{
    send_request_by_probe(DOMUS_HTTP_GET, url, "", "");
}

static void accept_connection_of_server(server *at)
{
    domt_net_check_ok(kit, domus_peer_accept(at->listener, 10 * DOMT_NET_SECOND, &at->peer));
}

static void expect_server_got_request(const server *at, const char *text)
{
    domt_net_check_ok(kit, domus_peer_expect(at->peer, text, strlen(text), DOMT_NET_SECOND));
}

/* Let a server send an answer on its last connection. */
static void send_answer_of_server(const server *at, const char *text)
{
    run_kit_until_idle();
    domt_net_check_ok(kit, domus_peer_send(at->peer, text, strlen(text)));
}

static void expect_client_got_answer(unsigned status, const char *body)
{
    domus_http_response response;

    domt_net_check_ok(
        kit, domus_probe_expect(probe, &domus_http_response_type, DOMT_NET_SECOND, &response));
    ck_assert_uint_eq(response.status, status);
    ck_assert(domus_slice_equals(response.body, body, strlen(body)));
    domus_http_response_type.release(&response);
}

static void expect_request_failed(int error)
{
    domt_net_check_ok(kit, domus_probe_expect_error(probe, error, 5 * DOMT_NET_SECOND));
}

#define OK(text)  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" text
#define TO(where) "HTTP/1.1 302 Found\r\nLocation: " where "\r\nContent-Length: 4\r\n\r\ngone"

DOMT_TEST(connections_are_kept_for_their_origin)
{
    begin_kit_with_client(NULL);
    send_get_by_probe("http://10.0.0.1/a?b#c");
    accept_connection_of_server(&one);
    expect_server_got_request(&one, "GET /a?b HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
    send_answer_of_server(&one, OK("ab"));
    expect_client_got_answer(200, "ab");
    send_get_by_probe("HTTP://10.0.0.1:80");
    expect_server_got_request(&one, "GET / HTTP/1.1\r\nHost: 10.0.0.1:80\r\n\r\n");
    send_answer_of_server(&one, OK("cd"));
    expect_client_got_answer(200, "cd");
    send_request_by_probe(DOMUS_HTTP_POST, "http://10.0.0.2:81/x", "A: b\r\n", "hello");
    accept_connection_of_server(&two);
    expect_server_got_request(
        &two, "POST /x HTTP/1.1\r\nHost: 10.0.0.2:81\r\nContent-Length: 5\r\nA: b\r\n\r\nhello");
    send_answer_of_server(&two, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    expect_client_got_answer(404, "");
    /* the client ends the connection after its idle time */
    domt_net_check_ok(kit, domus_peer_expect_end(one.peer, 20 * DOMT_NET_SECOND));
    end_kit_with_client();
}

DOMT_TEST(requests_that_cannot_be_done_fail)
{
    const domus_http_request upgrade = {.target = make_slice_of_text("http://10.0.0.1/"),
                                        .upgrade = true};

    begin_kit_with_client(NULL);
    send_get_by_probe("https://10.0.0.1/");
    expect_request_failed(-EPROTONOSUPPORT);
    send_get_by_probe("ftp://10.0.0.1/");
    expect_request_failed(-EPROTONOSUPPORT);
    send_get_by_probe("/a");
    expect_request_failed(-EINVAL);
    send_get_by_probe("http://10.0.0.1/\r\nX: y");
    expect_request_failed(-EINVAL);
    send_request_by_probe(DOMUS_HTTP_GET, "http://10.0.0.1/", "A: b\r\n\r\n", "");
    expect_request_failed(-EINVAL);
    send_request_by_probe(DOMUS_HTTP_CONNECT, "http://10.0.0.1/", "", "");
    expect_request_failed(-EINVAL);
    ck_assert_int_eq(domus_probe_ask(probe, client, &domus_http_request_type, &upgrade), 0);
    expect_request_failed(-EOPNOTSUPP);
    send_get_by_probe("http://10.0.0.8/");
    expect_request_failed(-ECONNREFUSED);
    end_kit_with_client();
}

DOMT_TEST(a_request_is_repeated_only_if_it_may_be)
{
    begin_kit_with_client(NULL);
    send_get_by_probe("http://10.0.0.1/a");
    accept_connection_of_server(&one);
    send_answer_of_server(&one, OK("ab"));
    expect_client_got_answer(200, "ab");
    expect_server_got_request(&one, "GET /a HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
    send_get_by_probe("http://10.0.0.1/b");
    expect_server_got_request(&one, "GET /b HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
    domus_peer_finish(one.peer); /* the server closes the connection behind its answer */
    accept_connection_of_server(&one);
    expect_server_got_request(&one, "GET /b HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
    send_answer_of_server(&one, OK("cd"));
    expect_client_got_answer(200, "cd");
    send_request_by_probe(DOMUS_HTTP_POST, "http://10.0.0.1/c", "", "x");
    run_kit_until_idle();
    domus_peer_reset(one.peer);
    expect_request_failed(-EPIPE);
    send_get_by_probe("http://10.0.0.1/d");
    accept_connection_of_server(&one);
    run_kit_until_idle();
    domus_peer_reset(one.peer);
    accept_connection_of_server(&one);
    run_kit_until_idle();
    domus_peer_reset(one.peer);
    expect_request_failed(-EPIPE); /* after two tries the request fails */
    end_kit_with_client();
}

DOMT_TEST(redirects_are_followed)
{
    begin_kit_with_client(NULL);
    send_get_by_probe("http://10.0.0.1/a/b?c");
    accept_connection_of_server(&one);
    expect_server_got_request(&one, "GET /a/b?c HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
    send_answer_of_server(&one, TO("../d#e"));
    expect_server_got_request(&one, "GET /d HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
    send_answer_of_server(&one, TO("//10.0.0.2:81/f"));
    accept_connection_of_server(&two);
    expect_server_got_request(&two, "GET /f HTTP/1.1\r\nHost: 10.0.0.2:81\r\n\r\n");
    send_answer_of_server(&two, OK("ab"));
    expect_client_got_answer(200, "ab");
    end_kit_with_client();
}

#define SECRETS "Authorization: a\r\nAccept: b\r\ncookie: c\r\nProxy-Authorization: d\r\n"

/* Send a request with a body, let the server redirect it with this status, and check that the next
 * request begins with `expected`. */
static void check_request_is_redirected(domus_http_method method, const char *status,
                                        const char *location, const char *expected)
{
    bool leaves = strstr(location, "10.0.0.2") != NULL;
    char text[256];
    size_t size;

    begin_kit_with_client(NULL);
    send_request_by_probe(method, "http://10.0.0.1/a", SECRETS "Content-Type: e\r\n", "body");
    accept_connection_of_server(&one);
    run_kit_until_idle();
    (void)domus_peer_got(one.peer, &size);
    domus_peer_take(one.peer, size);
    (void)snprintf(text, sizeof text, "HTTP/1.1 %s X\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n",
                   status, location);
    send_answer_of_server(&one, text);
    if (leaves)
        accept_connection_of_server(&two);
    run_kit_until_idle();
    const char *seen = domus_peer_got(leaves ? two.peer : one.peer, &size);
    ck_assert_msg(size >= strlen(expected) && memcmp(seen, expected, strlen(expected)) == 0, "%.*s",
                  (int)size, seen);
    send_answer_of_server(leaves ? &two : &one, "HTTP/1.1 204 No Content\r\n\r\n");
    expect_client_got_answer(204, "");
    end_kit_with_client();
}

DOMT_TEST(methods_change_as_the_rfc_says)
{
    static const char get_b[] = "GET /b HTTP/1.1\r\nHost: 10.0.0.1\r\n" SECRETS "\r\n";
    static const char post_b[] =
        "POST /b HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: 4\r\n" SECRETS
        "Content-Type: e\r\n\r\nbody";
    static const char put_b[] = "PUT /b HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: 4\r\n" SECRETS
                                "Content-Type: e\r\n\r\nbody";

    check_request_is_redirected(DOMUS_HTTP_POST, "301", "/b", get_b);
    check_request_is_redirected(DOMUS_HTTP_POST, "302", "/b", get_b);
    check_request_is_redirected(DOMUS_HTTP_POST, "303", "/b", get_b);
    check_request_is_redirected(DOMUS_HTTP_POST, "307", "/b", post_b);
    check_request_is_redirected(DOMUS_HTTP_POST, "308", "/b", post_b);
    check_request_is_redirected(DOMUS_HTTP_PUT, "301", "/b", put_b);
    check_request_is_redirected(DOMUS_HTTP_PUT, "303", "/b", get_b);
    check_request_is_redirected(DOMUS_HTTP_HEAD, "303", "/b", "HEAD /b HTTP/1.1\r\n");
}

DOMT_TEST(secrets_stay_with_their_origin)
{
    check_request_is_redirected(
        DOMUS_HTTP_PUT, "307", "http://10.0.0.2:81/b",
        "PUT /b HTTP/1.1\r\nHost: 10.0.0.2:81\r\nContent-Length: 4\r\nAccept: b\r\n"
        "Content-Type: e\r\n\r\nbody");
}

DOMT_TEST(a_redirect_that_cannot_be_followed_is_the_answer)
{
    static const char *const locations[] = {"https://10.0.0.1/",  "ftp://a/",
                                            "http://u@10.0.0.2/", "http://10.0.0.2:0/",
                                            "http://a b/",        "\xc3\xa4"};
    char text[256];

    begin_kit_with_client(NULL);
    send_get_by_probe("http://10.0.0.1/a");
    accept_connection_of_server(&one);
    for (size_t i = 0; i < sizeof locations / sizeof locations[0]; i++) {
        (void)snprintf(text, sizeof text,
                       "HTTP/1.1 301 X\r\nLocation: %s\r\nContent-Length: 2\r\n\r\nno",
                       locations[i]);
        send_answer_of_server(&one, text);
        expect_client_got_answer(301, "no");
        send_get_by_probe("http://10.0.0.1/a");
    }
    send_answer_of_server(&one, "HTTP/1.1 302 X\r\nContent-Length: 2\r\n\r\nno");
    expect_client_got_answer(302, "no");
    send_get_by_probe("http://10.0.0.1/a");
    send_answer_of_server(&one, "HTTP/1.1 304 X\r\nLocation: /b\r\n\r\n");
    expect_client_got_answer(304, "");
    end_kit_with_client();
}

DOMT_TEST(redirects_are_bounded)
{
    static const domus_http_client_options twice = {.redirects_max = 2};
    static const domus_http_client_options never = {.redirects_max = DOMUS_HTTP_NO_REDIRECTS};

    begin_kit_with_client(&twice);
    send_get_by_probe("http://10.0.0.1/a");
    accept_connection_of_server(&one);
    for (uint32_t i = 0; i < 3; i++)
        send_answer_of_server(&one, TO("/a"));
    expect_request_failed(-ELOOP);
    end_kit_with_client();
    begin_kit_with_client(&never);
    send_get_by_probe("http://10.0.0.1/a");
    accept_connection_of_server(&one);
    send_answer_of_server(&one, TO("/a"));
    expect_client_got_answer(302, "gone");
    end_kit_with_client();
}

DOMT_TEST(a_request_takes_no_longer_than_it_may)
{
    static const domus_http_client_options options = {.timeout_ns = 100 * MS};

    begin_kit_with_client(&options);
    send_get_by_probe("http://10.0.0.1/a");
    accept_connection_of_server(&one);
    domt_net_check_ok(kit, domus_testkit_advance(kit, 60 * MS));
    send_answer_of_server(&one, TO("/a"));
    domt_net_check_ok(kit, domus_testkit_advance(kit, 35 * MS));
    ck_assert_int_eq(domus_probe_expect_nothing(probe, MS), 0);
    domt_net_check_ok(kit, domus_testkit_advance(kit, 10 * MS));
    domt_net_check_ok(kit, domus_probe_expect_error(probe, -ETIMEDOUT, MS));
    domt_net_check_ok(kit, domus_peer_expect_reset(one.peer, 10 * MS));
    end_kit_with_client();
}

DOMT_TEST(pool_idle_for_longest_makes_room_for_new)
{
    static const domus_http_client_options options = {.origins_max = 2};
    server three;

    begin_kit_with_client(&options);
    domt_net_check_ok(kit, domus_peer_listen(kit, "10.0.0.4:80", 0, &three.listener));
    send_get_by_probe("http://10.0.0.1/a");
    accept_connection_of_server(&one);
    send_answer_of_server(&one, OK("ab"));
    expect_server_got_request(&one, "GET /a HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
    expect_client_got_answer(200, "ab");
    send_get_by_probe("http://10.0.0.2:81/a");
    accept_connection_of_server(&two);
    send_get_by_probe("http://10.0.0.4/a");
    accept_connection_of_server(&three);
    domt_net_check_ok(kit, domus_peer_expect_end(one.peer, DOMT_NET_SECOND));
    send_get_by_probe("http://10.0.0.1/a");
    expect_request_failed(-EBUSY);
    send_answer_of_server(&two, OK("cd"));
    send_answer_of_server(&three, OK("ef"));
    expect_client_got_answer(200, "cd");
    expect_client_got_answer(200, "ef");
    send_get_by_probe("http://10.0.0.1/a");
    accept_connection_of_server(&one);
    send_answer_of_server(&one, OK("gh"));
    expect_client_got_answer(200, "gh");
    end_kit_with_client();
}

DOMT_TEST(requests_that_wait_are_bounded)
{
    static const domus_http_client_options options = {.connections_max = 1, .queue_max = 1};

    begin_kit_with_client(&options);
    send_get_by_probe("http://10.0.0.1/a");
    accept_connection_of_server(&one);
    send_get_by_probe("http://10.0.0.1/b");
    run_kit_until_idle();
    send_get_by_probe("http://10.0.0.1/c");
    expect_request_failed(-ENOBUFS);
    send_answer_of_server(&one, OK("ab"));
    expect_client_got_answer(200, "ab");
    send_answer_of_server(&one, OK("cd"));
    expect_client_got_answer(200, "cd");
    end_kit_with_client();
}

/* Number of bytes that an actor has read of an answer that came in pieces. */
static uint64_t bytes_read;

static int ask_client_for_path_a(domus_stack *stack, domus_resumed *then)
{
    const domus_http_request request = {.target = make_slice_of_text("http://10.0.0.1/a")};

    return domus_ask(stack, client, &domus_http_request_type, &request, then);
}

DOMUS_SEQUENCE(read_on, domus_body)
{
    DOMUS_BEGIN;
    DOMUS_AWAIT(ask_client_for_path_a(stack, then));
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

DOMT_TEST(client_reads_body_of_answer_in_pieces)
{
    static const domus_http_client_options options = {.connection =
                                                          &domus_http_streaming_connection};
    domus_address address;

    bytes_read = 0;
    begin_kit_with_client(&options);
    ck_assert_int_eq(domus_outside_spawn(domus_testkit_system(kit), &reader, NULL, &address), 0);
    run_kit_until_idle();
    accept_connection_of_server(&one);
    send_answer_of_server(&one,
                          "HTTP/1.1 301 X\r\nLocation: /b\r\nTransfer-Encoding: chunked\r\n\r\n"
                          "5\r\nhello\r\n0\r\n\r\n");
    run_kit_until_idle();
    send_answer_of_server(&one, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel");
    run_kit_until_idle();
    ck_assert_uint_eq(bytes_read, 3);
    send_answer_of_server(&one, "lo");
    run_kit_until_idle();
    ck_assert_uint_eq(bytes_read, 5);
    end_kit_with_client();
}

/* The time-out of a request also limits the time for the body of a redirect, which nobody but the
 * client itself reads. */
DOMT_TEST(the_body_of_a_redirect_takes_no_longer_than_its_request)
{
    static const domus_http_client_options options = {
        .connection = &domus_http_streaming_connection, .timeout_ns = 100 * MS};

    begin_kit_with_client(&options);
    send_get_by_probe("http://10.0.0.1/a");
    accept_connection_of_server(&one);
    send_answer_of_server(&one, "HTTP/1.1 302 X\r\nLocation: /b\r\nContent-Length: 100\r\n\r\na");
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(domus_probe_expect_nothing(probe, MS), 0);
        domt_net_check_ok(kit, domus_testkit_advance(kit, 40 * MS));
        send_answer_of_server(&one, "b");
        run_kit_until_idle();
    }
    domt_net_check_ok(kit, domus_probe_expect_error(probe, -ETIMEDOUT, MS));
    expect_server_got_request(&one, "GET /a HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
    domt_net_check_ok(kit, domus_peer_expect_end(one.peer, DOMT_NET_SECOND));
    end_kit_with_client();
}

DOMT_TEST(wrong_options_of_http_client_are_refused)
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

    begin_kit_with_client(NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(
            domus_http_client_open_outside(domus_testkit_system(kit), &wrong[i], &address),
            -EINVAL);
    end_kit_with_client();
}

/* If the user has set the field Expect, the client does not wait: it ignores a 100, and hands on a
 * 417 as any other answer. */
DOMT_TEST(body_leaves_at_once_if_the_user_set_the_field_expect)
{
    begin_kit_with_client(NULL);
    send_request_by_probe(DOMUS_HTTP_PUT, "http://10.0.0.1/", "Expect: 100-continue\r\n", "ab");
    accept_connection_of_server(&one);
    expect_server_got_request(&one, "PUT / HTTP/1.1\r\nHost: 10.0.0.1\r\nContent-Length: 2\r\n"
                                    "Expect: 100-continue\r\n\r\nab");
    send_answer_of_server(
        &one, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 417 X\r\nContent-Length: 0\r\n\r\n");
    expect_client_got_answer(417, "");
    end_kit_with_client();
}

DOMT_SUITE(60)
