/* Lanes of HTTP/2: the inner channels of a connection, each of which serves one stream at a
 * time. */
#include "protocols/http2/http2.h"

#include <errno.h>
#include <stdlib.h>

void domi_h2_link_lane(domi_h2_lane **list, domi_h2_lane *lane)
{
    lane->previous = NULL;
    lane->next = *list;
    if (*list != NULL)
        (*list)->previous = lane;
    *list = lane;
}

void domi_h2_unlink_lane(domi_h2_lane **list, domi_h2_lane *lane)
{
    if (lane->previous != NULL)
        lane->previous->next = lane->next;
    else
        *list = lane->next;
    if (lane->next != NULL)
        lane->next->previous = lane->previous;
}

void domi_h2_end_channel_and_free_lane(domi_h2_lane *lane, int error)
{
    domus_inner_drop(lane->inner, error);
    domi_h2_free_lane(lane);
}

void domi_h2_free_lane(domi_h2_lane *lane)
{
    domi_h2_free_text(&lane->lines);
    domi_h2_free_text(&lane->early);
    free(lane);
}

static int open_lane_with_inner_channel(domi_h2 *h2, domi_h2_lane **ret_lane)
{
    domi_h2_lane *lane = calloc(1, sizeof *lane);

    if (lane == NULL)
        return -ENOMEM;
    lane->of = h2;
    int error = domus_wire_inner_open(h2->wire, lane, &lane->inner);
    if (error != 0) {
        free(lane);
        return error;
    }
    *ret_lane = lane;
    return 0;
}

int domi_h2_make_idle_or_new_lane_busy(domi_h2 *h2, domi_h2_lane **ret_lane)
{
    domi_h2_lane *lane = NULL;

    while (lane == NULL && h2->idle != NULL) {
        lane = h2->idle;
        domi_h2_unlink_lane(&h2->idle, lane);
        if (domus_inner_look(lane->inner, NULL) != DOMUS_INNER_OPEN) {
            domi_h2_end_channel_and_free_lane(lane, 0);
            lane = NULL;
        }
    }
    int error = lane == NULL ? open_lane_with_inner_channel(h2, &lane) : 0;
    if (error != 0)
        return error;
    *lane = (domi_h2_lane){.of = h2, .inner = lane->inner, .lines = lane->lines};
    lane->lines.size = 0;
    domi_h2_link_lane(&h2->busy, lane);
    domus_wire_set_carried(h2->wire, ++h2->streams);
    *ret_lane = lane;
    return 0;
}

int domi_h2_make_lane_busy_for_stream(domi_h2 *h2, int32_t id, domi_h2_lane **ret_lane)
{
    int error = domi_h2_make_idle_or_new_lane_busy(h2, ret_lane);

    if (error != 0)
        return error;
    (*ret_lane)->id = id;
    (void)nghttp2_session_set_stream_user_data(h2->session, id, *ret_lane);
    return 0;
}

void domi_h2_idle_or_end_lane_of_stream(domi_h2_lane *lane, int error)
{
    domi_h2 *h2 = lane->of;
    bool is_clean = error == 0 && lane->phase == DOMI_H2_DONE && lane->is_passed && !lane->closes &&
                    !lane->tunnels && domus_inner_look(lane->inner, NULL) == DOMUS_INNER_OPEN;

    if (lane->data > lane->credited)
        (void)nghttp2_session_consume_connection(h2->session,
                                                 (size_t)(lane->data - lane->credited));
    domi_h2_unlink_lane(&h2->busy, lane);
    lane->id = 0;
    domus_wire_set_carried(h2->wire, --h2->streams);
    if (is_clean) {
        domi_h2_link_lane(&h2->idle, lane);
        domus_inner_rest(lane->inner);
    } else {
        domi_h2_end_channel_and_free_lane(lane, error);
    }
}

void domi_h2_end_lane_without_stream(domi_h2_lane *lane)
{
    domi_h2_unlink_lane(&lane->of->idle, lane);
    domi_h2_end_channel_and_free_lane(lane, 0);
}

void domi_h2_reset_stream_of_lane(domi_h2_lane *lane, uint32_t code)
{
    if (lane->is_cut)
        return;
    lane->is_cut = true;
    (void)nghttp2_submit_rst_stream(lane->of->session, NGHTTP2_FLAG_NONE, lane->id, code);
}

bool domi_h2_is_answered_before_request_end(const domi_h2_lane *lane)
{
    return lane->is_cut ||
           (lane->phase == DOMI_H2_DONE &&
            (lane->tunnels || domus_inner_look(lane->inner, NULL) != DOMUS_INNER_OPEN));
}

void domi_h2_reset_streams_answered_early(domi_h2 *h2)
{
    for (domi_h2_lane *lane = h2->busy; lane != NULL; lane = lane->next) {
        if (domi_h2_is_answered_before_request_end(lane) && !lane->is_passed)
            domi_h2_reset_stream_of_lane(lane, NGHTTP2_NO_ERROR);
    }
}

void domi_h2_credit_used_bytes_to_peer(domi_h2_lane *lane)
{
    uint64_t unused = domus_inner_unused(lane->inner) + lane->early.size;
    uint64_t used = unused < lane->data ? lane->data - unused : 0;

    if (used <= lane->credited)
        return;
    (void)nghttp2_session_consume(lane->of->session, lane->id, (size_t)(used - lane->credited));
    lane->credited = used;
}

void domi_h2_tell_channels_of_peer_end(domi_h2 *h2)
{
    h2->is_deserted = true;
    for (const domi_h2_lane *lane = h2->busy; lane != NULL; lane = lane->next)
        domus_inner_end(lane->inner);
}

static void end_and_free_all_lanes_of_list(domi_h2_lane **list, int error)
{
    while (*list != NULL) {
        domi_h2_lane *lane = *list;
        domi_h2_unlink_lane(list, lane);
        domi_h2_end_channel_and_free_lane(lane, error);
    }
}

void domi_h2_end_all_lanes(domi_h2 *h2)
{
    end_and_free_all_lanes_of_list(&h2->busy, -ECONNRESET);
    end_and_free_all_lanes_of_list(&h2->read, -ECONNRESET);
    end_and_free_all_lanes_of_list(&h2->idle, 0);
}
