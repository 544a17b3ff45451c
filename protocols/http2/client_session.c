/* The callbacks by which nghttp2 tells of frames on a client's connection, and the client's
 * SETTINGS. Frames that a server may send, but not often, are counted by guard.c. */
#include "protocols/http2/client.h"

#include <errno.h>

static int nghttp2_result_of_errno(int error)
{
    return error != 0 ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

/* Check a frame that begins, and count it if nghttp2 will ignore it: frames on streams that nghttp2
 * has forgotten, and PRIORITY, which RFC 9113 has removed. RST_STREAM is counted by
 * count_frame_and_store_its_setting(). */
static int count_begun_frame_if_ignored(nghttp2_session *session, const nghttp2_frame_hd *head,
                                        void *h2)
{
    bool is_control = head->type == NGHTTP2_HEADERS || head->type == NGHTTP2_WINDOW_UPDATE;

    domi_h2_count_continuation_frame(h2, head);
    if (head->type == NGHTTP2_PRIORITY ||
        (is_control && domi_h2_is_stream_of_frame_unknown(session, head)))
        domi_h2_count_frame_that_asks_nothing(h2);
    return 0;
}

/* Count frames for which nghttp2 calls no callback: those of unknown kinds, and empty DATA on
 * forgotten streams. Other DATA on such streams was mostly under way, and the window bounds it. */
static void count_frame_without_callback(domi_h2 *h2, const nghttp2_frame_hd *head)
{
    bool is_empty = head->length == 0 || (head->flags & NGHTTP2_FLAG_PADDED) != 0;

    if (head->type != NGHTTP2_DATA ||
        (is_empty && domi_h2_is_stream_of_frame_unknown(h2->session, head)))
        domi_h2_count_frame_that_asks_nothing(h2);
}

static int begin_block_of_answer(nghttp2_session *session, const nghttp2_frame *frame, void *h2)
{
    (void)session;
    if (frame->hd.type == NGHTTP2_HEADERS)
        domi_h2_client_begin_block_of_fields(h2, frame->hd.stream_id);
    return 0;
}

static int take_field_of_answer(nghttp2_session *session, const nghttp2_frame *frame,
                                nghttp2_rcbuf *name, nghttp2_rcbuf *value, uint8_t flags, void *h2)
{
    (void)session, (void)frame, (void)flags;
    return nghttp2_result_of_errno(domi_h2_client_take_field_of_answer(h2, name, value));
}

static int take_part_of_answer_body(nghttp2_session *session, uint8_t flags, int32_t id,
                                    const uint8_t *bytes, size_t size, void *h2)
{
    (void)session, (void)flags;
    return nghttp2_result_of_errno(domi_h2_client_pass_part_of_body(h2, id, bytes, size));
}

/* Store how many streams the server allows at once. If it allows none now, one request may wait in
 * the session until its deadline. */
static void lend_as_many_streams_as_server_allows(domi_h2 *h2)
{
    uint32_t most =
        nghttp2_session_get_remote_settings(h2->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);

    h2->heard_settings = true;
    if (most > h2->options.streams_max)
        most = h2->options.streams_max;
    if (!h2->is_away)
        domus_wire_lend(h2->wire, most != 0 ? most : 1);
}

void domi_h2_client_stop_lending_at_goaway(domi_h2 *h2)
{
    if (!h2->is_away)
        domus_wire_lend(h2->wire, 0);
    h2->is_away = true;
}

/* Count a frame of the server that is neither HEADERS nor DATA. */
static void count_frame_and_store_its_setting(domi_h2 *h2, const nghttp2_frame *frame)
{
    bool is_ack = (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0;

    if (frame->hd.type == NGHTTP2_WINDOW_UPDATE) {
        domi_h2_count_window_update(h2);
        return;
    }
    if (frame->hd.type == NGHTTP2_SETTINGS && !is_ack)
        lend_as_many_streams_as_server_allows(h2);
    if (frame->hd.type == NGHTTP2_GOAWAY)
        domi_h2_client_stop_lending_at_goaway(h2);
    /* an RST_STREAM on a stream that has a lane ends a request of this side, so it is not
     * counted */
    if (frame->hd.type != NGHTTP2_RST_STREAM ||
        domi_h2_lane_of_stream(h2, frame->hd.stream_id) == NULL)
        domi_h2_count_frame_that_asks_nothing(h2);
}

static int handle_frame_of_server(nghttp2_session *session, const nghttp2_frame *frame, void *h2_)
{
    domi_h2 *h2 = h2_;
    bool is_last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;

    (void)session;
    if (h2->is_over)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS)
        return nghttp2_result_of_errno(
            domi_h2_client_end_block_of_fields(h2, frame->hd.stream_id, is_last));
    if (frame->hd.type != NGHTTP2_DATA) {
        count_frame_and_store_its_setting(h2, frame);
        return 0;
    }
    if (is_last)
        return nghttp2_result_of_errno(domi_h2_pass_end_of_body(h2, frame->hd.stream_id));
    /* the frame has no bytes but padding: only the byte with the padding's size is left */
    if (frame->hd.length == frame->data.padlen)
        domi_h2_count_frame_that_asks_nothing(h2);
    return 0;
}

/* Handle a frame of the server that nghttp2 has refused, and whose stream it resets. */
static int drop_block_of_refused_frame(nghttp2_session *session, const nghttp2_frame *frame,
                                       int code, void *h2)
{
    (void)session, (void)code;
    if (frame->hd.type == NGHTTP2_HEADERS)
        domi_h2_drop_block_of_fields(h2);
    return 0;
}

/* Mark a request as sent before its frame is appended. nghttp2 reports a sent frame only when the
 * next one is sent, and that may have to wait: the request would count as not sent although its
 * bytes have left. */
static int mark_request_as_sent_before_its_frame(nghttp2_session *session,
                                                 const nghttp2_frame *frame, void *h2)
{
    domi_h2_lane *lane = domi_h2_lane_of_stream(h2, frame->hd.stream_id);

    (void)session;
    if (frame->hd.type == NGHTTP2_HEADERS && lane != NULL)
        lane->is_sent = true;
    return 0;
}

static int count_sent_body_or_time_sent_ping(nghttp2_session *session, const nghttp2_frame *frame,
                                             void *h2_)
{
    domi_h2 *h2 = h2_;

    (void)session;
    if (frame->hd.type == NGHTTP2_DATA)
        domi_h2_count_sent_body_frame(h2, frame->hd.length);
    if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK) == 0)
        h2->pinged_ns = domus_wire_now_ns(h2->wire);
    return 0;
}

