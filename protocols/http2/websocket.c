/* WebSockets in streams of HTTP/2 (RFC 8441). A CONNECT whose :protocol is "websocket" becomes the
 * HTTP/1.1 request that a client of RFC 6455 sends, and the answer 101 becomes 200; from then on
 * the bytes of both sides are passed unchanged.
 *
 * Bytes of the peer that come before that answer are kept here, because the inner channel would
 * take them for another request. The window of the stream bounds them. */
#include "protocols/http2/http2.h"

#include <errno.h>
#include <string.h>

static const char *const names_of_handshake[] = {"sec-websocket-key", "sec-websocket-accept",
                                                 "content-length"};

static bool is_field_of_websocket_handshake(const uint8_t *name, size_t size)
{
    for (size_t i = 0; i < sizeof names_of_handshake / sizeof *names_of_handshake; i++) {
        if (size == strlen(names_of_handshake[i]) && memcmp(name, names_of_handshake[i], size) == 0)
            return true;
    }
    return false;
}

bool domi_h2_is_field_passed_to_websocket(nghttp2_vec name)
{
    return !is_field_of_websocket_handshake(name.base, name.len);
}

bool domi_h2_is_websocket_handshake_field(const nghttp2_nv *field)
{
    return is_field_of_websocket_handshake(field->name, field->namelen);
}

/* The key of a handshake proves that the server has understood it. In a stream of HTTP/2 that is
 * certain, so any key of 16 bytes will do. */
int domi_h2_append_websocket_fields(domi_h2_text *text)
{
    return DOMI_H2_PUT(text, "connection: upgrade\r\n"
                             "upgrade: websocket\r\n"
                             "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n");
}

static int pass_tunnel_bytes_to_inner_channel(domi_h2_lane *lane, const void *bytes, size_t size)
{
    int error = domus_inner_pass(lane->inner, bytes, size);

    /* -EPIPE: the handler has closed its channel, and the end of the stream tells the peer */
    return error == -EPIPE ? 0 : error;
}

int domi_h2_pass_bytes_to_tunnel(domi_h2_lane *lane, const uint8_t *bytes, size_t size)
{
    return lane->is_open ? pass_tunnel_bytes_to_inner_channel(lane, bytes, size)
                         : domi_h2_append_text(&lane->early, bytes, size);
}

void domi_h2_pass_end_to_tunnel(domi_h2_lane *lane)
{
    if (lane->is_open)
        domus_inner_end(lane->inner);
}

int domi_h2_open_tunnel_of_lane(domi_h2_lane *lane)
{
    int error = pass_tunnel_bytes_to_inner_channel(lane, lane->early.bytes, lane->early.size);

    lane->is_open = true;
    domi_h2_free_text(&lane->early);
    if (lane->is_passed)
        domus_inner_end(lane->inner);
    return error;
}

void domi_h2_refuse_tunnel_of_lane(domi_h2_lane *lane)
{
    domi_h2_free_text(&lane->early);
}
