/* The gateway of a thread: a channels actor that sends what the actors of its thread send to other
 * nodes, and receives what other nodes send to them (domus/remote.h). */
#include "protocols/cluster/parts.h"

#include <domus/channel.h>
#include <domus/nats.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static_assert(DOMI_GRAIN_NAME_MAX >= DOMI_WIDE_TAIL, "either stands beside a message");

/* bytes of the gateway's buffer for a payload: DOMUS_PAYLOAD_MAX and some more */
#define PAYLOAD_ROOM 65536u
/* bytes of the largest buffer that a client of NATS may have */
#define BUFFER_MOST (UINT64_C(1) << 30)
#define IDLE_NAMES  64u /* actors that one heartbeat asks another node about, at most */
/* heartbeats between two searches for remote addresses that nobody here uses */
#define IDLE_BEATS 60u

const domus_type domi_begun_type = {.name = "cluster begun"};
const domus_type domi_leave_type = {.name = "cluster leave"};
static const domus_type beat_type = {.name = "cluster beat"};
static const domus_type begin_type = {.name = "cluster begin"};
static const domus_type subscribe_type = {.name = "cluster subscribe"};
static const domus_type left_type = {.name = "cluster left"};

static domi_cluster_gateway *set_stack_of_gateway(domus_stack *stack, void *self)
{
    domi_cluster_gateway *gateway = self;

    gateway->stack = stack;
    return gateway;
}

/* --- heartbeats ------------------------------------------------------------------------------- */

/* Ask a node which of its actors have ended, for addresses of them that nobody here uses. */
static void ask_node_which_idle_actors_ended(domi_cluster_gateway *gateway, domi_peer *peer)
{
    domus_remote_name names[IDLE_NAMES];
    unsigned char bytes[IDLE_NAMES * DOMI_NAME_BYTES];
    uint32_t count =
        domus_remote_idle(gateway->stack, peer->id, &peer->idle_cursor, names, IDLE_NAMES);

    for (uint32_t i = 0; i < count; i++)
        domi_remote_name_write(&names[i], bytes + (size_t)i * DOMI_NAME_BYTES);
    if (count == 0)
        return;
    const domi_wire_envelope envelope = {
        .kind = DOMI_TO_ARE_ALIVE, .rest = bytes, .rest_size = count * DOMI_NAME_BYTES};
    (void)domi_add_envelope_to_batch_of_link(gateway, peer,
                                             domi_gateway_index_at_peer(gateway, peer), &envelope);
}

/* Break the links that have lost messages, or whose batches were not confirmed for too long. */
static void break_torn_and_stuck_links(domi_cluster_gateway *gateway)
{
    gateway->has_torn = false;
    for (domi_peer *peer = gateway->peers; peer != NULL; peer = peer->next) {
        for (uint16_t i = 0; i < peer->record->gateways; i++) {
            const domi_link *link = peer->links[i];
            if (link != NULL && (link->is_torn || domi_link_is_unconfirmed_too_long(gateway, link)))
                domi_peer_end_session_of_link(gateway, peer, i, false);
        }
    }
}

static void break_bad_links_and_ask_for_ended(domi_cluster_gateway *gateway)
{
    bool is_time = ++gateway->beats % IDLE_BEATS == 0;

    break_torn_and_stuck_links(gateway);
    for (domi_peer *peer = gateway->peers; peer != NULL; peer = peer->next) {
        if (is_time || peer->idle_cursor != 0)
            ask_node_which_idle_actors_ended(gateway, peer);
    }
}

static int beat_and_check_nodes_at_timer(domus_stack *stack, void *self, const void *payload)
{
    domi_cluster_gateway *gateway = set_stack_of_gateway(stack, self);

    (void)payload;
    if (gateway->index == 0) {
        if (!gateway->has_left)
            domi_heartbeat_publish(gateway, gateway->is_leaving ? DOMI_BEAT_LEAVING : DOMI_BEAT_UP);
        if (domi_nodes_check_for_silence(gateway).has_changed)
            domi_tell_gateways_that_nodes_changed(gateway);
        domi_log_changes_of_nodes(gateway);
    }
    domi_peers_follow_downs_of_nodes(gateway);
    /* Waiting messages fail here if they have waited too long, before the others are sent again: a
     * message that always comes back must not wait for ever. */
    domi_routes_fail_old_messages(gateway);
    domi_routes_follow_table_of_parts(gateway);
    break_bad_links_and_ask_for_ended(gateway);
    domi_asks_forget_after_deadline(gateway);
    domi_watched_report_room(gateway);
    domi_interest_check_groups_at_heartbeat(gateway);
    domi_links_publish_all_batches(gateway, true);
    return 0;
}

