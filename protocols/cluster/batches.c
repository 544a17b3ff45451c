/* The links of a gateway make batches of envelopes, which are published in NATS at the end of a
 * phase. */
#include "protocols/cluster/inside.h"

#include <domus/channel.h>
#include <domus/nats.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

const domus_type domi_tick_type = {.name = "cluster tick"};

#define TICK_NS UINT64_C(20000000) /* ns between two looks for batches that are not confirmed */

/* --- publishing batches ----------------------------------------------------------------------- */

void domi_publish_on_cluster_subject(domi_cluster_gateway *gateway, const char *subject,
                                     domus_slice bytes)
{
    domus_nats_publish publish = {.payload = bytes};
    char whole[DOMUS_CLUSTER_NAME_MAX + 64];

    (void)snprintf(whole, sizeof whole, "dm.%s.%s", gateway->cluster->options.name, subject);
    /* If NATS's client refuses a batch, the batch counts as lost on the way, and is sent again
     * later. */
    if (gateway->client.house == NULL || domus_nats_set_subject(&publish, whole) != 0 ||
        domus_notice(gateway->stack, gateway->client, &domus_nats_publish_type, &publish) != 0)
        domus_nats_publish_free(&publish);
}

static void publish_batch_to_gateway_of_peer(domi_cluster_gateway *gateway, const domi_peer *peer,
                                             uint32_t index, domus_slice batch)
{
    char subject[64];

    (void)snprintf(subject, sizeof subject, "t.%016llx.%u", (unsigned long long)peer->id, index);
    domi_publish_on_cluster_subject(gateway, subject, batch);
}

/* Add the change of the bytes that a link has queued to the count in its node's record. */
static void update_queued_bytes_of_node_by_link(domi_cluster_gateway *gateway, domi_peer *peer,
                                                uint32_t index)
{
    int64_t delta = (int64_t)(peer->links[index]->queued_bytes - peer->counted[index]);

    peer->counted[index] = peer->links[index]->queued_bytes;
    domi_node_count_queued_bytes(gateway, peer->record, delta);
}

static void publish_built_batch_of_link(domi_cluster_gateway *gateway, domi_peer *peer,
                                        uint32_t index, bool probes)
{
    domus_slice batch;

    if (domi_link_get_next_batch(peer->links[index], domus_now_ns(gateway->stack), probes,
                                 &batch) == 1)
        publish_batch_to_gateway_of_peer(gateway, peer, index, batch);
    gateway->has_torn |= peer->links[index]->is_torn;
    update_queued_bytes_of_node_by_link(gateway, peer, index);
}

/* Call `act` for each link of this gateway to each gateway of each peer. */
static void call_for_each_link(domi_cluster_gateway *gateway,
                               void (*act)(domi_cluster_gateway *, domi_peer *, uint32_t, bool),
                               bool flag)
{
    for (domi_peer *peer = gateway->peers; peer != NULL; peer = peer->next) {
        for (uint32_t index = 0; index < peer->record->gateways; index++) {
            if (peer->links[index] != NULL)
                act(gateway, peer, index, flag);
        }
    }
}

/* Publish the batch that a link has built. With `probes`, a peer that owes an answer, or the end of
 * a watched actor, or whose link is broken, is asked to confirm even if no batch is unconfirmed. */
static void publish_batch_or_probe_of_link(domi_cluster_gateway *gateway, domi_peer *peer,
                                           uint32_t index, bool probes)
{
    publish_built_batch_of_link(
        gateway, peer, index,
        probes && (peer->asks != 0 || peer->watched != 0 || peer->links[index]->is_broken));
}

void domi_links_publish_all_batches(domi_cluster_gateway *gateway, bool probes)
{
    call_for_each_link(gateway, publish_batch_or_probe_of_link, probes);
}

static void resend_batches_of_link(domi_cluster_gateway *gateway, domi_peer *peer, uint32_t index,
                                   bool all)
{
    uint64_t cursor = 0;
    domus_slice batch;

    while (domi_link_get_batch_to_resend(peer->links[index], domus_now_ns(gateway->stack), all,
                                         &cursor, &batch) == 1) {
        publish_batch_to_gateway_of_peer(gateway, peer, index, batch);
        DOMI_COUNT(gateway, peer->record, resent, 1);
    }
}

void domi_links_resend_unconfirmed(domi_cluster_gateway *gateway, bool all)
{
    call_for_each_link(gateway, resend_batches_of_link, all);
}

static void send_owed_confirmation_of_link(domi_cluster_gateway *gateway, domi_peer *peer,
                                           uint32_t index, bool unused)
{
    domi_link *link = peer->links[index];

    (void)unused;
    if (link->owed == 0)
        return;
    link->owes = true;
    publish_built_batch_of_link(gateway, peer, index, false);
}

void domi_links_send_owed_confirmations(domi_cluster_gateway *gateway)
{
    call_for_each_link(gateway, send_owed_confirmation_of_link, false);
}

static void flag_gateway_if_link_is_unconfirmed(domi_cluster_gateway *gateway, domi_peer *peer,
                                                uint32_t index, bool unused)
{
    const domi_link *link = peer->links[index];

    (void)unused;
    if (link->waits_ns != 0 || link->owed != 0)
        gateway->has_unconfirmed = true;
}

bool domi_links_have_unconfirmed_batches(domi_cluster_gateway *gateway)
{
    gateway->has_unconfirmed = false;
    call_for_each_link(gateway, flag_gateway_if_link_is_unconfirmed, false);
    return gateway->has_unconfirmed;
}

