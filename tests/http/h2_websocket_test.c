/* WebSockets in streams of HTTP/2 (RFC 8441): the handlers are those of any WebSocket. */
#include "tests/http/h2_peer.h"
#include "tests/support/suite.h"

#include <domus/websocket.h>

#include <errno.h>
#include <string.h>

#define MS DOMT_SERVED_MS

static domt_h2 h2;

/* --- the service ------------------------------------------------------------------------------ */

static const domus_pipeline socket_pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_websocket_stage, NULL}, {NULL, NULL}}};
static const char *const protocols[] = {"chat", NULL};
static const domus_websocket_service service = {.pipeline = &socket_pipeline,
                                                .protocols = protocols};
static uint32_t requests;

/* Serve "/socket" as a WebSocket, fail "/none", and answer each other path with "plain". */
static int serve_websocket_or_plain(domus_stack *stack, void *self, const void *payload)
{
    const domus_http_request *request = payload;
    domus_http_response response = {.status = 200, .media = "text/plain"};

    requests++;
    if (request->target.size == 7 && memcmp(domus_slice_data(request->target), "/socket", 7) == 0)
        return domus_websocket_accept(stack, request, &service, NULL);
    if (request->target.size == 5 && memcmp(domus_slice_data(request->target), "/none", 5) == 0)
        return -ENOENT;
    ck_assert_int_eq(domus_slice_copy("plain", 5, &response.body), 0);
    return domus_reply(stack, &domus_http_response_type, &response);
}

static int echo_message(domus_stack *stack, void *self, const void *payload)
{
    return domus_channel_send(stack, domus_channel_running(stack), &domus_websocket_message_type,
                              payload);
}

static const domus_on_peer rows[] = {
    {.type = &domus_http_request_type, .handle = serve_websocket_or_plain},
    {.type = &domus_websocket_message_type, .handle = echo_message},
    {.type = NULL}};

static const domus_http2_options with_sockets = {.websockets = true};

