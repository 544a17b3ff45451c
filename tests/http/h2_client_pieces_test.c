/* Bodies in pieces over HTTP/2, both ways, over a pool and over a connection of an actor: they come
 * whole, no faster than they are read, and a cut resets the stream alone. */
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
#define PIECE  1000u

/* --- the caller ------------------------------------------------------------------------------- */

/* A request with a body of so many bytes, in pieces. */
typedef struct job {
    const char *path;
    uint64_t length; /* is said in the head; 0: it is not */
    uint64_t up;
    uint64_t pause_ms; /* between two reads of the answer, and before the end of the request */
    bool trailers;
    bool cuts;
} job;

typedef struct outcome {
    int error;
    int write_error;
    int read_error;
    unsigned status;
    uint64_t down;     /* bytes of the body of the answer */
    uint64_t trailers; /* bytes of its trailers */
} outcome;

static const domus_type job_type = {.name = "job", .size = sizeof(job)};
static const domus_type outcome_type = {.name = "outcome", .size = sizeof(outcome)};

static domus_address to; /* the actor that the caller asks */

static domus_slice slice_of(const char *text, size_t size)
{
    domus_slice slice;

    ck_assert_int_eq(domus_slice_copy(text, size, &slice), 0);
    return slice;
}

static void take_part(outcome *made, const domus_answer *answer)
{
    const domus_piece *piece = answer->payload;

    if (answer->type == &domus_http_trailers_type)
        made->trailers = ((const domus_http_trailers *)answer->payload)->fields.size;
    else
        made->down += piece->bytes.size;
}

typedef struct move_frame {
    job what;
    outcome made;
    uint64_t written;
    domus_request request;
    domus_body body;
    domus_http_request head;
    domus_http_trailers trailers;
    bool ended;
} move_frame;

DOMUS_SEQUENCE(move, move_frame)
{
    static const char zeros[PIECE];

    DOMUS_BEGIN;
    frame->what = *(const job *)message;
    frame->head = (domus_http_request){
        .method = DOMUS_HTTP_POST,
        .length = frame->what.length,
        .target = slice_of(frame->what.path, strlen(frame->what.path)),
        .fields = slice_of("Host: a\r\n", 9),
    };
    DOMUS_AWAIT(
        domus_request_begin(stack, to, &domus_http_request_type, &frame->head, 20 * SECOND, then));
    frame->made.error = answer->error;
    if (answer->error != 0)
        return domus_reply(stack, &outcome_type, &frame->made);
    frame->request = *(const domus_request *)answer->payload;
    while (frame->made.write_error == 0 && frame->written < frame->what.up) {
        frame->written += PIECE;
        DOMUS_AWAIT(domus_request_write(stack, frame->request, slice_of(zeros, PIECE), then));
        frame->made.write_error = answer->error;
    }
    if (frame->what.cuts || frame->made.write_error != 0) {
        DOMUS_AWAIT(domus_request_cut(stack, frame->request, then));
    } else if (frame->what.trailers) {
        frame->trailers.fields = slice_of("X: y\r\n", 6);
        DOMUS_AWAIT(domus_request_end(stack, frame->request, &domus_http_trailers_type,
                                      &frame->trailers, then));
    } else {
        DOMUS_AWAIT(domus_request_end(stack, frame->request, NULL, NULL, then));
    }
    frame->made.error = answer->error;
    if (answer->error != 0)
        return domus_reply(stack, &outcome_type, &frame->made);
    frame->made.status = ((const domus_http_response *)answer->payload)->status;
    frame->made.down = ((const domus_http_response *)answer->payload)->body.size;
    frame->body = ((const domus_http_response *)answer->payload)->stream;
    while (frame->body.number != 0 && !frame->ended) {
        if (frame->what.pause_ms != 0)
            DOMUS_SLEEP(frame->what.pause_ms * MS);
        DOMUS_AWAIT(domus_body_read(stack, frame->body, then));
        frame->made.read_error = answer->error;
        frame->ended = answer->error != 0 || answer->type != &domus_piece_type ||
                       ((const domus_piece *)answer->payload)->last;
        if (answer->error == 0)
            take_part(&frame->made, answer);
    }
    return domus_reply(stack, &outcome_type, &frame->made);
    DOMUS_END;
}

