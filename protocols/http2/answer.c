/* Reads the answers of a server's inner channels, which are those of HTTP/1.1, and submits them to
 * nghttp2 as answers of their streams. */
#include "protocols/http2/http2.h"

#include <errno.h>
#include <string.h>

#define HEAD_MAX 65536u /* bytes of the head of an inner channel's answer, at most */

/* --- heads ------------------------------------------------------------------------------------ */

/* Returns how the end of an answer's body is found, as the answer's head tells. */
static domi_h2_phase phase_of_body_behind_head(const domi_h2_lane *lane, unsigned status,
                                               const domi_h2_fields *fields)
{
    if (lane->is_head || status == 204 || status == 304)
        return DOMI_H2_DONE;
    if (fields->in_chunks)
        return DOMI_H2_SIZE;
    if (!fields->has_length)
        return DOMI_H2_REST;
    return fields->length != 0 ? DOMI_H2_COUNTED : DOMI_H2_DONE;
}

static int errno_of_nghttp2_result(int result)
{
    return result == NGHTTP2_ERR_NOMEM ? -ENOMEM : result < 0 ? -EPROTO : 0;
}

/* Handle the answer 101: if the peer has asked for a WebSocket, the stream is one from now on; a
 * stream cannot change to another protocol. Returns 0; a negative errno. */
static int answer_websocket_request(domi_h2_lane *lane, domi_h2_fields *fields)
{
    const nghttp2_data_provider bytes = {.read_callback = domi_h2_tell_size_of_next_body_frame};
    size_t count = 1;

    if (!lane->tunnels)
        return -EOPNOTSUPP;
    fields->fields[0].value = (uint8_t *)(uintptr_t) "200";
    for (size_t i = 1; i < fields->count; i++) {
        if (!domi_h2_is_websocket_handshake_field(&fields->fields[i]))
            fields->fields[count++] = fields->fields[i];
    }
    lane->phase = DOMI_H2_REST;
    int error = errno_of_nghttp2_result(
        nghttp2_submit_response(lane->of->session, lane->id, fields->fields, count, &bytes));
    return error != 0 ? error : domi_h2_open_tunnel_of_lane(lane);
}

/* Submit the head of an answer to nghttp2, as the answer of the lane's stream. Returns 0; a
 * negative errno. */
static int submit_head_of_answer(domi_h2_lane *lane, unsigned status, domi_h2_fields *fields)
{
    nghttp2_session *session = lane->of->session;
    const nghttp2_data_provider body = {.read_callback = domi_h2_tell_size_of_next_body_frame};

    if (status < 200) {
        if (status == 101)
            return answer_websocket_request(lane, fields);
        int32_t result = nghttp2_submit_headers(session, NGHTTP2_FLAG_NONE, lane->id, NULL,
                                                fields->fields, fields->count, NULL);
        return errno_of_nghttp2_result(result < 0 ? (int)result : 0);
    }
    if (lane->tunnels)
        domi_h2_refuse_tunnel_of_lane(lane);
    lane->phase = (uint8_t)phase_of_body_behind_head(lane, status, fields);
    lane->left = fields->length;
    lane->closes = fields->closes || lane->phase == DOMI_H2_REST;
    return errno_of_nghttp2_result(
        nghttp2_submit_response(session, lane->id, fields->fields, fields->count,
                                lane->phase != DOMI_H2_DONE ? &body : NULL));
}

/* Read the head of an inner channel's answer, with its empty line, and submit it. Returns 0; a
 * negative errno. */
static int read_head_of_answer(domi_h2_lane *lane, const char *head, size_t size)
{
    static const char version[] = "HTTP/1.1 ";
    const size_t at = sizeof version - 1;
    const char *end = memchr(head, '\r', size);
    domi_h2_fields fields;

    if (end == NULL || (size_t)(end - head) < at + 3 || memcmp(head, version, at) != 0)
        return -EPROTO;
    unsigned status = 0;
    for (size_t i = at; i < at + 3; i++) {
        if (head[i] < '0' || head[i] > '9')
            return -EPROTO;
        status = status * 10 + (unsigned)(head[i] - '0');
    }
    fields.count = 1;
    fields.names_size = 0;
    fields.in_chunks = fields.has_length = fields.closes = false;
    fields.length = 0;
    fields.fields[0] = (nghttp2_nv){.name = (uint8_t *)(uintptr_t) ":status",
                                    .value = (uint8_t *)(uintptr_t)(head + at),
                                    .namelen = 7,
                                    .valuelen = 3};
    size_t first = (size_t)(end - head) + 2;
    int error = domi_h2_read_fields_of_message(head + first, size - first - 2, &fields);
    return error != 0 ? error : submit_head_of_answer(lane, status, &fields);
}

