/* The states of a client's lanes (client.h). A lane whose stream is over may have an answer that
 * was not used yet, because its reader is slow. Until then the lane is not lent again, or the next
 * request would wait behind that reader. */
#include "protocols/http2/client.h"

#include <errno.h>

/* Give the peer credit on the connection's window for the bytes of an answer that were used, or,
 * with `all`, also for those that nobody will use. */
static void credit_connection_for_used_answer(domi_h2_lane *lane, bool all)
{
    uint64_t unused = all ? 0 : domus_inner_unused(lane->inner);
    uint64_t used = unused < lane->data ? lane->data - unused : 0;

    if (used <= lane->credited)
        return;
    (void)nghttp2_session_consume_connection(lane->of->session, (size_t)(used - lane->credited));
    lane->credited = used;
}

/* Remove a lane, whose stream is over, from the list of busy lanes, or from the list of lanes in
 * state `read`. */
static void credit_and_unlink_lane_without_stream(domi_h2_lane **list, domi_h2_lane *lane)
{
    domi_h2 *h2 = lane->of;

    credit_connection_for_used_answer(lane, true);
    domi_h2_unlink_lane(list, lane);
    domus_wire_set_carried(h2->wire, --h2->streams);
}

/* Remove a lane from its list, and free it. Returns the lane's inner channel, which the caller
 * ends. */
static domus_inner *free_lane_and_return_inner_channel(domi_h2_lane **list, domi_h2_lane *lane)
{
    domus_inner *inner = lane->inner;

    credit_and_unlink_lane_without_stream(list, lane);
    domi_h2_free_lane(lane);
    return inner;
}

/* Make a lane idle, so that it may be lent again. If it is not lent for a while, its inner channel
 * ends. */
static void make_lane_idle(domi_h2_lane **list, domi_h2_lane *lane)
{
    credit_and_unlink_lane_without_stream(list, lane);
    lane->is_busy = lane->is_answered = false;
    domi_h2_link_lane(&lane->of->idle, lane);
    domus_inner_rest(lane->inner);
}

/* Continue a lane whose answer has come: bytes of its request that still come are discarded. The
 * lane becomes idle when its answer was used and its request has ended. */
static void make_answered_lane_idle_or_drop_it(domi_h2_lane *lane)
{
    domi_h2 *h2 = lane->of;
    bool is_wrong = domus_inner_is_broken(lane->inner) ||
                    (lane->phase != DOMI_H2_DONE && domi_h2_discard_body_bytes(lane) < 0);

    if (is_wrong || domus_inner_look(lane->inner, NULL) == DOMUS_INNER_CLOSED) {
        domus_inner_drop(free_lane_and_return_inner_channel(&h2->read, lane),
                         is_wrong ? -EPIPE : 0);
        return;
    }
    credit_connection_for_used_answer(lane, false);
    if (domus_inner_unused(lane->inner) == 0 && lane->phase == DOMI_H2_DONE && !lane->closes)
        make_lane_idle(&h2->read, lane);
}

void domi_h2_client_end_stream_of_lane(domi_h2_lane *lane, uint32_t code)
{
    domi_h2 *h2 = lane->of;
    bool is_refused = code == NGHTTP2_REFUSED_STREAM || !lane->is_sent;

    lane->id = 0;
    if (lane->is_passed) {
        lane->is_busy = false;
        domi_h2_unlink_lane(&h2->busy, lane);
        domi_h2_link_lane(&h2->read, lane);
        lane->is_answered = true;
        make_answered_lane_idle_or_drop_it(lane);
    } else if (is_refused) {
        domus_inner_refuse(free_lane_and_return_inner_channel(&h2->busy, lane));
    } else {
        domus_inner_drop(free_lane_and_return_inner_channel(&h2->busy, lane), -ECONNRESET);
    }
}

void domi_h2_client_fail_ask_of_lane(domi_h2_lane *lane, int error)
{
    domus_inner_fail(free_lane_and_return_inner_channel(&lane->of->busy, lane), error);
}

void domi_h2_client_make_failed_lane_idle(domi_h2_lane *lane)
{
    make_lane_idle(&lane->of->busy, lane);
}

void domi_h2_client_settle_or_end_idle_lane(domi_h2_lane *lane)
{
    size_t size;

    if (lane->is_answered)
        make_answered_lane_idle_or_drop_it(lane);
    else if (domus_inner_bytes(lane->inner, &size) != NULL ||
             domus_inner_look(lane->inner, NULL) != DOMUS_INNER_OPEN)
        domi_h2_end_lane_without_stream(lane);
}

void domi_h2_client_end_busy_lanes(domi_h2 *h2)
{
    h2->is_dead = true;
    domus_wire_lend(h2->wire, 0);
    while (h2->busy != NULL)
        domi_h2_client_end_stream_of_lane(h2->busy, NGHTTP2_CONNECT_ERROR);
}
