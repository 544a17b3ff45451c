/* Delays the body of a request until the server asks for it (100 Continue), for a limited time.
 *
 * Only the last request that was sent can have a body that waits: the next request makes it leave
 * first. The whole body waits, or the first piece of a body in pieces, whose writer has to wait
 * then. If the final answer comes instead of 100, the rest of the body is never sent. */
#include "protocols/http/write.h"

#define TIMEOUT_NS UINT64_C(1000000000)

void domi_http_let_body_wait_for_100(domus_wire *wire, domi_http_state *state, domus_slice body,
                                     const uint64_t *stream)
{
    uint64_t timeout_ns = state->options.continue_timeout_ns;

    state->waiting = body;
    state->wait = DOMI_HTTP_WAITS;
    state->waits_in_chunks = stream != NULL && *stream == DOMI_HTTP_STREAM_CHUNKS;
    domus_wire_hold(wire, stream != NULL);
    domus_wire_wake(wire, timeout_ns != 0 ? timeout_ns : TIMEOUT_NS);
}

int domi_http_append_body_waiting_for_100(domus_wire *wire, const domi_http_state *state)
{
    uint64_t chunks = DOMI_HTTP_STREAM_CHUNKS;
    const domus_piece piece = {state->waiting, false};

    return state->waits_in_chunks ? domi_http_append_piece_of_stream(wire, &chunks, &piece)
                                  : domus_wire_append_slice(wire, state->waiting);
}

/* End the waiting of a body for 100 Continue: the body has left, or never will. */
static void end_wait_of_body(domus_wire *wire, domi_http_state *state, domi_http_wait wait)
{
    domus_slice_free(state->waiting);
    state->waiting = (domus_slice){NULL, 0, 0};
    state->wait = (uint8_t)wait;
    domus_wire_hold(wire, false);
    domus_wire_wake(wire, 0);
}

void domi_http_end_wait_after_body_was_sent(domus_wire *wire, domi_http_state *state)
{
    if (state->wait == DOMI_HTTP_WAITS)
        end_wait_of_body(wire, state, DOMI_HTTP_GOES);
}

int domi_http_send_waiting_body(domus_wire *wire, domi_http_state *state)
{
    int error =
        state->wait == DOMI_HTTP_WAITS ? domi_http_append_body_waiting_for_100(wire, state) : 0;

    if (error == 0)
        domi_http_end_wait_after_body_was_sent(wire, state);
    return error;
}

void domi_http_discard_body_waiting_for_100(domus_wire *wire, domi_http_state *state)
{
    if (state->wait == DOMI_HTTP_WAITS && state->asked.count == 1)
        end_wait_of_body(wire, state, DOMI_HTTP_UNWANTED);
}

/* Keep the first piece of a body, which waits for 100 Continue. Returns 0, or a negative errno. */
static int keep_first_piece_of_body(domi_http_state *state, uint64_t *stream, domus_slice bytes)
{
    if (!state->waits_in_chunks && bytes.size > (*stream & DOMI_HTTP_LENGTH_MAX))
        return -EMSGSIZE;
    int error = domus_slice_keep(bytes, &state->waiting);
    if (error == 0 && !state->waits_in_chunks)
        *stream -= bytes.size;
    return error;
}

int domi_http_encode_piece_of_waiting_body(domus_wire *wire, domi_http_state *state,
                                           const domus_piece *piece,
                                           const domus_http_trailers *trailers)
{
    uint64_t *stream = domus_wire_stream(wire);
    bool is_last = piece == NULL || piece->last;

    if (state->wait == DOMI_HTTP_UNWANTED)
        return 0;
    if (!is_last && state->waiting.size == 0)
        return keep_first_piece_of_body(state, stream, piece->bytes);
    int error = domi_http_append_body_waiting_for_100(wire, state);
    if (error == 0)
        error = piece != NULL ? domi_http_append_piece_of_stream(wire, stream, piece)
                              : domi_http_append_trailers_of_stream(wire, stream, trailers);
    if (error == 0)
        domi_http_end_wait_after_body_was_sent(wire, state);
    return error;
}
