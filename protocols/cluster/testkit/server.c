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

static uint32_t bit_of(uint32_t server)
{
    return UINT32_C(1) << server;
}

static domi_sim_interest *find_interest(const domi_sim *sim, const domi_sim_connection *connection,
                                        uint64_t number)
{
    for (domi_sim_interest *at = sim->interests; at != NULL; at = at->next) {
        if (at->connection == connection && at->number == number)
            return at;
    }
    return NULL;
}

static void end_interest(domi_sim *sim, domi_sim_interest *interest)
{
    interest->connection = NULL;
    interest->known &= ~bit_of(interest->server);
    sim->known_changes++;
    domi_sim_spread(sim, interest, DOMI_SIM_NO_INTEREST);
}

void domi_sim_subscribed(domi_sim_connection *connection, const domi_sim_packet *packet)
{
    domi_sim *sim = connection->client->node->sim;

    if (find_interest(sim, connection, packet->number) != NULL)
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
    interest->known = bit_of(connection->server);
    sim->known_changes++;
    if (sim->last_interest != NULL)
        sim->last_interest->next = interest;
    else
        sim->interests = interest;
    sim->last_interest = interest;
    domi_sim_spread(sim, interest, DOMI_SIM_INTEREST);
}

void domi_sim_unsubscribed(domi_sim_connection *connection, const domi_sim_packet *packet)
{
    domi_sim *sim = connection->client->node->sim;
    domi_sim_interest *interest = find_interest(sim, connection, packet->number);

    if (interest == NULL)
        return;
    interest->limit = packet->limit;
    if (packet->limit <= interest->sent)
        end_interest(sim, interest);
}

void domi_sim_forget(domi_sim_connection *connection)
{
    domi_sim *sim = connection->client->node->sim;

    for (domi_sim_interest *at = sim->interests; at != NULL; at = at->next) {
        if (at->connection == connection)
            end_interest(sim, at);
    }
}

void domi_sim_reap_interests(domi_sim *sim)
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

/* Returns whether a server knows a subscription that matches. */
static bool is_interest_known_and_matching(const domi_sim_interest *interest, uint32_t server,
                                           const char *subject)
{
    return (interest->known & bit_of(server)) != 0 &&
           domus_testkit_cluster_matches(interest->what->subject, subject);
}

bool domi_sim_is_heard(const domi_sim *sim, uint32_t server, const char *subject)
{
    for (const domi_sim_interest *at = sim->interests; at != NULL; at = at->next) {
        if (is_interest_known_and_matching(at, server, subject))
            return true;
    }
    return false;
}

static bool has_queue(const domi_sim_interest *interest)
{
    return interest->what->reply[0] != '\0';
}

/* Returns whether two subscriptions belong to the same queue group. */
static bool share_queue(const domi_sim_interest *one, const domi_sim_interest *other)
{
    return strcmp(one->what->subject, other->what->subject) == 0 &&
           strcmp(one->what->reply, other->what->reply) == 0;
}

/* --- copies of messages ----------------------------------------------------------------------- */

/* Send a copy of a message to a subscription of one of the server's own clients. A client for which
 * too much waits is closed a little later. */
static void send_copy(domi_sim *sim, domi_sim_interest *interest, domi_sim_message *message)
{
    domi_sim_connection *connection = interest->connection;
    domi_sim_packet *packet = domi_sim_packet_new(sim, DOMI_SIM_MESSAGE, message);

    if (packet == NULL)
        return;
    packet->number = interest->number;
    sim->counts.copies++;
    domi_sim_send(sim, &connection->down, packet,
                  (domi_sim_loss){DOMUS_FATE_LOST_DOWN, connection->client->node->index,
                                  "the leg to the client has lost it"});
    if (++interest->sent == interest->limit)
        end_interest(sim, interest);
    connection->is_slow = connection->down.bytes > sim->options.pending_max || connection->is_slow;
}

/* Draw one of the members of a queue group by chance: among the server's own ones, or if there are
 * none, among all. `first` is the first member that the server knows. */
static domi_sim_interest *draw_member(domi_sim *sim, uint32_t server, domi_sim_interest *first,
                                      const char *subject)
{
    uint32_t counts[2] = {0, 0};

    for (domi_sim_interest *at = first; at != NULL; at = at->next) {
        if (is_interest_known_and_matching(at, server, subject) && share_queue(first, at))
            counts[at->server == server]++;
    }
    bool own = counts[1] != 0;
    uint64_t drawn = domi_sim_draw(sim, counts[own]);
    for (domi_sim_interest *at = first;; at = at->next) {
        if (is_interest_known_and_matching(at, server, subject) && share_queue(first, at) &&
            (at->server == server) == own && drawn-- == 0)
            return at;
    }
}

