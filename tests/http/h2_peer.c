/* The client of HTTP/2 by nghttp2 that tests/http/h2_peer.h describes. */
#include "tests/http/h2_peer.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

/* --- the service ------------------------------------------------------------------------------ */

static const domus_http2_options small = {
    .streams_max = DOMT_H2_SMALL_STREAMS,
    .head_max = DOMT_H2_SMALL_HEAD,
    .fields_max = DOMT_H2_SMALL_FIELDS,
    .stream_window = DOMT_H2_SMALL_WINDOW,
    .resets_max = DOMT_H2_SMALL_RESETS,
    .controls_max = DOMT_H2_SMALL_CONTROLS,
    .websockets = true,
};

static const domus_pipeline whole = {
    .stages = (const domus_pipeline_stage[]){
        {&domus_http2_stage, NULL}, {&domus_http_stage, &domt_served_whole}, {NULL, NULL}}};
static const domus_pipeline streams = {
    .stages = (const domus_pipeline_stage[]){
        {&domus_http2_stage, NULL}, {&domus_http_stage, &domt_served_streams}, {NULL, NULL}}};
static const domus_pipeline of_small = {
    .stages = (const domus_pipeline_stage[]){
        {&domus_http2_stage, &small}, {&domus_http_stage, &domt_served_streams}, {NULL, NULL}}};

const domus_behaviour domt_h2_by_whole = {
    .name = "whole",
    .kind = DOMUS_CHANNELS,
    .pipeline = &whole,
    .on_peer = domt_served_rows,
    .on_close = {domt_served_count_close_and_error, 0},
};

const domus_behaviour domt_h2_by_streams = {
    .name = "streams",
    .kind = DOMUS_CHANNELS,
    .pipeline = &streams,
    .on_peer = domt_served_rows,
    .on_close = {domt_served_count_close_and_error, 0},
};

const domus_behaviour domt_h2_by_small = {
    .name = "small",
    .kind = DOMUS_CHANNELS,
    .pipeline = &of_small,
    .on_peer = domt_served_rows,
    .on_close = {domt_served_count_close_and_error, 0},
};

/* --- callbacks -------------------------------------------------------------------------------- */

static bool is_field_named(const uint8_t *name, size_t size, const char *text)
{
    return size == strlen(text) && memcmp(name, text, size) == 0;
}

static int store_field_of_stream(nghttp2_session *session, const nghttp2_frame *frame,
                                 const uint8_t *name, size_t name_size, const uint8_t *value,
                                 size_t size, uint8_t flags, void *h2_)
{
    domt_h2 *h2 = h2_;
    domt_h2_stream *stream = domt_h2_stream_of_id(h2, frame->hd.stream_id);
    char text[64];

    snprintf(text, sizeof text, "%.*s", (int)size, (const char *)value);
    if (is_field_named(name, name_size, ":status")) {
        sscanf(text, "%d", &stream->status);
        stream->interims += stream->status < 200;
    }
    if (is_field_named(name, name_size, "content-type") ||
        is_field_named(name, name_size, "x-trailer"))
        memcpy(stream->field, text, sizeof text);
    return 0;
}

static int store_data_of_stream(nghttp2_session *session, uint8_t flags, int32_t id,
                                const uint8_t *bytes, size_t size, void *h2_)
{
    domt_h2 *h2 = h2_;
    domt_h2_stream *stream = domt_h2_stream_of_id(h2, id);

    if (stream->size + size < sizeof stream->text)
        memcpy(stream->text + stream->size, bytes, size);
    stream->size += size;
    if (!h2->keeps_window)
        ck_assert_int_eq(nghttp2_session_consume(session, id, size), 0);
    return 0;
}

static int record_frame_of_server(nghttp2_session *session, const nghttp2_frame *frame, void *h2_)
{
    domt_h2 *h2 = h2_;
    bool is_of_answer = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;

    if (is_of_answer && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
        domt_h2_stream_of_id(h2, frame->hd.stream_id)->ended = true;
        domt_h2_stream_of_id(h2, frame->hd.stream_id)->order = h2->ended++;
    }
    h2->settings += frame->hd.type == NGHTTP2_SETTINGS;
    h2->pings += frame->hd.type == NGHTTP2_PING;
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        h2->is_away = true;
        h2->aways++;
        h2->away = frame->goaway.error_code;
        h2->last = frame->goaway.last_stream_id;
    }
    return 0;
}

static int record_close_of_stream(nghttp2_session *session, int32_t id, uint32_t code, void *h2)
{
    domt_h2_stream_of_id(h2, id)->closed = true;
    domt_h2_stream_of_id(h2, id)->code = code;
    return 0;
}

static ssize_t give_body_to_nghttp2(nghttp2_session *session, int32_t id, uint8_t *to, size_t size,
                                    uint32_t *flags, nghttp2_data_source *source, void *h2)
{
    domt_h2_stream *stream = domt_h2_stream_of_id(h2, id);
    size_t part = stream->to_send < size ? stream->to_send : size;
    const nghttp2_nv trailer = {(uint8_t *)(uintptr_t) "x-trailer", (uint8_t *)(uintptr_t) "end", 9,
                                3, NGHTTP2_NV_FLAG_NONE};

    if (part == 0 && stream->holds_end)
        return NGHTTP2_ERR_DEFERRED;
    memset(to, 'b', part);
    stream->to_send -= part;
    if (stream->to_send == 0 && !stream->holds_end)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (stream->to_send == 0 && stream->trailers != 0) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        ck_assert_int_eq(nghttp2_submit_trailer(session, id, &trailer, 1), 0);
    }
    return (ssize_t)part;
}

/* --- the client ------------------------------------------------------------------------------- */

