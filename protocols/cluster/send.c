/* Sends messages of actors here to remote actors, as envelopes on the links to their nodes. */
#include "protocols/cluster/parts.h"

#include <errno.h>

/* Send the message that is being handled as `envelope` describes it. If it is an ask, it is kept
 * until its answer comes. */
static int send_message_to_peer(domi_cluster_gateway *gateway, domi_peer *peer,
                                domi_wire_envelope *envelope, bool is_ask)
{
    domus_kept kept;
    domi_ask *ask = NULL;
    int error;

    if (is_ask) {
        error = domus_remote_keep(gateway->stack, &kept);
        if (error != 0)
            return error;
        error = domi_ask_enter_into_table(gateway, peer, kept, domus_deadline_ns(gateway->stack),
                                          envelope, &ask);
        if (error != 0) {
            (void)domus_kept_fail(gateway->stack, kept, error);
            return 0;
        }
    }
    error = domi_add_envelope_to_batch_of_link(gateway, peer,
                                               domi_gateway_index_at_peer(gateway, peer), envelope);
    if (error == 0 || ask == NULL)
        return error;
    domi_ask_free_entry(gateway, ask);
    (void)domus_kept_fail(gateway->stack, kept, error);
    return 0;
}

/* Refuse the message that is being handled: an ask fails, and a notice is counted, because its
 * sender has gone on. `peer` is NULL if the receiver's node is not known any more. */
static int refuse_message_to_remote_actor(domi_cluster_gateway *gateway, domi_peer *peer, int error)
{
    if (peer != NULL)
        atomic_fetch_add_explicit(&peer->record->refused, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&gateway->cluster->refused, 1, memory_order_relaxed);
    /* for a notice this fails with -EINVAL, which is ignored */
    (void)domus_fail(gateway->stack, error);
    return 0;
}

int domi_send_message_to_remote_actor(domus_stack *stack, void *self, const void *payload)
{
    domi_cluster_gateway *gateway = self;
    domus_remote_message message;

    gateway->stack = stack;
    int error = domus_remote_target(stack, &message);
    if (error != 0)
        return error == -ESTALE ? refuse_message_to_remote_actor(gateway, NULL, error) : 0;
    /* the receiver is the outlet of a group, so the message is a publication */
    if (message.to.node == gateway->cluster->id) {
        domi_publication_send_to_nodes(gateway, &message, payload);
        return 0;
    }
    if (message.to.node == DOMUS_REMOTE_GRAINS)
        return domi_route_send_or_hold_grain_message(gateway, &message, payload);
    domi_peer *peer = domi_peer_find_or_make(gateway, message.to.node);
    if (peer == NULL || !domi_peer_is_up(gateway, peer))
        return refuse_message_to_remote_actor(gateway, peer, -EHOSTDOWN);
    int bytes = domi_gateway_pickle_message(gateway, message.type, payload);
    if (bytes < 0)
        return refuse_message_to_remote_actor(gateway, peer, bytes);
    domi_wire_envelope envelope = {.kind = message.is_ask ? DOMI_TO_ASK : DOMI_TO_NOTICE,
                                   .to = message.to};
    domi_name_of_current_sender_on_wire(gateway, message.is_ask, &envelope.from);
    envelope.rest = gateway->message;
    envelope.rest_size = (uint32_t)bytes;
    error = send_message_to_peer(gateway, peer, &envelope, message.is_ask);
    return error != 0 ? refuse_message_to_remote_actor(gateway, peer, error) : 0;
}
