/* Bodies in pieces over HTTP/2, in both directions, over a pool and over a connection of an actor:
 * they come whole, no faster than the reader reads, and a body that is cut resets only its own
 * stream. */
#include "tests/http/caller.h"
#include "tests/http/h2_script.h"
#include "tests/support/suite.h"

#include <domus/await.h>
#include <domus/http_proxy.h>
#include <domus/pool.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS     DOMT_SERVED_MS
#define SECOND DOMT_SERVED_S
#define PIECE  DOMT_CALLER_PIECE

/* --- the kit ---------------------------------------------------------------------------------- */

static domt_h2c h2c;
static domt_h2s script;
static domus_address asker;

/* Begin a kit with callers, which send their requests to the address `at`. */
static void begin_callers_of_address(const char *at, bool is_pooled)
{
    domt_h2c_begin_kit(&h2c, &domt_h2_by_streams, NULL);
    domt_h2s_listen_in_kit(&script, &h2c);
    const domus_pool_options options = {.behaviour = &domt_h2c_streams, .on_demand = true};
    domt_caller_connect_or_open_pool(h2c.kit, at, is_pooled ? &options : NULL, &domt_h2c_streams);
    ck_assert_int_eq(domus_outside_spawn_on(domus_testkit_system(h2c.kit), 2,
                                            &domt_caller_of_channels, NULL, &asker),
                     0);
    ck_assert_int_eq(domus_testkit_run(h2c.kit), 0);
}

static void send_post_by_caller(domt_call_up what)
{
    what.method = DOMUS_HTTP_POST;
    what.fields = "Host: a\r\n";
    ck_assert_int_eq(domus_probe_ask(h2c.probe, asker, &domt_up_type, &what), 0);
}

static domt_outcome expect_outcome_of_call(void)
{
    return domt_caller_await_outcome(h2c.kit, h2c.probe);
}

DOMT_TEST(bodies_come_whole_both_ways)
{
    static const struct {
        domt_call_up what;
        uint64_t down;
    } cases[] = {
        {{.path = "/bytes"}, 2},
        {{.path = "/bytes", .up = PIECE}, 5},
        {{.path = "/bytes", .up = 300 * PIECE}, 7},
        {{.path = "/bytes", .up = 300 * PIECE, .length = 300 * PIECE}, 7},
        {{.path = "/bytes", .up = 3 * PIECE, .trailers = true}, 5},
        {{.path = "/give/1000"}, 1000},
        {{.path = "/give/500000"}, 500000},
        {{.path = "/give/200000", .up = PIECE, .pause_ms = 5}, 200000},
        {{.path = "/now", .up = 200 * PIECE}, 4},
    };

    for (unsigned pooled = 0; pooled < 2; pooled++) {
        begin_callers_of_address(DOMT_SERVED_AT, pooled != 0);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            send_post_by_caller(cases[i].what);
        uint64_t sum = 0, wanted = 0;
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            domt_outcome made = expect_outcome_of_call();
            ck_assert_int_eq(made.error, 0);
            ck_assert_int_eq(made.read_error, 0);
            ck_assert_uint_eq(made.status, 200);
            sum += made.down;
            wanted += cases[i].down;
        }
        ck_assert_uint_eq(sum, wanted);
        ck_assert_uint_eq(domus_testkit_net_totals(h2c.kit).connections, 1);
        domt_h2c_end_kit(&h2c);
    }
}

/* The client gives credit for the bytes that its reader has read, and a slow reader does not hold
 * up another stream. */
