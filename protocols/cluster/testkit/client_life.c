/* How a simulated client of NATS connects, notices that its server is silent, drains, and ends. */
#include "protocols/cluster/testkit/client_parts.h"

#include <domus/conversation.h>
#include <domus/spawn.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void write_name_of_server(uint32_t server, char text[DOMUS_NATS_TEXT_SIZE])
{
    (void)snprintf(text, DOMUS_NATS_TEXT_SIZE, "simulated:%u", server);
}

/* --- connecting ------------------------------------------------------------------------------- */

/* Set the time of the client's next try to connect, later with each try that has failed. */
static void delay_next_try_to_connect(domus_stack *stack, domi_sim_client *client)
{
    domi_sim *sim = client->node->sim;
    uint64_t half_ns = client->backoff_ns / 2;

    client->state = DOMI_SIM_ALONE;
    client->retry_ns = domus_now_ns(stack) + half_ns + domi_sim_draw_number_below(sim, half_ns + 1);
    client->backoff_ns *= 2;
    if (client->backoff_ns > sim->options.backoff_max_ns)
        client->backoff_ns = sim->options.backoff_max_ns;
}

void domi_sim_try_to_connect(domus_stack *stack, domi_sim_client *client)
{
    domi_sim *sim = client->node->sim;
    uint32_t server = (uint32_t)domi_sim_draw_number_below(sim, sim->options.servers);

    client->connection = domi_sim_begin_connection(client, server);
    if (client->connection == NULL) {
        delay_next_try_to_connect(stack, client);
        return;
    }
    client->state = DOMI_SIM_TRYING;
    client->retry_ns = domus_now_ns(stack) + sim->options.connect_timeout_ns;
}

void domi_sim_connect_client_at_welcome(domus_stack *stack, domi_sim_client *client)
{
    domi_sim *sim = client->node->sim;
    char text[DOMUS_NATS_TEXT_SIZE];

    if (client->state != DOMI_SIM_TRYING)
        return;
    client->state = DOMI_SIM_CONNECTED;
    client->backoff_ns = sim->options.backoff_min_ns;
    client->ping_ns = domus_now_ns(stack) + sim->options.ping_interval_ns;
    client->unanswered = 0;
    client->counted.reconnects += client->counted.connects != 0;
    client->counted.connects++;
    domi_sim_add_line_to_trace(sim, DOMI_SIM_CLIENT " is connected to server %u",
                               DOMI_SIM_CLIENT_OF(client), client->connection->server);
    write_name_of_server(client->connection->server, text);
    domi_sim_send_event_of_client(stack, client, DOMUS_NATS_CONNECTED, 0, text);
    domi_sim_repeat_subscriptions(client);
    domi_sim_send_waiting_packets(client);
    if (client->is_draining)
        client->drain_ping = domi_sim_send_ping_to_server(client);
}

void domi_sim_close_and_plan_reconnect(domus_stack *stack, domi_sim_client *client, int error)
{
    domi_sim *sim = client->node->sim;
    bool was_connected = client->state == DOMI_SIM_CONNECTED;
    char text[DOMUS_NATS_TEXT_SIZE];

    if (client->connection == NULL)
        return;
    domi_sim_add_line_to_trace(sim, DOMI_SIM_CLIENT " %s server %u: %d", DOMI_SIM_CLIENT_OF(client),
                               was_connected ? "has lost" : "does not reach",
                               client->connection->server, error);
    write_name_of_server(client->connection->server, text);
    domi_sim_close_side_of_client(client->connection, true, false);
    client->connection = NULL;
    domi_sim_lose_packets_of_leg(
        sim, &client->came,
        (domi_sim_loss){DOMUS_FATE_LOST_DOWN, client->node->index, "the connection is given up"});
    delay_next_try_to_connect(stack, client);
    if (!was_connected) {
        client->counted.failures++;
        domi_sim_send_event_of_client(stack, client, DOMUS_NATS_FAILED, error, text);
        return;
    }
    sim->counts.disconnects++;
    domi_sim_send_event_of_client(stack, client, DOMUS_NATS_DISCONNECTED, error, text);
    domi_sim_fail_asks_already_sent(stack, client, -EPIPE);
}

/* --- silence ---------------------------------------------------------------------------------- */

