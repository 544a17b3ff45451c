/* libdomus-http in channels of a test kit: a service whose answers keep their order and whose
 * bodies come and go in pieces, and a client. */
#include "tests/runtime/clients.h"
#include "tests/runtime/pipes.h"
#include "tests/support/suite.h"

#include <domus/await.h>
#include <domus/http_router.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND

#define GET(path)  "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define HEAD(path) "HEAD " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define TEXT(size, text)                                                                           \
    "HTTP/1.1 200 OK\r\nContent-Length: " #size "\r\nContent-Type: text/plain\r\n\r\n" text

/* --- the service ------------------------------------------------------------------------------ */

enum { NOW, SLEEP, ECHO, SUM, GIVE, WRONG, PART };

static const domus_http_route routes[] = {
    {DOMUS_HTTP_ON(GET), "/", NOW},       {DOMUS_HTTP_ON(GET), "/sleep", SLEEP},
    {DOMUS_HTTP_ON(POST), "/echo", ECHO}, {DOMUS_HTTP_ON(POST), "/sum", SUM},
    {DOMUS_HTTP_ON(GET), "/give", GIVE},  {DOMUS_HTTP_ON(GET), "/wrong", WRONG},
    {DOMUS_HTTP_ON(GET), "/part", PART},  {0, NULL, 0},
};

typedef struct serve_frame {
    uint32_t id;
    bool ended;
    uint64_t bytes;
    domus_body body;
    domus_slice piece;
} serve_frame;

static int reply_200_with_text(domus_stack *stack, const char *text)
{
    const domus_http_text answer = {200, "text/plain", text};

    return domus_reply(stack, &domus_http_text_type, &answer);
}

static int reply_to_unrouted_request(domus_stack *stack, const domus_http_match *match)
{
    domus_http_response response;
    int error = domus_http_unrouted(match, &response);

    return error != 0 ? error : domus_reply(stack, &domus_http_response_type, &response);
}

/* Count a piece of the request's body, or note that its trailer has come. */
static void count_piece_or_end_of_body(serve_frame *frame, const domus_answer *answer)
{
    frame->piece = (domus_slice){NULL, 0, 0};
    frame->ended = true;
    if (answer->type == &domus_http_trailers_type)
        return;
    const domus_piece *piece = answer->payload;
    frame->bytes += piece->bytes.size;
    frame->piece = piece->bytes;
    frame->ended = piece->last;
}

static int reply_count_of_body_bytes(domus_stack *stack, const serve_frame *frame)
{
    domus_http_response response = {.status = 200};
    char text[32];
    int size = snprintf(text, sizeof text, "%llu", (unsigned long long)frame->bytes);

    ck_assert_int_eq(domus_slice_copy(text, (size_t)size, &response.body), 0);
    return domus_reply(stack, &domus_http_response_type, &response);
}

static const domus_http_response head = {.status = 200, .media = "text/plain"};

DOMUS_SEQUENCE(serve, serve_frame)
{
    DOMUS_BEGIN;
    {
        domus_http_match match = domus_http_find_route(routes, message);
        if (match.route == NULL)
            return reply_to_unrouted_request(stack, &match);
        frame->id = match.route->id;
        frame->body = ((const domus_http_request *)message)->stream;
        frame->ended = frame->body.number == 0;
    }
    if (frame->id == NOW)
        return reply_200_with_text(stack, "now");
    if (frame->id == WRONG)
        return -ENOENT;
    if (frame->id == SLEEP) {
        DOMUS_SLEEP(10 * MS);
        return reply_200_with_text(stack, "slept");
    }
    if (frame->id != SUM) {
        DOMUS_AWAIT(domus_reply_begin(stack, &domus_http_response_type, &head, then));
        ck_assert_int_eq(answer->error, 0);
    }
    if (frame->id == GIVE || frame->id == PART) {
        ck_assert_int_eq(domus_slice_copy("given", 5, &frame->piece), 0);
        DOMUS_AWAIT(domus_reply_write(stack, frame->piece, then));
        return frame->id == PART ? -EBADMSG : domus_reply_end(stack, NULL, NULL);
    }
    while (!frame->ended) {
        DOMUS_AWAIT(domus_body_read(stack, frame->body, then));
        if (answer->error != 0)
            return answer->error;
        count_piece_or_end_of_body(frame, answer);
        if (frame->id == ECHO && frame->piece.size != 0) {
            ck_assert_int_eq(domus_take(stack), 0);
            DOMUS_AWAIT(domus_reply_write(stack, frame->piece, then));
        }
    }
    if (frame->id == SUM)
        return reply_count_of_body_bytes(stack, frame);
    return domus_reply_end(stack, NULL, NULL);
    DOMUS_END;
}

static const domus_http_options options = {.streams = true, .no_date = true};
static const domus_pipeline pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, &options}, {NULL, NULL}}};
static const domus_behaviour service = {
    .name = "web",
    .kind = DOMUS_CHANNELS,
    .pipeline = &pipeline,
    .on_peer =
        (const domus_on_peer[]){DOMUS_ON_PEER(&domus_http_request_type, serve, 0), {.type = NULL}}};

