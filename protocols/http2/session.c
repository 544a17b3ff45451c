/* The session of nghttp2 for one connection: its options, its memory and a server's callbacks. */
#include "protocols/http2/http2.h"

#include <domus/memory.h>

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* acknowledgements of SETTINGS and PING that may wait to be sent, at most */
#define ACKS_MAX         200u
#define SETTINGS_ENTRIES 32u /* entries that one SETTINGS frame of the peer may have, at most */

/* The error NGHTTP2_ERR_TOO_MANY_CONTINUATIONS of newer versions of nghttp2, which bound
 * CONTINUATION frames themselves. */
#define TOO_MANY_CONTINUATIONS (-905)

/* --- memory ----------------------------------------------------------------------------------- */

static void *allocate_and_count(size_t size, void *h2_)
{
    domi_h2 *h2 = h2_;
    void *memory = malloc(size);

    h2->memory += malloc_usable_size(memory);
    return memory;
}

static void free_and_count(void *memory, void *h2_)
{
    domi_h2 *h2 = h2_;

    h2->memory -= malloc_usable_size(memory);
    free(memory);
}

static void *allocate_zeroed_and_count(size_t count, size_t size, void *h2_)
{
    domi_h2 *h2 = h2_;
    void *memory = calloc(count, size);

    h2->memory += malloc_usable_size(memory);
    return memory;
}

static void *reallocate_and_count(void *memory, size_t size, void *h2_)
{
    domi_h2 *h2 = h2_;
    size_t before = malloc_usable_size(memory);
    void *grown = realloc(memory, size);

    if (grown != NULL || size == 0)
        h2->memory += malloc_usable_size(grown) - before;
    return grown;
}

/* Count the memory that nghttp2 has allocated for the session as memory of the library. Returns 0;
 * -ENOMEM. */
static int count_memory_of_session(domi_h2 *h2)
{
    return h2->memory != h2->counted ? domus_memory_count(&h2->counted, h2->memory) : 0;
}

/* --- callbacks -------------------------------------------------------------------------------- */

/* Returns the result by which a callback reports an errno to nghttp2. */
static int nghttp2_result_of_errno(int error)
{
    return error != 0 ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

/* Check a frame that begins, and count it if nghttp2 will ignore it: PRIORITY, which RFC 9113 has
 * removed, and frames on streams that nghttp2 has forgotten. */
static int count_or_punish_begun_frame(nghttp2_session *session, const nghttp2_frame_hd *head,
                                       void *h2_)
{
    domi_h2 *h2 = h2_;

    domi_h2_count_continuation_frame(h2, head);
    if (head->type == NGHTTP2_HEADERS && domi_h2_count_or_punish_late_frame(h2, head->stream_id))
        return 0;
    if (head->type == NGHTTP2_PRIORITY && head->stream_id == 0)
        domi_h2_end_connection_with_error(h2, NGHTTP2_PROTOCOL_ERROR);
    else if (head->type == NGHTTP2_PRIORITY)
        domi_h2_count_frame_that_asks_nothing(h2);
    else if (head->type == NGHTTP2_WINDOW_UPDATE &&
             domi_h2_is_stream_of_frame_unknown(session, head))
        domi_h2_count_window_update(h2);
    return 0;
}

static int begin_block_of_request(nghttp2_session *session, const nghttp2_frame *frame, void *h2_)
{
    (void)session;
    if (frame->hd.type == NGHTTP2_HEADERS)
        domi_h2_begin_block_of_fields(h2_, frame->headers.cat != NGHTTP2_HCAT_REQUEST);
    return 0;
}

static int take_field_of_request(nghttp2_session *session, const nghttp2_frame *frame,
                                 nghttp2_rcbuf *name, nghttp2_rcbuf *value, uint8_t flags, void *h2)
{
    (void)session, (void)frame, (void)flags;
    return nghttp2_result_of_errno(domi_h2_take_field_of_block(h2, name, value));
}

static int take_part_of_request_body(nghttp2_session *session, uint8_t flags, int32_t id,
                                     const uint8_t *bytes, size_t size, void *h2)
{
    (void)session, (void)flags;
    return nghttp2_result_of_errno(domi_h2_pass_part_of_body(h2, id, bytes, size));
}

static int handle_frame_of_client(nghttp2_session *session, const nghttp2_frame *frame, void *h2_)
{
    domi_h2 *h2 = h2_;
    bool is_last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;

    (void)session;
    if (h2->is_over)
        return 0;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        return nghttp2_result_of_errno(
            domi_h2_end_block_of_fields(h2, frame->hd.stream_id, is_last));
    case NGHTTP2_DATA:
        if (is_last)
            return nghttp2_result_of_errno(domi_h2_pass_end_of_body(h2, frame->hd.stream_id));
        /* the frame has no bytes but padding: only the byte with the padding's size is left */
        if (frame->hd.length == frame->data.padlen)
            domi_h2_count_frame_that_asks_nothing(h2);
        return 0;
    case NGHTTP2_RST_STREAM:
        domi_h2_count_reset_stream(h2);
        return 0;
    case NGHTTP2_WINDOW_UPDATE:
        domi_h2_count_window_update(h2);
        return 0;
    case NGHTTP2_SETTINGS:
        h2->heard_settings = true;
        domi_h2_count_frame_that_asks_nothing(h2);
        return 0;
    default:
        domi_h2_count_frame_that_asks_nothing(h2);
        return 0;
    }
}

