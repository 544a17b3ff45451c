/* Finds servers that have gone without a message (a lost host, a NAT that has forgotten). A
 * deadline ends a stream but not the connection, so without this the next requests would also wait
 * for their deadlines, for as long as the kernel repeats their bytes.
 *
 * When a request ends without an answer, and no byte has come since it began, the server is sent a
 * PING, which a live server answers. Otherwise the next action on the connection ends it
 * (client_stage.c), so that an idle connection needs no timer. */
#include "protocols/http2/client.h"

void domi_h2_client_record_server_was_heard(domi_h2 *h2)
{
    h2->heard++;
    h2->is_pinged = false;
    h2->pinged_ns = 0;
}

void domi_h2_client_ping_if_server_is_silent(const domi_h2_lane *lane)
{
    domi_h2 *h2 = lane->of;

    if (h2->is_pinged || lane->heard != h2->heard)
        return;
    h2->is_pinged = nghttp2_submit_ping(h2->session, NGHTTP2_FLAG_NONE, NULL) == 0;
}

/* While the wire is full, this side may not read, either, so silence means nothing;
 * channel.sendTimeout bounds that time. */
bool domi_h2_client_is_server_lost(const domi_h2 *h2)
{
    return h2->pinged_ns != 0 && !h2->is_dead && !domus_wire_is_full(h2->wire) &&
           domus_wire_now_ns(h2->wire) - h2->pinged_ns >= DOMUS_HTTP2_SILENCE_NS;
}