void domt_h2_begin_nghttp2_client(domt_h2 *h2, domus_testkit *kit)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;

    *h2 = (domt_h2){.kit = kit, .peer = domt_served_connect_peer(kit)};
    ck_assert_int_eq(nghttp2_session_callbacks_new(&callbacks), 0);
    ck_assert_int_eq(nghttp2_option_new(&option), 0);
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_no_http_messaging(option, 1);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, store_field_of_stream);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, store_data_of_stream);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, record_frame_of_server);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, record_close_of_stream);
    ck_assert_int_eq(nghttp2_session_client_new2(&h2->session, callbacks, h2, option), 0);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    ck_assert_int_eq(nghttp2_submit_settings(h2->session, NGHTTP2_FLAG_NONE, NULL, 0), 0);
}

void domt_h2_end_client(domt_h2 *h2)
{
    nghttp2_session_del(h2->session);
    h2->session = NULL;
}

void domt_h2_end_client_and_kit(domt_h2 *h2)
{
    domus_peer_close(h2->peer);
    domt_h2_end_client(h2);
    domt_served_end_kit(h2->kit);
}

int32_t domt_h2_begin_request(domt_h2 *h2, const char *method, const char *path, size_t size,
                              const char *const *fields)
{
    const char *all[64] = {":method", method, ":scheme", "http", ":authority", "a", ":path", path};
    nghttp2_nv named[32];
    size_t count = 4;

    for (; fields != NULL && fields[2 * (count - 4)] != NULL; count++) {
        all[2 * count] = fields[2 * (count - 4)];
        all[2 * count + 1] = fields[2 * (count - 4) + 1];
    }
    for (size_t i = 0; i < count; i++)
        named[i] =
            (nghttp2_nv){(uint8_t *)(uintptr_t)all[2 * i], (uint8_t *)(uintptr_t)all[2 * i + 1],
                         strlen(all[2 * i]), strlen(all[2 * i + 1]), NGHTTP2_NV_FLAG_NONE};
    const nghttp2_data_provider body = {.read_callback = give_body_to_nghttp2};
    int32_t id =
        nghttp2_submit_request(h2->session, NULL, named, count, size != 0 ? &body : NULL, NULL);
    ck_assert_int_gt(id, 0);
    domt_h2_stream_of_id(h2, id)->to_send = size;
    return id;
}

static void send_output_of_nghttp2(domt_h2 *h2)
{
    const uint8_t *bytes;
    ssize_t size;

    while ((size = nghttp2_session_mem_send(h2->session, &bytes)) > 0)
        (void)domus_peer_send(h2->peer, bytes, (size_t)size);
}

void domt_h2_send_output_and_advance(domt_h2 *h2, uint64_t ns)
{
    for (unsigned i = 0; i < 200; i++) {
        size_t size;
        send_output_of_nghttp2(h2);
        ck_assert_int_eq(domus_testkit_run(h2->kit), 0);
        ck_assert_int_eq(domus_testkit_advance(h2->kit, ns / 200 + 100000), 0);
        const char *got = domus_peer_got(h2->peer, &size);
        if (size == 0)
            continue;
        ssize_t used = nghttp2_session_mem_recv(h2->session, (const uint8_t *)got, size);
        ck_assert_int_eq(used, (ssize_t)size);
        domus_peer_take(h2->peer, size);
    }
}

void domt_h2_send(domt_h2 *h2, const void *bytes, size_t size)
{
    send_output_of_nghttp2(h2);
    ck_assert_int_eq(domus_peer_send(h2->peer, bytes, size), 0);
}

void domt_h2_send_frame(domt_h2 *h2, uint8_t type, uint8_t flags, int32_t id, const void *bytes,
                        size_t size)
{
    const uint8_t head[9] = {
        (uint8_t)(size >> 16), (uint8_t)(size >> 8), (uint8_t)size,      type,       flags,
        (uint8_t)(id >> 24),   (uint8_t)(id >> 16),  (uint8_t)(id >> 8), (uint8_t)id};

    domt_h2_send(h2, head, sizeof head);
    if (size != 0)
        domt_h2_send(h2, bytes, size);
}

/* --- checks ----------------------------------------------------------------------------------- */

void domt_h2_expect_answer(domt_h2 *h2, int32_t id, int status, const char *text)
{
    const domt_h2_stream *stream = domt_h2_stream_of_id(h2, id);

    ck_assert_int_eq(stream->status, status);
    ck_assert(stream->ended);
    if (text != NULL)
        ck_assert_str_eq(stream->text, text);
}

int32_t domt_h2_request_and_expect_answer(domt_h2 *h2, const char *method, const char *path,
                                          size_t size, const char *const *fields, uint64_t ns,
                                          int status, const char *text)
{
    int32_t id = domt_h2_begin_request(h2, method, path, size, fields);

    domt_h2_send_output_and_advance(h2, ns);
    domt_h2_expect_answer(h2, id, status, text);
    return id;
}

void domt_h2_expect_reset(domt_h2 *h2, int32_t id, uint32_t code)
{
    ck_assert(domt_h2_stream_of_id(h2, id)->closed);
    ck_assert_uint_eq(domt_h2_stream_of_id(h2, id)->code, code);
}

void domt_h2_expect_connection_works(domt_h2 *h2)
{
    int32_t id = domt_h2_begin_request(h2, "GET", "/now", 0, NULL);

    domt_h2_send_output_and_advance(h2, 0);
    domt_h2_expect_answer(h2, id, 200, "now\n");
}

void domt_h2_expect_goaway(domt_h2 *h2, uint32_t code)
{
    ck_assert(h2->is_away);
    ck_assert_uint_eq(h2->away, code);
    ck_assert(domus_peer_has_end(h2->peer));
}