/* Handle a frame that nghttp2 has refused. If it was a block of fields, no other callback reports
 * the block's end. */
static int drop_block_if_refused_frame_was_headers(nghttp2_session *session,
                                                   const nghttp2_frame *frame, int code, void *h2_)
{
    (void)session, (void)code;
    if (frame->hd.type == NGHTTP2_HEADERS)
        domi_h2_drop_block_of_fields(h2_);
    return 0;
}

/* Returns whether the error code of a stream's reset blames the peer. */
static bool does_reset_blame_peer(uint32_t code)
{
    return code != NGHTTP2_NO_ERROR && code != NGHTTP2_INTERNAL_ERROR && code != NGHTTP2_CANCEL &&
           code != NGHTTP2_HTTP_1_1_REQUIRED && code != NGHTTP2_REFUSED_STREAM;
}

static int count_sent_body_or_reset_frame(nghttp2_session *session, const nghttp2_frame *frame,
                                          void *h2_)
{
    domi_h2 *h2 = h2_;

    (void)session;
    if (frame->hd.type == NGHTTP2_DATA)
        domi_h2_count_sent_body_frame(h2, frame->hd.length);
    if (frame->hd.type == NGHTTP2_RST_STREAM)
        h2->reset_ns = domus_wire_now_ns(h2->wire);
    if (frame->hd.type == NGHTTP2_RST_STREAM && does_reset_blame_peer(frame->rst_stream.error_code))
        domi_h2_count_reset_stream(h2);
    return 0;
}

/* Handle the end of a stream. In a drain, the peer is told now which stream is the last: it has had
 * time to learn of the drain. */
static int end_lane_and_go_away_when_draining(nghttp2_session *session, int32_t id, uint32_t code,
                                              void *h2_)
{
    domi_h2 *h2 = h2_;
    domi_h2_lane *lane = nghttp2_session_get_stream_user_data(session, id);

    if (lane != NULL)
        domi_h2_idle_or_end_lane_of_stream(lane, code == NGHTTP2_NO_ERROR ? 0 : -ECONNRESET);
    if (h2->drain == 1 && nghttp2_submit_goaway(session, NGHTTP2_FLAG_NONE,
                                                nghttp2_session_get_last_proc_stream_id(session),
                                                NGHTTP2_NO_ERROR, NULL, 0) == 0)
        /* streams that begin after the last one are refused from now on (request.c) */
        h2->drain = 2;
    return 0;
}

/* --- begin and end ---------------------------------------------------------------------------- */

static uint32_t limit_of_options_or_default(uint32_t given, uint32_t otherwise)
{
    return given != 0 ? given : otherwise;
}

