/* The routes of a gateway: where messages to the grains of each part go, so that messages of one
 * sender to one grain stay in order while parts move from node to node.
 *
 *   HERE    The messages go to grains of this node. Once no message waits in the gateway any more,
 *           actors of the gateway's thread put messages to these grains by themselves.
 *   THERE   The messages are sent to the node that has the part. It returns those that it does not
 *           accept, and all that come behind them over the same link, until it gets a FENCE.
 *   FENCES  A FENCE was sent, because a message was returned, or because another node has the
 *           part now. Its answer comes behind all returned messages; until then new messages wait.
 *   WAITS   No node has the part. Messages that wait for down_after_ns fail.
 *
 * The route leaves HERE only when the warden closes the part, and the warden waits until each
 * gateway has done so, before it stops the grains. */
#include "protocols/cluster/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- messages that are sent or delivered ------------------------------------------------------ */

/* Find the peer that has the route's part, if messages can be sent to it. Returns 0; -EHOSTDOWN;
 * -ENOBUFS. */
static int find_peer_that_has_part(domi_cluster_gateway *gateway, uint64_t node,
                                   domi_peer **ret_peer)
{
    domi_peer *peer = domi_peer_find_or_make(gateway, node);

    if (peer == NULL)
        return -EHOSTDOWN;
    domi_lock_take(&gateway->cluster->lock);
    int error = peer->record->state != DOMUS_NODE_UP ? -EHOSTDOWN
                : peer->record->is_full              ? -ENOBUFS
                                                     : 0;
    domi_lock_release(&gateway->cluster->lock);
    *ret_peer = peer;
    return error;
}

/* Send a message to the node to which the route leads. `kept` is the ask; NULL: it is a notice.
 * Returns 0; a negative errno, and then the ask is still kept. */
static int send_to_node_of_route(domi_cluster_gateway *gateway, domi_route *route,
                                 domi_wire_envelope *envelope, const domus_kept *kept,
                                 uint64_t deadline_ns)
{
    domi_peer *peer;
    domi_ask *ask = NULL;
    int error = find_peer_that_has_part(gateway, route->node, &peer);

    envelope->kind = kept != NULL ? DOMI_TO_GRAIN_ASK : DOMI_TO_GRAIN_NOTICE;
    if (error == 0 && kept != NULL)
        error = domi_ask_enter_into_table(gateway, peer, *kept, deadline_ns, envelope, &ask);
    if (error != 0)
        return error;
    error = domi_add_envelope_to_batch_of_link(gateway, peer,
                                               domi_gateway_index_at_peer(gateway, peer), envelope);
    if (error == 0)
        route->is_sent = true;
    if (ask != NULL && error == 0)
        ask->for_grain = true;
    else if (ask != NULL)
        domi_ask_free_entry(gateway, ask);
    return error;
}

/* Write since when a message waits, by this node's clock, into members that an envelope to a grain
 * does not need: if the message is returned, it goes on waiting from that time. */
static void store_waiting_time_in_envelope(uint64_t since_ns, domi_wire_envelope *envelope)
{
    envelope->to.number = (uint32_t)since_ns;
    envelope->to.lease = (uint32_t)(since_ns >> 32);
}

static uint64_t load_waiting_time_of_envelope(const domi_wire_envelope *envelope)
{
    return envelope->to.number | (uint64_t)envelope->to.lease << 32;
}

static int send_held_message_to_node(domi_cluster_gateway *gateway, domi_route *route,
                                     const domi_held *held)
{
    domi_wire_envelope envelope = {
        .from = held->from, .rest = held->bytes, .rest_size = held->size};

    store_waiting_time_in_envelope(held->since_ns, &envelope);
    return send_to_node_of_route(gateway, route, &envelope, held->is_ask ? &held->kept : NULL,
                                 held->deadline_ns);
}

