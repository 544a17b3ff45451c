/* Servers: find the subscriptions that get a message.
 *
 * A server knows its own subscriptions, and those of other servers of which it was told over a
 * route. A message goes to each subscription that matches, and to one of each queue group: to one
 * of the server's own clients if there is one, as nats-server does it. */
#include "protocols/cluster/testkit/sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char no_responders[] = "NATS/1.0 503\r\n\r\n";

/* --- subscriptions ---------------------------------------------------------------------------- */

static uint32_t bit_of_server(uint32_t server)
{
    return UINT32_C(1) << server;
}

static domi_sim_interest *find_subscription_of_connection(const domi_sim *sim,
                                                          const domi_sim_connection *connection,
                                                          uint64_t number)
{
    for (domi_sim_interest *at = sim->interests; at != NULL; at = at->next) {
        if (at->connection == connection && at->number == number)
            return at;
    }
    return NULL;
}

static void end_interest_on_all_servers(domi_sim *sim, domi_sim_interest *interest)
{
    interest->connection = NULL;
    interest->known &= ~bit_of_server(interest->server);
    sim->known_changes++;
    domi_sim_tell_servers_subscription(sim, interest, DOMI_SIM_NO_INTEREST);
}

void domi_sim_begin_server_subscription(domi_sim_connection *connection,
                                        const domi_sim_packet *packet)
{
    domi_sim *sim = connection->client->node->sim;

    if (find_subscription_of_connection(sim, connection, packet->number) != NULL)
        return;
    domi_sim_interest *interest = calloc(1, sizeof *interest);
    if (interest == NULL) {
        sim->failed = -ENOMEM;
        return;
    }
    interest->connection = connection;
    interest->what = domi_sim_message_keep(packet->message);
    interest->number = packet->number;
    interest->limit = packet->limit;
    interest->server = connection->server;
    interest->known = bit_of_server(connection->server);
    sim->known_changes++;
    if (sim->last_interest != NULL)
        sim->last_interest->next = interest;
    else
        sim->interests = interest;
    sim->last_interest = interest;
    domi_sim_tell_servers_subscription(sim, interest, DOMI_SIM_INTEREST);
}

void domi_sim_end_server_subscription(domi_sim_connection *connection,
                                      const domi_sim_packet *packet)
{
    domi_sim *sim = connection->client->node->sim;
    domi_sim_interest *interest = find_subscription_of_connection(sim, connection, packet->number);

    if (interest == NULL)
        return;
    interest->limit = packet->limit;
    if (packet->limit <= interest->sent)
        end_interest_on_all_servers(sim, interest);
}

void domi_sim_end_connection_subscriptions(domi_sim_connection *connection)
{
    domi_sim *sim = connection->client->node->sim;

    for (domi_sim_interest *at = sim->interests; at != NULL; at = at->next) {
        if (at->connection == connection)
            end_interest_on_all_servers(sim, at);
    }
}

void domi_sim_free_ended_subscriptions(domi_sim *sim)
{
    domi_sim_interest *last = NULL;

    for (domi_sim_interest **link = &sim->interests; *link != NULL;) {
        domi_sim_interest *at = *link;
        if (at->connection != NULL || at->known != 0 || at->packets != 0) {
            last = at;
            link = &at->next;
            continue;
        }
        *link = at->next;
        domi_sim_message_drop(at->what);
        free(at);
    }
    sim->last_interest = last;
}

/* Returns whether a server knows a subscription, and its pattern matches the subject. */
static bool is_subscription_known_and_matching(const domi_sim_interest *interest, uint32_t server,
                                               const char *subject)
{
    return (interest->known & bit_of_server(server)) != 0 &&
           domus_testkit_cluster_matches(interest->what->subject, subject);
}

bool domi_sim_has_server_subscription(const domi_sim *sim, uint32_t server, const char *subject)
{
    for (const domi_sim_interest *at = sim->interests; at != NULL; at = at->next) {
        if (is_subscription_known_and_matching(at, server, subject))
            return true;
    }
    return false;
}

static bool is_in_queue_group(const domi_sim_interest *interest)
{
    return interest->what->reply[0] != '\0';
}

/* Returns whether two subscriptions are members of the same queue group. */
static bool are_in_same_queue_group(const domi_sim_interest *one, const domi_sim_interest *other)
{
    return strcmp(one->what->subject, other->what->subject) == 0 &&
           strcmp(one->what->reply, other->what->reply) == 0;
}

/* --- copies of messages ----------------------------------------------------------------------- */

/* Send a copy of a message to one subscription of a client of this server. A client for which too
 * much waits is closed a little later. */
static void send_copy_to_subscriber(domi_sim *sim, domi_sim_interest *interest,
                                    domi_sim_message *message)
{
    domi_sim_connection *connection = interest->connection;
    domi_sim_packet *packet = domi_sim_packet_new(sim, DOMI_SIM_MESSAGE, message);

    if (packet == NULL)
        return;
    packet->number = interest->number;
    sim->counts.copies++;
    domi_sim_send_or_lose_packet(sim, &connection->down, packet,
                                 (domi_sim_loss){DOMUS_FATE_LOST_DOWN,
                                                 connection->client->node->index,
                                                 "the leg to the client has lost it"});
    if (++interest->sent == interest->limit)
        end_interest_on_all_servers(sim, interest);
    connection->is_slow = connection->down.bytes > sim->options.pending_max || connection->is_slow;
}

/* Draw one member of a queue group by chance: among the server's own clients, or if none of them is
 * a member, among all members. `first` is the first member that the server knows. */
