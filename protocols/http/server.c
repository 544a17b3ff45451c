/* Makes the requests that an HTTP server has decoded. */
#include "protocols/http/chain.h"
#include "protocols/http/coding.h"
#include "protocols/http/http.h"
#include "protocols/http/texts.h"

#include <domus/inner.h>

#include <errno.h>

int domi_http_decide_body_of_request(domi_http_state *state)
{
    const domi_http_head *head = &state->head;

    state->body = (domi_http_body){.framing = DOMI_HTTP_NO_BODY};
    if ((head->flags & DOMI_HTTP_CHUNKED) != 0)
        state->body.framing = DOMI_HTTP_IN_CHUNKS;
    else if (head->length != 0)
        state->body = (domi_http_body){.framing = DOMI_HTTP_COUNTED, .left = head->length};
    state->waits_for_100 =
        state->body.framing != DOMI_HTTP_NO_BODY && (head->flags & DOMI_HTTP_CONTINUE) != 0;
    return 1;
}

/* Returns whether the connection ends with the answer to this request: because it is HTTP/1.0
 * without keep-alive, or because the peer demands it. */
static bool does_connection_end_with_answer(const domi_http_head *head)
{
    return (head->flags & DOMI_HTTP_CLOSE) != 0 ||
           (head->minor == 0 && (head->flags & DOMI_HTTP_KEEP_ALIVE) == 0);
}

static bool does_request_want_upgrade(const domi_http_head *head)
{
    const uint32_t both = DOMI_HTTP_TO_UPGRADE | DOMI_HTTP_HAS_UPGRADE;

    return (head->flags & both) == both;
}

static bool does_client_accept_gzip(const domi_http_state *state, const domi_http_source *from)
{
    const char *head = from->head != NULL ? from->head : domus_slice_data(from->head_slice);
    const domus_page page = {head + state->head.fields_at};

    return domi_http_does_client_prefer_gzip(
        (domus_slice){&page, 0, state->head_size - 2 - state->head.fields_at});
}

static uint64_t make_id_with_flags_of_request(const domus_wire *wire, const domi_http_state *state,
                                              const domi_http_source *from)
{
    const domi_http_head *head = &state->head;
    uint64_t id = (uint64_t)state->made << DOMI_HTTP_ID_NUMBER;

    if (head->method == DOMUS_HTTP_HEAD)
        id |= DOMI_HTTP_ID_HEAD;
    if (head->minor != 0)
        id |= DOMI_HTTP_ID_NEW;
    if (does_connection_end_with_answer(head))
        id |= DOMI_HTTP_ID_CLOSE;
    if (does_request_want_upgrade(head))
        id |= DOMI_HTTP_ID_UPGRADE;
    if (state->options.gzip != NULL && does_client_accept_gzip(state, from))
        id |= DOMI_HTTP_ID_GZIP;
    if ((head->flags & DOMI_HTTP_TAKES_TRAILERS) != 0 || domus_wire_is_inner(wire))
        id |= DOMI_HTTP_ID_TRAILERS; /* over HTTP/2 trailers are sent to every client */
    return id;
}

/* Cut the target out of a request's head, and change its path to the normal form. Returns 0;
 * -ENOMEM. */
static int normalize_and_slice_target_of_request(domus_wire *wire, const domi_http_head *head,
                                                 const domi_http_source *from,
                                                 domus_slice *ret_target)
{
    size_t size = head->target_size;

    if ((head->flags & DOMI_HTTP_ESCAPED) != 0)
        size = domi_http_normalize_path_of_target(
            domi_http_changeable_bytes_of_head(wire, from, head->target_at, head->target_size),
            size);
    return domi_http_cut_slice_of_head(wire, from, head->target_at, (uint32_t)size, ret_target);
}

int domi_http_make_request(domus_wire *wire, domi_http_state *state, const domi_http_source *from,
                           bool in_pieces)
{
    const domi_http_head *head = &state->head;

    state->made++;
    domus_http_request *request = domus_wire_request(
        wire, &domus_http_request_type, make_id_with_flags_of_request(wire, state, from));

    if (request == NULL)
        return -ENOMEM;
    int error = normalize_and_slice_target_of_request(wire, head, from, &request->target);
    if (error == 0)
        error = domi_http_cut_slice_of_head(
            wire, from, head->fields_at, state->head_size - 2 - head->fields_at, &request->fields);
    if (error != 0)
        return error;
    request->method = head->method;
    request->minor = head->minor;
    if (state->options.chain != NULL)
        request->exchange = domi_http_make_exchange_number(state->made);
    request->close = does_connection_end_with_answer(head);
    request->upgrade = does_request_want_upgrade(head);
    if (in_pieces) {
        request->stream = domus_wire_body(wire);
        request->length = head->length;
    } else {
        request->body = domi_http_cut_body_slice(wire, from);
        request->length = request->body.size;
    }
    if (request->close)
        domus_wire_last(wire);
    state->unanswered++;
    return 0;
}