static int follow_changed_states_of_nodes(domus_stack *stack, void *self, const void *payload)
{
    domi_cluster_gateway *gateway = set_stack_of_gateway(stack, self);

    (void)payload;
    domi_peers_follow_downs_of_nodes(gateway);
    domi_routes_follow_table_of_parts(gateway);
    domi_watched_report_room(gateway);
    domi_interest_send_changes_to_all_nodes(gateway);
    return 0;
}

/* --- batches ---------------------------------------------------------------------------------- */

static int publish_batches_at_end_of_phase(domus_stack *stack, void *self, const void *payload)
{
    domi_cluster_gateway *gateway = set_stack_of_gateway(stack, self);

    (void)payload;
    gateway->is_due = false;
    if (gateway->has_torn)
        break_torn_and_stuck_links(gateway);
    domi_links_publish_all_batches(gateway, false);
    if (domi_routes_let_local_actors_put_directly(gateway))
        domi_links_plan_publish_at_phase_end(gateway);
    return 0;
}

static int resend_unconfirmed_batches(domus_stack *stack, void *self, const void *payload)
{
    domi_cluster_gateway *gateway = set_stack_of_gateway(stack, self);

    (void)payload;
    gateway->ticks = false;
    domi_links_send_owed_confirmations(gateway);
    domi_links_resend_unconfirmed(gateway, false);
    if (domi_links_have_unconfirmed_batches(gateway))
        domi_start_resend_timer_if_none(gateway);
    return 0;
}

static int receive_nats_message_of_gateway(domus_stack *stack, void *self, const void *payload)
{
    domi_receive_heartbeat_or_batch(set_stack_of_gateway(stack, self), domus_nats_payload(payload));
    return 0;
}

/* Handle an event of NATS's client: the connection to the servers was made, or is lost. */
static int beat_and_resend_when_nats_reconnects(domus_stack *stack, void *self, const void *payload)
{
    domi_cluster_gateway *gateway = set_stack_of_gateway(stack, self);
    const domus_nats_event *event = payload;
    bool is_connected = event->happening == DOMUS_NATS_CONNECTED;

    if (event->happening != DOMUS_NATS_CONNECTED && event->happening != DOMUS_NATS_DISCONNECTED)
        return 0;
    gateway->is_connected = is_connected;
    if (gateway->index == 0) {
        domi_lock_take(&gateway->cluster->lock);
        gateway->cluster->is_connected = is_connected;
        gateway->cluster->connected_ns = domus_now_ns(stack);
        domi_lock_release(&gateway->cluster->lock);
        if (is_connected && !gateway->is_leaving)
            domi_heartbeat_publish(gateway, DOMI_BEAT_UP);
    }
    /* batches that were sent over the last connection may be lost, so they are sent again */
    if (is_connected)
        domi_links_resend_unconfirmed(gateway, true);
    return 0;
}

/* --- control ---------------------------------------------------------------------------------- */

static int cancel_ask_to_remote_actor(domus_stack *stack, void *self, const void *payload)
{
    domi_cluster_gateway *gateway = set_stack_of_gateway(stack, self);
    domus_kept kept = ((const domus_remote_cancelled_ask *)payload)->kept;
    uint64_t id;

    if (domi_routes_cancel_waiting_ask(gateway, kept))
        return 0;
    domi_ask *ask = domi_ask_find_by_kept_ask(gateway, kept, &id);
    if (ask == NULL)
        return 0;
    domi_peer *peer = ask->peer;
    const domi_wire_envelope envelope = {.kind = DOMI_TO_CANCEL, .id = id};
    domi_ask_free_entry(gateway, ask);
    (void)domi_add_envelope_to_batch_of_link(gateway, peer,
                                             domi_gateway_index_at_peer(gateway, peer), &envelope);
    return 0;
}