/* Returns how many bytes a head has, with its empty line; 0 if its end has not come. The first
 * `seen` bytes were searched before, and the end is not in them. */
static size_t size_of_head_in_bytes(const char *bytes, size_t size, size_t seen)
{
    size_t from = seen > 3 ? seen - 3 : 0;
    const char *end = memmem(bytes + from, size - from, "\r\n\r\n", 4);

    return end != NULL ? (size_t)(end - bytes) + 4 : 0;
}

/* Gather a head that does not lie in one piece in the inner channel. Returns 1 if a head was read,
 * or if the next piece may have come already; a negative errno. */
static int gather_head_that_came_in_pieces(domi_h2_lane *lane, domi_h2_read_head *read,
                                           const char *bytes, size_t size)
{
    domi_h2_text *lines = &lane->lines;
    size_t before = lines->size;

    if (before + size > HEAD_MAX + DOMUS_WINDOW_MAX)
        return -EMSGSIZE;
    int error = domi_h2_append_text(lines, bytes, size);
    if (error != 0)
        return error;
    size_t head = size_of_head_in_bytes(lines->bytes, lines->size, before);
    domus_inner_took(lane->inner, head != 0 ? head - before : size);
    if (head == 0)
        return lines->size > HEAD_MAX ? -EMSGSIZE : 1;
    lines->size = 0;
    error = read(lane, lines->bytes, head);
    return error != 0 ? error : 1;
}

int domi_h2_read_next_head_of_inner_channel(domi_h2_lane *lane, domi_h2_read_head *read)
{
    size_t size;
    const char *bytes = domus_inner_bytes(lane->inner, &size);

    if (size == 0)
        return 0;
    size_t head = lane->lines.size == 0 ? size_of_head_in_bytes(bytes, size, 0) : 0;
    if (head == 0 || head > HEAD_MAX)
        return gather_head_that_came_in_pieces(lane, read, bytes, size);
    int error = read(lane, bytes, head);
    domus_inner_took(lane->inner, head);
    return error != 0 ? error : 1;
}

/* --- events of inner channels ----------------------------------------------------------------- */

/* Handle the end of an inner channel: the stream is reset, unless the answer ends with the
 * channel. */
static void reset_stream_if_inner_channel_ended(domi_h2_lane *lane)
{
    int error;

    if (domus_inner_look(lane->inner, &error) != DOMUS_INNER_CLOSED ||
        lane->phase == DOMI_H2_DONE || (lane->phase == DOMI_H2_REST && error == 0))
        return;
    /* CANCEL tells the client of an open tunnel that its TCP connection is lost (RFC 8441) */
    bool is_reset = error == -ETIMEDOUT || lane->is_open;
    domi_h2_reset_stream_of_lane(lane, is_reset ? NGHTTP2_CANCEL : NGHTTP2_INTERNAL_ERROR);
}

int domi_h2_send_more_of_lane_answer(domi_h2_lane *lane)
{
    int result = 1;

    domi_h2_credit_used_bytes_to_peer(lane);
    if (lane->is_cut)
        return 0;
    while (result == 1 && lane->phase == DOMI_H2_HEAD)
        result = domi_h2_read_next_head_of_inner_channel(lane, read_head_of_answer);
    if (result == -EOPNOTSUPP)
        domi_h2_reset_stream_of_lane(lane, NGHTTP2_HTTP_1_1_REQUIRED);
    else if (result < 0 && result != -ENOMEM)
        domi_h2_reset_stream_of_lane(lane, NGHTTP2_INTERNAL_ERROR);
    if (result < 0)
        return result == -ENOMEM ? result : 0;
    if (lane->phase != DOMI_H2_HEAD)
        (void)nghttp2_session_resume_data(lane->of->session, lane->id);
    reset_stream_if_inner_channel_ended(lane);
    return 0;
}
