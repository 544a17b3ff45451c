/* The HTTP/2 stage of a client: finds out which protocol the server speaks, feeds the session, and
 * lends lanes to asks. */
#include "protocols/http2/client.h"

#include <errno.h>
#include <string.h>

/* bytes that one call of the stage uses at most, so that other channels have their turns */
#define STEP_BYTES 16384u

typedef struct stage_state {
    const domus_http2_client_options *options;
    /* the connection of HTTP/2; NULL: HTTP/1.1 is spoken, or the protocol is not known yet */
    domi_h2 *h2;
} stage_state;

/* Returns the options of a client that a connection has in either role. */
static domus_http2_options options_of_client_for_either_role(const domus_http2_client_options *from)
{
    return (domus_http2_options){
        .streams_max = from->streams_max,
        .head_max = from->head_max,
        .fields_max = from->fields_max,
        .stream_window = from->stream_window,
        .window = from->window,
        .controls_max = from->controls_max,
    };
}

static int check_options_of_http2_client(const void *options)
{
    if (options == NULL)
        return 0;
    const domus_http2_options common = options_of_client_for_either_role(options);
    return domi_h2_check_options(&common);
}

/* Make the connection's session, and send the preface. Returns 0; -ENOMEM, and then there is no
 * session. */
static int begin_session_of_client(domus_wire *wire, stage_state *state)
{
    const domus_http2_client_options none = {0};
    const domus_http2_client_options *from = state->options != NULL ? state->options : &none;
    const domus_http2_options options = options_of_client_for_either_role(from);
    int error = domi_h2_new_connection(wire, &domi_h2_client, &options, &state->h2);

    if (error != 0)
        return error;
    domus_wire_expect_head(wire); /* no ask is sent until the SETTINGS of the server have come */
    error = domi_h2_append_frames_to_wire(state->h2);
    /* free it here, because `close` is not called after an `open` that has failed */
    if (error != 0) {
        domi_h2_free_connection(state->h2);
        state->h2 = NULL;
    }
    return error;
}

static int open_http2_client_stage(domus_wire *wire, void *state_, const void *options)
{
    stage_state *state = state_;

    state->options = options;
    if (state->options == NULL || !state->options->prior_knowledge)
        return 0;
    return begin_session_of_client(wire, state);
}

/* Returns whether both sides have agreed on HTTP/2 by ALPN, in the handshake of TLS. */
static bool is_http2_agreed_by_alpn(const domus_wire *wire)
{
    size_t size;
    const char *agreed = domus_wire_agreed(wire, &size);

    return size == 2 && memcmp(agreed, "h2", 2) == 0;
}

/* End the connection after a GOAWAY or the end of its session: it ends when the answers that have
 * come are used. If the server has never sent HTTP/2, that is an error. Returns 0; -EPROTO. */
static int end_session_of_client(domi_h2 *h2)
{
    domi_h2_client_end_busy_lanes(h2);
    return h2->heard_settings ? 0 : -EPROTO;
}

static int decode_frames_of_server(domus_wire *wire, void *state_, const char *bytes, size_t size)
{
    stage_state *state = state_;

    if (state->h2 == NULL && !is_http2_agreed_by_alpn(wire)) {
        domus_wire_leave(wire);
        return 0;
    }
    int error = state->h2 == NULL ? begin_session_of_client(wire, state) : 0;
    domi_h2 *h2 = state->h2;
    if (error != 0)
        return error;
    h2->wire = wire;
    domi_h2_client_record_server_was_heard(h2);
    if (h2->is_dead)
        return (int)size;
    if (size > STEP_BYTES)
        size = STEP_BYTES;
    error = domi_h2_receive_bytes_of_peer(h2, bytes, size);
    if (error == 0)
        error = domi_h2_append_frames_to_wire(h2);
    if (error == 0 && (h2->is_over || !nghttp2_session_want_read(h2->session)))
        error = end_session_of_client(h2);
    if (error != 0)
        return error;
    if (!h2->heard_settings || h2->block.open)
        domus_wire_expect_head(wire);
    return (int)size;
}