/* Unpickle a notice that has waited, and send it to the grain here in the name of its sender. */
static int deliver_held_notice_to_grain(domi_cluster_gateway *gateway, const domi_held *held)
{
    domi_grain_name grain;
    domus_slice message;
    domus_address from;
    const domus_type *type;

    int error = domi_grain_name_read(gateway, held->bytes, held->size, &grain);
    if (error == 0)
        error = domus_slice_copy(held->bytes + grain.bytes, held->size - grain.bytes, &message);
    if (error != 0)
        return error;
    error = domi_gateway_unpickle_message(gateway, message, &type);
    domus_slice_free(message);
    if (error != 0)
        return error;
    if (domi_address_of_remote_name(gateway, &held->from, &from) != 0)
        from = (domus_address){NULL, 0};
    error = domus_remote_grain_notice(gateway->stack, from, grain.grains, grain.key, type,
                                      gateway->payload);
    if (error != 0 && type->release != NULL)
        type->release(gateway->payload);
    return error;
}

/* Send all messages that wait in a route to where the route leads now. */
static void send_held_messages_of_route(domi_cluster_gateway *gateway, domi_route *route)
{
    domi_held *held;

    while ((held = domi_held_take_first_message(route)) != NULL) {
        int error;
        if (route->state == DOMI_ROUTE_THERE)
            error = send_held_message_to_node(gateway, route, held);
        else if (held->is_ask)
            error = domus_remote_grain_pass_kept(gateway->stack, held->kept);
        else
            error = deliver_held_notice_to_grain(gateway, held);
        if (error == -ENOBUFS && route->state == DOMI_ROUTE_THERE) {
            /* the message goes on waiting, until the way to the node has room */
            domi_held_put_message_back_first(route, held);
            return;
        }
        if (error == 0)
            domi_held_free_message(gateway, held);
        else
            domi_held_fail_message(gateway, held, error);
    }
}

/* --- messages of actors here ------------------------------------------------------------------ */

/* Refuse the message to a grain that is being handled, and count that; an ask fails with `error`.
 */
static int refuse_message_to_grain(domi_cluster_gateway *gateway, int error)
{
    atomic_fetch_add_explicit(&gateway->cluster->refused, 1, memory_order_relaxed);
    /* for a notice this fails with -EINVAL, which is ignored */
    (void)domus_fail(gateway->stack, error);
    return 0;
}

/* Write the message that is being handled in the form in which it travels, with its grain before
 * it. Returns its bytes; a negative errno. */
static int pickle_current_message_behind_grain(domi_cluster_gateway *gateway,
                                               const domus_remote_grain *grain,
                                               const domus_type *type, const void *payload)
{
    unsigned char name[DOMI_GRAIN_NAME_MAX];
    uint32_t bytes = domi_grain_name_write(grain, name);
    int size = domi_gateway_pickle_message(gateway, type, payload);

    if (size < 0)
        return size;
    memmove(gateway->message + bytes, gateway->message, (size_t)size);
    memcpy(gateway->message, name, bytes);
    return (int)bytes + size;
}

static int hold_message_to_grain(domi_cluster_gateway *gateway, domi_route *route, bool is_ask,
                                 const domi_wire_envelope *envelope)
{
    domi_held *held;
    int error = atomic_load_explicit(&gateway->cluster->parts->error, memory_order_relaxed);

    if (error == 0)
        error = domi_held_make_message(gateway, envelope->rest, envelope->rest_size, &held);
    if (error != 0)
        return error;
    held->is_ask = is_ask;
    held->from = envelope->from;
    held->deadline_ns = is_ask ? domus_deadline_ns(gateway->stack) : 0;
    error = is_ask ? domus_remote_keep(gateway->stack, &held->kept) : 0;
    if (error != 0)
        domi_held_free_message(gateway, held);
    else
        domi_held_append_message(&route->waiting, held);
    return error;
}

static int send_message_to_node_of_route(domi_cluster_gateway *gateway, domi_route *route,
                                         bool is_ask, domi_wire_envelope *envelope)
{
    uint64_t deadline_ns = is_ask ? domus_deadline_ns(gateway->stack) : 0;
    domus_kept kept;
    int error = is_ask ? domus_remote_keep(gateway->stack, &kept) : 0;

    if (error != 0)
        return error;
    error = send_to_node_of_route(gateway, route, envelope, is_ask ? &kept : NULL, deadline_ns);
    if (error == 0 || !is_ask)
        return error;
    atomic_fetch_add_explicit(&gateway->cluster->refused, 1, memory_order_relaxed);
    (void)domus_kept_fail(gateway->stack, kept, error);
    return 0;
}

