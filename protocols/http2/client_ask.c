/* Reads the requests of a client's inner channels, which are those of HTTP/1.1, and begins a stream
 * for each. Their bodies are sent as those of answers are (body.c). */
#include "protocols/http2/client.h"

#include <errno.h>
#include <string.h>

#define FIRST 4u /* number of pseudo-header fields of a request, which stand before all others */

/* The parts of the start line of an inner channel's request. */
typedef struct start {
    const char *method, *scheme, *authority, *path;
    size_t method_size, scheme_size, authority_size, path_size;
} start;

static nghttp2_nv make_nghttp2_field(const char *name, const char *value, size_t size)
{
    return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
                        .value = (uint8_t *)(uintptr_t)value,
                        .namelen = strlen(name),
                        .valuelen = size};
}

static bool does_text_begin_with(const char *text, size_t size, const char *with)
{
    return size >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

/* Split the target of a request, if it is a whole URL, into scheme, authority and path. */
static void split_target_of_request(start *line, const char *scheme)
{
    size_t skipped = strlen(scheme) + 3;

    line->scheme = scheme;
    line->scheme_size = strlen(scheme);
    line->authority = line->path + skipped;
    line->path_size -= skipped;
    line->authority_size = 0;
    while (line->authority_size < line->path_size &&
           strchr("/?", line->authority[line->authority_size]) == NULL)
        line->authority_size++;
    line->path = line->authority + line->authority_size;
    line->path_size -= line->authority_size;
}

/* Read the start line of a request, "METHOD target HTTP/1.1", without its line end. Returns 0;
 * -EPROTO. */
static int read_start_line_of_request(const domi_h2 *h2, const char *text, size_t size,
                                      start *ret_line)
{
    static const char version[] = " HTTP/1.1";
    const size_t behind = sizeof version - 1;
    const char *space = memchr(text, ' ', size);
    size_t agreed;

    if (space == NULL || size < behind || memcmp(text + size - behind, version, behind) != 0)
        return -EPROTO;
    size_t method_size = (size_t)(space - text);
    if (method_size + 1 + behind >= size) /* the start line has no target */
        return -EPROTO;
    bool is_secure = domus_wire_agreed(h2->wire, &agreed) != NULL;
    *ret_line = (start){.method = text,
                        .method_size = method_size,
                        .scheme = is_secure ? "https" : "http",
                        .scheme_size = is_secure ? 5 : 4,
                        .path = space + 1,
                        .path_size = size - behind - method_size - 1};
    if (does_text_begin_with(ret_line->path, ret_line->path_size, "http://"))
        split_target_of_request(ret_line, "http");
    else if (does_text_begin_with(ret_line->path, ret_line->path_size, "https://"))
        split_target_of_request(ret_line, "https");
    return 0;
}

static bool has_field_this_name(const nghttp2_nv *field, const char *name)
{
    return field->namelen == strlen(name) && memcmp(field->name, name, field->namelen) == 0;
}

/* Use the value of the field Host as :authority, and leave out the field TE unless HTTP/2 allows
 * its value. */
static void make_authority_of_host_and_drop_te(domi_h2_fields *fields, const start *line)
{
    nghttp2_nv authority = make_nghttp2_field(":authority", line->authority, line->authority_size);
    size_t kept = FIRST;

    for (size_t i = FIRST; i < fields->count; i++) {
        const nghttp2_nv field = fields->fields[i];
        bool is_te = has_field_this_name(&field, "te") &&
                     (field.valuelen != 8 || memcmp(field.value, "trailers", 8) != 0);
        if (has_field_this_name(&field, "host"))
            authority = make_nghttp2_field(":authority", (const char *)field.value, field.valuelen);
        else if (!is_te)
            fields->fields[kept++] = field;
    }
    fields->count = kept;
    fields->fields[FIRST - 1] = authority;
}

/* Submit the head of a request to nghttp2, which begins the lane's stream. Returns 0; a negative
 * errno. */
static int submit_head_of_request(domi_h2_lane *lane, const domi_h2_fields *fields)
{
    domi_h2 *h2 = lane->of;
    const nghttp2_data_provider body = {.read_callback = domi_h2_tell_size_of_next_body_frame};

    lane->phase = fields->in_chunks                           ? DOMI_H2_SIZE
                  : fields->has_length && fields->length != 0 ? DOMI_H2_COUNTED
                                                              : DOMI_H2_DONE;
    lane->left = fields->in_chunks ? 0 : fields->length;
    lane->closes = fields->closes;
    lane->heard = h2->heard;
    lane->is_head =
        fields->fields[0].valuelen == 4 && memcmp(fields->fields[0].value, "HEAD", 4) == 0;
    int32_t id = nghttp2_submit_request(h2->session, NULL, fields->fields, fields->count,
                                        lane->phase != DOMI_H2_DONE ? &body : NULL, lane);
    if (id > 0)
        lane->id = id;
    return id > 0 ? 0 : id == NGHTTP2_ERR_NOMEM ? -ENOMEM : -ESHUTDOWN;
}

/* Read the head of a request with its empty line, and begin the stream for it. Returns 0; a
 * negative errno. */
static int read_head_of_request(domi_h2_lane *lane, const char *head, size_t size)
{
    const char *end = memchr(head, '\r', size);
    domi_h2_fields fields;
    start line;
    int error = end != NULL
                    ? read_start_line_of_request(lane->of, head, (size_t)(end - head), &line)
                    : -EPROTO;

    if (error != 0)
        return error;
    if (line.path_size == 0) {
        line.path = "/";
        line.path_size = 1;
    }
    fields.count = FIRST;
    fields.names_size = 0;
    fields.in_chunks = fields.has_length = fields.closes = false;
    fields.length = 0;
    fields.fields[0] = make_nghttp2_field(":method", line.method, line.method_size);
    fields.fields[1] = make_nghttp2_field(":scheme", line.scheme, line.scheme_size);
    fields.fields[2] = make_nghttp2_field(":path", line.path, line.path_size);
    size_t first = (size_t)(end - head) + 2;
    error = domi_h2_read_fields_of_message(head + first, size - first - 2, &fields);
    if (error != 0)
        return error;
    make_authority_of_host_and_drop_te(&fields, &line);
    return submit_head_of_request(lane, &fields);
}

/* Give up a request for which the server has allowed no stream before its time was over. nghttp2
 * keeps the request's head until there is a stream, so if the server allows no streams at all, the
 * connection is given up, too. */
static void give_up_request_without_stream(domi_h2_lane *lane)
{
    domi_h2 *h2 = lane->of;

    (void)nghttp2_session_set_stream_user_data(h2->session, lane->id, NULL);
    (void)nghttp2_submit_rst_stream(h2->session, NGHTTP2_FLAG_NONE, lane->id, NGHTTP2_CANCEL);
    domi_h2_client_end_stream_of_lane(lane, NGHTTP2_CANCEL);
    if (nghttp2_session_get_remote_settings(h2->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS) ==
        0)
        domi_h2_client_stop_lending_at_goaway(h2);
}

/* Handle that an inner channel has ended before its stream began: its time is over, nobody wants
 * the answer, or the request was cut off. */
static void give_up_request_of_ended_channel(domi_h2_lane *lane)
{
    if (lane->id == 0) {
        domi_h2_client_end_stream_of_lane(lane, NGHTTP2_CANCEL);
    } else if (nghttp2_session_find_stream(lane->of->session, lane->id) == NULL) {
        give_up_request_without_stream(lane);
    } else {
        domi_h2_reset_stream_of_lane(lane, NGHTTP2_CANCEL);
        domi_h2_client_ping_if_server_is_silent(lane);
    }
}

/* Returns whether a lane's inner channel has ended and sends nothing any more. */
static bool has_inner_channel_ended(const domi_h2_lane *lane)
{
    return domus_inner_look(lane->inner, NULL) == DOMUS_INNER_CLOSED ||
           domus_inner_is_broken(lane->inner);
}

/* End the ask of a lane: it has failed before its stream began, or was answered while the server
 * has not ended the stream yet. */
static void settle_ask_of_inner_channel(domi_h2_lane *lane)
{
    if (lane->id == 0)
        domi_h2_client_make_failed_lane_idle(lane);
    else if (domus_inner_unused(lane->inner) == 0)
        domus_inner_rest(lane->inner);
}

int domi_h2_client_continue_request(domi_h2_lane *lane)
{
    int result = 1;

    if (lane->id != 0)
        domi_h2_credit_used_bytes_to_peer(lane);
    if (lane->is_cut)
        return 0;
    while (result == 1 && lane->phase == DOMI_H2_HEAD)
        result = domi_h2_read_next_head_of_inner_channel(lane, read_head_of_request);
    if (result == -ESHUTDOWN && lane->id == 0) {
        domi_h2_client_end_stream_of_lane(lane, NGHTTP2_REFUSED_STREAM);
        return 0;
    }
    if (result < 0 && lane->id == 0) {
        domi_h2_client_fail_ask_of_lane(lane, result == -ENOMEM ? -ENOMEM : -E2BIG);
        return result == -ENOMEM ? result : 0;
    }
    if (lane->id != 0 && lane->phase != DOMI_H2_HEAD)
        (void)nghttp2_session_resume_data(lane->of->session, lane->id);
    if (has_inner_channel_ended(lane))
        give_up_request_of_ended_channel(lane);
    else if (!domus_inner_has_ask(lane->inner))
        settle_ask_of_inner_channel(lane);
    return 0;
}