static int end_stream_of_lane_when_closed(nghttp2_session *session, int32_t id, uint32_t code,
                                          void *h2)
{
    domi_h2_lane *lane = domi_h2_lane_of_stream(h2, id);

    (void)session;
    if (lane != NULL)
        domi_h2_client_end_stream_of_lane(lane, code);
    return 0;
}

static void set_callbacks_of_client(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, count_begun_frame_if_ignored);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, begin_block_of_answer);
    nghttp2_session_callbacks_set_on_header_callback2(callbacks, take_field_of_answer);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, take_part_of_answer_body);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, handle_frame_of_server);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks,
                                                                 drop_block_of_refused_frame);
    nghttp2_session_callbacks_set_before_frame_send_callback(callbacks,
                                                             mark_request_as_sent_before_its_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks,
                                                         count_sent_body_or_time_sent_ping);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks,
                                                           end_stream_of_lane_when_closed);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, domi_h2_send_body_frame);
}

static int submit_settings_of_client(domi_h2 *h2)
{
    const domus_http2_options *options = &h2->options;
    const nghttp2_settings_entry entries[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        /* a server must not push (RFC 9113 8.4), so it is allowed no streams of its own */
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, options->stream_window},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, options->head_max},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    const size_t count = sizeof entries / sizeof *entries;

    /* nghttp2 checks the server's frames against the limits that were sent */
    h2->has_announced = true;
    if (nghttp2_submit_settings(h2->session, NGHTTP2_FLAG_NONE, entries, count) != 0 ||
        nghttp2_session_set_local_window_size(h2->session, NGHTTP2_FLAG_NONE, 0,
                                              (int32_t)options->window) != 0)
        return -ENOMEM;
    return 0;
}

const domi_h2_side domi_h2_client = {
    .look = count_frame_without_callback,
    .make = nghttp2_session_client_new3,
    .set_callbacks = set_callbacks_of_client,
    .submit_settings = submit_settings_of_client,
};