static domi_sim_interest *draw_member_of_queue_group(domi_sim *sim, uint32_t server,
                                                     domi_sim_interest *first, const char *subject)
{
    uint32_t counts[2] = {0, 0};

    for (domi_sim_interest *at = first; at != NULL; at = at->next) {
        if (is_subscription_known_and_matching(at, server, subject) &&
            are_in_same_queue_group(first, at))
            counts[at->server == server]++;
    }
    bool own = counts[1] != 0;
    uint64_t drawn = domi_sim_draw_number_below(sim, counts[own]);
    for (domi_sim_interest *at = first;; at = at->next) {
        if (is_subscription_known_and_matching(at, server, subject) &&
            are_in_same_queue_group(first, at) && (at->server == server) == own && drawn-- == 0)
            return at;
    }
}

/* Returns whether `interest` is the first of its queue group among those that match and are
 * known. */
static bool is_first_known_of_queue_group(const domi_sim *sim, uint32_t server,
                                          const domi_sim_interest *interest, const char *subject)
{
    for (const domi_sim_interest *at = sim->interests; at != interest; at = at->next) {
        if (are_in_same_queue_group(at, interest) &&
            is_subscription_known_and_matching(at, server, subject))
            return false;
    }
    return true;
}

static void send_message_to_drawn_member(domi_sim *sim, uint32_t server, domi_sim_interest *pick,
                                         domi_sim_message *message)
{
    if (pick->server == server) {
        send_copy_to_subscriber(sim, pick, message);
        return;
    }
    domi_sim_packet *packet = domi_sim_packet_new(sim, DOMI_SIM_PICK, message);
    if (packet == NULL)
        return;
    packet->interest = pick;
    pick->packets++;
    domi_sim_send_packet_over_route(sim, server, pick->server, packet);
}

/* Send a message to all subscriptions that a server knows, but not to the subscription `except`.
 * Returns whether there was any. */
static bool send_message_to_all_subscriptions(domi_sim *sim, uint32_t server,
                                              domi_sim_message *message,
                                              const domi_sim_connection *except)
{
    uint32_t others = 0;
    bool is_heard = false;

    for (domi_sim_interest *at = sim->interests; at != NULL; at = at->next) {
        if (!is_subscription_known_and_matching(at, server, message->match) ||
            (except != NULL && at->connection == except))
            continue;
        is_heard = true;
        if (is_in_queue_group(at)) {
            if (is_first_known_of_queue_group(sim, server, at, message->match))
                send_message_to_drawn_member(
                    sim, server, draw_member_of_queue_group(sim, server, at, message->match),
                    message);
        } else if (at->server == server) {
            send_copy_to_subscriber(sim, at, message);
        } else {
            others |= bit_of_server(at->server);
        }
    }
    for (uint32_t other = 0; other < sim->options.servers; other++) {
        if ((others & bit_of_server(other)) != 0)
            domi_sim_send_packet_over_route(sim, server, other,
                                            domi_sim_packet_new(sim, DOMI_SIM_MESSAGE, message));
    }
    return is_heard;
}

/* Tell the publisher of a request that nobody has subscribed to the request's subject. */
static void tell_publisher_of_no_responders(domi_sim *sim, domi_sim_connection *from,
                                            const domi_sim_message *request)
{
    domi_sim_parts parts = {.subject = request->reply,
                            .subject_size = (uint32_t)strlen(request->reply),
                            .headers = no_responders,
                            .headers_size = sizeof no_responders - 1,
                            .status = 503};

    for (domi_sim_interest *at = sim->interests; at != NULL; at = at->next) {
        if (at->connection != from ||
            !is_subscription_known_and_matching(at, from->server, request->reply))
            continue;
        domi_sim_message *message = domi_sim_message_new(&parts);
        if (message == NULL) {
            sim->failed = -ENOMEM;
            return;
        }
        message->number = ++sim->numbers;
        sim->counts.served++;
        sim->counts.no_responders++;
        send_copy_to_subscriber(sim, at, message);
        domi_sim_message_drop(message);
        return;
    }
}

void domi_sim_send_message_to_subscribers(domi_sim *sim, uint32_t server, domi_sim_message *message,
                                          domi_sim_connection *from, bool is_taken)
{
    domi_sim_add_line_to_trace(sim, "%" PRIu64 " comes to server %u", message->number, server);
    bool is_heard = send_message_to_all_subscriptions(sim, server, message,
                                                      sim->options.no_echo ? from : NULL) ||
                    is_taken;
    if (is_heard)
        return;
    domi_sim_count_and_report_fate(sim, message, DOMUS_FATE_UNHEARD, message->node);
    if (from != NULL && message->reply[0] != '\0')
        tell_publisher_of_no_responders(sim, from, message);
}

void domi_sim_deliver_message_from_route(domi_sim *sim, uint32_t server, domi_sim_message *message,
                                         domi_sim_interest *pick)
{
    bool is_heard = false;

    for (domi_sim_interest *at = sim->interests; at != NULL && pick == NULL; at = at->next) {
        if (at->server != server || is_in_queue_group(at) ||
            !is_subscription_known_and_matching(at, server, message->match))
            continue;
        is_heard = true;
        send_copy_to_subscriber(sim, at, message);
    }
    /* if the drawn subscriber has ended, another one of its queue group gets the message */
    if (pick != NULL && pick->connection == NULL) {
        domi_sim_interest *at = sim->interests;
        while (at != NULL && (at->connection == NULL || at->server != server ||
                              !are_in_same_queue_group(at, pick)))
            at = at->next;
        pick = at;
    }
    if (pick != NULL) {
        is_heard = true;
        send_copy_to_subscriber(sim, pick, message);
    }
    if (!is_heard)
        domi_sim_count_lost_message(
            sim, message,
            (domi_sim_loss){DOMUS_FATE_LOST_ROUTE, DOMUS_EVERY,
                            "the subscription has ended at the other server"});
}