static bool has_held_messages(const domi_route *route)
{
    return route->returned.first != NULL || route->waiting.first != NULL;
}

int domi_route_send_or_hold_grain_message(domi_cluster_gateway *gateway,
                                          const domus_remote_message *message, const void *payload)
{
    domus_remote_grain grain;
    int error = domus_remote_grain_of(gateway->stack, &grain);

    if (error != 0 || gateway->routes == NULL)
        return refuse_message_to_grain(gateway, error != 0 ? error : -EHOSTDOWN);
    domi_route *route = &gateway->routes[grain.part];
    if (route->state == DOMI_ROUTE_HERE) {
        error = domus_remote_grain_pass(gateway->stack);
        return error != 0 ? refuse_message_to_grain(gateway, error) : 0;
    }
    int bytes = pickle_current_message_behind_grain(gateway, &grain, message->type, payload);
    if (bytes < 0)
        return refuse_message_to_grain(gateway, bytes);
    domi_wire_envelope envelope = {.rest = gateway->message, .rest_size = (uint32_t)bytes};
    domi_name_of_current_sender_on_wire(gateway, message->is_ask, &envelope.from);
    store_waiting_time_in_envelope(domus_now_ns(gateway->stack), &envelope);
    error = route->state == DOMI_ROUTE_THERE && !has_held_messages(route)
                ? send_message_to_node_of_route(gateway, route, message->is_ask, &envelope)
                : hold_message_to_grain(gateway, route, message->is_ask, &envelope);
    return error != 0 ? refuse_message_to_grain(gateway, error) : 0;
}

/* --- following the table of parts ------------------------------------------------------------- */

/* Returns the state that a route must have by the table of parts. Under the cluster's lock. */
static domi_route_state state_of_route_by_table(domi_cluster_gateway *gateway,
                                                const domi_part *part)
{
    domus_cluster *cluster = gateway->cluster;

    if (part->holder == cluster->id)
        return part->is_open ? DOMI_ROUTE_HERE : DOMI_ROUTE_WAITS;
    if (part->holder == 0)
        return DOMI_ROUTE_WAITS;
    const domi_node_record *record = domi_node_find(cluster, part->holder);
    return record != NULL && record->state == DOMUS_NODE_UP ? DOMI_ROUTE_THERE : DOMI_ROUTE_WAITS;
}

/* Send a FENCE to the node of the route, which asks that node to return the messages that it does
 * not accept. Without a link no message can be returned, so no FENCE is sent. */
static void send_fence_to_node_of_route(domi_cluster_gateway *gateway, domi_route *route)
{
    domi_peer *peer = domi_peer_find(gateway, route->node);
    const domi_wire_envelope envelope = {.kind = DOMI_TO_FENCE,
                                         .id = (uint64_t)(route - gateway->routes)};

    route->state = DOMI_ROUTE_WAITS;
    if (route->is_sent && peer != NULL && domi_peer_is_up(gateway, peer) &&
        domi_add_envelope_to_batch_of_link(gateway, peer, domi_gateway_index_at_peer(gateway, peer),
                                           &envelope) == 0)
        route->state = DOMI_ROUTE_FENCES;
    route->is_sent = false;
}

/* Count this gateway among those that pass messages for a part to grains here, if this node still
 * has the part open. Returns whether it has. */
static bool count_gateway_as_user_if_part_is_open(domus_cluster *cluster, domi_part *part)
{
    domi_lock_take(&cluster->lock);
    bool is_open = part->is_open;
    if (is_open)
        part->users++;
    domi_lock_release(&cluster->lock);
    return is_open;
}

static void close_part_here_and_let_route_wait(domi_cluster_gateway *gateway, domi_route *route)
{
    uint32_t index = (uint32_t)(route - gateway->routes);

    domus_remote_part_close(gateway->stack, index);
    gateway->unopened -= !route->is_opened;
    route->is_opened = false;
    route->state = DOMI_ROUTE_WAITS;
    domi_lock_take(&gateway->cluster->lock);
    gateway->cluster->parts->parts[index].users--;
    domi_lock_release(&gateway->cluster->lock);
}

