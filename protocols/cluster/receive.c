/* Receives the heartbeats and batches that other nodes have sent to a gateway, and never trusts
 * their contents. */
#include "protocols/cluster/parts.h"

#include <domus/nats.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One envelope that has come in a batch, and the peer and the gateway that have sent it. */
typedef struct arrival {
    domi_cluster_gateway *gateway;
    domi_peer *peer;
    uint16_t from_gateway;
    domi_wire_envelope envelope;
    domus_slice rest; /* the envelope's rest, as a slice of the batch's page */
} arrival;

/* --- messages --------------------------------------------------------------------------------- */

/* Read the message of an envelope into gateway->payload. Returns 0; a negative errno. */
static int unpickle_message_of_envelope(const arrival *came, const domus_type **ret_type)
{
    return domi_gateway_unpickle_message(came->gateway, came->rest, ret_type);
}

static void release_unpickled_payload(domi_cluster_gateway *gateway, const domus_type *type)
{
    if (type->release != NULL)
        type->release(gateway->payload);
}

/* Send the notice in an envelope to its receiver here, in the name of its sender. `grain` is NULL
 * if the receiver is an actor. */
static int send_notice_to_local_actor(const arrival *came, const domi_grain_name *grain,
                                      const domus_type *type)
{
    domi_cluster_gateway *gateway = came->gateway;
    domus_address from, to;

    if (domi_address_of_remote_name(gateway, &came->envelope.from, &from) != 0 ||
        !domus_address_is_remote(from))
        from = (domus_address){NULL, 0};
    if (grain != NULL)
        return domus_remote_grain_notice(gateway->stack, from, grain->grains, grain->key, type,
                                         gateway->payload);
    int error = domi_address_of_remote_name(gateway, &came->envelope.to, &to);
    return error != 0 ? error
                      : domus_remote_notice(gateway->stack, from, to, type, gateway->payload);
}

static void deliver_notice_of_envelope(const arrival *came, const domi_grain_name *grain)
{
    domi_cluster_gateway *gateway = came->gateway;
    const domus_type *type;

    if (unpickle_message_of_envelope(came, &type) != 0) {
        domi_count_wrong_message_of_server(gateway);
        return;
    }
    if (send_notice_to_local_actor(came, grain, type) != 0) {
        release_unpickled_payload(gateway, type);
        atomic_fetch_add_explicit(&gateway->cluster->dropped, 1, memory_order_relaxed);
    }
}

static void publish_here_what_envelope_brings(arrival *came)
{
    domi_cluster_gateway *gateway = came->gateway;
    domus_address from;
    domus_group group;
    const domus_type *type;

    int error = domi_publication_cut_off_group_name(gateway, &came->rest, &group);
    if (error == 0 && domus_group_members(group) == 0)
        return; /* the last member of the group here has left, so the publication comes to nobody */
    if (error == 0)
        error = unpickle_message_of_envelope(came, &type);
    if (error != 0) {
        domi_count_wrong_message_of_server(gateway);
        return;
    }
    if (domi_address_of_remote_name(gateway, &came->envelope.from, &from) != 0 ||
        !domus_address_is_remote(from))
        from = (domus_address){NULL, 0};
    if (domus_remote_publish(gateway->stack, from, group, type, gateway->payload) != 0)
        atomic_fetch_add_explicit(&gateway->cluster->dropped, 1, memory_order_relaxed);
}

static void send_failure_of_ask_to_peer(const arrival *came, int error)
{
    domi_send_failure_of_ask_to_node(came->gateway, came->peer, came->from_gateway,
                                     came->envelope.id, error);
}

/* Ask an actor or a grain here for a peer, with the deadline that the peer has given. */
static int ask_local_actor_for_peer(const arrival *came, const domi_grain_name *grain,
                                    domus_address from, domus_address to, const domus_type *type,
                                    uint64_t tag, domus_remote_asked *ret_asked)
{
    domi_cluster_gateway *gateway = came->gateway;

    if (grain != NULL)
        return domus_remote_grain_ask(gateway->stack, gateway->asker, from, grain->grains,
                                      grain->key, type, gateway->payload, came->envelope.time_ns,
                                      tag, ret_asked);
    return domus_remote_ask(gateway->stack, gateway->asker, from, to, type, gateway->payload,
                            came->envelope.time_ns, tag, ret_asked);
}

