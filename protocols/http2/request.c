/* Makes the HTTP/1.1 text of a request, and passes it to an inner channel.
 *
 * The text is made of parts without any byte that could end a line or a part: nghttp2 has checked
 * them, and so does this file. Fields that frame a message or concern a connection are written here
 * and never taken from the peer, except Content-Length, whose bytes nghttp2 counts. */
#include "protocols/http2/http2.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FIELD_COST 32u /* bytes that a field counts beside its name and value (RFC 9113 6.5.2) */

/* --- fields ----------------------------------------------------------------------------------- */

bool domi_h2_is_field_named(nghttp2_vec name, const char *text)
{
    return name.len == strlen(text) && memcmp(name.base, text, name.len) == 0;
}

/* Returns whether the name of a field is valid: visible bytes without capital letters and
 * colons. */
bool domi_h2_is_valid_field_name(nghttp2_vec name)
{
    for (size_t i = 0; i < name.len; i++) {
        uint8_t byte = name.base[i];
        if (byte <= ' ' || byte >= 0x7f || byte == ':' || (byte >= 'A' && byte <= 'Z'))
            return false;
    }
    return name.len != 0;
}

/* Returns whether the value of a field is valid: no control characters but tabs. */
bool domi_h2_is_valid_field_value(nghttp2_vec value)
{
    for (size_t i = 0; i < value.len; i++) {
        if ((value.base[i] < ' ' && value.base[i] != '\t') || value.base[i] == 0x7f)
            return false;
    }
    return true;
}

/* Returns whether a part of a request's start line is valid: visible bytes only. */
static bool is_valid_part_of_start_line(nghttp2_vec part)
{
    for (size_t i = 0; i < part.len; i++) {
        if (part.base[i] <= ' ' || part.base[i] == 0x7f)
            return false;
    }
    return part.len != 0;
}

/* Returns whether a field belongs to a connection of HTTP/1.1; a request that has such a field is
 * malformed. */
bool domi_h2_is_field_of_connection(nghttp2_vec name)
{
    static const char *const names[] = {"connection", "transfer-encoding", "upgrade", "keep-alive",
                                        "proxy-connection"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (domi_h2_is_field_named(name, names[i]))
            return true;
    }
    return false;
}

static void replace_and_keep_field_buffer(nghttp2_rcbuf **to, nghttp2_rcbuf *from)
{
    if (*to != NULL)
        nghttp2_rcbuf_decref(*to);
    nghttp2_rcbuf_incref(from);
    *to = from;
}

static int put_bytes_of_field(domi_h2_text *text, nghttp2_vec bytes)
{
    return domi_h2_append_text(text, bytes.base, bytes.len);
}

int domi_h2_append_field_as_line(domi_h2_text *text, nghttp2_vec name, nghttp2_vec value)
{
    int error = put_bytes_of_field(text, name);

    if (error == 0)
        error = DOMI_H2_PUT(text, ": ");
    if (error == 0)
        error = put_bytes_of_field(text, value);
    return error != 0 ? error : DOMI_H2_PUT(text, "\r\n");
}

/* Append the value of a Cookie field to the others, which are joined to one field (RFC 9113
 * 8.2.3). */
static int append_cookie_to_joined_cookies(domi_h2_block *block, nghttp2_vec value)
{
    int error = block->cookie.size != 0 ? DOMI_H2_PUT(&block->cookie, "; ") : 0;

    return error != 0 ? error : put_bytes_of_field(&block->cookie, value);
}

/* Handle the field :protocol, which makes a CONNECT one of RFC 8441; nghttp2 accepts it only if
 * this side has announced it. */
static void accept_connect_only_for_websocket(domi_h2_block *block, nghttp2_vec value)
{
    block->is_tunnel = domi_h2_is_field_named(value, "websocket");
    if (!block->is_tunnel)
        block->status = 501;
}

/* Handle a field of a request whose name begins with a colon; nghttp2 has checked these names and
 * their order. */
static void keep_pseudo_field_of_request(domi_h2_block *block, nghttp2_vec name,
                                         nghttp2_rcbuf *value)
{
    if (!is_valid_part_of_start_line(nghttp2_rcbuf_get_buf(value)))
        block->is_malformed = true;
    else if (domi_h2_is_field_named(name, ":method"))
        replace_and_keep_field_buffer(&block->method, value);
    else if (domi_h2_is_field_named(name, ":path"))
        replace_and_keep_field_buffer(&block->path, value);
    else if (domi_h2_is_field_named(name, ":authority"))
        replace_and_keep_field_buffer(&block->authority, value);
    else if (domi_h2_is_field_named(name, ":protocol"))
        accept_connect_only_for_websocket(block, nghttp2_rcbuf_get_buf(value));
}