/* Returns whether no earlier interest belongs to the same queue group. */
static bool is_first_of_queue_group(const domi_sim *sim, uint32_t server,
                                    const domi_sim_interest *interest, const char *subject)
{
    for (const domi_sim_interest *at = sim->interests; at != interest; at = at->next) {
        if (share_queue(at, interest) && is_interest_known_and_matching(at, server, subject))
            return false;
    }
    return true;
}

static void send_pick(domi_sim *sim, uint32_t server, domi_sim_interest *pick,
                      domi_sim_message *message)
{
    if (pick->server == server) {
        send_copy(sim, pick, message);
        return;
    }
    domi_sim_packet *packet = domi_sim_packet_new(sim, DOMI_SIM_PICK, message);
    if (packet == NULL)
        return;
    packet->interest = pick;
    pick->packets++;
    domi_sim_send_over(sim, server, pick->server, packet);
}

/* Send a message to all interests that a server knows, except `except`. Returns whether there was
 * any. */
static bool send_to_interested(domi_sim *sim, uint32_t server, domi_sim_message *message,
                               const domi_sim_connection *except)
{
    uint32_t others = 0;
    bool is_heard = false;

    for (domi_sim_interest *at = sim->interests; at != NULL; at = at->next) {
        if (!is_interest_known_and_matching(at, server, message->match) ||
            (except != NULL && at->connection == except))
            continue;
        is_heard = true;
        if (has_queue(at)) {
            if (is_first_of_queue_group(sim, server, at, message->match))
                send_pick(sim, server, draw_member(sim, server, at, message->match), message);
        } else if (at->server == server) {
            send_copy(sim, at, message);
        } else {
            others |= bit_of(at->server);
        }
    }
    for (uint32_t other = 0; other < sim->options.servers; other++) {
        if ((others & bit_of(other)) != 0)
            domi_sim_send_over(sim, server, other,
                               domi_sim_packet_new(sim, DOMI_SIM_MESSAGE, message));
    }
    return is_heard;
}

/* Tell the publisher of a request that it has no subscribers. */
static void send_no_responders(domi_sim *sim, domi_sim_connection *from,
                               const domi_sim_message *request)
{
    domi_sim_parts parts = {.subject = request->reply,
                            .subject_size = (uint32_t)strlen(request->reply),
                            .headers = no_responders,
                            .headers_size = sizeof no_responders - 1,
                            .status = 503};

    for (domi_sim_interest *at = sim->interests; at != NULL; at = at->next) {
        if (at->connection != from ||
            !is_interest_known_and_matching(at, from->server, request->reply))
            continue;
        domi_sim_message *message = domi_sim_message_new(&parts);
        if (message == NULL) {
            sim->failed = -ENOMEM;
            return;
        }
        message->number = ++sim->numbers;
        sim->counts.served++;
        sim->counts.no_responders++;
        send_copy(sim, at, message);
        domi_sim_message_drop(message);
        return;
    }
}

void domi_sim_arrived(domi_sim *sim, uint32_t server, domi_sim_message *message,
                      domi_sim_connection *from, bool is_taken)
{
    domi_sim_note(sim, "%" PRIu64 " comes to server %u", message->number, server);
    bool is_heard =
        send_to_interested(sim, server, message, sim->options.no_echo ? from : NULL) || is_taken;
    if (is_heard)
        return;
    domi_sim_tell(sim, message, DOMUS_FATE_UNHEARD, message->node);
    if (from != NULL && message->reply[0] != '\0')
        send_no_responders(sim, from, message);
}

void domi_sim_routed(domi_sim *sim, uint32_t server, domi_sim_message *message,
                     domi_sim_interest *pick)
{
    bool is_heard = false;

    for (domi_sim_interest *at = sim->interests; at != NULL && pick == NULL; at = at->next) {
        if (at->server != server || has_queue(at) ||
            !is_interest_known_and_matching(at, server, message->match))
            continue;
        is_heard = true;
        send_copy(sim, at, message);
    }
    if (pick != NULL &&
        pick->connection ==
            NULL) { /* the picked subscriber has ended, so take another one of its group */
        domi_sim_interest *at = sim->interests;
        while (at != NULL &&
               (at->connection == NULL || at->server != server || !share_queue(at, pick)))
            at = at->next;
        pick = at;
    }
    if (pick != NULL) {
        is_heard = true;
        send_copy(sim, pick, message);
    }
    if (!is_heard)
        domi_sim_lose(sim, message,
                      (domi_sim_loss){DOMUS_FATE_LOST_ROUTE, DOMUS_EVERY,
                                      "the subscription has ended at the other server"});
}
