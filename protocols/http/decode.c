/* Decodes messages of HTTP/1.1, requests and responses: a head, and then a body, which waits in the
 * window, is gathered, or comes in pieces. */
#include "protocols/http/coding.h"
#include "protocols/http/heads.h"

#include <errno.h>

static int refuse_message_with_status(domi_http_state *state, unsigned status)
{
    state->head.wrong = (uint16_t)status;
    return status == 400 ? -EPROTO : -EMSGSIZE;
}

/* Reset the state of the stage for the next message's head. */
static void reset_state_for_next_message(domi_http_state *state)
{
    state->phase = DOMI_HTTP_IN_HEAD;
    state->empty_lines = 0;
    state->waits_for_100 = state->owes_100 = false;
    state->head = (domi_http_head){.kind = state->head.kind};
}

static int make_request_or_response(domus_wire *wire, domi_http_state *state,
                                    const domi_http_source *from, bool in_pieces)
{
    int error = domi_http_is_server(state) ? domi_http_make_request(wire, state, from, in_pieces)
                                           : domi_http_make_response(wire, state, from, in_pieces);

    if (error == 0 && !in_pieces)
        reset_state_for_next_message(state);
    return error;
}

/* --- bodies ----------------------------------------------------------------------------------- */

static int read_part_of_body(domi_http_state *state, const char *bytes, size_t size,
                             domi_http_part *ret_part)
{
    const domi_http_body_limits limits = {
        .body_max = state->options.body_max,
        .extension_max = state->options.extension_max,
        .trailer_max = state->options.trailer_max,
        .fields_max = state->options.fields_max,
    };
    int used = domi_http_decode_part_of_body(&state->body, &limits, bytes, size, ret_part);

    /* the client already sends its body, so it needs no 100 Continue */
    state->waits_for_100 = state->owes_100 = false;
    if (used < 0)
        state->head.wrong = state->body.wrong;
    return used;
}

/* Make the message whose head and body were gathered. */
static int make_message_from_gathered_bytes(domus_wire *wire, domi_http_state *state)
{
    domi_http_source source;
    int error = domi_http_end_gathered_message(state, &source);

    if (error != 0)
        return error;
    error = make_request_or_response(wire, state, &source, false);
    domus_slice_free(source.head_slice);
    if (error != 0)
        domus_slice_free(source.body_slice);
    return error;
}

static int gather_part_of_body(domus_wire *wire, domi_http_state *state, const char *bytes,
                               size_t size)
{
    bool is_packed = state->inflater != NULL;
    size_t least = is_packed && size > DOMI_HTTP_UNZIP_STEP ? DOMI_HTTP_UNZIP_STEP : size;
    domi_http_part part;
    int used = read_part_of_body(state, bytes, least, &part);
    int error = 0;

    if (used == 0 && least < size) /* trailers are read only when all of them have come */
        used = read_part_of_body(state, bytes, size, &part);
    if (used <= 0)
        return used;
    if (!part.done || state->body.framing != DOMI_HTTP_IN_CHUNKS)
        error = is_packed ? domi_http_decompress_and_gather(state, bytes + part.at, part.size)
                          : domi_http_gather_body_bytes(state, bytes + part.at, part.size);
    if (error == 0 && part.done)
        error = make_message_from_gathered_bytes(wire, state);
    return error != 0 ? error : used;
}

/* Make the message for the trailers of a body from the bytes of their fields. */
static int make_message_of_trailers(domus_wire *wire, const char *bytes, size_t size)
{
    domus_http_trailers *trailers = domus_wire_trailer(wire, &domus_http_trailers_type);

    if (trailers == NULL)
        return -ENOMEM;
    trailers->fields = domus_wire_slice(wire, bytes, size);
    return 0;
}

static int make_piece_of_body(domus_wire *wire, domi_http_state *state, const char *bytes,
                              size_t size)
{
    domi_http_part part;
    int used = read_part_of_body(state, bytes, size, &part);

    if (used <= 0 || (part.size == 0 && !part.done))
        return used;
    bool is_trailers = part.done && state->body.framing == DOMI_HTTP_IN_CHUNKS;
    if (is_trailers && part.size != 0) {
        if (make_message_of_trailers(wire, bytes + part.at, part.size) != 0)
            return -ENOMEM;
    } else if (!domus_wire_piece(wire, bytes + part.at, part.size, part.done)) {
        return -ENOMEM;
    }
    if (part.done)
        reset_state_for_next_message(state);
    return used;
}

/* --- heads ------------------------------------------------------------------------------------ */

/* Send 100 Continue for a request's body that is gathered, once all earlier answers have left. */
static int send_100_for_body_now_or_later(domus_wire *wire, domi_http_state *state, bool has_begun)
{
    if (!state->waits_for_100 || has_begun)
        return 0;
    if (state->unanswered != 0) {
        state->owes_100 = true;
        return 0;
    }
    return domi_http_send_100_continue(wire, state);
}

/* Returns whether the body behind a response's head is compressed, and to be decompressed. */
static bool must_body_be_decompressed(const domi_http_state *state, const char *head)
{
    const domus_page page = {head + state->head.fields_at};

    return state->options.unzip && domi_http_is_body_gzip((domus_slice){
                                       &page, 0, state->head_size - 2 - state->head.fields_at});
}

static int begin_to_gather_message(domi_http_state *state, const char *head)
{
    int error = must_body_be_decompressed(state, head) ? domi_http_begin_to_decompress(state) : 0;

    if (error == 0)
        error = domi_http_begin_to_gather_message(state, head);
    state->phase = DOMI_HTTP_GATHERING;
    return error != 0 ? error : (int)state->head_size;
}