/* Count a field of the received block. Returns whether the block is within its limits. */
bool domi_h2_count_field_within_limits(domi_h2 *h2, nghttp2_vec name, nghttp2_vec value)
{
    domi_h2_block *block = &h2->block;
    size_t bytes = name.len + value.len + FIELD_COST;
    bool is_pseudo = name.len != 0 && *name.base == ':';

    if (bytes > h2->options.head_max - block->bytes ||
        (!is_pseudo && ++block->fields > h2->options.fields_max)) {
        block->status = 431;
        return false;
    }
    block->bytes += (uint32_t)bytes;
    return true;
}

int domi_h2_take_field_of_block(domi_h2 *h2, nghttp2_rcbuf *name_, nghttp2_rcbuf *value_)
{
    domi_h2_block *block = &h2->block;
    nghttp2_vec name = nghttp2_rcbuf_get_buf(name_);
    nghttp2_vec value = nghttp2_rcbuf_get_buf(value_);

    if (block->status != 0 || block->is_malformed ||
        !domi_h2_count_field_within_limits(h2, name, value))
        return 0;
    if (name.len != 0 && *name.base == ':') {
        keep_pseudo_field_of_request(block, name, value_);
        return 0;
    }
    if (!domi_h2_is_valid_field_name(name) || !domi_h2_is_valid_field_value(value) ||
        domi_h2_is_field_of_connection(name)) {
        block->is_malformed = true;
        return 0;
    }
    if (domi_h2_is_field_named(name, "te"))
        /* the field concerns the connection of HTTP/1.1, so it is dropped; trailers are accepted
         * anyway */
        return 0;
    if (block->is_trailers)
        return domi_h2_append_field_as_line(&block->text, name, value);
    if (domi_h2_is_field_named(name, "cookie"))
        return append_cookie_to_joined_cookies(block, value);
    if (domi_h2_is_field_named(name, "host")) {
        block->is_malformed = block->host != NULL || !is_valid_part_of_start_line(value);
        replace_and_keep_field_buffer(&block->host, value_);
        return 0;
    }
    if (block->is_tunnel && !domi_h2_is_field_passed_to_websocket(name))
        return 0;
    block->has_length = block->has_length || domi_h2_is_field_named(name, "content-length");
    return domi_h2_append_field_as_line(&block->text, name, value);
}

/* --- blocks ----------------------------------------------------------------------------------- */

void domi_h2_begin_block_of_fields(domi_h2 *h2, bool is_trailers)
{
    domi_h2_block *block = &h2->block;

    domi_h2_drop_block_of_fields(h2);
    *block = (domi_h2_block){
        .open = true, .is_trailers = is_trailers, .text = block->text, .cookie = block->cookie};
    block->text.size = 0;
    block->cookie.size = 0;
}

static void drop_field_buffer(nghttp2_rcbuf **buffer)
{
    if (*buffer != NULL)
        nghttp2_rcbuf_decref(*buffer);
    *buffer = NULL;
}

void domi_h2_drop_block_of_fields(domi_h2 *h2)
{
    drop_field_buffer(&h2->block.method);
    drop_field_buffer(&h2->block.path);
    drop_field_buffer(&h2->block.authority);
    drop_field_buffer(&h2->block.host);
    h2->block.open = false;
}

/* Returns whether the request's field Host, if there is one, is equal to its :authority. */
static bool is_host_equal_to_authority(const domi_h2_block *block)
{
    if (block->host == NULL || block->authority == NULL)
        return true;
    nghttp2_vec host = nghttp2_rcbuf_get_buf(block->host);
    nghttp2_vec authority = nghttp2_rcbuf_get_buf(block->authority);
    return host.len == authority.len && memcmp(host.base, authority.base, host.len) == 0;
}