#define BEHAVIOUR(options)                                                                         \
    {                                                                                              \
        .name = "sockets", .kind = DOMUS_CHANNELS, .on_peer = rows,                                \
        .on_close = {domt_served_count_close_and_error, 0}, .pipeline = &(const domus_pipeline)    \
        {                                                                                          \
            .stages = (const domus_pipeline_stage[])                                               \
            {                                                                                      \
                {&domus_http2_stage, options}, {&domus_http_stage, NULL},                          \
                {                                                                                  \
                    NULL, NULL                                                                     \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

static const domus_behaviour by_sockets = BEHAVIOUR(&with_sockets), by_none = BEHAVIOUR(NULL);

static void begin_client_of_service(const domus_behaviour *behaviour)
{
    requests = 0;
    domt_h2_begin_nghttp2_client(&h2, domt_served_start_kit(NULL, behaviour, 1));
    domt_h2_send_output_and_advance(&h2, 0);
}

/* --- the client ------------------------------------------------------------------------------- */

/* Begin an extended CONNECT of the client; its stream stays open. */
static int32_t send_extended_connect(const char *path, const char *protocol)
{
    const char *const fields[] = {
        ":protocol",   protocol, "sec-websocket-version", "13", "sec-websocket-protocol",
        "other, chat", NULL};
    int32_t id = domt_h2_begin_request(&h2, "CONNECT", path, 1, fields);

    domt_h2_stream_of_id(&h2, id)->to_send = 0;
    domt_h2_stream_of_id(&h2, id)->holds_end = true;
    return id;
}

/* A text of two bytes and a close with 1000, both masked with zeros. */
static const char text[] = "\x81\x82\0\0\0\0hi";
static const char goodbye[] = "\x88\x82\0\0\0\0\x03\xe8";
#define HEARD "\x81\x02hi"

static void send_data_on_stream(int32_t id, const char *bytes, size_t size)
{
    domt_h2_send_frame(&h2, NGHTTP2_DATA, 0, id, bytes, size);
}

static void expect_bytes_of_stream(int32_t id, const char *what, size_t size)
{
    const domt_h2_stream *stream = domt_h2_stream_of_id(&h2, id);

    ck_assert_int_eq(stream->status, 200);
    ck_assert_uint_eq(stream->size, size);
    ck_assert_mem_eq(stream->text, what, size);
}

/* --- tests ------------------------------------------------------------------------------------ */

DOMT_TEST(a_stream_becomes_a_websocket)
{
    begin_client_of_service(&by_sockets);
    int32_t id = send_extended_connect("/socket", "websocket");
    domt_h2_send_output_and_advance(&h2, 0);
    expect_bytes_of_stream(id, "", 0);
    send_data_on_stream(id, text, sizeof text - 1);
    domt_h2_send_output_and_advance(&h2, 0);
    expect_bytes_of_stream(id, HEARD, 4);
    send_data_on_stream(id, text, 3); /* the WebSocket frame comes in two pieces */
    domt_h2_send_output_and_advance(&h2, 0);
    send_data_on_stream(id, text + 3, sizeof text - 4);
    domt_h2_send_output_and_advance(&h2, 0);
    expect_bytes_of_stream(id, HEARD HEARD, 8);
    ck_assert(!domt_h2_stream_of_id(&h2, id)->ended);
    send_data_on_stream(id, goodbye, sizeof goodbye - 1);
    domt_h2_send_output_and_advance(&h2, 0);
    expect_bytes_of_stream(id, HEARD HEARD "\x88\x02\x03\xe8", 12);
    ck_assert(domt_h2_stream_of_id(&h2, id)->ended);
    ck_assert_int_eq(domt_served_now.close_error, 0);
    domt_h2_end_client_and_kit(&h2);
}

/* Bytes behind a CONNECT, in the same piece, are kept until the answer to it is sent. */
DOMT_TEST(bytes_behind_a_connect_are_heard_by_the_websocket)
{
    begin_client_of_service(&by_sockets);
    int32_t id = send_extended_connect("/socket", "websocket");
    send_data_on_stream(id, text, sizeof text - 1);
    send_data_on_stream(id, text, sizeof text - 1);
    domt_h2_send_output_and_advance(&h2, 0);
    expect_bytes_of_stream(id, HEARD HEARD, 8);
    domt_h2_end_client_and_kit(&h2);
}

/* If the answer refuses the WebSocket, the early bytes are not read as a request, whatever they
 * contain. */
DOMT_TEST(bytes_behind_a_refused_connect_are_no_request)
{
    static const char request[] = "GET /other HTTP/1.1\r\nHost: a\r\n\r\n";
    static const char *const paths[] = {"/none", "/plain"};

    for (size_t i = 0; i < 2; i++) {
        begin_client_of_service(&by_sockets);
        int32_t id = send_extended_connect(paths[i], "websocket");
        send_data_on_stream(id, request, sizeof request - 1);
        domt_h2_send_output_and_advance(&h2, 0);
        domt_h2_expect_answer(&h2, id, i == 0 ? 404 : 200, i == 0 ? NULL : "plain");
        send_data_on_stream(id, request, sizeof request - 1);
        domt_h2_send_output_and_advance(&h2, 0);
        domt_h2_expect_reset(&h2, id, NGHTTP2_NO_ERROR);
        ck_assert_uint_eq(requests, 1);
        id = domt_h2_request_and_expect_answer(&h2, "GET", "/plain", 0, NULL, 0, 200, "plain");
        ck_assert_uint_eq(requests, 2);
        domt_h2_end_client_and_kit(&h2);
    }
}

/* The window of the stream bounds early bytes: only so many come before the answer. */
DOMT_TEST(bytes_behind_a_connect_are_bounded)
{
    domt_h2_begin_nghttp2_client(&h2, domt_served_start_kit(NULL, &domt_h2_by_small, 1));
    domt_h2_send_output_and_advance(&h2, 0);
    int32_t id = send_extended_connect("/hang", "websocket");
    domt_h2_stream_of_id(&h2, id)->to_send = DOMT_H2_SMALL_WINDOW + 3000;
    domt_h2_send_output_and_advance(&h2, 100 * MS);
    ck_assert_uint_eq(domt_h2_stream_of_id(&h2, id)->to_send, 3000);
    domt_h2_end_client_and_kit(&h2);
}

static const domus_http2_options wide = {
    .websockets = true, .stream_window = 2u << 20, .window = 2u << 20};
static const domus_pipeline wide_pipeline = {
    .stages = (const domus_pipeline_stage[]){
        {&domus_http2_stage, &wide}, {&domus_http_stage, &domt_served_whole}, {NULL, NULL}}};

/* More early bytes than one buffer holds (1 MiB) wait for the answer, and all of them come. */
DOMT_TEST(more_bytes_behind_a_connect_than_a_buffer_holds_are_heard)
{
    const domus_behaviour by_lines = {.name = "lines",
                                      .kind = DOMUS_CHANNELS,
                                      .pipeline = &wide_pipeline,
                                      .on_peer = domt_served_rows};
    static char lines[16000];

    memset(lines, 'x', sizeof lines);
    for (size_t at = 999; at < sizeof lines; at += 1000)
        lines[at] = '\n';
    begin_client_of_service(&by_lines);
    int32_t id = send_extended_connect("/upped", "websocket");
    for (unsigned i = 0; i < 80; i++)
        send_data_on_stream(id, lines, sizeof lines);
    for (unsigned i = 0; i < 200; i++)
        domt_h2_send_output_and_advance(&h2, 10 * MS);
    ck_assert_int_eq(domt_h2_stream_of_id(&h2, id)->status, 200);
    ck_assert_uint_eq(domt_h2_stream_of_id(&h2, id)->size, 80 * sizeof lines);
    domt_h2_end_client_and_kit(&h2);
}

DOMT_TEST(connects_for_no_websocket_are_refused)
{
    static const struct {
        const domus_behaviour *of;
        const char *protocol;
        int status; /* status of the answer; 0: the stream is reset with PROTOCOL_ERROR */
    } cases[] = {{&by_none, "websocket", 0}, {&by_sockets, "other", 501}, {&by_sockets, "", 0}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_client_of_service(cases[i].of);
        int32_t id = send_extended_connect("/socket", cases[i].protocol);
        domt_h2_send_output_and_advance(&h2, 0);
        if (cases[i].status != 0)
            domt_h2_expect_answer(&h2, id, cases[i].status, NULL);
        else
            domt_h2_expect_reset(&h2, id, NGHTTP2_PROTOCOL_ERROR);
        ck_assert_uint_eq(requests, 0);
        domt_h2_end_client_and_kit(&h2);
    }
}

/* The pseudo field :protocol is only allowed with CONNECT. */
DOMT_TEST(the_field_protocol_is_refused_with_other_methods)
{
    begin_client_of_service(&by_sockets);
    int32_t id = domt_h2_begin_request(&h2, "GET", "/plain", 0,
                                       (const char *const[]){":protocol", "websocket", NULL});
    domt_h2_send_output_and_advance(&h2, 0);
    domt_h2_expect_reset(&h2, id, NGHTTP2_PROTOCOL_ERROR);
    ck_assert_uint_eq(requests, 0);
    domt_h2_end_client_and_kit(&h2);
}

/* The peer ends the stream without a close frame, or cancels it. */
DOMT_TEST(the_end_of_a_stream_is_that_of_its_websocket)
{
    for (unsigned resets = 0; resets < 2; resets++) {
        begin_client_of_service(&by_sockets);
        int32_t id = send_extended_connect("/socket", "websocket");
        int32_t other = send_extended_connect("/socket", "websocket");
        domt_h2_send_output_and_advance(&h2, 0);
        if (resets)
            ck_assert_int_eq(
                nghttp2_submit_rst_stream(h2.session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL), 0);
        else
            domt_h2_send_frame(&h2, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, id, "", 0);
        domt_h2_send_output_and_advance(&h2, 10 * MS);
        ck_assert_uint_eq(domt_served_now.closed, 1);
        if (resets)
            ck_assert_int_eq(domt_served_now.close_error, -ECONNRESET);
        send_data_on_stream(other, text, sizeof text - 1);
        domt_h2_send_output_and_advance(&h2, 0);
        expect_bytes_of_stream(other, HEARD, 4);
        domt_h2_end_client_and_kit(&h2);
    }
}

/* A wrong frame is answered with a close and its code, and its stream ends; the connection goes
 * on. */
DOMT_TEST(wrong_frames_end_the_stream_alone)
{
    begin_client_of_service(&by_sockets);
    int32_t id = send_extended_connect("/socket", "websocket");
    domt_h2_send_output_and_advance(&h2, 0);
    send_data_on_stream(id, "\x81\x02hi", 4);
    domt_h2_send_output_and_advance(&h2, 0);
    ck_assert_mem_eq(domt_h2_stream_of_id(&h2, id)->text + 2, "\x03\xea", 2);
    ck_assert(domt_h2_stream_of_id(&h2, id)->ended);
    id = domt_h2_request_and_expect_answer(&h2, "GET", "/plain", 0, NULL, 0, 200, "plain");
    ck_assert(!h2.is_away);
    domt_h2_end_client_and_kit(&h2);
}

DOMT_SUITE(60)
