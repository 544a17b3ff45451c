/* Encodes the requests of a client. */
#include "protocols/http/chars.h"
#include "protocols/http/method.h"
#include "protocols/http/write.h"

#include <domus/http_client.h>
#include <domus/http_url.h>

#include <errno.h>

/* A target is a path, "*", or a whole address; nothing in it can end it. */
static bool is_target(const domus_http_request *request)
{
    const char *target = domus_slice_data(request->target);
    size_t size = request->target.size;

    if (size == 0 || domi_http_run_target(target, size) != size)
        return false;
    if (*target == '*')
        return size == 1 && request->method == DOMUS_HTTP_OPTIONS;
    return *target == '/' || (size > 7 && domi_http_is_same(target, "http://", 7)) ||
           (size > 8 && domi_http_is_same(target, "https://", 8));
}

/* Methods whose requests mean something by an empty body, so that its length is said. */
static bool wants_length(const domus_http_request *request)
{
    return request->body.size != 0 || request->method == DOMUS_HTTP_POST ||
           request->method == DOMUS_HTTP_PUT || request->method == DOMUS_HTTP_PATCH;
}

/* The place that a head names. Its texts own nothing. */
typedef struct place {
    const char *host; /* for the field Host */
    size_t host_size; /* 0: the fields have it */
    domus_slice target;
    bool is_rootless;  /* a '/' is put before the target */
    bool accepts_gzip; /* the head says so, and the fields do not */
    bool expects;      /* the same of "Expect: 100-continue" */
} place;

/* Make an origin form of a target in absolute form. Returns 0; -EINVAL. */
static int take_apart(place *said)
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

static bool accepts_gzip(const domi_http_state *state, const domus_http_request *request)
{
    domus_slice value;

    return state->options.unzip && !domus_http_field(request->fields, "accept-encoding", &value);
}

/* Find the place that a head has to name. Returns 0; -EINVAL for what HTTP cannot say. */
static int find_place(const domi_http_state *state, const domus_http_request *request, int has,
                      place *ret_said)
{
    const char *host = state->options.host;
    place said = {.host = host,
                  .host_size = host != NULL ? strlen(host) : 0,
                  .target = request->target,
                  .accepts_gzip = accepts_gzip(state, request)};
    char first = *domus_slice_data(request->target);

    if (has < 0 || !is_target(request))
        return -EINVAL;
    int error = state->options.origin_form && first != '/' && first != '*' ? take_apart(&said) : 0;
    if ((has & DOMI_HTTP_FIELD_HOST) != 0)
        said.host_size = 0;
    else if (said.host_size == 0)
        error = -EINVAL;
    *ret_said = said;
    return error;
}

/* Returns 0; -EINVAL for a request that HTTP cannot say. */
static int check_request(const domus_http_request *request)
{
    if (request->method >= DOMUS_HTTP_METHODS)
        return -EINVAL;
    if (request->method == DOMUS_HTTP_CONNECT || request->length > DOMI_HTTP_LENGTH_MAX)
        return -EINVAL;
    return request->method == DOMUS_HTTP_TRACE && request->body.size != 0 ? -EINVAL : 0;
}

/* Whether a request has a body, which may be one in pieces. */
static bool has_body(const domus_http_request *request, const uint64_t *stream)
{
    return stream != NULL || request->body.size != 0;
}

static char *put_framing(char *to, const domus_http_request *request, const uint64_t *stream)
{
    if (request->tunnels) {
        /* it has no body */
    } else if (stream != NULL && request->length == 0) {
        to = DOMI_HTTP_PUT(to, "Transfer-Encoding: chunked\r\n");
    } else if (stream != NULL || wants_length(request)) {
        to = DOMI_HTTP_PUT(to, "Content-Length: ");
        to = domi_http_put_number(to, stream != NULL ? request->length : request->body.size);
        to = DOMI_HTTP_PUT(to, "\r\n");
    }
    if (request->close)
        return request->upgrade ? DOMI_HTTP_PUT(to, "Connection: close, upgrade\r\n")
                                : DOMI_HTTP_PUT(to, "Connection: close\r\n");
    return request->upgrade ? DOMI_HTTP_PUT(to, "Connection: upgrade\r\n") : to;
}

/* Append the head. */
static int append_request_head(domus_wire *wire, const domus_http_request *request,
                               const place *said, const uint64_t *stream)
{
    const char *method = domus_http_method_name(request->method);
    char *begin = domus_wire_room(wire, DOMI_HTTP_HEAD_ROOM);
    char *to = begin;

    if (begin == NULL)
        return -ENOMEM;
    to = domi_http_put(to, method, strlen(method));
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
        to = domi_http_put(to, said->host, said->host_size);
        to = DOMI_HTTP_PUT(to, "\r\n");
    }
    if (said->accepts_gzip)
        to = DOMI_HTTP_PUT(to, "Accept-Encoding: gzip\r\n");
    if (said->expects)
        to = DOMI_HTTP_PUT(to, "Expect: 100-continue\r\n");
    to = put_framing(to, request, stream);
    domus_wire_written(wire, (size_t)(to - begin));
    error = domus_wire_append_slice(wire, request->fields);
    return error != 0 ? error : domus_wire_append(wire, "\r\n", 2);
}

