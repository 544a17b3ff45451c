/* Sends the bodies of answers and requests, which inner channels have made, as DATA frames. A frame
 * is announced for bytes that lie in one piece in the inner channel, and takes them when it is
 * sent, so they are copied once. */
#include "protocols/http2/http2.h"

#include <errno.h>
#include <string.h>

#define FRAME_HEAD  9u
#define TRAILER_MAX 65536u /* bytes of the trailers of an inner channel's answer, at most */

/* The bytes behind the last piece of a body in chunks, if it has no trailers. */
static const char chunks_end[] = "\r\n0\r\n\r\n";
#define CHUNKS_END (sizeof chunks_end - 1)

/* Read bytes of the line with a chunk's size, up to its LF, and set the phase there. Returns how
 * many bytes were used, which are all if the LF has not come. */
static size_t read_line_of_chunk_size(domi_h2_lane *lane, const char *bytes, size_t size)
{
    const char *end = memchr(bytes, '\n', size);
    size_t line = end != NULL ? (size_t)(end - bytes) + 1 : size;

    for (size_t i = 0; i < line && bytes[i] != '\r' && bytes[i] != '\n'; i++) {
        unsigned digit =
            bytes[i] <= '9' ? (unsigned)(bytes[i] - '0') : (unsigned)((bytes[i] | 0x20) - 'a' + 10);
        lane->left = lane->left * 16 + (digit & 15);
    }
    if (end != NULL)
        lane->phase = lane->left != 0 ? DOMI_H2_CHUNK : DOMI_H2_TRAILERS;
    return line;
}

/* Gather the lines behind the last chunk of a body, and set the phase at their end. Returns how
 * many bytes were used; or a negative errno. */
static int read_trailers_of_body(domi_h2_lane *lane, const char *bytes, size_t size)
{
    domi_h2_text *lines = &lane->lines;
    size_t before = lines->size;

    if (before + size > TRAILER_MAX)
        return -EMSGSIZE;
    int error = domi_h2_append_text(lines, bytes, size);
    if (error != 0)
        return error;
    /* the empty line at the end stands at the begin of the lines, or behind the last one */
    const char *end = memmem(lines->bytes, lines->size, "\r\n\r\n", 4);
    size_t whole = end != NULL ? (size_t)(end - lines->bytes) + 4 : 0;
    if (lines->size >= 2 && memcmp(lines->bytes, "\r\n", 2) == 0)
        whole = 2;
    if (whole == 0)
        return (int)size;
    lines->size = whole - 2;
    lane->phase = DOMI_H2_DONE;
    return (int)(whole - before);
}

/* Read the lines around the chunks of a body. Returns whether bytes were used; or a negative
 * errno. */
static int read_framing_around_chunks(domi_h2_lane *lane, const char *bytes, size_t size)
{
    size_t used = 0;
    int result;

    switch ((domi_h2_phase)lane->phase) {
    case DOMI_H2_SIZE:
        used = read_line_of_chunk_size(lane, bytes, size);
        break;
    case DOMI_H2_AFTER:
        for (used = 1; bytes[used - 1] != '\n' && used < size;)
            used++;
        if (bytes[used - 1] == '\n')
            lane->phase = DOMI_H2_SIZE;
        break;
    default: /* the phase DOMI_H2_TRAILERS */
        result = read_trailers_of_body(lane, bytes, size);
        if (result < 0)
            return result;
        used = (size_t)result;
        break;
    }
    domus_inner_took(lane->inner, used);
    return 1;
}

static bool is_lane_in_framing_of_chunks(const domi_h2_lane *lane)
{
    return lane->phase == DOMI_H2_SIZE || lane->phase == DOMI_H2_AFTER ||
           lane->phase == DOMI_H2_TRAILERS;
}

/* Read up to the next bytes of a body. Returns 1 when there are some; 0 if they have not come, or
 * the body has ended; a negative errno. */
static int read_up_to_next_bytes_of_body(domi_h2_lane *lane, const char **ret_bytes,
                                         size_t *ret_size)
{
    int result = 1;

    while (result == 1 && lane->phase != DOMI_H2_DONE) {
        *ret_bytes = domus_inner_bytes(lane->inner, ret_size);
        if (*ret_size == 0)
            return 0;
        if (!is_lane_in_framing_of_chunks(lane))
            return 1;
        result = read_framing_around_chunks(lane, *ret_bytes, *ret_size);
    }
    return result < 0 ? result : 0;
}

/* Submit the trailers of a body to nghttp2, if it has some. Returns 1 if it has; 0; an error of
 * nghttp2. If they cannot be sent, the stream must fail, because without them the message would
 * look complete. */