static void send_stop_to_remote_actor(domi_cluster_gateway *gateway, uint8_t kind,
                                      const domus_remote_name *to)
{
    domi_peer *peer = domi_peer_find_or_make(gateway, to->node);
    const domi_wire_envelope envelope = {.kind = kind, .to = *to};

    if (peer != NULL && domi_peer_is_up(gateway, peer))
        (void)domi_add_envelope_to_batch_of_link(
            gateway, peer, domi_gateway_index_at_peer(gateway, peer), &envelope);
}

static int send_stop_of_remote_actor(domus_stack *stack, void *self, const void *payload)
{
    send_stop_to_remote_actor(set_stack_of_gateway(stack, self), DOMI_TO_STOP,
                              &((const domus_remote_stop *)payload)->name);
    return 0;
}

static int send_stop_of_remote_actor_after_mail(domus_stack *stack, void *self, const void *payload)
{
    domi_cluster_gateway *gateway = set_stack_of_gateway(stack, self);
    domus_remote_message message;

    (void)payload;
    if (domus_remote_target(stack, &message) == 0)
        send_stop_to_remote_actor(gateway, DOMI_TO_STOP_LAST, &message.to);
    return 0;
}

static int reply_that_node_has_left(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)self, (void)answer;
    return domus_reply(stack, &left_type, NULL);
}

/* Go on with leaving: all parts of grains were given to other nodes, or the time for that is
 * over. */
static int leave_cluster_when_parts_are_given(domus_stack *stack, void *self,
                                              const domus_answer *answer)
{
    domi_cluster_gateway *gateway = set_stack_of_gateway(stack, self);

    (void)answer;
    gateway->has_left = true;
    atomic_store_explicit(&gateway->cluster->parts->ends_lease, true, memory_order_relaxed);
    domi_links_publish_all_batches(gateway, false);
    domi_heartbeat_publish(gateway, DOMI_BEAT_LEFT);
    return domus_ask_within(stack, gateway->client, &domus_nats_flush_type, NULL,
                            gateway->cluster->options.heartbeat_ns, reply_that_node_has_left);
}

static int reply_that_gateway_has_begun(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    return domus_reply(stack, &domi_begun_type, NULL);
}

/* Handle the ask of domus_cluster_leave(). It is answered when the other nodes were told that this
 * node leaves. */
static int begin_to_leave_cluster(domus_stack *stack, void *self, const void *payload)
{
    domi_cluster_gateway *gateway = set_stack_of_gateway(stack, self);
    domus_address warden = gateway->cluster->parts->warden;

    (void)payload;
    if (gateway->client.house == NULL)
        return domus_reply(stack, &left_type, NULL);
    gateway->is_leaving = true;
    if (warden.house == NULL)
        return leave_cluster_when_parts_are_given(stack, gateway, NULL);
    domi_heartbeat_publish(gateway, DOMI_BEAT_LEAVING);
    return domus_ask_within(stack, warden, &domi_give_all_type, NULL,
                            gateway->cluster->options.down_after_ns,
                            leave_cluster_when_parts_are_given);
}

/* --- begin and end of a gateway --------------------------------------------------------------- */

static int pickle_address_as_name(void *context, domus_address address, unsigned char *bytes)
{
    domus_remote_name name;

    domi_name_of_address_on_wire(context, address, &name);
    domi_remote_name_write(&name, bytes);
    return (int)DOMI_NAME_BYTES;
}

static int unpickle_address_from_name(void *context, const unsigned char *bytes, size_t size,
                                      domus_address *ret_address)
{
    domus_remote_name name;

    if (size != DOMI_NAME_BYTES)
        return -EBADMSG;
    domi_remote_name_read(bytes, &name);
    return domi_address_of_remote_name(context, &name, ret_address);
}

/* Begin the conversation in which the gateway makes all asks in the name of remote actors. */
static int begin_conversation_for_remote_asks(domus_stack *stack, void *self, const void *payload)
{
    domi_cluster_gateway *gateway = set_stack_of_gateway(stack, self);
    int error = domus_sleep_add(stack, DOMI_LONG_NS, UINT64_MAX);

    (void)payload;
    if (error == 0)
        error = domus_conversation_of(stack, &gateway->asker);
    return error != 0 ? error : domus_wait_first(stack, domi_asks_on_answer_send_it_to_node);
}

