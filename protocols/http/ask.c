/* Encodes the requests of an HTTP client as HTTP/1.1. */
#include "protocols/http/chars.h"
#include "protocols/http/heads.h"
#include "protocols/http/write.h"

#include <domus/http_client.h>
#include <domus/http_url.h>

#include <errno.h>

/* Returns whether a request's target is valid: a path, "*", or a whole URL, without any byte that
 * would end it. */
static bool is_valid_target_of_request(const domus_http_request *request)
{
    const char *target = domus_slice_data(request->target);
    size_t size = request->target.size;

    if (size == 0 || domi_http_count_target_bytes(target, size) != size)
        return false;
    if (*target == '*')
        return size == 1 && request->method == DOMUS_HTTP_OPTIONS;
    return *target == '/' ||
           (size > 7 && domi_http_is_same_regardless_of_case(target, "http://", 7)) ||
           (size > 8 && domi_http_is_same_regardless_of_case(target, "https://", 8));
}

/* Returns whether a request needs a Content-Length: it has a body, or its method expects one, so
 * that even an empty body is announced. */
static bool must_request_have_length(const domus_http_request *request)
{
    return request->body.size != 0 || request->method == DOMUS_HTTP_POST ||
           request->method == DOMUS_HTTP_PUT || request->method == DOMUS_HTTP_PATCH;
}

/* The host and the target that a request's head names, and fields that the head needs. The request
 * owns the texts. */
typedef struct place {
    const char *host; /* value of the field Host that the head gets */
    size_t host_size; /* bytes of `host`; 0: the user's fields have a Host already */
    domus_slice target;
    /* the target of the request lacks its first '/', which is written before it */
    bool is_rootless;
    /* the head gets Accept-Encoding: gzip, which the user's fields lack */
    bool accepts_gzip;
    /* the head gets Expect: 100-continue, which the user's fields lack */
    bool expects;
} place;

/* Split a target that is a whole URL into host and path. Returns 0; -EINVAL. */
static int split_absolute_target(place *said)
{
    const char *text = domus_slice_data(said->target);
    domus_http_url url;

    if (domus_http_url_parse(text, said->target.size, &url) != 0)
        return -EINVAL;
    said->host = url.host;
    said->host_size = (size_t)(url.target - url.host);
    said->target.offset += (uint32_t)(url.target - text);
    said->target.size = url.target_size;
    said->is_rootless = url.target_size == 0 || *url.target == '?';
    return 0;
}

static bool must_add_accept_encoding(const domi_http_state *state,
                                     const domus_http_request *request)
{
    domus_slice value;

    return state->options.unzip && !domus_http_field(request->fields, "accept-encoding", &value);
}

/* Find the host and the target for the head of a request. Returns 0; -EINVAL for a request that
 * HTTP cannot express. */
static int find_host_and_target(const domi_http_state *state, const domus_http_request *request,
                                int has, place *ret_said)
{
    const char *host = state->options.host;
    place said = {.host = host,
                  .host_size = host != NULL ? strlen(host) : 0,
                  .target = request->target,
                  .accepts_gzip = must_add_accept_encoding(state, request)};
    char first = *domus_slice_data(request->target);

    if (has < 0 || !is_valid_target_of_request(request))
        return -EINVAL;
    int error = state->options.origin_form && first != '/' && first != '*'
                    ? split_absolute_target(&said)
                    : 0;
    if ((has & DOMI_HTTP_FIELD_HOST) != 0)
        said.host_size = 0;
    else if (said.host_size == 0)
        error = -EINVAL;
    *ret_said = said;
    return error;
}

/* Check a request of the user. Returns 0; -EINVAL for a request that HTTP cannot express. */
static int check_request_of_user(const domus_http_request *request)
{
    if (request->method >= DOMUS_HTTP_METHODS)
        return -EINVAL;
    if (request->method == DOMUS_HTTP_CONNECT || request->length > DOMI_HTTP_LENGTH_MAX)
        return -EINVAL;
    return request->method == DOMUS_HTTP_TRACE && request->body.size != 0 ? -EINVAL : 0;
}

/* Returns whether a request has a body, either whole or in pieces. */
static bool has_request_a_body(const domus_http_request *request, const uint64_t *stream)
{
    return stream != NULL || request->body.size != 0;
}

