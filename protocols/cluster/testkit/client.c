/* The actor that plays a client of NATS. It takes the verbs of domus/nats.h in its turns; what
 * comes over its connection is put aside by the cluster, which wakes the actor. So all that the
 * client does happens in turns of its kit, and a node that is suspended hears nothing.
 *
 *   ALONE ----- retry_ns has come ----> TRYING
 *   TRYING ---- WELCOME --------------> CONNECTED
 *   TRYING ---- CLOSE, retry_ns ------> ALONE
 *   CONNECTED - CLOSE, silence -------> ALONE */
#include "protocols/cluster/testkit/client_parts.h"

#include <domus/conversation.h>
#include <domus/spawn.h>
#include <domus/supervise.h>
#include <domus/system.h>
#include <domus/timer.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAKEN_MAX 64u /* packets that a simulated client's actor handles in one turn, at most */
/* messages that the mailbox of a simulated client's actor may hold: the largest bound, because the
 * bound of its buffer is the one that counts */
#define MAILBOX_MAX 65535u

const domus_type domi_sim_wake_type = {.name = "simulated nats wakes"};

/* --- functions called outside of the actor ---------------------------------------------------- */

void domi_sim_wake_clients_with_packets(domi_sim_node *node)
{
    for (domi_sim_client *at = node->clients; at != NULL; at = at->next) {
        if (at->is_over || at->is_woken || at->came.head == NULL)
            continue;
        at->is_woken = domus_outside_notice(domus_testkit_system(node->kit), at->self,
                                            &domi_sim_wake_type, NULL) == 0;
    }
}

/* Count the messages that wait at a client, to be sent or to be handled, as lost. */
static void lose_waiting_packets_of_client(domi_sim_client *client)
{
    domi_sim *sim = client->node->sim;
    uint32_t node = client->node->index;

    domi_sim_lose_packets_of_leg(
        sim, &client->waiting,
        (domi_sim_loss){DOMUS_FATE_LOST_WAITING, node, "the client has ended"});
    domi_sim_lose_packets_of_leg(
        sim, &client->came, (domi_sim_loss){DOMUS_FATE_LOST_DOWN, node, "the client has ended"});
}

void domi_sim_client_end_for_good(domi_sim_client *client, bool silent)
{
    if (client->is_over)
        return;
    client->is_over = true;
    if (client->connection != NULL)
        domi_sim_close_side_of_client(client->connection, true, silent);
    client->connection = NULL;
    client->state = DOMI_SIM_ALONE;
    lose_waiting_packets_of_client(client);
    domi_sim_end_all_subscriptions(client, false);
}

void domi_sim_client_free(domi_sim_client *client)
{
    domi_sim_client_end_for_good(client, true);
    free(client->slots);
    free(client->drains);
    free(client);
}

/* --- packets from the server ------------------------------------------------------------------ */

static void dispatch_packet_from_server(domus_stack *stack, domi_sim_client *client,
                                        const domi_sim_packet *packet)
{
    switch (packet->kind) {
    case DOMI_SIM_WELCOME:
        domi_sim_connect_client_at_welcome(stack, client);
        return;
    case DOMI_SIM_MESSAGE:
        domi_sim_deliver_to_subscription(stack, client, packet->number, packet->message);
        return;
    case DOMI_SIM_PONG:
        client->pongs = packet->number;
        domi_sim_answer_flushes_of_pong(stack, client);
        return;
    case DOMI_SIM_CLOSE:
        domi_sim_close_and_plan_reconnect(stack, client,
                                          packet->error != 0 ? packet->error : -ECONNRESET);
        return;
    default:
        return; /* servers send packets of no other kinds */
    }
}

static int on_wake_take_arrived_packets(domus_stack *stack, void *self, const void *payload)
{
    domi_sim_client *client = ((domi_sim_actor *)self)->client;

    (void)payload;
    client->is_woken = false;
    for (uint32_t i = 0; i < TAKEN_MAX && client->came.head != NULL; i++) {
        domi_sim_packet *packet = domi_sim_take_first_packet_of_leg(&client->came);
        dispatch_packet_from_server(stack, client, packet);
        domi_sim_packet_free(packet);
    }
    /* If there is no room for this notice to itself, the cluster wakes the actor again when the kit
     * is idle. */
    if (client->came.head != NULL)
        client->is_woken = domus_notice(stack, client->self, &domi_sim_wake_type, NULL) == 0;
    domi_sim_end_drain_if_all_sent(stack, client);
    domi_sim_set_timer_of_client(stack, client);
    return 0;
}

static int on_timer_do_all_due_work(domus_stack *stack, void *self, const void *payload)
{
    domi_sim_client *client = ((domi_sim_actor *)self)->client;

    (void)payload;
    client->armed_ns = DOMI_SIM_NEVER;
    domi_sim_fail_asks_after_deadline(stack, client);
    domi_sim_do_due_work_of_client(stack, client);
    domi_sim_end_drain_if_all_sent(stack, client);
    domi_sim_set_timer_of_client(stack, client);
    return 0;
}

