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

static void handle_envelope_with_notice(const arrival *came, const domi_grain_name *grain)
{
    domi_cluster_gateway *gateway = came->gateway;
    const domus_type *type;

    if (unpickle_message_of_envelope(came, &type) != 0) {
        domi_count_wrong_message(gateway);
        return;
    }
    if (send_notice_to_local_actor(came, grain, type) != 0) {
        release_unpickled_payload(gateway, type);
        atomic_fetch_add_explicit(&gateway->cluster->dropped, 1, memory_order_relaxed);
    }
}

static void handle_envelope_with_publication(arrival *came)
{
    domi_cluster_gateway *gateway = came->gateway;
    domus_address from;
    domus_group group;
    const domus_type *type;

    int error = domi_publication_cut_group_off(gateway, &came->rest, &group);
    if (error == 0 && domus_group_members(group) == 0)
        return; /* the last member of the group here has left, so the publication comes to nobody */
    if (error == 0)
        error = unpickle_message_of_envelope(came, &type);
    if (error != 0) {
        domi_count_wrong_message(gateway);
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
    domi_served_send_failure(came->gateway, came->peer, came->from_gateway, came->envelope.id,
                             error);
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
    error = domi_served_enter_into_table(gateway, came->peer, came->from_gateway, came->envelope.id,
                                         &tag);
    if (error != 0)
        return error;
    error = ask_local_actor_for_peer(came, grain, from, to, type, tag, &asked);
    domi_served *served = domi_served_find_by_tag(gateway, tag);
    if (error == 0)
        served->asked = asked;
    else
        domi_served_free_entry(gateway, served);
    return error;
}

static void handle_envelope_with_ask(const arrival *came, const domi_grain_name *grain)
{
    const domus_type *type;
    int error = unpickle_message_of_envelope(came, &type);

    if (error == 0) {
        error = make_ask_of_envelope(came, grain, type);
        if (error != 0)
            release_unpickled_payload(came->gateway, type);
    } else {
        domi_count_wrong_message(came->gateway);
    }
    if (error != 0)
        send_failure_of_ask_to_peer(came, error);
}

/* Handle an envelope to a grain: its message is accepted, or returned if this node does not have
 * the grain's part. */
static void handle_envelope_to_grain(arrival *came)
{
    domi_cluster_gateway *gateway = came->gateway;
    bool is_ask = came->envelope.kind == DOMI_TO_GRAIN_ASK;
    domi_grain_name grain;
    int error =
        domi_grain_name_read(gateway, came->envelope.rest, came->envelope.rest_size, &grain);

    if (error != 0) {
        domi_count_wrong_message(gateway);
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
        handle_envelope_with_ask(came, &grain);
    else
        handle_envelope_with_notice(came, &grain);
}

/* Handle an envelope with a reply to an ask of an actor here. */
static void handle_envelope_with_reply(const arrival *came)
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
        domi_count_wrong_message(gateway);
        (void)domus_kept_fail(gateway->stack, kept, error);
    } else if (domus_kept_reply(gateway->stack, kept, type, gateway->payload) != 0) {
        release_unpickled_payload(gateway, type);
    }
}

static void handle_envelope_with_failure(const arrival *came)
{
    domi_ask *ask = domi_ask_find_by_id(came->gateway, came->peer, came->envelope.id);
    int error = came->envelope.error;

    if (ask == NULL)
        return;
    domus_kept kept = ask->kept;
    domi_ask_free_entry(came->gateway, ask);
    (void)domus_kept_fail(came->gateway->stack, kept, error < 0 && error > -4096 ? error : -EPROTO);
}

static void handle_envelope_with_spawned_actor(const arrival *came)
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
static void handle_envelope_with_end_of_actor(const arrival *came)
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
        domi_send_envelope_or_tear_link(came->gateway, came->peer, came->from_gateway, &envelope);
    }
}

