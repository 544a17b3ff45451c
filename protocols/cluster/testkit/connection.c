/* Connections, as servers see them: the packets that come over them, and how they end.
 *
 *   client            server
 *   HELLO ----------->          it is accepted, or refused by a CLOSE
 *         <----------- WELCOME
 *   SUBSCRIBE, MESSAGE, PING ->
 *         <- MESSAGE, PONG
 *   CLOSE ----------->          either side may end it, and the other may not be told
 *
 * A connection is freed when both sides have closed it. */
#include "protocols/cluster/testkit/sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

static domi_sim_loss make_loss_on_way_to_server(const domi_sim_connection *connection,
                                                const char *why)
{
    return (domi_sim_loss){DOMUS_FATE_LOST_UP, connection->client->node->index, why};
}

static domi_sim_loss make_loss_on_way_to_client(const domi_sim_connection *connection,
                                                const char *why)
{
    return (domi_sim_loss){DOMUS_FATE_LOST_DOWN, connection->client->node->index, why};
}

static domi_sim *cluster_of_connection(const domi_sim_connection *connection)
{
    return connection->client->node->sim;
}

/* --- the client's side ------------------------------------------------------------------------ */

domi_sim_connection *domi_sim_begin_connection(domi_sim_client *client, uint32_t server)
{
    domi_sim *sim = client->node->sim;
    domi_sim_connection *connection = calloc(1, sizeof *connection);

    if (connection == NULL) {
        sim->failed = -ENOMEM;
        return NULL;
    }
    connection->client = client;
    connection->server = server;
    connection->client_open = true;
    connection->up.way = &client->node->ways[server][DOMI_SIM_UP];
    connection->down.way = &client->node->ways[server][DOMI_SIM_DOWN];
    if (sim->last_connection != NULL)
        sim->last_connection->next = connection;
    else
        sim->connections = connection;
    sim->last_connection = connection;
    domi_sim_add_line_to_trace(sim, DOMI_SIM_CLIENT " goes to server %u",
                               DOMI_SIM_CLIENT_OF(client), server);
    domi_sim_send_or_lose_packet(sim, &connection->up,
                                 domi_sim_packet_new(sim, DOMI_SIM_HELLO, NULL),
                                 make_loss_on_way_to_server(connection, "hello"));
    return connection;
}

void domi_sim_close_side_of_client(domi_sim_connection *connection, bool abrupt, bool silent)
{
    domi_sim *sim = cluster_of_connection(connection);

    connection->client_open = false;
    domi_sim_lose_packets_of_leg(sim, &connection->down,
                                 make_loss_on_way_to_client(connection, "the client has closed"));
    if (abrupt || !connection->server_open)
        domi_sim_lose_packets_of_leg(
            sim, &connection->up, make_loss_on_way_to_server(connection, "the client has closed"));
    if (connection->server_open && !silent)
        domi_sim_send_or_lose_packet(sim, &connection->up,
                                     domi_sim_packet_new(sim, DOMI_SIM_CLOSE, NULL),
                                     make_loss_on_way_to_server(connection, "close"));
}

/* --- the server's side ------------------------------------------------------------------------ */

static void send_packet_to_client(domi_sim_connection *connection, domi_sim_kind kind,
                                  uint64_t number, int error)
{
    domi_sim *sim = cluster_of_connection(connection);
    domi_sim_packet *packet = domi_sim_packet_new(sim, kind, NULL);

    if (packet == NULL)
        return;
    packet->number = number;
    packet->error = error;
    domi_sim_send_or_lose_packet(sim, &connection->down, packet,
                                 make_loss_on_way_to_client(connection, "control"));
}

void domi_sim_close_side_of_server(domi_sim_connection *connection, int error, const char *why)
{
    domi_sim *sim = cluster_of_connection(connection);

    if (!connection->server_open)
        return;
    connection->server_open = false;
    domi_sim_add_line_to_trace(sim, "server %u closes " DOMI_SIM_CLIENT ": %s", connection->server,
                               DOMI_SIM_CLIENT_OF(connection->client), why);
    domi_sim_end_connection_subscriptions(connection);
    domi_sim_lose_packets_of_leg(sim, &connection->up, make_loss_on_way_to_server(connection, why));
    domi_sim_lose_packets_of_leg(sim, &connection->down,
                                 make_loss_on_way_to_client(connection, why));
    if (connection->client_open)
        send_packet_to_client(connection, DOMI_SIM_CLOSE, 0, error);
}

static void accept_or_refuse_client(domi_sim_connection *connection)
{
    domi_sim *sim = cluster_of_connection(connection);

    if (!sim->running[connection->server] || connection->client->node->barred_ns > sim->now_ns) {
        send_packet_to_client(connection, DOMI_SIM_CLOSE, 0, -ECONNREFUSED);
        return;
    }
    connection->server_open = true;
    sim->counts.connects++;
    send_packet_to_client(connection, DOMI_SIM_WELCOME, 0, 0);
}