static char *put_framing_fields_of_request(char *to, const domus_http_request *request,
                                           const uint64_t *stream)
{
    if (request->tunnels) {
        /* a request for a tunnel has no body, so it needs no field for the length */
    } else if (stream != NULL && request->length == 0) {
        to = DOMI_HTTP_PUT(to, "Transfer-Encoding: chunked\r\n");
    } else if (stream != NULL || must_request_have_length(request)) {
        to = DOMI_HTTP_PUT(to, "Content-Length: ");
        to =
            domi_http_put_decimal_number(to, stream != NULL ? request->length : request->body.size);
        to = DOMI_HTTP_PUT(to, "\r\n");
    }
    if (request->close)
        return request->upgrade ? DOMI_HTTP_PUT(to, "Connection: close, upgrade\r\n")
                                : DOMI_HTTP_PUT(to, "Connection: close\r\n");
    return request->upgrade ? DOMI_HTTP_PUT(to, "Connection: upgrade\r\n") : to;
}

/* Append the head of a request to the bytes that the client sends. */
static int append_request_head(domus_wire *wire, const domus_http_request *request,
                               const place *said, const uint64_t *stream)
{
    const char *method = domus_http_method_name(request->method);
    char *begin = domus_wire_room(wire, DOMI_HTTP_HEAD_ROOM);
    char *to = begin;

    if (begin == NULL)
        return -ENOMEM;
    to = domi_http_put_bytes(to, method, strlen(method));
    *to++ = ' ';
    if (said->is_rootless)
        *to++ = '/';
    domus_wire_written(wire, (size_t)(to - begin));
    int error = domus_wire_append_slice(wire, said->target);
    if (error != 0)
        return error;
    begin = to = domus_wire_room(wire, DOMI_HTTP_HEAD_ROOM + said->host_size);
    if (begin == NULL)
        return -ENOMEM;
    to = DOMI_HTTP_PUT(to, " HTTP/1.1\r\n");
    if (said->host_size != 0) {
        to = DOMI_HTTP_PUT(to, "Host: ");
        to = domi_http_put_bytes(to, said->host, said->host_size);
        to = DOMI_HTTP_PUT(to, "\r\n");
    }
    if (said->accepts_gzip)
        to = DOMI_HTTP_PUT(to, "Accept-Encoding: gzip\r\n");
    if (said->expects)
        to = DOMI_HTTP_PUT(to, "Expect: 100-continue\r\n");
    to = put_framing_fields_of_request(to, request, stream);
    domus_wire_written(wire, (size_t)(to - begin));
    error = domus_wire_append_slice(wire, request->fields);
    return error != 0 ? error : domus_wire_append(wire, "\r\n", 2);
}

/* Append a request: first an earlier body that still waits for 100 Continue, then the head, and the
 * body if it is complete. If this request's own body has to wait, `ret_waiting` gets it instead. */
static int append_request_and_waiting_body(domus_wire *wire, const domi_http_state *state,
                                           const domus_http_request *request, const place *said,
                                           const uint64_t *stream, domus_slice *ret_waiting)
{
    int error =
        state->wait == DOMI_HTTP_WAITS ? domi_http_append_body_waiting_for_100(wire, state) : 0;

    if (error == 0)
        error = append_request_head(wire, request, said, stream);
    if (error != 0)
        return error;
    return request->expects ? domus_slice_keep(request->body, ret_waiting)
                            : domus_wire_append_slice(wire, request->body);
}

/* Returns whether a request may ask for a tunnel. Nothing may be sent behind it before its answer,
 * so the tunnel's bytes have to come in pieces. */
static bool may_request_ask_for_tunnel(const domi_http_state *state,
                                       const domus_http_request *request, const uint64_t *stream)
{
    return stream != NULL && state->options.streams && request->upgrade && !request->expects &&
           request->length == 0;
}

/* Returns the word of the stream, which tells how the body of a request is sent. */
static uint64_t word_of_stream_for_request_body(const domus_http_request *request)
{
    if (request->tunnels)
        return DOMI_HTTP_STREAM_TUNNEL;
    return request->length != 0 ? DOMI_HTTP_STREAM_COUNTED | request->length
                                : DOMI_HTTP_STREAM_CHUNKS;
}