static int begin_message_with_whole_body(domus_wire *wire, domi_http_state *state,
                                         const char *bytes, size_t size)
{
    uint32_t head = state->head_size;
    const domi_http_source in_window = {
        .head = bytes, .body = bytes + head, .body_size = (size_t)state->body.left};
    bool is_counted = state->body.framing == DOMI_HTTP_COUNTED;

    if (must_body_be_decompressed(state, bytes))
        return begin_to_gather_message(state, bytes);
    if (is_counted && state->body.left <= size - head) {
        int error = make_request_or_response(wire, state, &in_window, false);
        return error != 0 ? error : (int)(head + in_window.body_size);
    }
    int error = state->phase == DOMI_HTTP_IN_HEAD
                    ? send_100_for_body_now_or_later(wire, state, size > head)
                    : 0;
    if (error != 0)
        return error;
    if (domi_http_is_server(state))
        domus_wire_expect_body(wire);
    if (is_counted && state->body.left <= DOMI_HTTP_GATHER_LEAST - 1 &&
        head + state->body.left <= DOMI_HTTP_GATHER_LEAST) {
        state->phase = DOMI_HTTP_WAITING;
        domus_wire_need(wire, head + (size_t)state->body.left);
        return 0;
    }
    return begin_to_gather_message(state, bytes);
}

/* Begin the body of a message, whose head was read. */
static int gather_or_stream_body_behind_head(domus_wire *wire, domi_http_state *state,
                                             const char *bytes, size_t size)
{
    const domus_http_options *options = &state->options;
    bool is_counted = state->body.framing == DOMI_HTTP_COUNTED;
    const domi_http_source head = {.head = bytes};

    if (is_counted && state->body.left > options->body_max)
        return refuse_message_with_status(state, 413);
    if (state->body.framing != DOMI_HTTP_TUNNEL &&
        (!options->streams || (is_counted && state->body.left <= options->whole_max)))
        return begin_message_with_whole_body(wire, state, bytes, size);
    int error = make_request_or_response(wire, state, &head, true);
    state->phase = DOMI_HTTP_STREAMING;
    return error != 0 ? error : (int)state->head_size;
}

/* Returns whether the bytes may be an empty line before a request, which is ignored (RFC 9112
 * 2.2). Only a few such lines are, because a peer that sends nothing else must be refused at
 * some time. */
static bool may_empty_line_before_request_be_here(const domi_http_state *state, char first)
{
    return first == '\r' && domi_http_is_server(state) && !state->head.begun &&
           state->empty_lines < DOMUS_HTTP_EMPTY_LINES_MAX;
}

/* Skip an empty line before a request. It counts as the begin of a head, so the time limit for the
 * head runs. Returns 2; 0 when more bytes are needed; or a negative errno. */
static int skip_empty_line_before_request(domus_wire *wire, domi_http_state *state,
                                          const char *bytes, size_t size)
{
    domus_wire_expect_head(wire);
    if (size == 1)
        return 0;
    state->empty_lines++;
    return bytes[1] == '\n' ? 2 : refuse_message_with_status(state, 400);
}

static int decode_head_of_message(domus_wire *wire, domi_http_state *state, const char *bytes,
                                  size_t size)
{
    const domi_http_limits limits = {state->options.target_max,
                                     state->options.head_max - 2u * state->empty_lines,
                                     state->options.fields_max};

    if (may_empty_line_before_request_be_here(state, *bytes))
        return skip_empty_line_before_request(wire, state, bytes, size);
    int used = domi_http_read_head(&state->head, &limits, bytes, size);
    if (used == 0 && domi_http_is_server(state))
        domus_wire_expect_head(wire);
    if (used <= 0)
        return used;
    state->head_size = (uint32_t)used;
    int result = domi_http_is_server(state) ? domi_http_decide_body_of_request(state)
                                            : domi_http_decide_body_of_response(wire, state);
    if (result < 0)
        return result;
    if (result == 0) {
        reset_state_for_next_message(state);
        return used;
    }
    if (state->body.framing != DOMI_HTTP_NO_BODY)
        return gather_or_stream_body_behind_head(wire, state, bytes, size);
    const domi_http_source from = {.head = bytes};
    int error = make_request_or_response(wire, state, &from, false);
    return error != 0 ? error : used;
}

int domi_http_decode_bytes(domus_wire *wire, domi_http_state *state, const char *bytes, size_t size)
{
    switch (state->phase) {
    case DOMI_HTTP_WAITING:
        state->waits_for_100 = state->owes_100 = false;
        return begin_message_with_whole_body(wire, state, bytes, size);
    case DOMI_HTTP_GATHERING:
        return gather_part_of_body(wire, state, bytes, size);
    case DOMI_HTTP_STREAMING:
        return make_piece_of_body(wire, state, bytes, size);
    default:
        return decode_head_of_message(wire, state, bytes, size);
    }
}

int domi_http_decode_end_of_bytes(domus_wire *wire, domi_http_state *state, size_t left)
{
    bool ends_body =
        state->body.framing == DOMI_HTTP_UNTIL_CLOSE || state->body.framing == DOMI_HTTP_TUNNEL;

    if (state->phase == DOMI_HTTP_IN_HEAD)
        return left != 0 ? -EPIPE : 0;
    if (!ends_body || state->phase == DOMI_HTTP_WAITING)
        return -EPIPE;
    if (state->phase == DOMI_HTTP_GATHERING)
        return make_message_from_gathered_bytes(wire, state);
    reset_state_for_next_message(state);
    return domus_wire_piece(wire, NULL, 0, true) ? 0 : -ENOMEM;
}