static int submit_trailers_of_body(domi_h2 *h2, domi_h2_lane *lane)
{
    domi_h2_fields fields = {.count = 0};

    if (domi_h2_read_fields_of_message(lane->lines.bytes, lane->lines.size, &fields) != 0)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (fields.count == 0)
        return 0;
    int result = nghttp2_submit_trailer(h2->session, lane->id, fields.fields, fields.count);
    return result == 0                   ? 1
           : result == NGHTTP2_ERR_NOMEM ? NGHTTP2_ERR_CALLBACK_FAILURE
                                         : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

/* Return what nghttp2 expects when there are no bytes of a body to send now: that the body has
 * ended, that its stream has to wait, or that it fails. */
static ssize_t end_body_or_let_stream_wait(domi_h2 *h2, domi_h2_lane *lane, uint32_t *flags)
{
    int error;
    domus_inner_state state = domus_inner_look(lane->inner, &error);

    if (lane->phase == DOMI_H2_REST && state != DOMUS_INNER_OPEN && error == 0)
        lane->phase = DOMI_H2_DONE;
    if (lane->phase != DOMI_H2_DONE)
        return state == DOMUS_INNER_CLOSED ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE
                                           : NGHTTP2_ERR_DEFERRED;
    int result = submit_trailers_of_body(h2, lane);
    if (result < 0)
        return result;
    *flags |= NGHTTP2_DATA_FLAG_EOF | (result != 0 ? NGHTTP2_DATA_FLAG_NO_END_STREAM : 0u);
    return 0;
}

/* Returns whether the body ends behind its next `part` bytes, so that their frame may end the
 * stream. */
static bool does_body_end_behind_part(domi_h2_lane *lane, const char *bytes, size_t size,
                                      size_t part)
{
    if (lane->phase == DOMI_H2_COUNTED)
        return part == lane->left;
    if (lane->phase != DOMI_H2_CHUNK || part != lane->left || size - part < CHUNKS_END ||
        memcmp(bytes + part, chunks_end, CHUNKS_END) != 0)
        return false;
    lane->skipped = CHUNKS_END;
    return true;
}

ssize_t domi_h2_tell_size_of_next_body_frame(nghttp2_session *session, int32_t id, uint8_t *to,
                                             size_t size, uint32_t *flags,
                                             nghttp2_data_source *source, void *h2_)
{
    domi_h2 *h2 = h2_;
    domi_h2_lane *lane = domi_h2_lane_of_stream(h2, id);
    const char *bytes;
    size_t here;

    (void)session, (void)to, (void)source;
    if (h2->is_finishing)
        return NGHTTP2_ERR_DEFERRED;
    if (lane == NULL || lane->is_cut)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    int result = read_up_to_next_bytes_of_body(lane, &bytes, &here);
    if (result < 0)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (result == 0)
        return end_body_or_let_stream_wait(h2, lane, flags);
    size_t part = here < size ? here : size;
    if (lane->phase != DOMI_H2_REST && part > lane->left)
        part = (size_t)lane->left;
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    lane->skipped = 0;
    if (does_body_end_behind_part(lane, bytes, here, part))
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)part;
}

int domi_h2_send_body_frame(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                            size_t size, nghttp2_data_source *source, void *h2_)
{
    domi_h2 *h2 = h2_;
    domi_h2_lane *lane = domi_h2_lane_of_stream(h2, frame->hd.stream_id);
    size_t here = 0;

    (void)session, (void)source;
    const char *bytes = lane != NULL ? domus_inner_bytes(lane->inner, &here) : NULL;
    /* the inner channel has ended since this frame was announced to nghttp2 */
    if (lane == NULL || here < size)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (domus_wire_append(h2->wire, head, FRAME_HEAD) != 0 ||
        domus_wire_append(h2->wire, bytes, size) != 0)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    bool is_last = lane->skipped != 0;
    if (lane->phase != DOMI_H2_REST)
        lane->left -= size;
    if (lane->phase == DOMI_H2_COUNTED && lane->left == 0)
        lane->phase = DOMI_H2_DONE;
    else if (lane->phase == DOMI_H2_CHUNK && lane->left == 0)
        lane->phase = is_last ? DOMI_H2_DONE : DOMI_H2_AFTER;
    domus_inner_took(lane->inner, size + lane->skipped);
    lane->skipped = 0;
    return 0;
}

int domi_h2_discard_body_bytes(domi_h2_lane *lane)
{
    const char *bytes;
    size_t here;
    int result;

    while ((result = read_up_to_next_bytes_of_body(lane, &bytes, &here)) == 1) {
        size_t part = here < lane->left ? here : (size_t)lane->left;
        lane->left -= part;
        if (lane->left == 0)
            lane->phase = lane->phase == DOMI_H2_COUNTED ? DOMI_H2_DONE : DOMI_H2_AFTER;
        domus_inner_took(lane->inner, part);
    }
    return result;
}