/* Make the ask in an envelope here, in the name of its sender. Returns 0; a negative errno, and
 * then the caller keeps the payload. */
static int make_ask_of_envelope(const arrival *came, const domi_grain_name *grain,
                                const domus_type *type)
{
    domi_cluster_gateway *gateway = came->gateway;
    domus_address from, to = {NULL, 0};
    domus_remote_asked asked;
    uint64_t tag;

    int error = domi_address_of_remote_name(gateway, &came->envelope.from, &from);
    if (error == 0 && grain == NULL)
        error = domi_address_of_remote_name(gateway, &came->envelope.to, &to);
    if (error != 0)
        return error;
    if (grain == NULL && to.house == NULL)
        return -ESTALE;
    error = domi_served_enter_ask_into_table(gateway, came->peer, came->from_gateway,
                                             came->envelope.id, &tag);
    if (error != 0)
        return error;
    error = ask_local_actor_for_peer(came, grain, from, to, type, tag, &asked);
    domi_served *served = domi_served_find_ask_by_tag(gateway, tag);
    if (error == 0)
        served->asked = asked;
    else
        domi_served_free_entry_of_ask(gateway, served);
    return error;
}

static void ask_local_actor_what_envelope_asks(const arrival *came, const domi_grain_name *grain)
{
    const domus_type *type;
    int error = unpickle_message_of_envelope(came, &type);

    if (error == 0) {
        error = make_ask_of_envelope(came, grain, type);
        if (error != 0)
            release_unpickled_payload(came->gateway, type);
    } else {
        domi_count_wrong_message_of_server(came->gateway);
    }
    if (error != 0)
        send_failure_of_ask_to_peer(came, error);
}

/* Handle an envelope to a grain: its message is accepted, or returned if this node does not have
 * the grain's part. */
static void deliver_or_return_envelope_to_grain(arrival *came)
{
    domi_cluster_gateway *gateway = came->gateway;
    bool is_ask = came->envelope.kind == DOMI_TO_GRAIN_ASK;
    domi_grain_name grain;
    int error =
        domi_grain_name_read(gateway, came->envelope.rest, came->envelope.rest_size, &grain);

    if (error != 0) {
        domi_count_wrong_message_of_server(gateway);
        if (is_ask)
            send_failure_of_ask_to_peer(came, error);
        return;
    }
    if (!domi_grain_accept_or_return_message(gateway, came->peer, came->from_gateway, grain.part,
                                             &came->envelope))
        return;
    came->rest.offset += grain.bytes;
    came->rest.size -= grain.bytes;
    if (is_ask)
        ask_local_actor_what_envelope_asks(came, &grain);
    else
        deliver_notice_of_envelope(came, &grain);
}

/* Handle an envelope with a reply to an ask of an actor here. */
static void reply_to_kept_ask_from_envelope(const arrival *came)
{
    domi_cluster_gateway *gateway = came->gateway;
    domi_ask *ask = domi_ask_find_by_id(gateway, came->peer, came->envelope.id);
    const domus_type *type;

    if (ask == NULL || ask->spawns)
        return; /* the ask that the reply names is over, or never existed */
    domus_kept kept = ask->kept;
    domi_ask_free_entry(gateway, ask);
    int error = unpickle_message_of_envelope(came, &type);
    if (error != 0) {
        domi_count_wrong_message_of_server(gateway);
        (void)domus_kept_fail(gateway->stack, kept, error);
    } else if (domus_kept_reply(gateway->stack, kept, type, gateway->payload) != 0) {
        release_unpickled_payload(gateway, type);
    }
}

static void fail_kept_ask_from_envelope(const arrival *came)
{
    domi_ask *ask = domi_ask_find_by_id(came->gateway, came->peer, came->envelope.id);
    int error = came->envelope.error;

    if (ask == NULL)
        return;
    domus_kept kept = ask->kept;
    domi_ask_free_entry(came->gateway, ask);
    (void)domus_kept_fail(came->gateway->stack, kept, error < 0 && error > -4096 ? error : -EPROTO);
}

static void reply_to_spawn_ask_from_envelope(const arrival *came)
{
    domi_cluster_gateway *gateway = came->gateway;
    domi_ask *ask = domi_ask_find_by_id(gateway, came->peer, came->envelope.id);
    domus_cluster_spawned spawned;

    if (ask == NULL || !ask->spawns)
        return;
    domus_kept kept = ask->kept;
    domi_ask_free_entry(gateway, ask);
    int error = domi_address_of_remote_name(gateway, &came->envelope.from, &spawned.address);
    if (error == 0)
        (void)domus_kept_reply(gateway->stack, kept, &domus_cluster_spawned_type, &spawned);
    else
        (void)domus_kept_fail(gateway->stack, kept, error);
}