static const domus_behaviour caller = {
    .name = "caller",
    .kind = DOMUS_CHANNELS,
    .on = (const domus_on[]){DOMUS_ON(&job_type, move), {NULL, NULL, 0}},
};

/* --- the kit ---------------------------------------------------------------------------------- */

static domt_h2c h2c;
static domt_h2s script;
static domus_address asker;

static int connected(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, 0);
    to = ((const domus_connected *)answer->payload)->channel;
    return 0;
}

static const char *where;

static int connect_on_mount(domus_stack *stack, void *self)
{
    return domus_connect(stack, where, &(domus_connect_options){.behaviour = &domt_h2c_streams},
                         connected);
}

static const domus_behaviour connector = {
    .name = "connector", .kind = DOMUS_CHANNELS, .on_mount = connect_on_mount};

/* Begin; `at` is where the callers' requests go. */
static void begin(const char *at, bool is_pooled)
{
    domt_h2c_begin(&h2c, &domt_h2_by_streams, NULL);
    domt_h2s_listen(&script, &h2c);
    domus_system *system = domus_testkit_system(h2c.kit);
    domus_address made;

    where = at;
    if (is_pooled) {
        const domus_pool_options options = {.behaviour = &domt_h2c_streams, .on_demand = true};
        ck_assert_int_eq(domus_outside_pool_open(system, at, &options, &to), 0);
    } else {
        ck_assert_int_eq(domus_outside_spawn_on(system, 1, &connector, NULL, &made), 0);
    }
    ck_assert_int_eq(domus_outside_spawn_on(system, 2, &caller, NULL, &asker), 0);
    ck_assert_int_eq(domus_testkit_run(h2c.kit), 0);
}

static void ask(const job *what)
{
    ck_assert_int_eq(domus_probe_ask(h2c.probe, asker, &job_type, what), 0);
}

static outcome expect(void)
{
    outcome made;

    int result = domus_probe_expect(h2c.probe, &outcome_type, 60 * SECOND, &made);
    ck_assert_msg(result == 0, "%d: %s", result, domus_testkit_error(h2c.kit));
    return made;
}

DOMT_TEST(bodies_come_whole_both_ways)
{
    static const struct {
        job what;
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
        begin(DOMT_SERVED_AT, pooled != 0);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            ask(&cases[i].what);
        uint64_t sum = 0, wanted = 0;
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            outcome made = expect();
            ck_assert_int_eq(made.error, 0);
            ck_assert_int_eq(made.read_error, 0);
            ck_assert_uint_eq(made.status, 200);
            sum += made.down;
            wanted += cases[i].down;
        }
        ck_assert_uint_eq(sum, wanted);
        ck_assert_uint_eq(domus_testkit_net_totals(h2c.kit).connections, 1);
        domt_h2c_end(&h2c);
    }
}

/* The server has credit for what was read, and a neighbour is not held up by a slow reader. */
DOMT_TEST(credit_follows_the_reader)
{
    static char bytes[16384];
    const job slow = {.path = "/slow", .pause_ms = 10}; /* some 250 bytes come at a time */
    const job quick = {.path = "/quick"};

    begin(DOMT_H2C_SCRIPT, true);
    ask(&slow);
    domt_h2s_accept(&script);
    domt_h2s_send(&script, HEADERS, WHOLE, 1, "\x88", 1);
    for (unsigned i = 0; i < 3; i++)
        domt_h2s_send(&script, DATA, 0, 1, bytes, sizeof bytes);
    domt_h2s_send(&script, DATA, 0, 1, bytes, 16383);
    domt_h2s_pass(&script, 900 * MS);
    ck_assert_uint_eq(script.credit, 0);
    ask(&quick);
    domt_h2s_pass(&script, 0);
    domt_h2s_answer(&script, 3, "ab");
    domt_h2s_pass(&script, 0);
    outcome made = expect();
    ck_assert_uint_eq(made.down, 2);
    domt_h2s_pass(&script, 10 * SECOND);
    ck_assert_uint_ge(script.credit, 32768);
    ck_assert_uint_le(script.credit, 65535);
    domt_h2s_send(&script, DATA, LAST, 1, NULL, 0);
    made = expect();
    ck_assert_uint_eq(made.down, 65535);
    ck_assert_int_eq(made.read_error, 0);
    domt_h2c_end(&h2c);
}