static void fill_in_options_of_connection(domi_h2 *h2, const domus_http2_options *options)
{
    const domus_http2_options none = {0};
    const domus_http2_options *from = options != NULL ? options : &none;

    h2->options = (domus_http2_options){
        .streams_max = limit_of_options_or_default(from->streams_max, 100),
        .head_max = limit_of_options_or_default(from->head_max, 32768),
        .fields_max = limit_of_options_or_default(from->fields_max, 100),
        .stream_window = limit_of_options_or_default(from->stream_window, 65535),
        .window = limit_of_options_or_default(from->window, 1u << 20),
        .resets_max = limit_of_options_or_default(from->resets_max, 200),
        .controls_max = limit_of_options_or_default(from->controls_max, 1000),
        .websockets = from->websockets,
    };
}

static void set_callbacks_of_server(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, count_or_punish_begun_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, begin_block_of_request);
    nghttp2_session_callbacks_set_on_header_callback2(callbacks, take_field_of_request);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, take_part_of_request_body);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, handle_frame_of_client);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(
        callbacks, drop_block_if_refused_frame_was_headers);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, count_sent_body_or_reset_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks,
                                                           end_lane_and_go_away_when_draining);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, domi_h2_send_body_frame);
}

static int make_nghttp2_options(nghttp2_option **ret_option)
{
    nghttp2_option *option;

    if (nghttp2_option_new(&option) != 0)
        return -ENOMEM;
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_max_outbound_ack(option, ACKS_MAX);
    nghttp2_option_set_max_settings(option, SETTINGS_ENTRIES);
    nghttp2_option_set_builtin_recv_extension_type(option, NGHTTP2_PRIORITY_UPDATE);
    *ret_option = option;
    return 0;
}

static int make_nghttp2_session(domi_h2 *h2)
{
    nghttp2_mem memory = {h2, allocate_and_count, free_and_count, allocate_zeroed_and_count,
                          reallocate_and_count};
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;

    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        return -ENOMEM;
    h2->side->set_callbacks(callbacks);
    int error = make_nghttp2_options(&option);
    if (error == 0) {
        error = h2->side->make(&h2->session, callbacks, h2, option, &memory) != 0 ? -ENOMEM : 0;
        nghttp2_option_del(option);
    }
    nghttp2_session_callbacks_del(callbacks);
    return error;
}

/* The settings of a server. The limit of streams stands first, at a fixed place of the frame.
 * nghttp2 would end the connection of a peer that exceeds a limit which nghttp2 knows, but such
 * streams are to be refused while the others continue (RFC 9113 5.1.2). So nghttp2 gets a larger
 * limit, within which refusals can wait to be sent, and the peer is told the right one
 * (append_settings_with_limit_of_streams()). */
#define LIMIT_AT 11u
#define REFUSALS 1000u

static int submit_settings_of_server(domi_h2 *h2)
{
    const domus_http2_options *options = &h2->options;
    const nghttp2_settings_entry entries[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options->streams_max + REFUSALS},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, options->stream_window},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, options->head_max},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
        /* this entry stands last, because it may be left out */
        {NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1},
    };
    const size_t count = sizeof entries / sizeof *entries - (options->websockets ? 0 : 1);

    if (nghttp2_submit_settings(h2->session, NGHTTP2_FLAG_NONE, entries, count) != 0 ||
        nghttp2_session_set_local_window_size(h2->session, NGHTTP2_FLAG_NONE, 0,
                                              (int32_t)options->window) != 0)
        return -ENOMEM;
    return 0;
}

/* Handle a frame for which nghttp2 calls no callback: DATA is checked for a closed stream, and a
 * frame of an unknown kind counts as one that asks for nothing. PRIORITY_UPDATE is a kind that
 * nghttp2 knows. */
static void count_frame_of_unknown_kind(domi_h2 *h2, const nghttp2_frame_hd *head)
{
    if (head->type == NGHTTP2_DATA)
        (void)domi_h2_count_or_punish_late_frame(h2, head->stream_id);
    else if (head->type != NGHTTP2_PRIORITY_UPDATE)
        domi_h2_count_frame_that_asks_nothing(h2);
}

const domi_h2_side domi_h2_server = {
    .look = count_frame_of_unknown_kind,
    .make = nghttp2_session_server_new3,
    .set_callbacks = set_callbacks_of_server,
    .submit_settings = submit_settings_of_server,
    .preface_size = NGHTTP2_CLIENT_MAGIC_LEN,
};