/* Check the parts of a request's start line, and set the status of a refusal. */
static void check_parts_of_start_line(domi_h2_block *block)
{
    if (block->method == NULL || !is_host_equal_to_authority(block)) {
        block->is_malformed = true;
        return;
    }
    bool is_connect = domi_h2_is_field_named(nghttp2_rcbuf_get_buf(block->method), "CONNECT");
    if (is_connect && !block->is_tunnel) {
        block->status = 501; /* refused, because tunnels by CONNECT are not supported */
        return;
    }
    if (block->is_tunnel && !is_connect)
        block->is_malformed = true;
    nghttp2_vec path =
        block->path != NULL ? nghttp2_rcbuf_get_buf(block->path) : (nghttp2_vec){NULL, 0};
    bool is_star = domi_h2_is_field_named(path, "*") &&
                   domi_h2_is_field_named(nghttp2_rcbuf_get_buf(block->method), "OPTIONS");
    if (path.len == 0 || (*path.base != '/' && !is_star))
        block->is_malformed = true;
}

/* Write the request's start line, and the fields that stand first. Returns 0; -ENOMEM. */
static int put_start_line_and_first_fields(const domi_h2_block *block, domi_h2_text *text)
{
    const nghttp2_rcbuf *host = block->authority != NULL ? block->authority : block->host;
    nghttp2_vec name = {(uint8_t *)(uintptr_t) "host", 4};
    int error = block->is_tunnel ? DOMI_H2_PUT(text, "GET")
                                 : put_bytes_of_field(text, nghttp2_rcbuf_get_buf(block->method));

    if (error == 0)
        error = DOMI_H2_PUT(text, " ");
    if (error == 0)
        error = put_bytes_of_field(text, nghttp2_rcbuf_get_buf(block->path));
    if (error == 0)
        error = DOMI_H2_PUT(text, " HTTP/1.1\r\n");
    if (error == 0 && host != NULL)
        error = domi_h2_append_field_as_line(
            text, name, nghttp2_rcbuf_get_buf((nghttp2_rcbuf *)(uintptr_t)host));
    return error;
}

/* Write the request's fields that stand behind the others. Returns 0; -ENOMEM. */
static int put_cookie_and_last_fields(domi_h2_block *block, bool in_chunks)
{
    const nghttp2_vec name = {(uint8_t *)(uintptr_t) "cookie", 6};
    const nghttp2_vec cookie = {(uint8_t *)block->cookie.bytes, block->cookie.size};
    int error = cookie.len != 0 ? domi_h2_append_field_as_line(&block->text, name, cookie) : 0;

    if (error == 0 && block->is_tunnel)
        error = domi_h2_append_websocket_fields(&block->text);
    if (error == 0 && in_chunks)
        error = DOMI_H2_PUT(&block->text, "transfer-encoding: chunked\r\n");
    return error != 0 ? error : DOMI_H2_PUT(&block->text, "\r\n");
}

/* --- requests --------------------------------------------------------------------------------- */

/* Answer a request by a status, without a handler. If more of the request comes,
 * domi_h2_pass_part_of_body() resets its stream; a reset that is queued now would take the place of
 * the answer. */
static int answer_request_without_handler(domi_h2 *h2, int32_t id, unsigned status)
{
    char text[4];
    snprintf(text, sizeof text, "%03u", status % 1000u);
    const nghttp2_nv fields[] = {
        {(uint8_t *)(uintptr_t) ":status", (uint8_t *)text, 7, 3, NGHTTP2_NV_FLAG_NONE},
        {(uint8_t *)(uintptr_t) "content-length", (uint8_t *)(uintptr_t) "0", 14, 1,
         NGHTTP2_NV_FLAG_NONE}};
    int result = nghttp2_submit_response(h2->session, id, fields, 2, NULL);

    domi_h2_count_reset_stream(h2);
    return result == NGHTTP2_ERR_NOMEM ? -ENOMEM : 0;
}

static int pass_text_to_inner_channel(domi_h2_lane *lane, const char *bytes, size_t size)
{
    int error = domus_inner_pass(lane->inner, bytes, size);

    /* -EPIPE: the handler has closed its channel, so the peer learns it by the answer, or by its
     * lack */
    return error == -EPIPE ? 0 : error;
}