static int fail_if_gateway_is_not_subscribed(domus_stack *stack, void *self,
                                             const domus_answer *answer)
{
    (void)stack, (void)self;
    return answer->error; /* the gateway fails, and its supervisor decides what happens */
}

static int subscribe_to_cluster_subject(domus_stack *stack, domi_cluster_gateway *gateway,
                                        const char *subject)
{
    char whole[DOMUS_CLUSTER_NAME_MAX + 64];
    domus_nats_subscribe subscribe;

    (void)snprintf(whole, sizeof whole, "dm.%s.%s", gateway->cluster->options.name, subject);
    int error = domus_nats_subscribe_make(whole, NULL, &subscribe);
    if (error != 0)
        return error;
    error = domus_ask_add(stack, gateway->client, &domus_nats_subscribe_type, &subscribe, 0, 0);
    if (error < 0)
        domus_nats_subscribe_type.release(&subscribe);
    return error;
}

static int subscribe_to_gateway_subjects(domus_stack *stack, void *self, const void *payload)
{
    domi_cluster_gateway *gateway = set_stack_of_gateway(stack, self);
    char inbox[64];

    (void)payload;
    (void)snprintf(inbox, sizeof inbox, "t.%016llx.%u", (unsigned long long)gateway->cluster->id,
                   gateway->index);
    int error = subscribe_to_cluster_subject(stack, gateway, inbox);
    if (error == 0 && gateway->index == 0)
        error = subscribe_to_cluster_subject(stack, gateway, "b");
    return error != 0 ? error : domus_wait_all(stack, fail_if_gateway_is_not_subscribed);
}

void domi_cluster_fill_client_options(const domus_cluster_options *options,
                                      domus_nats_options *ret_options)
{
    const uint64_t backoff_ns = 2 * options->down_after_ns;
    const uint64_t buffer = 4 * options->queued_max;

    *ret_options = (domus_nats_options){
        .servers = options->servers,
        .name = options->node,
        .user = options->user,
        .password = options->password,
        .token = options->token,
        .nkey_seed = options->nkey_seed,
        .jwt = options->jwt,
        .front = options->front,
        .no_echo = true,
        .backoff_min_ns = backoff_ns < DOMUS_NATS_BACKOFF_MIN ? backoff_ns : 0,
        .backoff_max_ns = backoff_ns,
        .ping_interval_ns = options->heartbeat_ns,
        .buffer_max = buffer < BUFFER_MOST ? buffer : BUFFER_MOST,
        .seed = options->seed,
    };
}

static int open_nats_client_of_gateway(domus_stack *stack, domi_cluster_gateway *gateway)
{
    const domus_cluster_options *options = &gateway->cluster->options;
    domus_nats_options nats;

    if (options->open_client != NULL)
        return options->open_client(stack, options->context, gateway->index, &gateway->client);
    domi_cluster_fill_client_options(options, &nats);
    nats.events = domus_self(stack);
    return domus_nats_open(stack, &nats, &gateway->client);
}

/* Spread the kinds of grains that the options name over the cluster, and make this gateway's routes
 * for them. */
static int spread_grains_over_cluster(domi_cluster_gateway *gateway)
{
    const domus_cluster *cluster = gateway->cluster;
    int error = 0;

    if (cluster->kinds_count == 0)
        return 0;
    gateway->routes = calloc(DOMUS_REMOTE_PARTS, sizeof *gateway->routes);
    if (gateway->routes == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < cluster->kinds_count && error == 0; i++)
        error = domus_remote_grains_place(gateway->stack, cluster->kinds[i]);
    return error;
}

