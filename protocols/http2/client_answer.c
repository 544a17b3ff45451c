/* Makes the HTTP/1.1 text of an answer, and passes it to the inner channel that has asked.
 *
 * The text is made of parts without any byte that could end a line or a part, and the framing is
 * written here, so a server cannot hide one answer in another. The message stage checks the rest,
 * as for any server. */
#include "protocols/http2/client.h"

#include <errno.h>
#include <stdio.h>

#define STATUS_LEAST 100u
#define STATUS_MOST  599u

void domi_h2_client_begin_block_of_fields(domi_h2 *h2, int32_t id)
{
    const domi_h2_lane *lane = domi_h2_lane_of_stream(h2, id);

    domi_h2_begin_block_of_fields(h2, lane != NULL && lane->is_answered);
}

/* Read the status of an answer, three digits, which nghttp2 has checked, too. Returns 0 if it is
 * invalid. */
static uint16_t read_status_of_answer(nghttp2_vec value)
{
    unsigned status = 0;

    for (size_t i = 0; i < value.len && i < 4; i++)
        status = status * 10 + (unsigned)(value.base[i] - '0');
    return value.len == 3 && status >= STATUS_LEAST && status <= STATUS_MOST ? (uint16_t)status : 0;
}

int domi_h2_client_take_field_of_answer(domi_h2 *h2, nghttp2_rcbuf *name_, nghttp2_rcbuf *value_)
{
    domi_h2_block *block = &h2->block;
    nghttp2_vec name = nghttp2_rcbuf_get_buf(name_);
    nghttp2_vec value = nghttp2_rcbuf_get_buf(value_);

    if (block->status != 0 || block->is_malformed ||
        !domi_h2_count_field_within_limits(h2, name, value))
        return 0;
    /* a name with a colon is :status, because nghttp2 accepts no other one in an answer */
    if (name.len != 0 && *name.base == ':') {
        block->code = read_status_of_answer(value);
        return 0;
    }
    if (!domi_h2_is_valid_field_name(name) || !domi_h2_is_valid_field_value(value) ||
        domi_h2_is_field_of_connection(name)) {
        block->is_malformed = true;
        return 0;
    }
    block->has_length = block->has_length || domi_h2_is_field_named(name, "content-length");
    return domi_h2_append_field_as_line(&block->text, name, value);
}

/* Pass text of an answer to the inner channel. If that accepts no more, an event tells so later. */
static int pass_text_to_inner_channel(domi_h2_lane *lane, const void *bytes, size_t size)
{
    int error = domus_inner_pass(lane->inner, bytes, size);

    return error == -EPIPE ? 0 : error;
}

/* Pass the head of a final answer to the inner channel. Returns 0; -ENOMEM. */
static int pass_head_of_answer(domi_h2 *h2, domi_h2_lane *lane, bool is_last)
{
    const domi_h2_block *block = &h2->block;
    bool has_body = !lane->is_head && block->code != 204 && block->code != 304;
    domi_h2_text head = {NULL, 0, 0};
    char line[32];
    int size = snprintf(line, sizeof line, "HTTP/1.1 %03u \r\n", (unsigned)block->code);
    int error = domi_h2_append_text(&head, line, (size_t)size);

    lane->is_answered = true;
    lane->is_passed = is_last;
    lane->in_chunks = has_body && !is_last && !block->has_length;
    if (error == 0)
        error = domi_h2_append_text(&head, block->text.bytes, block->text.size);
    if (error == 0 && lane->in_chunks)
        error = DOMI_H2_PUT(&head, "transfer-encoding: chunked\r\n");
    else if (error == 0 && has_body && !block->has_length)
        error = DOMI_H2_PUT(&head, "content-length: 0\r\n");
    if (error == 0)
        error = DOMI_H2_PUT(&head, "\r\n");
    if (error == 0) /* appended at once, so that slices of the head need no copy */
        error = pass_text_to_inner_channel(lane, head.bytes, head.size);
    domi_h2_free_text(&head);
    return error;
}

/* Handle an interim answer (1xx). Only 100 means something to the asker; all others are ignored. */
static int pass_interim_answer(domi_h2 *h2, domi_h2_lane *lane)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";

    domi_h2_count_frame_that_asks_nothing(h2);
    return h2->block.code == 100 ? pass_text_to_inner_channel(lane, go_on, sizeof go_on - 1) : 0;
}

static int pass_trailers_of_answer(const domi_h2 *h2, domi_h2_lane *lane)
{
    if (lane->is_passed)
        return 0;
    lane->is_passed = true;
    /* the trailers are dropped: HTTP/1.1 has no place for them behind a body of known length */
    if (!lane->in_chunks)
        return 0;
    int error = pass_text_to_inner_channel(lane, "0\r\n", 3);
    if (error == 0)
        error = pass_text_to_inner_channel(lane, h2->block.text.bytes, h2->block.text.size);
    return error != 0 ? error : pass_text_to_inner_channel(lane, "\r\n", 2);
}

static int pass_block_of_answer_or_reset_stream(domi_h2 *h2, domi_h2_lane *lane, bool is_last)
{
    const domi_h2_block *block = &h2->block;
    bool is_interim = block->code < 200;

    if (block->is_malformed || (!block->is_trailers && block->code == 0)) {
        domi_h2_reset_stream_of_lane(lane, NGHTTP2_PROTOCOL_ERROR);
        return 0;
    }
    /* the head or the trailers of the answer have more bytes than this side has announced, or too
     * many fields */
    if (block->status != 0) {
        domi_h2_reset_stream_of_lane(lane, NGHTTP2_ENHANCE_YOUR_CALM);
        return 0;
    }
    if (block->is_trailers)
        return pass_trailers_of_answer(h2, lane);
    return is_interim ? pass_interim_answer(h2, lane) : pass_head_of_answer(h2, lane, is_last);
}

int domi_h2_client_end_block_of_fields(domi_h2 *h2, int32_t id, bool is_last)
{
    domi_h2_lane *lane = domi_h2_lane_of_stream(h2, id);
    int error = 0;

    if (lane == NULL)
        domi_h2_count_frame_that_asks_nothing(h2);
    else if (!lane->is_cut)
        error = pass_block_of_answer_or_reset_stream(h2, lane, is_last);
    domi_h2_drop_block_of_fields(h2);
    return error;
}

int domi_h2_client_pass_part_of_body(domi_h2 *h2, int32_t id, const uint8_t *bytes, size_t size)
{
    domi_h2_lane *lane = domi_h2_lane_of_stream(h2, id);
    bool is_wanted =
        lane != NULL && !lane->is_cut && domus_inner_look(lane->inner, NULL) != DOMUS_INNER_CLOSED;

    if (is_wanted)
        return domi_h2_pass_part_of_body(h2, id, bytes, size);
    (void)nghttp2_session_consume(h2->session, id, size);
    if (lane != NULL)
        domi_h2_reset_stream_of_lane(lane, NGHTTP2_CANCEL);
    return 0;
}