static int on_ask_for_status_reply_with_it(domus_stack *stack, void *self, const void *payload)
{
    domi_sim_client *client = ((domi_sim_actor *)self)->client;
    domus_nats_status status = client->counted;
    bool connected = client->state == DOMI_SIM_CONNECTED;

    (void)payload;
    status.connected = status.has_headers = status.has_jetstream = connected;
    status.draining = client->is_draining;
    status.max_payload = connected ? client->node->sim->options.payload_max : 0;
    status.servers = client->node->sim->options.servers;
    status.subscriptions = client->subscription_count;
    status.inflight = client->slots_used;
    status.waiting_bytes = client->waiting.bytes;
    for (const domi_sim_packet *at = client->waiting.head; at != NULL; at = at->next)
        status.waiting += at->kind == DOMI_SIM_MESSAGE;
    if (connected)
        (void)snprintf(status.server, sizeof status.server, "simulated:%u",
                       client->connection->server);
    (void)snprintf(status.version, sizeof status.version, "simulated");
    return domus_reply(stack, &domus_nats_status_type, &status);
}

/* --- the actor -------------------------------------------------------------------------------- */

static int on_mount_try_to_connect(domus_stack *stack, void *self)
{
    domi_sim_client *client = ((domi_sim_actor *)self)->client;

    client->self = domus_self(stack);
    domi_sim_try_to_connect(stack, client);
    domi_sim_set_timer_of_client(stack, client);
    return 0;
}

static void on_stop_end_client_for_good(domus_stack *stack, void *self)
{
    (void)stack;
    domi_sim_client_end_for_good(((domi_sim_actor *)self)->client, false);
}

static const domus_on rows[] = {
    {.type = &domus_nats_publish_type, .handle = domi_sim_on_publish_send_message},
    {.type = &domus_nats_request_type, .handle = domi_sim_on_request_send_message},
    {.type = &domus_nats_subscribe_type, .handle = domi_sim_on_subscribe_add_subscription},
    {.type = &domus_nats_unsubscribe_type, .handle = domi_sim_on_unsubscribe_limit_or_end},
    {.type = &domus_nats_flush_type, .handle = domi_sim_on_flush_send_mark_to_itself},
    {.type = &domus_nats_drain_type, .handle = domi_sim_on_drain_begin_drain},
    {.type = &domus_nats_look_type, .handle = on_ask_for_status_reply_with_it},
    {.type = &domi_sim_wake_type, .handle = on_wake_take_arrived_packets},
    {.type = &domi_sim_timer_type, .handle = on_timer_do_all_due_work},
    {.type = &domi_sim_mark_type, .handle = domi_sim_on_mark_of_flush_send_ping},
    {.type = &domus_down_type, .handle = domi_sim_on_down_end_its_subscriptions},
    {.type = NULL},
};

static const domus_behaviour behaviour = {
    .name = "nats (simulated)",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(domi_sim_actor),
    .on = rows,
    .on_mount = on_mount_try_to_connect,
    .on_stop = on_stop_end_client_for_good,
};

static domi_sim_client *make_simulated_client(domi_sim_node *node, uint32_t gateway)
{
    domi_sim_client *client = calloc(1, sizeof *client);

    if (client == NULL)
        return NULL;
    client->node = node;
    client->gateway = gateway;
    client->free_slot = DOMI_SIM_NO_SLOT;
    client->expire_ns = client->drain_ns = client->armed_ns = DOMI_SIM_NEVER;
    client->backoff_ns = node->sim->options.backoff_min_ns;
    (void)snprintf(client->inbox, sizeof client->inbox, "_INBOX.%012" PRIx64 ".",
                   domi_sim_draw_number_below(node->sim, UINT64_C(1) << 48));
    return client;
}

int domus_testkit_cluster_open_client(domus_stack *stack, void *context, uint32_t gateway,
                                      domus_address *ret_client)
{
    const domus_spawn_options options = {.mailbox_max = MAILBOX_MAX};
    domi_sim_node *node = context;
    domi_sim *sim = node->sim;

    if (sim->client_count == DOMUS_TESTKIT_CLIENTS_MAX)
        return -ENOSPC;
    domi_sim_client *client = make_simulated_client(node, gateway);
    if (client == NULL)
        return -ENOMEM;
    client->events = domus_self(stack);
    domi_sim_actor actor = {client};
    int error = domus_spawn_with(stack, &behaviour, &actor, &options, &client->self);
    if (error != 0) {
        free(client);
        return error;
    }
    sim->client_count++;
    if (node->last_client != NULL)
        node->last_client->next = client;
    else
        node->clients = client;
    node->last_client = client;
    *ret_client = client->self;
    return 0;
}