static int encode_request_of_client(domus_wire *wire, domi_http_state *state,
                                    const domus_http_request *request)
{
    uint64_t *stream = domus_wire_stream(wire);
    place said = {0};
    int has = domi_http_check_fields(request->fields);
    int error = find_host_and_target(state, request, has, &said);
    bool waits = request->expects && has_request_a_body(request, stream);
    domus_slice waiting = {NULL, 0, 0};

    if (stream != NULL && *stream != 0)
        return -EOPNOTSUPP; /* the request has a head already, so it cannot begin again */
    if (error == 0)
        error = check_request_of_user(request);
    if (error != 0 || (stream != NULL && request->body.size != 0))
        return -EINVAL;
    if ((has & DOMI_HTTP_FIELD_EXPECT) != 0 && !has_request_a_body(request, stream))
        return -EINVAL; /* refused, because the server would wait for a body that never comes */
    if (request->tunnels && !may_request_ask_for_tunnel(state, request, stream))
        return -EINVAL;
    if (state->asked.count == DOMI_HTTP_ASKED_MAX)
        return -ENOBUFS;
    if (state->wait == DOMI_HTTP_UNWANTED)
        /* refused, because the server may take these bytes for the body that it did not get */
        return -EPIPE;
    said.expects = waits && (has & DOMI_HTTP_FIELD_EXPECT) == 0;
    error = append_request_and_waiting_body(wire, state, request, &said, stream, &waiting);
    if (error != 0)
        return error;
    domi_http_end_wait_after_body_was_sent(wire, state);
    domi_http_add_marks_of_sent_request(state, request->method == DOMUS_HTTP_HEAD,
                                        request->upgrade);
    if (request->close)
        domus_wire_last(wire);
    if (stream != NULL)
        *stream = word_of_stream_for_request_body(request);
    state->tunnel = request->tunnels ? DOMI_HTTP_TUNNEL_ASKED : DOMI_HTTP_NO_TUNNEL;
    if (waits)
        domi_http_let_body_wait_for_100(wire, state, waiting, stream);
    return 0;
}

/* Returns whether a piece is one of the request whose body waits for 100 Continue. */
static bool is_piece_of_waiting_body(domus_wire *wire, const domi_http_state *state)
{
    const uint64_t *stream = domus_wire_stream(wire);

    return state->wait != DOMI_HTTP_GOES && stream != NULL && *stream != 0;
}

/* Returns whether a piece is for a tunnel that is asked for but not open yet, so that it accepts no
 * bytes. */
static bool is_piece_before_open_tunnel(domus_wire *wire, const domi_http_state *state)
{
    const uint64_t *stream = domus_wire_stream(wire);

    return stream != NULL && *stream == DOMI_HTTP_STREAM_TUNNEL &&
           state->tunnel != DOMI_HTTP_TUNNEL_OPEN;
}

int domi_http_encode_ask_of_client(domus_wire *wire, domi_http_state *state, uint64_t id,
                                   const domus_type *type, const void *payload)
{
    if (id == DOMUS_NO_ID)
        /* a request as a notice is refused: it has no asker, so its answer would go to the next
         * ask */
        return -EOPNOTSUPP;
    if (type == &domus_http_request_type || type == &domus_http_repeatable_type)
        return encode_request_of_client(wire, state, payload);
    if (is_piece_before_open_tunnel(wire, state))
        return type == &domus_piece_type && ((const domus_piece *)payload)->last ? 0 : -EPIPE;
    if (type == &domus_piece_type)
        return is_piece_of_waiting_body(wire, state)
                   ? domi_http_encode_piece_of_waiting_body(wire, state, payload, NULL)
                   : domi_http_append_piece_of_stream(wire, domus_wire_stream(wire), payload);
    if (type == &domus_http_trailers_type)
        return is_piece_of_waiting_body(wire, state)
                   ? domi_http_encode_piece_of_waiting_body(wire, state, NULL, payload)
                   : domi_http_append_trailers_of_stream(wire, domus_wire_stream(wire), payload);
    return -EOPNOTSUPP;
}
