/* The WebSocket stage of a channel: its table of functions, and its options. */
#include "protocols/http/websocket/websocket.h"

#define MS              UINT64_C(1000000)
#define TIME_MOST_NS    (3600 * 1000 * MS)
#define PING_DEFAULT_NS (30 * 1000 * MS)

static const domus_websocket_options defaults = {.role = DOMUS_ROLE_SERVER};

/* Returns whether a time of the options is within its range. */
static bool is_valid_time_in_options(uint64_t ns)
{
    return ns == 0 || (ns >= MS && ns <= TIME_MOST_NS);
}

static int check_options_of_websocket(const void *options_)
{
    const domus_websocket_options *options = options_;

    if (options == NULL)
        return 0;
    if (options->role > DOMUS_ROLE_CLIENT || options->message_max > DOMUS_SLICE_MAX ||
        options->frame_max > DOMUS_SLICE_MAX)
        return -EINVAL;
    bool pings = options->ping_ns != DOMUS_WEBSOCKET_NEVER;
    return (pings && !is_valid_time_in_options(options->ping_ns)) ||
                   !is_valid_time_in_options(options->close_ns)
               ? -EINVAL
               : 0;
}

/* Set the timer by which the stage checks whether the peer has been silent for too long. */
static void set_timer_for_silence_of_peer(domus_wire *wire, const domi_websocket_state *state)
{
    uint64_t ping_ns = state->options->ping_ns;

    if (ping_ns != DOMUS_WEBSOCKET_NEVER)
        domus_wire_wake(wire, ping_ns != 0 ? ping_ns : PING_DEFAULT_NS);
}

static int open_websocket_stage(domus_wire *wire, void *state_, const void *options)
{
    domi_websocket_state *state = state_;

    state->options = options != NULL ? options : &defaults;
    set_timer_for_silence_of_peer(wire, state);
    return 0;
}

static int decode_websocket_frames(domus_wire *wire, void *state_, const char *bytes, size_t size)
{
    domi_websocket_state *state = state_;
    domi_websocket_head head;

    state->was_heard = true;
    if (state->in_frame)
        return domi_websocket_continue_message_frame(wire, state, bytes, size);
    int result = domi_websocket_read_frame_head(wire, state, bytes, size, &head);
    if (result != 1)
        return result;
    if (head.opcode < DOMI_WEBSOCKET_CLOSE)
        return domi_websocket_begin_message_frame(wire, state, &head, bytes, size);
    size_t whole = head.size + (size_t)head.length;
    if (size < whole) {
        domus_wire_need(wire, whole);
        return 0;
    }
    result = domi_websocket_handle_control_frame(wire, state, &head, bytes + head.size);
    return result != 0 ? result : (int)whole;
}

/* Handle that the peer's bytes have ended. A peer that ends without a close frame has gone away,
 * which is no error if this side has sent a close. */
static int require_sent_close_at_end_of_peer(domus_wire *wire, void *state_, size_t left)
{
    const domi_websocket_state *state = state_;

    (void)wire, (void)left;
    return state->has_closed ? 0 : -EPIPE;
}

static int encode_websocket_message(domus_wire *wire, void *state, uint64_t id,
                                    const domus_type *type, const void *payload)
{
    return domi_websocket_encode_message(wire, state, id, type, payload);
}

/* Tell the peer by a close frame why its bytes were wrong, unless this side has closed already. A
 * peer that is gone, or whose byte stage has failed, gets a reset. */
static int send_close_frame_or_reset_after_error(domus_wire *wire, void *state_, uint64_t id,
                                                 const domus_type *request, int error)
{
    domi_websocket_state *state = state_;
    uint16_t code = state->wrong;

    (void)id, (void)request;
    domi_websocket_free_gathered_bytes(state);
    domus_wire_wake(wire, 0);
    if (state->has_closed)
        return 0;
    if (code == 0 && error == -ENOMEM)
        code = DOMUS_WEBSOCKET_INTERNAL_ERROR;
    return code != 0 ? domi_websocket_send_close_frame(wire, state, code, (domus_slice){NULL, 0, 0})
                     : error;
}

static int send_close_before_channel_ends(domus_wire *wire, void *state_)
{
    domi_websocket_state *state = state_;

    return state->has_closed
               ? 0
               : domi_websocket_send_close_frame(wire, state, DOMUS_WEBSOCKET_GOING_AWAY,
                                                 (domus_slice){NULL, 0, 0});
}

static void close_websocket_stage(domus_wire *wire, void *state)
{
    (void)wire;
    domi_websocket_free_gathered_bytes(state);
}

/* Handle the stage's timer: the peer has not answered a close in time, or was silent for some
 * time. */
static int ping_or_end_silent_peer_at_timer(domus_wire *wire, void *state_, bool owed)
{
    domi_websocket_state *state = state_;
    bool is_silent = !state->was_heard && !owed;

    if (state->has_closed || (is_silent && state->was_pinged))
        return -ETIMEDOUT;
    state->was_heard = false;
    state->was_pinged = is_silent;
    set_timer_for_silence_of_peer(wire, state);
    return is_silent ? domi_websocket_send_control_frame(wire, state, DOMI_WEBSOCKET_PING, "", 0)
                     : 0;
}

const domus_stage domus_websocket_stage = {
    .name = "websocket",
    .state_size = sizeof(domi_websocket_state),
    .check = check_options_of_websocket,
    .open = open_websocket_stage,
    .decode = decode_websocket_frames,
    .end = require_sent_close_at_end_of_peer,
    .encode = encode_websocket_message,
    .fail = send_close_frame_or_reset_after_error,
    .finish = send_close_before_channel_ends,
    .close = close_websocket_stage,
    .wake = ping_or_end_silent_peer_at_timer,
};