/* Check that the request `sent` is answered with `answered`, and whether (`closes`) the connection
 * then ends. */
static void expect_request_is_answered(const char *sent, const char *answered, bool closes)
{
    domus_testkit *kit = domt_pipes_new_kit(NULL, &service, 1);
    domus_peer *peer = domt_pipes_connect_peer(kit);

    domt_pipes_peer_send(kit, peer, sent);
    domt_pipes_peer_expect(kit, peer, answered);
    if (!closes) {
        ck_assert_int_eq(domus_peer_expect_nothing(peer, SECOND), 0);
        domus_peer_finish(peer);
    }
    ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
    domus_peer_close(peer);
    domt_pipes_end_kit(kit);
}

DOMT_TEST(answers_leave_in_order)
{
    expect_request_is_answered(
        GET("/sleep") GET("/") HEAD("/") GET("/give") GET("/sleep"),
        TEXT(5, "slept") TEXT(3, "now") TEXT(
            3,
            "") "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\n\r\n"
                "5\r\ngiven\r\n0\r\n\r\n" TEXT(5, "slept"),
        false);
}

DOMT_TEST(requests_without_a_route_keep_the_connection)
{
    expect_request_is_answered(
        GET("/none") "POST / HTTP/1.1\r\nHost: a\r\n\r\n" GET("/wrong") GET("/"),
        "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\nAllow: GET, HEAD, "
        "OPTIONS\r\n\r\n"
        "HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\nContent-Type: text/plain\r\n\r\n"
        "Not Found\n" TEXT(3, "now"),
        false);
}

DOMT_TEST(connection_ends_behind_the_last_answer)
{
    expect_request_is_answered(
        "GET /sleep HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" GET("/"),
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\nContent-Type: "
        "text/plain\r\n\r\nslept",
        true);
    expect_request_is_answered(
        "GET /give HTTP/1.0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\ngiven", true);
}

#define BAD                                                                                        \
    "HTTP/1.1 400 Bad Request\r\nContent-Length: 12\r\nConnection: close\r\n"                      \
    "Content-Type: text/plain\r\n\r\nBad Request\n"

DOMT_TEST(malformed_request_is_answered_behind_earlier_ones)
{
    expect_request_is_answered(GET("/sleep") GET("/") "GET  / HTTP/1.1\r\nHost: a\r\n\r\n" GET("/"),
                               TEXT(5, "slept") TEXT(3, "now") BAD, true);
    expect_request_is_answered(
        "POST /sum HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        BAD, true);
    expect_request_is_answered(
        "POST /sum HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3 \r\n", BAD, true);
}

#define POST(path, length)                                                                         \
    "POST " path " HTTP/1.1\r\nHost: a\r\nContent-Length: " #length "\r\n\r\n"

DOMT_TEST(handler_reads_request_body_in_pieces)
{
    expect_request_is_answered(
        POST("/sum", 5) "hello" GET(
            "/") "POST /sum HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                 "3\r\nabc\r\n4\r\ndefg\r\n0\r\nA: b\r\n\r\n" GET("/"),
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n5" TEXT(
            3, "now") "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7" TEXT(3, "now"),
        false);
    /* the handler of this request does not read its body */
    expect_request_is_answered(POST("/none", 5) "hello" GET("/"),
                               "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n" TEXT(3, "now"),
                               false);
}

DOMT_TEST(body_is_echoed_while_it_comes)
{
    domus_testkit *kit = domt_pipes_new_kit(NULL, &service, 1);
    domus_peer *peer = domt_pipes_connect_peer(kit);

    domt_pipes_peer_send(kit, peer,
                         "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                         "Transfer-Encoding: chunked\r\n\r\n");
    domt_pipes_peer_expect(kit, peer,
                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n"
                           "Content-Type: text/plain\r\n\r\n");
    /* no 100 comes for the next request while an answer is being sent */
    ck_assert_int_eq(domus_peer_expect_nothing(peer, 10 * MS), 0);
    domt_pipes_peer_send(kit, peer, "1\r\na\r\n0\r\n\r\n");
    domt_pipes_peer_expect(kit, peer, "1\r\na\r\n0\r\n\r\n");
    ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
    domus_peer_close(peer);
    peer = domt_pipes_connect_peer(kit);
    domt_pipes_peer_send(kit, peer,
                         "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                         "5\r\nhello\r\n");
    domt_pipes_peer_expect(kit, peer,
                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
                           "Content-Type: text/plain\r\n\r\n5\r\nhello\r\n");
    domt_pipes_peer_send(kit, peer, "3\r\nyou\r\n");
    domt_pipes_peer_expect(kit, peer, "3\r\nyou\r\n");
    domt_pipes_peer_send(kit, peer, "0\r\n\r\n" GET("/"));
    domt_pipes_peer_expect(kit, peer, "0\r\n\r\n" TEXT(3, "now"));
    domus_peer_close(peer);
    domt_pipes_end_kit(kit);
}

DOMT_TEST(peer_is_told_to_go_on_when_its_body_is_read)
{
    domus_testkit *kit = domt_pipes_new_kit(NULL, &service, 1);
    domus_peer *peer = domt_pipes_connect_peer(kit);

    domt_pipes_peer_send(kit, peer,
                         GET("/sleep") "POST /sum HTTP/1.1\r\nHost: a\r\n"
                                       "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    domt_pipes_peer_expect(kit, peer, TEXT(5, "slept") "HTTP/1.1 100 Continue\r\n\r\n");
    domt_pipes_peer_send(kit, peer, "hello" GET("/"));
    domt_pipes_peer_expect(kit, peer,
                           "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n5" TEXT(3, "now"));
    domus_peer_close(peer);
    domt_pipes_end_kit(kit);
}

DOMT_TEST(client_sees_that_an_answer_is_cut_off)
{
    domus_testkit *kit = domt_pipes_new_kit(NULL, &service, 1);
    domus_peer *peer = domt_pipes_connect_peer(kit);

    domt_pipes_peer_send(kit, peer, GET("/part") GET("/"));
    domt_pipes_peer_expect(kit, peer,
                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
                           "Content-Type: text/plain\r\n\r\n5\r\ngiven\r\n");
    ck_assert_int_eq(domus_peer_expect_reset(peer, SECOND), 0);
    domus_peer_close(peer);
    domt_pipes_end_kit(kit);
}

/* --- the client ------------------------------------------------------------------------------- */

static const domus_http_options as_client = {.role = DOMUS_ROLE_CLIENT, .host = "b"};
static const domus_type *const encodes[] = {&domus_http_request_type, NULL};
static const domus_pipeline client_pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, &as_client}, {NULL, NULL}},
    .encodes = encodes};