/* --- control ---------------------------------------------------------------------------------- */

static void stop_actor_for_peer(const arrival *came, bool after_mail)
{
    domus_address to;

    if (domi_address_of_remote_name(came->gateway, &came->envelope.to, &to) != 0 ||
        to.house == NULL)
        return;
    if (after_mail)
        (void)domus_stop_after_mail(came->gateway->stack, to);
    else
        (void)domus_stop(came->gateway->stack, to);
}

/* Handle an envelope that tells the end of a watched actor. A peer can report only the ends of its
 * own actors. */
static void report_end_of_watched_from_envelope(const arrival *came)
{
    domus_remote_name name = came->envelope.from;
    int reason = came->envelope.error;

    name.node = came->peer->id;
    domi_watched_report_end(came->gateway, &name, reason <= 0 && reason > -4096 ? reason : -EPROTO);
}

static void answer_which_actors_have_ended(const arrival *came)
{
    const unsigned char *at = came->envelope.rest;

    for (uint32_t i = 0; i + DOMI_NAME_BYTES <= came->envelope.rest_size; i += DOMI_NAME_BYTES) {
        domus_remote_name name;
        domi_remote_name_read(at + i, &name);
        name.node = DOMUS_REMOTE_HERE;
        if (domus_remote_is_alive(came->gateway->stack, &name))
            continue;
        const domi_wire_envelope envelope = {.kind = DOMI_TO_DOWN, .from = name, .error = -ESTALE};
        domi_add_envelope_or_mark_link_torn(came->gateway, came->peer, came->from_gateway,
                                            &envelope);
    }
}

static void dispatch_envelope_by_kind(arrival *came)
{
    switch ((enum domi_kind_of_envelope)came->envelope.kind) {
    case DOMI_TO_NOTICE:
        deliver_notice_of_envelope(came, NULL);
        break;
    case DOMI_TO_ASK:
        ask_local_actor_what_envelope_asks(came, NULL);
        break;
    case DOMI_TO_REPLY:
        reply_to_kept_ask_from_envelope(came);
        break;
    case DOMI_TO_FAIL:
        fail_kept_ask_from_envelope(came);
        break;
    case DOMI_TO_CANCEL:
        domi_served_cancel_ask_by_id(came->gateway, came->peer, came->envelope.id);
        break;
    case DOMI_TO_WATCH:
        domi_watching_add_for_peer(came->gateway, came->peer, came->from_gateway,
                                   &came->envelope.to);
        break;
    case DOMI_TO_DOWN:
        report_end_of_watched_from_envelope(came);
        break;
    case DOMI_TO_STOP:
    case DOMI_TO_STOP_LAST:
        stop_actor_for_peer(came, came->envelope.kind == DOMI_TO_STOP_LAST);
        break;
    case DOMI_TO_SPAWN:
        domi_spawn_for_peer_and_answer(came->gateway, came->peer, came->from_gateway,
                                       &came->envelope, came->rest);
        break;
    case DOMI_TO_SPAWNED:
        reply_to_spawn_ask_from_envelope(came);
        break;
    case DOMI_TO_ARE_ALIVE:
        answer_which_actors_have_ended(came);
        break;
    case DOMI_TO_PUBLISH:
        publish_here_what_envelope_brings(came);
        break;
    case DOMI_TO_INTEREST:
        domi_interest_store_changes_of_peer(came->gateway, came->peer, came->from_gateway,
                                            &came->envelope);
        break;
    case DOMI_TO_HELD:
        domi_interest_store_confirmed_by_peer(came->gateway, came->peer, came->envelope.id);
        break;
    case DOMI_TO_GRAIN_NOTICE:
    case DOMI_TO_GRAIN_ASK:
        deliver_or_return_envelope_to_grain(came);
        break;
    case DOMI_TO_RETURN:
        domi_route_hold_returned_message(came->gateway, came->peer, &came->envelope);
        break;
    case DOMI_TO_FENCE:
        domi_grain_confirm_fence_of_part(came->gateway, came->peer, came->from_gateway,
                                         came->envelope.id);
        break;
    case DOMI_TO_DOUBT:
        if (came->envelope.id < DOMUS_REMOTE_PARTS)
            domi_part_let_warden_check_holder(came->gateway->cluster, (uint32_t)came->envelope.id);
        break;
    case DOMI_TO_FENCED:
        domi_route_end_fence_of_part(came->gateway, came->peer, came->envelope.id);
        break;
    case DOMI_TO_KINDS:
        break;
    }
}