int domi_h2_new_connection(domus_wire *wire, const domi_h2_side *side,
                           const domus_http2_options *options, domi_h2 **ret_h2)
{
    domi_h2 *h2 = calloc(1, sizeof *h2);

    if (h2 == NULL)
        return -ENOMEM;
    h2->wire = wire;
    h2->side = side;
    h2->guard.begun_ns = domus_wire_now_ns(wire);
    h2->frames.left = side->preface_size;
    fill_in_options_of_connection(h2, options);
    int error = make_nghttp2_session(h2);
    if (error == 0)
        error = side->submit_settings(h2);
    if (error == 0)
        error = count_memory_of_session(h2);
    if (error != 0) {
        domi_h2_free_connection(h2);
        return error;
    }
    *ret_h2 = h2;
    return 0;
}

void domi_h2_free_connection(domi_h2 *h2)
{
    if (h2 == NULL)
        return;
    domi_h2_end_all_lanes(h2);
    domi_h2_drop_block_of_fields(h2);
    nghttp2_session_del(h2->session);
    domi_h2_free_text(&h2->block.text);
    domi_h2_free_text(&h2->block.cookie);
    (void)domus_memory_count(&h2->counted, 0);
    free(h2);
}

/* --- bytes ------------------------------------------------------------------------------------ */

/* Pass bytes of the peer to nghttp2. Returns 0, or a negative errno. */
static int feed_bytes_to_nghttp2(domi_h2 *h2, const char *bytes, size_t size)
{
    ssize_t used = h2->is_over || size == 0
                       ? (ssize_t)size
                       : nghttp2_session_mem_recv(h2->session, (const uint8_t *)bytes, size);

    if (used == NGHTTP2_ERR_FLOODED || used == TOO_MANY_CONTINUATIONS) {
        domi_h2_end_connection_with_error(h2, NGHTTP2_ENHANCE_YOUR_CALM);
        return 0;
    }
    if (used < 0)
        return used == NGHTTP2_ERR_NOMEM || used == NGHTTP2_ERR_CALLBACK_FAILURE ? -ENOMEM
                                                                                 : -EPROTO;
    return 0;
}

int domi_h2_receive_bytes_of_peer(domi_h2 *h2, const char *bytes, size_t size)
{
    int error = 0;

    while (size != 0 && error == 0) {
        nghttp2_frame_hd head;
        size_t part = domi_h2_find_head_of_unreported_frame(&h2->frames, bytes, size, &head);

        error = feed_bytes_to_nghttp2(h2, bytes, part);
        if (error == 0 && part < size)
            h2->side->look(h2, &head);
        bytes += part;
        size -= part;
    }
    return error != 0 ? error : count_memory_of_session(h2);
}

/* Write the limit of streams into the SETTINGS frame, the first frame that is sent, and append the
 * frame. Returns 0; -ENOMEM. */
static int append_settings_with_limit_of_streams(domi_h2 *h2, const uint8_t *frame, size_t size)
{
    const uint32_t limit = h2->options.streams_max;
    const uint8_t number[4] = {(uint8_t)(limit >> 24), (uint8_t)(limit >> 16),
                               (uint8_t)(limit >> 8), (uint8_t)limit};
    int error = domus_wire_append(h2->wire, frame, LIMIT_AT);

    if (error == 0)
        error = domus_wire_append(h2->wire, number, sizeof number);
    h2->has_announced = true;
    return error != 0 ? error
                      : domus_wire_append(h2->wire, frame + LIMIT_AT + sizeof number,
                                          size - LIMIT_AT - sizeof number);
}

int domi_h2_append_frames_to_wire(domi_h2 *h2)
{
    const uint8_t *frame;

    while (!h2->is_dead && !domus_wire_is_full(h2->wire)) {
        ssize_t size = nghttp2_session_mem_send(h2->session, &frame);
        if (size == 0)
            break;
        int error = size < 0 ? -ENOMEM
                    : h2->has_announced
                        ? domus_wire_append(h2->wire, frame, (size_t)size)
                        : append_settings_with_limit_of_streams(h2, frame, (size_t)size);
        if (error != 0)
            return -ENOMEM;
    }
    return count_memory_of_session(h2);
}