static void give_message_to_store_or_subscribers(domi_sim_connection *connection,
                                                 domi_sim_message *message)
{
    domi_sim *sim = cluster_of_connection(connection);
    bool is_taken = domi_sim_is_subject_of_store(sim, message->subject) &&
                    domi_sim_store_take_or_route_request(sim, connection->server, message);

    sim->counts.arrived++;
    domi_sim_send_message_to_subscribers(sim, connection->server, message, connection, is_taken);
}

static void dispatch_packet_of_client_at_server(domi_sim_connection *connection,
                                                const domi_sim_packet *packet)
{
    domi_sim *sim = cluster_of_connection(connection);

    connection->heard_ns = sim->now_ns;
    switch (packet->kind) {
    case DOMI_SIM_MESSAGE:
        give_message_to_store_or_subscribers(connection, packet->message);
        return;
    case DOMI_SIM_SUBSCRIBE:
        domi_sim_begin_server_subscription(connection, packet);
        return;
    case DOMI_SIM_UNSUBSCRIBE:
        domi_sim_end_server_subscription(connection, packet);
        return;
    case DOMI_SIM_PING:
        send_packet_to_client(connection, DOMI_SIM_PONG, packet->number, 0);
        return;
    case DOMI_SIM_CLOSE:
        domi_sim_close_side_of_server(connection, 0, "the client has closed");
        return;
    default:
        return; /* clients send packets of no other kinds */
    }
}

void domi_sim_deliver_packet_to_server(domi_sim_connection *connection)
{
    domi_sim *sim = cluster_of_connection(connection);
    domi_sim_packet *packet = domi_sim_take_first_packet_of_leg(&connection->up);

    if (packet->kind == DOMI_SIM_HELLO) {
        connection->heard_ns = sim->now_ns;
        accept_or_refuse_client(connection);
    } else if (connection->server_open) {
        dispatch_packet_of_client_at_server(connection, packet);
    } else if (packet->kind == DOMI_SIM_MESSAGE) {
        domi_sim_count_lost_message(
            sim, packet->message, make_loss_on_way_to_server(connection, "the server has closed"));
    }
    domi_sim_packet_free(packet);
    if (connection->client_open)
        domi_sim_send_waiting_packets(connection->client);
}

void domi_sim_deliver_packet_to_client(domi_sim_connection *connection)
{
    domi_sim_packet *packet = domi_sim_take_first_packet_of_leg(&connection->down);

    if (connection->client_open) {
        domi_sim_append_packet_to_leg(&connection->client->came, packet);
        return;
    }
    if (packet->kind == DOMI_SIM_MESSAGE)
        domi_sim_count_lost_message(
            cluster_of_connection(connection), packet->message,
            make_loss_on_way_to_client(connection, "the client has closed"));
    domi_sim_packet_free(packet);
}

/* --- all connections -------------------------------------------------------------------------- */

void domi_sim_close_slow_or_silent_clients(domi_sim *sim)
{
    for (domi_sim_connection *at = sim->connections; at != NULL; at = at->next) {
        if (at->server_open && at->is_slow) {
            sim->counts.slow++;
            domi_sim_close_side_of_server(at, -EPIPE, "slow consumer");
        }
        if (at->server_open && sim->now_ns - at->heard_ns >= sim->options.stale_ns)
            domi_sim_close_side_of_server(at, -ETIMEDOUT, "it says nothing");
    }
}

uint64_t domi_sim_due_time_of_stale_check(const domi_sim *sim)
{
    uint64_t due_ns = DOMI_SIM_NEVER;

    for (const domi_sim_connection *at = sim->connections; at != NULL; at = at->next) {
        uint64_t stale_ns = at->heard_ns + sim->options.stale_ns;
        if (at->server_open && stale_ns < due_ns)
            due_ns = stale_ns;
    }
    return due_ns;
}

void domi_sim_free_closed_connections(domi_sim *sim)
{
    domi_sim_connection *last = NULL;

    for (domi_sim_connection **link = &sim->connections; *link != NULL;) {
        domi_sim_connection *at = *link;
        if (at->client_open || at->server_open) {
            last = at;
            link = &at->next;
            continue;
        }
        *link = at->next;
        domi_sim_lose_packets_of_leg(sim, &at->up,
                                     make_loss_on_way_to_server(at, "both sides have closed"));
        domi_sim_lose_packets_of_leg(sim, &at->down,
                                     make_loss_on_way_to_client(at, "both sides have closed"));
        free(at);
    }
    sim->last_connection = last;
}