static void send_request_by_probe(domus_probe *probe, domus_address to, domus_http_method method,
                                  const char *target)
{
    domus_http_request request = {.method = (uint8_t)method};

    ck_assert_int_eq(domus_slice_copy(target, strlen(target), &request.target), 0);
    ck_assert_int_eq(domus_probe_ask(probe, to, &domus_http_request_type, &request), 0);
}

static void expect_client_got_answer(domt_line_client *client, unsigned status, const char *body)
{
    domus_http_response response;

    domt_net_check_ok(client->kit, domus_probe_expect(client->probe, &domus_http_response_type,
                                                      DOMT_NET_SECOND, &response));
    ck_assert_uint_eq(response.status, status);
    ck_assert(domus_slice_equals(response.body, body, strlen(body)));
    domus_http_response_type.release(&response);
}

DOMT_TEST(client_asks_and_is_answered)
{
    static const char answers[] = "HTTP/1.1 100 Continue\r\n\r\n"
                                  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
                                  "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n"
                                  "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n"
                                  "2\r\nno\r\n0\r\n\r\n";
    static const char asked[] = "GET /a HTTP/1.1\r\nHost: b\r\n\r\n"
                                "HEAD /b HTTP/1.1\r\nHost: b\r\n\r\n"
                                "DELETE /c HTTP/1.1\r\nHost: b\r\n\r\n";
    domt_line_client client;

    domt_line_client_begin(&client, &client_pipeline, NULL);
    send_request_by_probe(client.probe, client.channel, DOMUS_HTTP_GET, "/a");
    send_request_by_probe(client.probe, client.channel, DOMUS_HTTP_HEAD, "/b");
    send_request_by_probe(client.probe, client.channel, DOMUS_HTTP_DELETE, "/c");
    domt_net_check_ok(client.kit,
                      domus_peer_expect(client.peer, asked, sizeof asked - 1, DOMT_NET_SECOND));
    domt_net_check_ok(client.kit, domus_peer_send(client.peer, answers, sizeof answers - 1));
    expect_client_got_answer(&client, 200, "hello");
    expect_client_got_answer(&client, 200, "");
    expect_client_got_answer(&client, 404, "no");
    domt_line_client_end(&client);
}

DOMT_TEST(answer_without_request_ends_connection)
{
    static const char answer[] = "HTTP/1.1 204 No Content\r\n\r\n";
    domt_line_client client;

    domt_line_client_begin(&client, &client_pipeline, NULL);
    domt_net_check_ok(client.kit, domus_peer_send(client.peer, answer, sizeof answer - 1));
    domt_net_check_ok(client.kit, domus_peer_expect_reset(client.peer, DOMT_NET_SECOND));
    domt_line_client_end(&client);
}

DOMT_TEST(answer_that_ends_with_the_connection_is_whole)
{
    static const char answer[] = "HTTP/1.0 200 OK\r\n\r\nhello";
    domt_line_client client;

    domt_line_client_begin(&client, &client_pipeline, NULL);
    send_request_by_probe(client.probe, client.channel, DOMUS_HTTP_GET, "/a");
    domt_net_check_ok(client.kit, domus_testkit_run(client.kit));
    domt_net_check_ok(client.kit, domus_peer_send(client.peer, answer, sizeof answer - 1));
    domt_net_check_ok(client.kit, domus_testkit_run(client.kit));
    domus_peer_finish(client.peer);
    expect_client_got_answer(&client, 200, "hello");
    domt_line_client_end(&client);
}

DOMT_SUITE(60)