static void update_route_by_table_of_parts(domi_cluster_gateway *gateway, uint32_t index)
{
    domus_cluster *cluster = gateway->cluster;
    domi_part *part = &cluster->parts->parts[index];
    domi_route *route = &gateway->routes[index];

    domi_lock_take(&cluster->lock);
    domi_route_state state = state_of_route_by_table(gateway, part);
    uint64_t node = part->holder;
    domi_lock_release(&cluster->lock);
    if (state == DOMI_ROUTE_THERE && node == route->node &&
        domus_now_ns(gateway->stack) < route->retry_ns)
        return; /* the way to the node is full, or it is down: the FENCE is sent later */
    if (route->state == state && (state != DOMI_ROUTE_THERE || route->node == node)) {
        if (state == DOMI_ROUTE_THERE && has_held_messages(route))
            send_held_messages_of_route(gateway, route);
        return;
    }
    if (route->state == DOMI_ROUTE_HERE)
        close_part_here_and_let_route_wait(gateway, route);
    else if (route->state == DOMI_ROUTE_THERE)
        send_fence_to_node_of_route(gateway, route);
    if (route->state != DOMI_ROUTE_WAITS || state == DOMI_ROUTE_WAITS)
        return;
    if (state == DOMI_ROUTE_HERE && !count_gateway_as_user_if_part_is_open(cluster, part))
        return;
    route->state = state;
    route->node = node;
    send_held_messages_of_route(gateway, route);
    if (state == DOMI_ROUTE_HERE) {
        gateway->unopened++;
        domi_links_plan_publish_at_phase_end(gateway); /* a flush at the end of the phase calls
                                                      domi_routes_let_local_actors_put_directly() */
    }
}

void domi_routes_follow_table_of_parts(domi_cluster_gateway *gateway)
{
    for (uint32_t i = 0; gateway->routes != NULL && i < DOMUS_REMOTE_PARTS; i++)
        update_route_by_table_of_parts(gateway, i);
}

bool domi_routes_let_local_actors_put_directly(domi_cluster_gateway *gateway)
{
    for (uint32_t i = 0; gateway->unopened != 0 && i < DOMUS_REMOTE_PARTS; i++) {
        domi_route *route = &gateway->routes[i];
        if (route->state != DOMI_ROUTE_HERE || route->is_opened)
            continue;
        route->is_opened = domus_remote_part_open(gateway->stack, i) == 0;
        gateway->unopened -= route->is_opened;
    }
    return gateway->unopened != 0;
}

/* --- messages of peers ------------------------------------------------------------------------ */

void domi_route_end_fence_of_part(domi_cluster_gateway *gateway, const domi_peer *peer,
                                  uint64_t part)
{
    if (gateway->routes == NULL || part >= DOMUS_REMOTE_PARTS)
        return;
    domi_route *route = &gateway->routes[part];
    if (route->state != DOMI_ROUTE_FENCES || route->node != peer->id)
        return;
    route->state = DOMI_ROUTE_WAITS;
    update_route_by_table_of_parts(gateway, (uint32_t)part);
}

/* Find the ask whose message a peer has returned; NULL if it is over, or was not for a grain. */
static domi_ask *find_ask_of_returned_grain_message(domi_cluster_gateway *gateway,
                                                    const domi_peer *peer,
                                                    const domi_wire_envelope *envelope)
{
    domi_ask *ask = envelope->error == DOMI_TO_GRAIN_ASK
                        ? domi_ask_find_by_id(gateway, peer, envelope->id)
                        : NULL;

    return ask != NULL && ask->for_grain ? ask : NULL;
}

/* Fail a message that a peer has returned and that cannot be delivered: an ask fails, and a notice
 * is counted. */