/* A body that waits leaves before the next request. Then append the head of that, and the body if
 * it is whole; if it is to wait, `ret_waiting` is set to it instead. */
static int append_request(domus_wire *wire, const domi_http_state *state,
                          const domus_http_request *request, const place *said,
                          const uint64_t *stream, domus_slice *ret_waiting)
{
    int error = state->wait == DOMI_HTTP_WAITS ? domi_http_append_waiting(wire, state) : 0;

    if (error == 0)
        error = append_request_head(wire, request, said, stream);
    if (error != 0)
        return error;
    return request->expects ? domus_slice_keep(request->body, ret_waiting)
                            : domus_wire_append_slice(wire, request->body);
}

/* Whether a tunnel may be asked for. It is the last thing that is sent before its answer, and the
 * bytes behind that come in pieces. */
static bool may_tunnel(const domi_http_state *state, const domus_http_request *request,
                       const uint64_t *stream)
{
    return stream != NULL && state->options.streams && request->upgrade && !request->expects &&
           request->length == 0;
}

/* The word of the stream of a request. */
static uint64_t word_of(const domus_http_request *request)
{
    if (request->tunnels)
        return DOMI_HTTP_STREAM_TUNNEL;
    return request->length != 0 ? DOMI_HTTP_STREAM_COUNTED | request->length
                                : DOMI_HTTP_STREAM_CHUNKS;
}

static int encode_request(domus_wire *wire, domi_http_state *state,
                          const domus_http_request *request)
{
    uint64_t *stream = domus_wire_stream(wire);
    place said = {0};
    int has = domi_http_check_fields(request->fields);
    int error = find_place(state, request, has, &said);
    bool waits = request->expects && has_body(request, stream);
    domus_slice waiting = {NULL, 0, 0};

    if (stream != NULL && *stream != 0)
        return -EOPNOTSUPP; /* a second head */
    if (error == 0)
        error = check_request(request);
    if (error != 0 || (stream != NULL && request->body.size != 0))
        return -EINVAL;
    if ((has & DOMI_HTTP_FIELD_EXPECT) != 0 && !has_body(request, stream))
        return -EINVAL; /* the server would wait for a body that does not come */
    if (request->tunnels && !may_tunnel(state, request, stream))
        return -EINVAL;
    if (state->asked.count == DOMI_HTTP_ASKED_MAX)
        return -ENOBUFS;
    if (state->wait == DOMI_HTTP_UNWANTED)
        return -EPIPE; /* the server may take it for the body that it did not get */
    said.expects = waits && (has & DOMI_HTTP_FIELD_EXPECT) == 0;
    error = append_request(wire, state, request, &said, stream, &waiting);
    if (error != 0)
        return error;
    domi_http_end_wait(wire, state);
    domi_http_note_asked(state, request->method == DOMUS_HTTP_HEAD, request->upgrade);
    if (request->close)
        domus_wire_last(wire);
    if (stream != NULL)
        *stream = word_of(request);
    state->tunnel = request->tunnels ? DOMI_HTTP_TUNNEL_ASKED : DOMI_HTTP_NO_TUNNEL;
    if (waits)
        domi_http_begin_wait(wire, state, waiting, stream);
    return 0;
}

/* Whether a part belongs to a request whose body does not go as it comes. */
static bool is_of_waiting(domus_wire *wire, const domi_http_state *state)
{
    const uint64_t *stream = domus_wire_stream(wire);

    return state->wait != DOMI_HTTP_GOES && stream != NULL && *stream != 0;
}

/* Whether a part is for a tunnel that is not open, and then takes no bytes. */
static bool is_before_tunnel(domus_wire *wire, const domi_http_state *state)
{
    const uint64_t *stream = domus_wire_stream(wire);

    return stream != NULL && *stream == DOMI_HTTP_STREAM_TUNNEL &&
           state->tunnel != DOMI_HTTP_TUNNEL_OPEN;
}

int domi_http_encode_ask(domus_wire *wire, domi_http_state *state, uint64_t id,
                         const domus_type *type, const void *payload)
{
    if (id == DOMUS_NO_ID)
        return -EOPNOTSUPP; /* a notice: its answer would go to the next who asks */
    if (type == &domus_http_request_type || type == &domus_http_repeatable_type)
        return encode_request(wire, state, payload);
    if (is_before_tunnel(wire, state))
        return type == &domus_piece_type && ((const domus_piece *)payload)->last ? 0 : -EPIPE;
    if (type == &domus_piece_type)
        return is_of_waiting(wire, state)
                   ? domi_http_encode_waiting(wire, state, payload, NULL)
                   : domi_http_encode_piece(wire, domus_wire_stream(wire), payload);
    if (type == &domus_http_trailers_type)
        return is_of_waiting(wire, state)
                   ? domi_http_encode_waiting(wire, state, NULL, payload)
                   : domi_http_encode_trailers(wire, domus_wire_stream(wire), payload);
    return -EOPNOTSUPP;
}