/* --- batches ---------------------------------------------------------------------------------- */

static void dispatch_all_envelopes_of_batch(domi_cluster_gateway *gateway, domi_peer *peer,
                                            uint16_t from_gateway, domus_slice bytes)
{
    const unsigned char *data = (const unsigned char *)domus_slice_data(bytes);
    uint32_t end = bytes.size - DOMI_BATCH_FOOT;
    uint32_t at = 0;

    while (at < end) {
        arrival came = {.gateway = gateway, .peer = peer, .from_gateway = from_gateway};
        if (!domi_envelope_read(data, end, &at, &came.envelope)) {
            domi_count_wrong_message_of_server(gateway);
            return;
        }
        came.rest = bytes;
        came.rest.offset += (uint32_t)(came.envelope.rest - data);
        came.rest.size = came.envelope.rest_size;
        came.envelope.to.node = DOMUS_REMOTE_HERE;
        if (came.envelope.from.lease != 0 && came.envelope.from.node == DOMUS_REMOTE_HERE)
            came.envelope.from.node = peer->id;
        DOMI_COUNT(gateway, peer->record, received, 1);
        dispatch_envelope_by_kind(&came);
    }
}

static void update_link_and_take_received_batch(domi_cluster_gateway *gateway, domi_peer *peer,
                                                const domi_batch_foot *foot, domus_slice bytes)
{
    domi_link *link = domi_peer_link_to_gateway(gateway, peer, foot->gateway);

    if (link == NULL)
        return;
    domi_link_news news =
        domi_link_update_by_received_foot(link, foot, domus_now_ns(gateway->stack));
    if (news.is_over) {
        domi_peer_end_session_of_link(gateway, peer, foot->gateway, true);
    } else if (news.renewed) {
        domi_served_cancel_asks_of_peer_gateway(gateway, peer, foot->gateway);
        domi_watching_end_for_gateway(gateway, peer, foot->gateway);
        domi_grain_forget_returned_parts(peer, foot->gateway);
    }
    if (news.confirms)
        atomic_store_explicit(&peer->record->rtt_ns, link->rtt_ns, memory_order_relaxed);
    if (news.takes) {
        domi_nodes_mark_node_up_after_batch(gateway, peer->record);
        dispatch_all_envelopes_of_batch(gateway, peer, foot->gateway, bytes);
    }
    domi_links_plan_publish_at_phase_end(gateway);
}

static void update_nodes_by_received_heartbeat(domi_cluster_gateway *gateway,
                                               const domi_heartbeat *beat)
{
    domi_nodes_news news = domi_nodes_update_by_heartbeat(gateway, beat);

    if (news.is_new)
        domi_heartbeat_publish_unless_recent(gateway);
    if (news.has_changed)
        domi_tell_gateways_that_nodes_changed(gateway);
}

void domi_receive_heartbeat_or_batch(domi_cluster_gateway *gateway, domus_slice bytes)
{
    const unsigned char *data = (const unsigned char *)domus_slice_data(bytes);
    domi_heartbeat beat;
    domi_batch_foot foot;

    if (domi_heartbeat_read(data, bytes.size, &beat)) {
        if (gateway->index == 0)
            update_nodes_by_received_heartbeat(gateway, &beat);
        return;
    }
    if (!domi_batch_foot_read(data, bytes.size, &foot)) {
        domi_count_wrong_message_of_server(gateway);
        return;
    }
    domi_peer *peer =
        foot.to == gateway->cluster->id ? domi_peer_find_or_make(gateway, foot.from) : NULL;
    if (peer == NULL || foot.gateway >= peer->record->gateways) {
        /* The batch comes from a node that was not heard yet, or is meant for an earlier start of
         * this node: its sender sends it again, or learns of the new start. */
        domi_count_wrong_message_of_server(gateway);
        return;
    }
    update_link_and_take_received_batch(gateway, peer, &foot, bytes);
}