static int begin_request_of_stream(domi_h2 *h2, int32_t id, bool is_last)
{
    domi_h2_block *block = &h2->block;
    bool in_chunks = !is_last && !block->has_length && !block->is_tunnel;
    domi_h2_text start = {NULL, 0, 0};
    domi_h2_lane *lane;
    /* there are too many streams, or the peer was told that the connection ends before this one */
    bool is_beyond = h2->streams >= h2->options.streams_max || h2->drain == 2;
    int error = is_beyond ? -ENOBUFS : domi_h2_make_lane_busy_for_stream(h2, id, &lane);

    /* nothing of the request was done, so REFUSED_STREAM lets the peer try it again */
    if (error != 0) {
        (void)nghttp2_submit_rst_stream(h2->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM);
        return error == -ENOMEM ? error : 0;
    }
    lane->is_head = domi_h2_is_field_named(nghttp2_rcbuf_get_buf(block->method), "HEAD");
    lane->in_chunks = in_chunks;
    lane->tunnels = block->is_tunnel;
    lane->is_passed = is_last;
    error = put_start_line_and_first_fields(block, &start);
    if (error == 0)
        error = put_cookie_and_last_fields(block, in_chunks);
    if (error == 0) /* appended at once, so that slices of the head need no copy */
        error = domi_h2_append_text(&start, block->text.bytes, block->text.size);
    if (error == 0)
        error = pass_text_to_inner_channel(lane, start.bytes, start.size);
    domi_h2_free_text(&start);
    return error;
}

static int end_request_with_trailers(domi_h2 *h2, int32_t id)
{
    domi_h2_lane *lane = domi_h2_lane_of_stream(h2, id);
    int error = 0;

    if (lane == NULL || lane->is_passed)
        return 0;
    lane->is_passed = true;
    /* the trailers are dropped: HTTP/1.1 has no place for them behind a body of known length */
    if (!lane->in_chunks)
        return 0;
    error = pass_text_to_inner_channel(lane, "0\r\n", 3);
    if (error == 0)
        error = pass_text_to_inner_channel(lane, h2->block.text.bytes, h2->block.text.size);
    return error != 0 ? error : pass_text_to_inner_channel(lane, "\r\n", 2);
}

static int begin_or_end_request_by_block(domi_h2 *h2, int32_t id, bool is_last)
{
    const domi_h2_block *block = &h2->block;

    if (block->is_malformed || (block->is_trailers && block->status != 0)) {
        (void)nghttp2_submit_rst_stream(h2->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_PROTOCOL_ERROR);
        return 0;
    }
    if (block->is_trailers)
        return end_request_with_trailers(h2, id);
    return block->status != 0 ? answer_request_without_handler(h2, id, block->status)
                              : begin_request_of_stream(h2, id, is_last);
}

int domi_h2_end_block_of_fields(domi_h2 *h2, int32_t id, bool is_last)
{
    if (!h2->block.is_trailers && h2->block.status == 0)
        check_parts_of_start_line(&h2->block);
    int error = begin_or_end_request_by_block(h2, id, is_last);
    domi_h2_drop_block_of_fields(h2);
    return error;
}

/* --- bodies ----------------------------------------------------------------------------------- */

int domi_h2_pass_part_of_body(domi_h2 *h2, int32_t id, const uint8_t *bytes, size_t size)
{
    domi_h2_lane *lane = domi_h2_lane_of_stream(h2, id);
    char line[24];
    int error = 0;

    /* nobody wants these bytes of a body, so the peer gets credit for them, and a reset */
    if (lane == NULL || lane->is_passed || domi_h2_is_answered_before_request_end(lane)) {
        (void)nghttp2_session_consume(h2->session, id, size);
        if (lane != NULL)
            domi_h2_reset_stream_of_lane(lane, NGHTTP2_NO_ERROR);
        else
            (void)nghttp2_submit_rst_stream(h2->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR);
        return 0;
    }
    lane->data += size;
    if (lane->tunnels)
        return domi_h2_pass_bytes_to_tunnel(lane, bytes, size);
    if (lane->in_chunks) {
        int length = snprintf(line, sizeof line, "%zx\r\n", size);
        error = pass_text_to_inner_channel(lane, line, (size_t)length);
    }
    if (error == 0)
        error = pass_text_to_inner_channel(lane, (const char *)bytes, size);
    if (error == 0 && lane->in_chunks)
        error = pass_text_to_inner_channel(lane, "\r\n", 2);
    return error;
}

int domi_h2_pass_end_of_body(domi_h2 *h2, int32_t id)
{
    domi_h2_lane *lane = domi_h2_lane_of_stream(h2, id);

    if (lane == NULL || lane->is_passed)
        return 0;
    lane->is_passed = true;
    if (lane->tunnels)
        domi_h2_pass_end_to_tunnel(lane);
    return lane->in_chunks ? pass_text_to_inner_channel(lane, "0\r\n\r\n", 5) : 0;
}
