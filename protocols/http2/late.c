/* Finds the frames of the peer that nghttp2 ignores. HEADERS on closed streams are found by
 * nghttp2's callback; DATA on such streams, and frames of unknown kinds, for which it calls no
 * callback, are found by reading the heads of all frames as they come. */
#include "protocols/http2/http2.h"

#define HEAD_SIZE 9u
/* Time in ns for which frames of the peer may come to a stream after this side has reset it. */
#define LATE_NS UINT64_C(10000000000)

bool domi_h2_is_stream_of_frame_unknown(nghttp2_session *session, const nghttp2_frame_hd *head)
{
    return head->stream_id != 0 && nghttp2_session_find_stream(session, head->stream_id) == NULL;
}

/* Returns whether a stream of the connection was opened once, and is closed now. */
static bool was_stream_opened_and_closed(nghttp2_session *session, int32_t id)
{
    return id % 2 == 1 && id <= nghttp2_session_get_last_proc_stream_id(session) &&
           nghttp2_session_find_stream(session, id) == NULL;
}

bool domi_h2_count_or_punish_late_frame(domi_h2 *h2, int32_t id)
{
    uint64_t now_ns = domus_wire_now_ns(h2->wire);

    if (h2->is_over || !was_stream_opened_and_closed(h2->session, id))
        return false;
    if (h2->reset_ns != 0 && now_ns - h2->reset_ns < LATE_NS)
        domi_h2_count_frame_that_asks_nothing(h2);
    else
        domi_h2_end_connection_with_error(h2, NGHTTP2_STREAM_CLOSED);
    return true;
}

static uint32_t big_endian_number(const uint8_t *bytes, uint32_t count)
{
    uint32_t number = 0;

    for (uint32_t i = 0; i < count; i++)
        number = number << 8 | bytes[i];
    return number;
}

size_t domi_h2_find_head_of_unreported_frame(domi_h2_frames *frames, const char *bytes, size_t size,
                                             nghttp2_frame_hd *ret_head)
{
    for (size_t at = 0; at < size;) {
        if (frames->left != 0) {
            size_t part = frames->left < size - at ? frames->left : size - at;
            frames->left -= (uint32_t)part;
            at += part;
            continue;
        }
        frames->head[frames->have++] = (uint8_t)bytes[at];
        if (frames->have < HEAD_SIZE) {
            at++;
            continue;
        }
        frames->have = 0;
        /* the frame's bytes are counted together with the last byte of its head */
        frames->left = big_endian_number(frames->head, 3) + 1;
        if (frames->head[3] == NGHTTP2_DATA || frames->head[3] > NGHTTP2_CONTINUATION) {
            *ret_head = (nghttp2_frame_hd){
                .length = frames->left - 1,
                .type = frames->head[3],
                .flags = frames->head[4],
                .stream_id = (int32_t)(big_endian_number(frames->head + 5, 4) & INT32_MAX)};
            return at;
        }
    }
    return size;
}