static void handle_envelope_by_kind(arrival *came)
{
    switch ((enum domi_kind_of_envelope)came->envelope.kind) {
    case DOMI_TO_NOTICE:
        handle_envelope_with_notice(came, NULL);
        break;
    case DOMI_TO_ASK:
        handle_envelope_with_ask(came, NULL);
        break;
    case DOMI_TO_REPLY:
        handle_envelope_with_reply(came);
        break;
    case DOMI_TO_FAIL:
        handle_envelope_with_failure(came);
        break;
    case DOMI_TO_CANCEL:
        domi_served_cancel_by_id(came->gateway, came->peer, came->envelope.id);
        break;
    case DOMI_TO_WATCH:
        domi_watching_add_for_peer(came->gateway, came->peer, came->from_gateway,
                                   &came->envelope.to);
        break;
    case DOMI_TO_DOWN:
        handle_envelope_with_end_of_actor(came);
        break;
    case DOMI_TO_STOP:
    case DOMI_TO_STOP_LAST:
        stop_actor_for_peer(came, came->envelope.kind == DOMI_TO_STOP_LAST);
        break;
    case DOMI_TO_SPAWN:
        domi_spawn_for_peer(came->gateway, came->peer, came->from_gateway, &came->envelope,
                            came->rest);
        break;
    case DOMI_TO_SPAWNED:
        handle_envelope_with_spawned_actor(came);
        break;
    case DOMI_TO_ARE_ALIVE:
        answer_which_actors_have_ended(came);
        break;
    case DOMI_TO_PUBLISH:
        handle_envelope_with_publication(came);
        break;
    case DOMI_TO_INTEREST:
        domi_interest_store_changes_of_peer(came->gateway, came->peer, came->from_gateway,
                                            &came->envelope);
        break;
    case DOMI_TO_HELD:
        domi_interest_note_confirmed_changes(came->gateway, came->peer, came->envelope.id);
        break;
    case DOMI_TO_GRAIN_NOTICE:
    case DOMI_TO_GRAIN_ASK:
        handle_envelope_to_grain(came);
        break;
    case DOMI_TO_RETURN:
        domi_route_handle_returned_message(came->gateway, came->peer, &came->envelope);
        break;
    case DOMI_TO_FENCE:
        domi_grain_answer_fence(came->gateway, came->peer, came->from_gateway, came->envelope.id);
        break;
    case DOMI_TO_DOUBT:
        if (came->envelope.id < DOMUS_REMOTE_PARTS)
            domi_part_mark_holder_doubted(came->gateway->cluster, (uint32_t)came->envelope.id);
        break;
    case DOMI_TO_FENCED:
        domi_route_handle_answered_fence(came->gateway, came->peer, came->envelope.id);
        break;
    case DOMI_TO_KINDS:
        break;
    }
}

/* --- batches ---------------------------------------------------------------------------------- */

static void handle_envelopes_of_batch(domi_cluster_gateway *gateway, domi_peer *peer,
                                      uint16_t from_gateway, domus_slice bytes)
{
    const unsigned char *data = (const unsigned char *)domus_slice_data(bytes);
    uint32_t end = bytes.size - DOMI_BATCH_FOOT;
    uint32_t at = 0;

    while (at < end) {
        arrival came = {.gateway = gateway, .peer = peer, .from_gateway = from_gateway};
        if (!domi_envelope_read(data, end, &at, &came.envelope)) {
            domi_count_wrong_message(gateway);
            return;
        }
        came.rest = bytes;
        came.rest.offset += (uint32_t)(came.envelope.rest - data);
        came.rest.size = came.envelope.rest_size;
        came.envelope.to.node = DOMUS_REMOTE_HERE;
        if (came.envelope.from.lease != 0 && came.envelope.from.node == DOMUS_REMOTE_HERE)
            came.envelope.from.node = peer->id;
        DOMI_COUNT(gateway, peer->record, received, 1);
        handle_envelope_by_kind(&came);
    }
}

static void handle_batch_of_link(domi_cluster_gateway *gateway, domi_peer *peer,
                                 const domi_batch_foot *foot, domus_slice bytes)
{
    domi_link *link = domi_peer_link_to_gateway(gateway, peer, foot->gateway);

    if (link == NULL)
        return;
    domi_link_news news = domi_link_handle_foot(link, foot, domus_now_ns(gateway->stack));
    if (news.is_over) {
        domi_peer_break_link(gateway, peer, foot->gateway, true);
    } else if (news.renewed) {
        domi_served_cancel_all_of_gateway(gateway, peer, foot->gateway);
        domi_watching_end_for_gateway(gateway, peer, foot->gateway);
        domi_grain_forget_returned_parts(peer, foot->gateway);
    }
    if (news.confirms)
        atomic_store_explicit(&peer->record->rtt_ns, link->rtt_ns, memory_order_relaxed);
    if (news.takes) {
        domi_nodes_note_batch_of_node(gateway, peer->record);
        handle_envelopes_of_batch(gateway, peer, foot->gateway, bytes);
    }
    domi_links_flush_at_end_of_phase(gateway);
}

static void handle_heartbeat_of_node(domi_cluster_gateway *gateway, const domi_heartbeat *beat)
{
    domi_nodes_news news = domi_nodes_handle_heartbeat(gateway, beat);

    if (news.is_new)
        domi_heartbeat_publish_now(gateway);
    if (news.has_changed)
        domi_tell_gateways_of_nodes(gateway);
}

void domi_handle_received_nats_bytes(domi_cluster_gateway *gateway, domus_slice bytes)
{
    const unsigned char *data = (const unsigned char *)domus_slice_data(bytes);
    domi_heartbeat beat;
    domi_batch_foot foot;

    if (domi_heartbeat_read(data, bytes.size, &beat)) {
        if (gateway->index == 0)
            handle_heartbeat_of_node(gateway, &beat);
        return;
    }
    if (!domi_batch_foot_read(data, bytes.size, &foot)) {
        domi_count_wrong_message(gateway);
        return;
    }
    domi_peer *peer =
        foot.to == gateway->cluster->id ? domi_peer_find_or_make(gateway, foot.from) : NULL;
    if (peer == NULL || foot.gateway >= peer->record->gateways) {
        /* The batch comes from a node that was not heard yet, or is meant for an earlier start of
         * this node: its sender sends it again, or learns of the new start. */
        domi_count_wrong_message(gateway);
        return;
    }
    handle_batch_of_link(gateway, peer, &foot, bytes);
}