bool domi_link_is_unconfirmed_too_long(const domi_cluster_gateway *gateway, const domi_link *link)
{
    return link->waits_ns != 0 &&
           domus_now_ns(gateway->stack) - link->waits_ns > gateway->cluster->options.down_after_ns;
}

void domi_start_resend_timer_if_none(domi_cluster_gateway *gateway)
{
    if (!gateway->ticks)
        gateway->ticks = domus_after(gateway->stack, TICK_NS, &domi_tick_type, NULL, NULL) == 0;
}

void domi_links_plan_publish_at_phase_end(domi_cluster_gateway *gateway)
{
    if (!gateway->is_due)
        gateway->is_due = domus_later(gateway->stack) == 0;
    domi_start_resend_timer_if_none(gateway);
}

int domi_add_envelope_to_batch_of_link(domi_cluster_gateway *gateway, domi_peer *peer,
                                       uint16_t index, const domi_wire_envelope *envelope)
{
    if (index >= peer->record->gateways)
        return -EINVAL;
    domi_link *link = domi_peer_link_to_gateway(gateway, peer, index);
    if (link == NULL)
        return -ENOMEM;
    int error = domi_link_add_envelope(link, envelope);
    /* the envelope fits into the link's next batch, after the present one is published */
    if (error == -ENOBUFS) {
        publish_built_batch_of_link(gateway, peer, index, false);
        error = domi_link_add_envelope(link, envelope);
    }
    if (error == 0)
        DOMI_COUNT(gateway, peer->record, sent, 1);
    else
        gateway->has_torn |= link->is_torn;
    if (domi_link_is_next_batch_full(link))
        publish_built_batch_of_link(gateway, peer, index, false);
    update_queued_bytes_of_node_by_link(gateway, peer, index);
    domi_links_plan_publish_at_phase_end(gateway);
    return error;
}

void domi_add_envelope_or_mark_link_torn(domi_cluster_gateway *gateway, domi_peer *peer,
                                         uint16_t index, const domi_wire_envelope *envelope)
{
    int error = domi_add_envelope_to_batch_of_link(gateway, peer, index, envelope);

    if ((error != -ENOMEM && error != -ENOBUFS) || peer->links[index] == NULL)
        return;
    domi_link_mark_torn(peer->links[index]);
    gateway->has_torn = true;
}

/* --- names of addresses, and messages --------------------------------------------------------- */

void domi_name_of_address_on_wire(domi_cluster_gateway *gateway, domus_address address,
                                  domus_remote_name *ret_name)
{
    if (domus_remote_name_of(gateway->stack, address, ret_name) != 0)
        *ret_name = (domus_remote_name){.lease = 0};
    else if (ret_name->node == DOMUS_REMOTE_HERE)
        ret_name->node = gateway->cluster->id;
}

void domi_name_of_current_sender_on_wire(domi_cluster_gateway *gateway, bool is_ask,
                                         domus_remote_name *ret_name)
{
    domi_name_of_address_on_wire(gateway, domus_sender(gateway->stack), ret_name);
    if (is_ask && ret_name->lease == 0)
        domi_name_of_address_on_wire(gateway, domus_self(gateway->stack), ret_name);
}

int domi_address_of_remote_name(domi_cluster_gateway *gateway, const domus_remote_name *name,
                                domus_address *ret_address)
{
    domus_remote_name local = *name;

    *ret_address = (domus_address){NULL, 0};
    if (name->lease == 0)
        return 0;
    if (name->node == gateway->cluster->id)
        local.node = DOMUS_REMOTE_HERE;
    int error = domus_remote_address(gateway->stack, &local, ret_address);
    /* A node that only other nodes have mentioned may send a heartbeat soon: until then it counts
     * as down. */
    if (error == -ENOENT && local.node != DOMUS_REMOTE_HERE) {
        error = domi_nodes_add_mentioned_node(gateway, local.node);
        if (error == 0)
            error = domus_remote_address(gateway->stack, &local, ret_address);
    }
    /* The name of an actor that has certainly ended becomes the address of nobody, which answers
     * -ESTALE. */
    return error == -ESTALE || (error == -ENOENT && local.node == DOMUS_REMOTE_HERE) ? 0 : error;
}

int domi_gateway_pickle_message(domi_cluster_gateway *gateway, const domus_type *type,
                                const void *payload)
{
    const domus_cluster *cluster = gateway->cluster;
    size_t size = 0;
    int error =
        cluster->picklers == NULL
            ? -ENOENT
            : domus_pickle_into(cluster->picklers, &gateway->pickling, type, payload,
                                gateway->message, cluster->options.message_max, &size, NULL, 0);

    if (error != 0)
        domi_log_type_without_pickling_once(gateway, type, error);
    return error != 0 ? error : (int)size;
}

int domi_gateway_unpickle_message(domi_cluster_gateway *gateway, domus_slice message,
                                  const domus_type **ret_type)
{
    domus_pickled pickled;

    if (gateway->cluster->picklers == NULL)
        return -EOPNOTSUPP;
    int error = domus_pickled_open(gateway->cluster->picklers, &gateway->pickling, message,
                                   &pickled, NULL, 0);
    if (error == 0)
        error = domus_unpickle(&pickled, &gateway->pickling, gateway->payload, NULL, 0);
    if (error != 0)
        return error == -ENOENT ? -EOPNOTSUPP : error;
    *ret_type = pickled.pickler->type;
    return 0;
}