/* Handle that the server's bytes have ended: no further answer comes. */
static int end_busy_lanes_at_end_of_server(domus_wire *wire, void *state_, size_t left)
{
    stage_state *state = state_;

    if (state->h2 == NULL)
        return left != 0 ? -EPIPE : 0;
    state->h2->wire = wire;
    domi_h2_client_end_busy_lanes(state->h2);
    return left != 0 || !state->h2->heard_settings ? -EPIPE : 0;
}

/* Pass the bytes of the message stage on while the connection is not one of HTTP/2. On one of
 * HTTP/2 they are discarded, because asks go to inner channels. */
static int discard_outer_bytes_once_http2_is_used(domus_wire *wire, void *state_, const char *bytes,
                                                  size_t size)
{
    const stage_state *state = state_;

    return state->h2 == NULL ? domus_wire_append(wire, bytes, size) : 0;
}

static int finish_session_of_client(domus_wire *wire, void *state_)
{
    stage_state *state = state_;

    if (state->h2 == NULL)
        return 0;
    state->h2->wire = wire;
    state->h2->is_finishing = true;
    domi_h2_end_connection_with_error(state->h2, NGHTTP2_NO_ERROR);
    return domi_h2_append_frames_to_wire(state->h2);
}

static void close_http2_client_stage(domus_wire *wire, void *state_)
{
    stage_state *state = state_;

    if (state->h2 == NULL)
        return;
    state->h2->wire = wire;
    domi_h2_client_end_busy_lanes(state->h2);
    domi_h2_free_connection(state->h2);
}

static int continue_lanes_with_channel_events(domus_wire *wire)
{
    int error = 0;

    for (domus_inner *inner = domus_wire_inner_next(wire); inner != NULL && error == 0;
         inner = domus_wire_inner_next(wire)) {
        domi_h2_lane *lane = domus_inner_data(inner);
        if (lane->is_busy)
            error = domi_h2_client_continue_request(lane);
        else
            domi_h2_client_settle_or_end_idle_lane(lane);
    }
    return error;
}

static int append_frames_or_end_if_server_is_lost(domus_wire *wire, void *state_)
{
    stage_state *state = state_;

    if (state->h2 == NULL)
        return 0;
    state->h2->wire = wire;
    /* the connection is lost, but answers that have come completely are still read */
    if (domi_h2_client_is_server_lost(state->h2)) {
        domi_h2_client_end_busy_lanes(state->h2);
        return state->h2->read == NULL ? -ETIMEDOUT : 0;
    }
    int error = continue_lanes_with_channel_events(wire);
    return error != 0 ? error : domi_h2_append_frames_to_wire(state->h2);
}

static int lend_inner_channel_of_lane_to_ask(domus_wire *wire, void *state_,
                                             domus_inner **ret_inner)
{
    stage_state *state = state_;
    domi_h2_lane *lane;

    if (state->h2 == NULL || state->h2->is_dead || state->h2->is_away)
        return -ENOTCONN;
    state->h2->wire = wire;
    int error = domi_h2_make_idle_or_new_lane_busy(state->h2, &lane);
    if (error != 0)
        return error;
    lane->is_busy = true;
    *ret_inner = lane->inner;
    return 0;
}

const domus_stage domus_http2_client_stage = {
    .name = "http2 client",
    .state_size = sizeof(stage_state),
    .check = check_options_of_http2_client,
    .open = open_http2_client_stage,
    .decode = decode_frames_of_server,
    .end = end_busy_lanes_at_end_of_server,
    .wrap = discard_outer_bytes_once_http2_is_used,
    .finish = finish_session_of_client,
    .close = close_http2_client_stage,
    .carry = append_frames_or_end_if_server_is_lost,
    .lend = lend_inner_channel_of_lane_to_ask,
};