static int open_gateway_and_its_nats_client(domus_stack *stack, domi_cluster_gateway *gateway)
{
    const domus_cluster_options *options = &gateway->cluster->options;
    const domus_remote_options remote = {.addresses_max = options->addresses_max,
                                         .nodes_max = 2 * DOMUS_CLUSTER_NODES_MAX};
    int error = domus_remote_open(stack, &remote);

    if (error != 0)
        return error;
    gateway->payload = aligned_alloc(64, PAYLOAD_ROOM);
    gateway->message = malloc(options->message_max + DOMI_GRAIN_NAME_MAX);
    if (gateway->payload == NULL || gateway->message == NULL)
        return -ENOMEM;
    gateway->pickling = (domus_pickle_context){.bytes_max = options->message_max,
                                               .write_address = pickle_address_as_name,
                                               .read_address = unpickle_address_from_name,
                                               .context = gateway};
    error = domus_notice(stack, domus_self(stack), &begin_type, NULL);
    if (error != 0 || domi_cluster_has_no_servers(gateway->cluster))
        return error;
    error = domi_wide_make_outlets_of_groups(gateway);
    if (error == 0)
        error = spread_grains_over_cluster(gateway);
    if (error != 0)
        return error;
    error = open_nats_client_of_gateway(stack, gateway);
    if (error == 0 && gateway->index == 0) {
        domi_lock_take(&gateway->cluster->lock);
        gateway->cluster->client = gateway->client;
        domi_lock_release(&gateway->cluster->lock);
    }
    if (error == 0)
        error = domus_notice(stack, domus_self(stack), &subscribe_type, NULL);
    if (error == 0)
        error = domus_every(stack, options->heartbeat_ns, &beat_type, NULL, NULL);
    return error;
}

static int begin_gateway_at_mount_or_clean_up(domus_stack *stack, void *self)
{
    domi_cluster_gateway *gateway = set_stack_of_gateway(stack, self);
    int error = open_gateway_and_its_nats_client(stack, gateway);

    /* clean up here, because on_stop is not called when on_mount has failed */
    if (error != 0) {
        free(gateway->routes);
        free(gateway->payload);
        free(gateway->message);
        atomic_store_explicit(&gateway->cluster->failed, error, memory_order_relaxed);
        /* release: pairs with the opener's acquire loads of `ended`; when the opener sees this
         * gateway there, it may free the cluster */
        atomic_fetch_add_explicit(&gateway->cluster->ended, 1, memory_order_release);
    }
    return error;
}

static void free_memory_of_gateway_at_stop(domus_stack *stack, void *self)
{
    domi_cluster_gateway *gateway = set_stack_of_gateway(stack, self);

    domi_watches_free_all(gateway);
    domi_routes_free(gateway);
    domi_asks_free_tables(gateway);
    domi_peers_free_all(gateway);
    free(gateway->payload);
    free(gateway->message);
}

const domus_behaviour domi_gateway_behaviour = {
    .name = "cluster gateway",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(domi_cluster_gateway),
    .on_mount = begin_gateway_at_mount_or_clean_up,
    .on_stop = free_memory_of_gateway_at_stop,
    .on = (const domus_on[]){{&domus_nats_message_type, receive_nats_message_of_gateway, 0},
                             {&domus_later_type, publish_batches_at_end_of_phase, 0},
                             {&domi_tick_type, resend_unconfirmed_batches, 0},
                             {&beat_type, beat_and_check_nodes_at_timer, 0},
                             {&domi_follow_type, follow_changed_states_of_nodes, 0},
                             {&domus_remote_cancel_type, cancel_ask_to_remote_actor, 0},
                             {&domus_remote_watch_type, domi_watched_begin_watch_for_local, 0},
                             {&domus_remote_stop_type, send_stop_of_remote_actor, 0},
                             {&domus_remote_stop_after_mail_type,
                              send_stop_of_remote_actor_after_mail, 0},
                             {&domus_remote_joined_type, domi_tell_nodes_of_first_group_member, 0},
                             {&domus_down_type, domi_watching_tell_peers_of_end, 0},
                             {&domi_spawn_type, domi_spawn_here_or_ask_peer_to, 0},
                             {&domus_nats_event_type, beat_and_resend_when_nats_reconnects, 0},
                             {&domi_begun_type, reply_that_gateway_has_begun, 0},
                             {&domi_leave_type, begin_to_leave_cluster, 0},
                             {&begin_type, begin_conversation_for_remote_asks, 0},
                             {&subscribe_type, subscribe_to_gateway_subjects, 0},
                             {NULL, domi_send_message_to_remote_actor, 0}},
};