static void fail_returned_message(domi_cluster_gateway *gateway, const domi_peer *peer,
                                  const domi_wire_envelope *envelope, int error)
{
    domi_ask *ask = find_ask_of_returned_grain_message(gateway, peer, envelope);

    atomic_fetch_add_explicit(&gateway->cluster->refused, 1, memory_order_relaxed);
    if (ask == NULL)
        return;
    domus_kept kept = ask->kept;
    domi_ask_free_entry(gateway, ask);
    (void)domus_kept_fail(gateway->stack, kept, error);
}

/* Let an ask that a peer has returned wait again, as of the time at which it first waited. Returns
 * false if the ask is over. */
static bool hold_returned_ask(domi_cluster_gateway *gateway, const domi_peer *peer,
                              const domi_wire_envelope *envelope, domi_held *held)
{
    domi_ask *ask = find_ask_of_returned_grain_message(gateway, peer, envelope);

    if (ask == NULL)
        return false;
    held->is_ask = true;
    held->kept = ask->kept;
    held->deadline_ns = ask->deadline_ns;
    domi_ask_free_entry(gateway, ask);
    return true;
}

void domi_route_hold_returned_message(domi_cluster_gateway *gateway, domi_peer *peer,
                                      const domi_wire_envelope *envelope)
{
    bool is_ask = envelope->error == DOMI_TO_GRAIN_ASK;
    domi_grain_name grain;
    domi_held *held;

    if (gateway->routes == NULL ||
        domi_grain_name_read(gateway, envelope->rest, envelope->rest_size, &grain) != 0) {
        fail_returned_message(gateway, peer, envelope, -EHOSTDOWN);
        return;
    }
    domi_route *route = &gateway->routes[grain.part];
    if ((route->state != DOMI_ROUTE_THERE && route->state != DOMI_ROUTE_FENCES) ||
        route->node != peer->id) {
        fail_returned_message(gateway, peer, envelope, -EHOSTDOWN);
        return;
    }
    atomic_fetch_add_explicit(&gateway->cluster->parts->returned, 1, memory_order_relaxed);
    domi_part_let_warden_check_holder(gateway->cluster, grain.part);
    int error = domi_held_make_message(gateway, envelope->rest, envelope->rest_size, &held);
    if (error == 0 && is_ask && !hold_returned_ask(gateway, peer, envelope, held)) {
        domi_held_free_message(gateway, held);
    } else if (error == 0) {
        uint64_t since_ns = load_waiting_time_of_envelope(envelope);
        if (since_ns != 0 && since_ns < held->since_ns)
            held->since_ns = since_ns;
        held->from = envelope->from;
        domi_held_append_message(&route->returned, held);
    } else {
        fail_returned_message(gateway, peer, envelope, error);
    }
    route->retry_ns = domus_now_ns(gateway->stack) + gateway->cluster->options.heartbeat_ns / 4;
    if (route->state == DOMI_ROUTE_THERE) {
        route->is_sent = true;
        send_fence_to_node_of_route(gateway, route);
        if (route->state == DOMI_ROUTE_WAITS)
            update_route_by_table_of_parts(gateway, grain.part);
    }
}

void domi_routes_leave_lost_peer(domi_cluster_gateway *gateway, const domi_peer *peer)
{
    for (uint32_t i = 0; gateway->routes != NULL && i < DOMUS_REMOTE_PARTS; i++) {
        domi_route *route = &gateway->routes[i];
        if ((route->state != DOMI_ROUTE_THERE && route->state != DOMI_ROUTE_FENCES) ||
            route->node != peer->id)
            continue;
        route->state = DOMI_ROUTE_WAITS;
        route->is_sent = false;
        update_route_by_table_of_parts(gateway, i);
    }
}

void domi_routes_free(domi_cluster_gateway *gateway)
{
    domi_held *held;

    for (uint32_t i = 0; gateway->routes != NULL && i < DOMUS_REMOTE_PARTS; i++) {
        domi_route *route = &gateway->routes[i];
        if (route->state == DOMI_ROUTE_HERE)
            close_part_here_and_let_route_wait(gateway, route);
        while ((held = domi_held_take_first_message(route)) != NULL)
            domi_held_free_message(gateway, held);
    }
    free(gateway->routes);
}