DOMT_TEST(the_client_gives_credit_as_its_reader_reads)
{
    static char bytes[16384];
    /* the slow reader gets pieces of about 250 bytes */
    const domt_call_up slow = {.path = "/slow", .pause_ms = 10};
    const domt_call_up quick = {.path = "/quick"};

    begin_callers_of_address(DOMT_H2C_SCRIPT, true);
    send_post_by_caller(slow);
    domt_h2s_accept_connection(&script);
    domt_h2s_send_frame(&script, HEADERS, WHOLE, 1, "\x88", 1);
    for (unsigned i = 0; i < 3; i++)
        domt_h2s_send_frame(&script, DATA, 0, 1, bytes, sizeof bytes);
    domt_h2s_send_frame(&script, DATA, 0, 1, bytes, 16383);
    domt_h2s_advance_and_read(&script, 900 * MS);
    ck_assert_uint_eq(script.credit, 0);
    send_post_by_caller(quick);
    domt_h2s_advance_and_read(&script, 0);
    domt_h2s_answer_stream(&script, 3, "ab");
    domt_h2s_advance_and_read(&script, 0);
    domt_outcome made = expect_outcome_of_call();
    ck_assert_uint_eq(made.down, 2);
    domt_h2s_advance_and_read(&script, 10 * SECOND);
    ck_assert_uint_ge(script.credit, 32768);
    ck_assert_uint_le(script.credit, 65535);
    domt_h2s_send_frame(&script, DATA, LAST, 1, NULL, 0);
    made = expect_outcome_of_call();
    ck_assert_uint_eq(made.down, 65535);
    ck_assert_int_eq(made.read_error, 0);
    domt_h2c_end_kit(&h2c);
}

