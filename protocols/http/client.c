/* Makes the responses that an HTTP client has decoded. How a response ends depends on its request
 * and on its status. */
#include "protocols/http/http.h"

#include <errno.h>

static int refuse_response_of_server(domi_http_state *state)
{
    state->head.wrong = 400;
    return -EPROTO;
}

/* Handle an interim response (1xx): 100 lets the body of the only request leave that waits for it,
 * and any other one is ignored. A response that tells of a body or of the connection's end is
 * wrong. A peer that sends too many of them is refused, because it might never answer. */
static int send_body_at_100_or_ignore_interim(domus_wire *wire, domi_http_state *state)
{
    const uint32_t wrong = DOMI_HTTP_HAS_LENGTH | DOMI_HTTP_HAS_CODING | DOMI_HTTP_CLOSE;

    if ((state->head.flags & wrong) != 0 || state->head.minor == 0)
        return refuse_response_of_server(state);
    if (state->interims++ >= DOMI_HTTP_INTERIM_MAX)
        return refuse_response_of_server(state);
    return state->head.code == 100 && state->asked.count == 1
               ? domi_http_send_waiting_body(wire, state)
               : 0;
}

int domi_http_decide_body_of_response(domus_wire *wire, domi_http_state *state)
{
    const domi_http_head *head = &state->head;
    bool has_length = (head->flags & DOMI_HTTP_HAS_LENGTH) != 0;
    bool has_none = head->code < 200 || head->code == 204 || head->code == 304;

    if (state->asked.count == 0)
        return refuse_response_of_server(
            state); /* refused, because no request waits for this response */
    if (head->code == 101) {
        /* 101 is refused if its request wants no upgrade. RFC 9110 demands 100 before 101 if the
         * body waits (7.8), and HTTP/1.0 has no 1xx (15.2). */
        if (!domi_http_does_oldest_want_upgrade(state) || state->wait == DOMI_HTTP_WAITS ||
            head->minor == 0)
            return refuse_response_of_server(state);
    } else if (head->code < 200) {
        return send_body_at_100_or_ignore_interim(wire, state);
    }
    if (head->code == 204 && ((head->flags & DOMI_HTTP_HAS_CODING) != 0 || head->length != 0))
        return refuse_response_of_server(state);
    domi_http_discard_body_waiting_for_100(wire, state);
    if (state->tunnel == DOMI_HTTP_TUNNEL_ASKED)
        state->tunnel = head->code == 101 ? DOMI_HTTP_TUNNEL_OPEN : DOMI_HTTP_NO_TUNNEL;
    if (state->tunnel == DOMI_HTTP_TUNNEL_OPEN) {
        state->body = (domi_http_body){.framing = DOMI_HTTP_TUNNEL};
        return 1;
    }
    state->body = (domi_http_body){.framing = DOMI_HTTP_UNTIL_CLOSE};
    if (has_none || domi_http_is_oldest_request_head(state) || (has_length && head->length == 0))
        state->body.framing = DOMI_HTTP_NO_BODY;
    else if ((head->flags & DOMI_HTTP_CHUNKED) != 0)
        state->body.framing = DOMI_HTTP_IN_CHUNKS;
    else if (head->length != 0)
        state->body = (domi_http_body){.framing = DOMI_HTTP_COUNTED, .left = head->length};
    return 1;
}

static bool does_connection_end_with_response(const domi_http_head *head)
{
    return (head->flags & DOMI_HTTP_CLOSE) != 0 ||
           (head->minor == 0 && (head->flags & DOMI_HTTP_KEEP_ALIVE) == 0);
}

int domi_http_make_response(domus_wire *wire, domi_http_state *state, const domi_http_source *from,
                            bool in_pieces)
{
    const domi_http_head *head = &state->head;
    bool is_tunnel = state->body.framing == DOMI_HTTP_TUNNEL;
    bool to_the_end = is_tunnel || state->body.framing == DOMI_HTTP_UNTIL_CLOSE;
    domus_http_response *response = domus_wire_answer(wire, &domus_http_response_type, DOMUS_NO_ID);

    if (response == NULL)
        return -ENOMEM;
    bool is_early = state->wait == DOMI_HTTP_UNWANTED;
    int error = domi_http_cut_slice_of_head(
        wire, from, head->fields_at, state->head_size - 2 - head->fields_at, &response->fields);
    if (error != 0)
        return error;
    response->status = head->code;
    response->minor = head->minor;
    response->close =
        to_the_end || is_early || (head->code != 101 && does_connection_end_with_response(head));
    if (in_pieces) {
        response->stream = is_tunnel ? domus_wire_rest(wire) : domus_wire_body(wire);
        response->length = head->length;
    } else {
        response->body = domi_http_cut_body_slice(wire, from);
        response->unzipped = from->unzipped;
        response->length =
            domi_http_is_oldest_request_head(state) ? head->length : response->body.size;
    }
    if (response->close && !to_the_end)
        domus_wire_last(wire);
    domi_http_drop_marks_of_oldest_request(state);
    return 0;
}