/* A writer waits for the credit of the server. */
DOMT_TEST(a_writer_waits_for_credit)
{
    const job up = {.path = "/up", .up = 400 * PIECE};

    begin(DOMT_H2C_SCRIPT, true);
    ask(&up);
    domt_h2s_accept(&script);
    domt_h2s_pass(&script, 5 * SECOND);
    ck_assert_uint_eq(script.data, 65535);
    for (unsigned i = 0; i < 20; i++) {
        domt_h2s_send(&script, NGHTTP2_WINDOW_UPDATE, 0, 1, "\0\1\0\0", 4);
        domt_h2s_send(&script, NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\1\0\0", 4);
        domt_h2s_pass(&script, 0);
    }
    ck_assert_uint_eq(script.data, 400 * PIECE);
    ck_assert_uint_eq(script.ended, 1);
    domt_h2s_answer(&script, 1, "ab");
    outcome made = expect();
    ck_assert_int_eq(made.error, 0);
    ck_assert_uint_eq(made.down, 2);
    domt_h2c_end(&h2c);
}

DOMT_TEST(a_cut_resets_the_stream_alone)
{
    const job cut = {.path = "/cut", .up = 2 * PIECE, .cuts = true};
    const job other = {.path = "/other"};

    begin(DOMT_H2C_SCRIPT, true);
    ask(&other);
    domt_h2s_accept(&script);
    ask(&cut);
    domt_h2s_pass(&script, SECOND);
    outcome made = expect();
    ck_assert_int_eq(made.error, -EPIPE);
    ck_assert_uint_eq(script.resets, 1);
    ck_assert_uint_eq(script.reset_code, NGHTTP2_CANCEL);
    ck_assert_int_eq(script.reset_id, 3);
    domt_h2s_answer(&script, 1, "ab");
    made = expect();
    ck_assert_uint_eq(made.down, 2);
    ck_assert(!script.is_away);
    domt_h2c_end(&h2c);
}

/* The answer comes before the body has left, and the server takes no more of it. */
DOMT_TEST(an_early_answer_ends_the_body)
{
    const job up = {.path = "/up", .up = 400 * PIECE};

    for (unsigned resets = 0; resets < 2; resets++) {
        begin(DOMT_H2C_SCRIPT, true);
        ask(&up);
        domt_h2s_accept(&script);
        domt_h2s_pass(&script, SECOND);
        domt_h2s_answer(&script, 1, "ab");
        if (resets != 0)
            domt_h2s_reset(&script, 1, NGHTTP2_NO_ERROR);
        domt_h2s_pass(&script, SECOND);
        outcome made = expect();
        ck_assert_int_eq(made.write_error, -EALREADY);
        ck_assert_int_eq(made.error, 0);
        ck_assert_uint_eq(made.status, 200);
        const job next = {.path = "/next"};
        domt_h2s_send(&script, NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\1\0\0", 4);
        ask(&next);
        domt_h2s_pass(&script, 0);
        domt_h2s_answer(&script, 3, "abc");
        made = expect();
        ck_assert_uint_eq(made.down, 3);
        ck_assert_int_eq(made.error, 0);
        domt_h2c_end(&h2c);
    }
}

/* An answer that has come, and is read slowly, holds up no other request. */
DOMT_TEST(a_slow_reader_holds_up_nobody)
{
    static char bytes[5001];
    const job slow = {.path = "/slow", .pause_ms = 100};
    const job quick = {.path = "/quick"};

    begin(DOMT_H2C_SCRIPT, true);
    ask(&slow);
    domt_h2s_accept(&script);
    memset(bytes, 'x', sizeof bytes - 1);
    domt_h2s_answer(&script, 1, bytes);
    domt_h2s_pass(&script, 300 * MS);
    for (int32_t id = 3; id < 9; id += 2) {
        ask(&quick);
        domt_h2s_pass(&script, 0);
        ck_assert_int_eq(script.last, id);
        domt_h2s_answer(&script, id, "ab");
        ck_assert_uint_eq(expect().down, 2);
    }
    ck_assert_uint_eq(expect().down, 5000);
    domt_h2c_end(&h2c);
}

/* A part of it may have been done, so it is not sent again. */
DOMT_TEST(a_refused_body_is_not_sent_again)
{
    const job up = {.path = "/up", .up = PIECE};

    begin(DOMT_H2C_SCRIPT, true);
    ask(&up);
    domt_h2s_accept(&script);
    domt_h2s_reset(&script, 1, NGHTTP2_REFUSED_STREAM);
    domt_h2s_pass(&script, SECOND);
    ck_assert_int_eq(expect().error, -EPIPE);
    ck_assert_int_eq(script.last, 1);
    domt_h2c_end(&h2c);
}

DOMT_TEST(trailers_of_an_answer_are_given)
{
    const job get = {.path = "/a"};

    begin(DOMT_H2C_SCRIPT, true);
    ask(&get);
    domt_h2s_accept(&script);
    domt_h2s_send(&script, HEADERS, WHOLE, 1, "\x88", 1);
    domt_h2s_send(&script, DATA, 0, 1, "ab", 2);
    domt_h2s_send(&script, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 1,
                  "\x00\x01x\x01y", 5);
    outcome made = expect();
    ck_assert_uint_eq(made.down, 2);
    ck_assert_uint_eq(made.trailers, strlen("x: y\r\n"));
    domt_h2c_end(&h2c);
}

static domus_http_proxy proxy = {.name = "edge"};

static int pass(domus_stack *stack, void *self, const void *payload)
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
        {&domus_http_request_type, pass, DOMUS_HTTP_PROXY_FRAME, 0, NULL}, {.type = NULL}}};

