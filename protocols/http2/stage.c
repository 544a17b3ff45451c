/* The HTTP/2 stage of a server: finds out whether a connection begins with HTTP/2, and feeds its
 * session. */
#include "protocols/http2/http2.h"

#include <errno.h>
#include <string.h>

#define STREAMS_MOST 1000u
#define HEAD_LEAST   1024u
#define HEAD_MOST    61440u
#define FIELDS_MOST  65535u
#define WINDOW_LEAST 65535u
#define STREAM_LEAST 1024u
#define WINDOW_MOST  16777216u
#define COUNT_MOST   100000u

/* bytes that one call of the stage uses at most, so that other channels have their turns */
#define STEP_BYTES 16384u

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
#define PREFACE_SIZE (sizeof preface - 1)

typedef struct stage_state {
    const domus_http2_options *options;
    domi_h2 *h2; /* the connection of HTTP/2; NULL: the preface has not come yet */
} stage_state;

static bool is_option_zero_or_within(uint32_t value, uint32_t least, uint32_t most)
{
    return value == 0 || (value >= least && value <= most);
}

int domi_h2_check_options(const void *options_)
{
    const domus_http2_options *options = options_;

    if (options == NULL)
        return 0;
    return is_option_zero_or_within(options->streams_max, 1, STREAMS_MOST) &&
                   is_option_zero_or_within(options->head_max, HEAD_LEAST, HEAD_MOST) &&
                   is_option_zero_or_within(options->fields_max, 1, FIELDS_MOST) &&
                   is_option_zero_or_within(options->stream_window, STREAM_LEAST, WINDOW_MOST) &&
                   is_option_zero_or_within(options->window, WINDOW_LEAST, WINDOW_MOST) &&
                   is_option_zero_or_within(options->resets_max, 1, COUNT_MOST) &&
                   is_option_zero_or_within(options->controls_max, 1, COUNT_MOST)
               ? 0
               : -EINVAL;
}

static int open_http2_server_stage(domus_wire *wire, void *state_, const void *options)
{
    stage_state *state = state_;

    (void)wire;
    state->options = options;
    return 0;
}

/* Check the first bytes of a connection. Returns 1 if they are the preface of HTTP/2, and the
 * session was made; 0 if more are needed, or if the stage has removed itself; a negative errno. */
static int begin_session_if_preface_is_right(domus_wire *wire, stage_state *state,
                                             const char *bytes, size_t size)
{
    size_t part = size < PREFACE_SIZE ? size : PREFACE_SIZE;

    if (memcmp(bytes, preface, part) != 0) {
        domus_wire_leave(wire);
        return 0;
    }
    if (part < PREFACE_SIZE) {
        domus_wire_expect_head(wire);
        return 0;
    }
    int error = domi_h2_new_connection(wire, &domi_h2_server, state->options, &state->h2);
    return error != 0 ? error : 1;
}

static int decode_frames_of_client(domus_wire *wire, void *state_, const char *bytes, size_t size)
{
    stage_state *state = state_;
    int result =
        state->h2 == NULL ? begin_session_if_preface_is_right(wire, state, bytes, size) : 1;
    domi_h2 *h2 = state->h2;

    if (result != 1)
        return result;
    h2->wire = wire;
    if (size > STEP_BYTES)
        size = STEP_BYTES;
    result = domi_h2_receive_bytes_of_peer(h2, bytes, size);
    if (result == 0)
        result = domi_h2_append_frames_to_wire(h2);
    if (result != 0)
        return result;
    if (!h2->heard_settings || h2->block.open)
        domus_wire_expect_head(wire);
    if (h2->is_over || !nghttp2_session_want_read(h2->session))
        domus_wire_last(wire);
    return (int)size;
}

/* Handle that the peer's bytes have ended. Its streams are still answered, and the inner channels
 * handle the end as all channels do. */
static int tell_lanes_of_end_of_client_bytes(domus_wire *wire, void *state_, size_t left)
{
    stage_state *state = state_;

    if (state->h2 == NULL || left != 0)
        return left != 0 ? -EPIPE : 0;
    state->h2->wire = wire;
    domi_h2_tell_channels_of_peer_end(state->h2);
    domi_h2_reset_streams_answered_early(state->h2);
    return domi_h2_append_frames_to_wire(state->h2);
}

/* Pass the bytes of the message stage on while the connection is not one of HTTP/2. On one of
 * HTTP/2 they are discarded, because answers come from inner channels. */
static int discard_outer_bytes_once_http2_is_used(domus_wire *wire, void *state_, const char *bytes,
                                                  size_t size)
{
    const stage_state *state = state_;

    return state->h2 == NULL ? domus_wire_append(wire, bytes, size) : 0;
}

static int finish_session_of_server(domus_wire *wire, void *state_)
{
    stage_state *state = state_;

    if (state->h2 == NULL)
        return 0;
    state->h2->wire = wire;
    state->h2->is_finishing = true;
    /* with `drain` 2 the peer was told of the end before, and no stream has begun since */
    if (state->h2->drain != 2)
        domi_h2_end_connection_with_error(state->h2, NGHTTP2_NO_ERROR);
    state->h2->is_over = true;
    return domi_h2_append_frames_to_wire(state->h2);
}

static void close_http2_server_stage(domus_wire *wire, void *state_)
{
    stage_state *state = state_;

    if (state->h2 != NULL)
        state->h2->wire = wire;
    domi_h2_free_connection(state->h2);
}

/* Handle the events of inner channels. A channel whose stream is over should send nothing; if it
 * does, it ends, because its bytes could be taken for the next answer. Returns 0; -ENOMEM. */
static int continue_lanes_with_channel_events(domus_wire *wire)
{
    int error = 0;

    for (domus_inner *inner = domus_wire_inner_next(wire); inner != NULL && error == 0;
         inner = domus_wire_inner_next(wire)) {
        domi_h2_lane *lane = domus_inner_data(inner);
        size_t size;
        if (lane->id != 0)
            error = domi_h2_send_more_of_lane_answer(lane);
        else if (domus_inner_bytes(inner, &size) != NULL ||
                 domus_inner_look(inner, NULL) != DOMUS_INNER_OPEN)
            domi_h2_end_lane_without_stream(lane);
    }
    return error;
}

static int announce_drain_and_append_frames(domus_wire *wire, void *state_)
{
    stage_state *state = state_;
    domi_h2 *h2 = state->h2;

    if (h2 == NULL)
        return 0;
    h2->wire = wire;
    /* the peer is told of the drain before anything else is sent */
    if (h2->drain == 0 && domus_wire_is_draining(wire)) {
        h2->drain = 1;
        (void)nghttp2_submit_shutdown_notice(h2->session);
    }
    int error = continue_lanes_with_channel_events(wire);
    if (h2->drain != 0 || h2->is_deserted)
        domi_h2_reset_streams_answered_early(h2);
    return error != 0 ? error : domi_h2_append_frames_to_wire(h2);
}

const domus_stage domus_http2_stage = {
    .name = "http2",
    .state_size = sizeof(stage_state),
    .check = domi_h2_check_options,
    .open = open_http2_server_stage,
    .decode = decode_frames_of_client,
    .end = tell_lanes_of_end_of_client_bytes,
    .wrap = discard_outer_bytes_once_http2_is_used,
    .finish = finish_session_of_server,
    .close = close_http2_server_stage,
    .carry = announce_drain_and_append_frames,
};