/* A caller that writes a body waits until the server gives credit. */
DOMT_TEST(a_writer_of_a_body_waits_for_the_servers_credit)
{
    const domt_call_up up = {.path = "/up", .up = 400 * PIECE};

    begin_callers_of_address(DOMT_H2C_SCRIPT, true);
    send_post_by_caller(up);
    domt_h2s_accept_connection(&script);
    domt_h2s_advance_and_read(&script, 5 * SECOND);
    ck_assert_uint_eq(script.data, 65535);
    for (unsigned i = 0; i < 20; i++) {
        domt_h2s_send_frame(&script, NGHTTP2_WINDOW_UPDATE, 0, 1, "\0\1\0\0", 4);
        domt_h2s_send_frame(&script, NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\1\0\0", 4);
        domt_h2s_advance_and_read(&script, 0);
    }
    ck_assert_uint_eq(script.data, 400 * PIECE);
    ck_assert_uint_eq(script.ended, 1);
    domt_h2s_answer_stream(&script, 1, "ab");
    domt_outcome made = expect_outcome_of_call();
    ck_assert_int_eq(made.error, 0);
    ck_assert_uint_eq(made.down, 2);
    domt_h2c_end_kit(&h2c);
}

DOMT_TEST(an_upload_that_is_cut_resets_its_stream_alone)
{
    const domt_call_up cut = {.path = "/cut", .up = 2 * PIECE, .cuts = true};
    const domt_call_up other = {.path = "/other"};

    begin_callers_of_address(DOMT_H2C_SCRIPT, true);
    send_post_by_caller(other);
    domt_h2s_accept_connection(&script);
    send_post_by_caller(cut);
    domt_h2s_advance_and_read(&script, SECOND);
    domt_outcome made = expect_outcome_of_call();
    ck_assert_int_eq(made.error, -EPIPE);
    ck_assert_uint_eq(script.resets, 1);
    ck_assert_uint_eq(script.reset_code, NGHTTP2_CANCEL);
    ck_assert_int_eq(script.reset_id, 3);
    domt_h2s_answer_stream(&script, 1, "ab");
    made = expect_outcome_of_call();
    ck_assert_uint_eq(made.down, 2);
    ck_assert(!script.is_away);
    domt_h2c_end_kit(&h2c);
}

/* The server answers before it has received the body, and takes no more of that body. */
DOMT_TEST(an_early_answer_ends_the_upload)
{
    const domt_call_up up = {.path = "/up", .up = 400 * PIECE};

    for (unsigned resets = 0; resets < 2; resets++) {
        begin_callers_of_address(DOMT_H2C_SCRIPT, true);
        send_post_by_caller(up);
        domt_h2s_accept_connection(&script);
        domt_h2s_advance_and_read(&script, SECOND);
        domt_h2s_answer_stream(&script, 1, "ab");
        if (resets != 0)
            domt_h2s_reset_stream(&script, 1, NGHTTP2_NO_ERROR);
        domt_h2s_advance_and_read(&script, SECOND);
        domt_outcome made = expect_outcome_of_call();
        ck_assert_int_eq(made.write_error, -EALREADY);
        ck_assert_int_eq(made.error, 0);
        ck_assert_uint_eq(made.status, 200);
        const domt_call_up next = {.path = "/next"};
        domt_h2s_send_frame(&script, NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\1\0\0", 4);
        send_post_by_caller(next);
        domt_h2s_advance_and_read(&script, 0);
        domt_h2s_answer_stream(&script, 3, "abc");
        made = expect_outcome_of_call();
        ck_assert_uint_eq(made.down, 3);
        ck_assert_int_eq(made.error, 0);
        domt_h2c_end_kit(&h2c);
    }
}

/* An answer that was received and is read slowly does not hold up other requests. */
DOMT_TEST(a_slow_reader_holds_up_nobody)
{
    static char bytes[5001];
    const domt_call_up slow = {.path = "/slow", .pause_ms = 100};
    const domt_call_up quick = {.path = "/quick"};

    begin_callers_of_address(DOMT_H2C_SCRIPT, true);
    send_post_by_caller(slow);
    domt_h2s_accept_connection(&script);
    memset(bytes, 'x', sizeof bytes - 1);
    domt_h2s_answer_stream(&script, 1, bytes);
    domt_h2s_advance_and_read(&script, 300 * MS);
    for (int32_t id = 3; id < 9; id += 2) {
        send_post_by_caller(quick);
        domt_h2s_advance_and_read(&script, 0);
        ck_assert_int_eq(script.last, id);
        domt_h2s_answer_stream(&script, id, "ab");
        ck_assert_uint_eq(expect_outcome_of_call().down, 2);
    }
    ck_assert_uint_eq(expect_outcome_of_call().down, 5000);
    domt_h2c_end_kit(&h2c);
}

/* The server may have acted on a part of the body, so the client does not send the request
 * again. */
DOMT_TEST(a_refused_body_is_not_sent_again)
{
    const domt_call_up up = {.path = "/up", .up = PIECE};

    begin_callers_of_address(DOMT_H2C_SCRIPT, true);
    send_post_by_caller(up);
    domt_h2s_accept_connection(&script);
    domt_h2s_reset_stream(&script, 1, NGHTTP2_REFUSED_STREAM);
    domt_h2s_advance_and_read(&script, SECOND);
    ck_assert_int_eq(expect_outcome_of_call().error, -EPIPE);
    ck_assert_int_eq(script.last, 1);
    domt_h2c_end_kit(&h2c);
}

DOMT_TEST(trailers_of_an_answer_are_given)
{
    const domt_call_up get = {.path = "/a"};

    begin_callers_of_address(DOMT_H2C_SCRIPT, true);
    send_post_by_caller(get);
    domt_h2s_accept_connection(&script);
    domt_h2s_send_frame(&script, HEADERS, WHOLE, 1, "\x88", 1);
    domt_h2s_send_frame(&script, DATA, 0, 1, "ab", 2);
    domt_h2s_send_frame(&script, NGHTTP2_HEADERS,
                        NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 1, "\x00\x01x\x01y", 5);
    domt_outcome made = expect_outcome_of_call();
    ck_assert_uint_eq(made.down, 2);
    ck_assert_uint_eq(made.trailers, strlen("x: y\r\n"));
    domt_h2c_end_kit(&h2c);
}

static domus_http_proxy proxy = {.name = "edge"};

static int pass_request_on_to_upstream(domus_stack *stack, void *self, const void *payload)
{
    return domus_http_pass(stack, payload, &proxy);
}

static const domus_pipeline of_edge = {
    .stages =
        (const domus_pipeline_stage[]){{&domus_http_stage, &domt_served_streams}, {NULL, NULL}}};
static const domus_behaviour edge_channel = {
    .name = "edge channel",
    .kind = DOMUS_CHANNELS,
    .pipeline = &of_edge,
    .on_peer = (const domus_on_peer[]){
        {&domus_http_request_type, pass_request_on_to_upstream, DOMUS_HTTP_PROXY_FRAME, 0, NULL},
        {.type = NULL}}};

static int listen_at_port_81_on_mount(domus_stack *stack, void *self)
{
    domus_endpoint at;

    ck_assert_int_eq(domus_endpoint_parse("127.0.0.1:81", &at), 0);
    return domus_listen(stack, &at, NULL, NULL, &at);
}

static const domus_behaviour edge = {.name = "edge",
                                     .kind = DOMUS_CHANNELS,
                                     .channel = &edge_channel,
                                     .on_mount = listen_at_port_81_on_mount};

/* A proxy passes requests of HTTP/1.1 on over HTTP/2, on one connection. */
DOMT_TEST(a_proxy_passes_requests_on)
{
    static const char *const requests[] = {
        "POST /bytes HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        ("POST /bytes HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
         "5\r\nhello\r\n0\r\n\r\n"),
        "GET /now HTTP/1.1\r\nHost: a\r\n\r\n"};
    static const char *const answers[] = {"5\n", "5\n", "now\n"};
    domus_peer *peers[3];
    domus_address made;
    char text[1000];

    begin_callers_of_address(DOMT_SERVED_AT, true);
    proxy.upstream = domt_caller_to;
    ck_assert_int_eq(domus_outside_spawn_on(domus_testkit_system(h2c.kit), 1, &edge, NULL, &made),
                     0);
    ck_assert_int_eq(domus_testkit_run(h2c.kit), 0);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(domus_peer_connect(h2c.kit, "127.0.0.1:81", NULL, &peers[i]), 0);
        domt_served_send_text(peers[i], requests[i]);
    }
    domt_served_advance_kit(h2c.kit, SECOND);
    for (unsigned i = 0; i < 3; i++) {
        size_t size;
        const char *got = domus_peer_got(peers[i], &size);
        snprintf(text, sizeof text, "%.*s", (int)size, got);
        ck_assert_msg(strstr(text, "HTTP/1.1 200 OK\r\n") == text, "%s", text);
        ck_assert_msg(strstr(text, answers[i]) != NULL, "%s", text);
        domus_peer_take(peers[i], size);
        domus_peer_close(peers[i]);
    }
    ck_assert_uint_eq(domus_testkit_net_totals(h2c.kit).connections, 4);
    domt_h2c_end_kit(&h2c);
}

/* A reader gets an error when the stream of its body is reset, or the connection is lost. */
DOMT_TEST(a_body_that_is_cut_fails_its_reader)
{
    for (unsigned way = 0; way < 2; way++) {
        const domt_call_up get = {.path = "/a"};
        begin_callers_of_address(DOMT_H2C_SCRIPT, true);
        send_post_by_caller(get);
        domt_h2s_accept_connection(&script);
        domt_h2s_send_frame(&script, HEADERS, WHOLE, 1, "\x88", 1);
        domt_h2s_send_frame(&script, DATA, 0, 1, "ab", 2);
        domt_h2s_advance_and_read(&script, 0);
        if (way == 0)
            domt_h2s_reset_stream(&script, 1, NGHTTP2_INTERNAL_ERROR);
        else
            domus_peer_reset(script.peer);
        domt_outcome made = expect_outcome_of_call();
        ck_assert_int_lt(made.read_error, 0);
        domt_h2c_end_kit(&h2c);
    }
}

DOMT_SUITE(120)