static int listen_on_mount(domus_stack *stack, void *self)
{
    domus_endpoint at;

    ck_assert_int_eq(domus_endpoint_parse("127.0.0.1:81", &at), 0);
    return domus_listen(stack, &at, NULL, NULL, &at);
}

static const domus_behaviour edge = {
    .name = "edge", .kind = DOMUS_CHANNELS, .channel = &edge_channel, .on_mount = listen_on_mount};

/* Requests of HTTP/1.1 go on as those of HTTP/2, on one connection. */
DOMT_TEST(a_proxy_passes_requests_on)
{
    static const char *const requests[] = {
        "POST /bytes HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        "POST /bytes HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        "5\r\nhello\r\n0\r\n\r\n",
        "GET /now HTTP/1.1\r\nHost: a\r\n\r\n"};
    static const char *const answers[] = {"5\n", "5\n", "now\n"};
    domus_peer *peers[3];
    domus_address made;
    char text[1000];

    begin(DOMT_SERVED_AT, true);
    proxy.upstream = to;
    ck_assert_int_eq(domus_outside_spawn_on(domus_testkit_system(h2c.kit), 1, &edge, NULL, &made),
                     0);
    ck_assert_int_eq(domus_testkit_run(h2c.kit), 0);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(domus_peer_connect(h2c.kit, "127.0.0.1:81", NULL, &peers[i]), 0);
        domt_served_send(peers[i], requests[i]);
    }
    domt_served_pass(h2c.kit, SECOND);
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
    domt_h2c_end(&h2c);
}

/* The body of an answer is lost with its stream, or its connection. */
DOMT_TEST(a_body_that_is_cut_fails_its_reader)
{
    for (unsigned way = 0; way < 2; way++) {
        const job get = {.path = "/a"};
        begin(DOMT_H2C_SCRIPT, true);
        ask(&get);
        domt_h2s_accept(&script);
        domt_h2s_send(&script, HEADERS, WHOLE, 1, "\x88", 1);
        domt_h2s_send(&script, DATA, 0, 1, "ab", 2);
        domt_h2s_pass(&script, 0);
        if (way == 0)
            domt_h2s_reset(&script, 1, NGHTTP2_INTERNAL_ERROR);
        else
            domus_peer_reset(script.peer);
        outcome made = expect();
        ck_assert_int_lt(made.read_error, 0);
        domt_h2c_end(&h2c);
    }
}

DOMT_SUITE(120)
