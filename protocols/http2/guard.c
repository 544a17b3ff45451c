/* Counts what a peer of HTTP/2 may do only rarely, because it costs this side more than the peer.
 * The counts begin again each second. */
#include "protocols/http2/http2.h"

#define SPAN_NS UINT64_C(1000000000)

#define CONTINUATIONS 8u /* CONTINUATION frames that one block of fields may have, at most */

/* WINDOW_UPDATE frames that a peer may send: UPDATES_LEAST for each frame of a body that was sent
 * to it, and one more for each UPDATE_BYTES of the body. Some clients send two for each piece that
 * they read. */
#define UPDATES_LEAST 2u
#define UPDATE_BYTES  512u
#define UPDATES_MOST  (1u << 20)

/* Reset the counts of a peer if their second is over, and return them. */
static domi_h2_guard *counts_of_current_second(domi_h2 *h2)
{
    uint64_t now_ns = domus_wire_now_ns(h2->wire);

    if (now_ns - h2->guard.begun_ns >= SPAN_NS)
        h2->guard = (domi_h2_guard){.begun_ns = now_ns};
    return &h2->guard;
}

void domi_h2_end_connection_with_error(domi_h2 *h2, uint32_t code)
{
    if (!h2->is_over)
        (void)nghttp2_session_terminate_session(h2->session, code);
    h2->is_over = true;
}

void domi_h2_count_reset_stream(domi_h2 *h2)
{
    if (++counts_of_current_second(h2)->resets > h2->options.resets_max)
        domi_h2_end_connection_with_error(h2, NGHTTP2_ENHANCE_YOUR_CALM);
}

void domi_h2_count_frame_that_asks_nothing(domi_h2 *h2)
{
    if (++counts_of_current_second(h2)->controls > h2->options.controls_max)
        domi_h2_end_connection_with_error(h2, NGHTTP2_ENHANCE_YOUR_CALM);
}

void domi_h2_count_continuation_frame(domi_h2 *h2, const nghttp2_frame_hd *head)
{
    if (head->type != NGHTTP2_CONTINUATION)
        h2->continuations = 0;
    else if (++h2->continuations > CONTINUATIONS)
        domi_h2_end_connection_with_error(h2, NGHTTP2_ENHANCE_YOUR_CALM);
}

void domi_h2_count_window_update(domi_h2 *h2)
{
    if (h2->updates_due != 0)
        h2->updates_due--;
    else
        domi_h2_count_frame_that_asks_nothing(h2);
}

void domi_h2_count_sent_body_frame(domi_h2 *h2, size_t size)
{
    uint32_t due = UPDATES_LEAST + (uint32_t)(size / UPDATE_BYTES);

    h2->updates_due = due < UPDATES_MOST - h2->updates_due ? h2->updates_due + due : UPDATES_MOST;
}