/* Check whether the server has answered the client's last ping, and send the next ping. */
static void check_that_server_answers_pings(domus_stack *stack, domi_sim_client *client)
{
    const domus_testkit_cluster_options *options = &client->node->sim->options;

    if (client->pongs >= client->tick_ping)
        client->unanswered = 0;
    if (client->unanswered == options->pings_missed_max) {
        client->counted.stale++;
        domi_sim_close_and_plan_reconnect(stack, client, -ETIMEDOUT);
        return;
    }
    client->pinged_ns = domus_now_ns(stack);
    uint64_t ping = domi_sim_send_ping_to_server(client);
    if (client->unanswered++ == 0)
        client->tick_ping = ping;
    client->ping_ns = client->pinged_ns + options->ping_interval_ns;
}

/* --- drain ------------------------------------------------------------------------------------ */

static void end_drain_of_client(domus_stack *stack, domi_sim_client *client, int error)
{
    client->is_drained = true;
    for (uint32_t i = 0; i < client->drain_count; i++) {
        if (error == 0)
            (void)domus_kept_reply(stack, client->drains[i], &domus_nats_done_type, NULL);
        else
            (void)domus_kept_fail(stack, client->drains[i], error);
    }
    client->drain_count = 0;
    client->drain_ns = DOMI_SIM_NEVER;
    domi_sim_add_line_to_trace(client->node->sim, DOMI_SIM_CLIENT " is drained: %d",
                               DOMI_SIM_CLIENT_OF(client), error);
    domi_sim_send_event_of_client(stack, client, DOMUS_NATS_CLOSED, error, "drained");
    (void)domus_stop(stack, client->self);
}

void domi_sim_end_drain_if_all_sent(domus_stack *stack, domi_sim_client *client)
{
    if (!client->is_draining || client->is_drained || client->slots_used != 0)
        return;
    bool is_sent = client->state == DOMI_SIM_CONNECTED
                       ? client->drain_ping != 0 && client->drain_ping <= client->pongs
                       : client->waiting.head == NULL;
    if (is_sent && client->came.head == NULL)
        end_drain_of_client(stack, client, 0);
}

/* Keep the ask for a drain that is being handled, until the drain ends; a notice is not kept. */
static int keep_ask_for_drain(domus_stack *stack, domi_sim_client *client)
{
    domus_kept *drains =
        realloc(client->drains, (client->drain_count + 1) * sizeof client->drains[0]);

    if (drains == NULL)
        return -ENOMEM;
    client->drains = drains;
    int error = domus_keep(stack, &drains[client->drain_count]);
    client->drain_count += error == 0;
    return error == -EINVAL ? 0 : error; /* a notice cannot be kept, which is no error of a drain */
}

int domi_sim_on_drain_begin_drain(domus_stack *stack, void *self, const void *payload)
{
    domi_sim_client *client = ((domi_sim_actor *)self)->client;
    int error = keep_ask_for_drain(stack, client);

    (void)payload;
    if (error != 0)
        return domi_sim_refuse_ask_to_client(stack, client, error);
    if (client->is_draining)
        return 0;
    client->is_draining = true;
    client->drain_ns = domus_now_ns(stack) + client->node->sim->options.drain_timeout_ns;
    domi_sim_end_all_subscriptions(client, true);
    if (client->state == DOMI_SIM_CONNECTED)
        client->drain_ping = domi_sim_send_ping_to_server(client);
    domi_sim_end_drain_if_all_sent(stack, client);
    domi_sim_set_timer_of_client(stack, client);
    return 0;
}

void domi_sim_do_due_work_of_client(domus_stack *stack, domi_sim_client *client)
{
    uint64_t now_ns = domus_now_ns(stack);

    if (client->drain_ns <= now_ns) {
        end_drain_of_client(stack, client, -ETIMEDOUT);
        return;
    }
    if (client->state == DOMI_SIM_ALONE && client->retry_ns <= now_ns)
        domi_sim_try_to_connect(stack, client);
    else if (client->state == DOMI_SIM_TRYING && client->retry_ns <= now_ns)
        domi_sim_close_and_plan_reconnect(stack, client, -ETIMEDOUT);
    else if (client->state == DOMI_SIM_CONNECTED && client->ping_ns <= now_ns)
        check_that_server_answers_pings(stack, client);
}
