/* The store of the simulated JetStream: elects its leader, and decides which requests reach the
 * leader. */
#include "protocols/cluster/testkit/store_parts.h"

#include <string.h>

static const char api_prefix[] = "$JS.API.";

/* --- the leader ------------------------------------------------------------------------------- */

/* Returns whether a server reaches more than half of all servers, itself included. */
static bool can_server_reach_majority_of_servers(const domi_sim *sim, uint32_t server)
{
    uint32_t reached = 0;

    for (uint32_t other = 0; other < sim->options.servers; other++)
        reached += sim->running[other] && domi_sim_can_servers_reach_each_other(sim, server, other);
    return sim->running[server] && 2 * reached > sim->options.servers;
}

static void end_term_of_leading_server(domi_sim *sim)
{
    domi_sim_store *store = &sim->store;
    const domi_sim_loss loss = {DOMUS_FATE_LOST_REQUEST, DOMUS_EVERY, "the leader has ended"};

    domi_sim_add_line_to_trace(sim, "server %u leads the buckets no more", store->leader);
    domi_sim_lose_packets_of_leg(sim, &store->leg, loss);
    domi_sim_end_all_consumers(sim);
    store->leader = DOMUS_EVERY;
    store->ready_ns = sim->now_ns + sim->options.election_ns +
                      domi_sim_draw_number_below(sim, sim->options.election_ns + 1);
}

void domi_sim_elect_leader_of_store(domi_sim *sim)
{
    domi_sim_store *store = &sim->store;
    uint32_t able = 0;

    if (store->leader != DOMUS_EVERY && can_server_reach_majority_of_servers(sim, store->leader))
        return;
    if (store->leader != DOMUS_EVERY)
        end_term_of_leading_server(sim);
    if (store->ready_ns > sim->now_ns)
        return;
    for (uint32_t server = 0; server < sim->options.servers; server++)
        able += can_server_reach_majority_of_servers(sim, server);
    store->ready_ns = sim->now_ns + sim->options.election_ns;
    if (able == 0)
        return;
    uint64_t drawn = domi_sim_draw_number_below(sim, able);
    for (uint32_t server = 0; store->leader == DOMUS_EVERY; server++) {
        if (can_server_reach_majority_of_servers(sim, server) && drawn-- == 0)
            store->leader = server;
    }
    sim->counts.elections++;
    domi_sim_add_line_to_trace(sim, "server %u leads the buckets", store->leader);
}

/* --- requests to the store -------------------------------------------------------------------- */

static domi_sim_bucket *bucket_of_subject(const domi_sim *sim, const char *subject)
{
    for (domi_sim_bucket *at = sim->store.buckets; at != NULL; at = at->next) {
        if (strncmp(subject, at->prefix, strlen(at->prefix)) == 0)
            return at;
    }
    return NULL;
}

static bool is_subject_of_api(const char *subject)
{
    return strncmp(subject, api_prefix, sizeof api_prefix - 1) == 0;
}

bool domi_sim_is_subject_of_store(const domi_sim *sim, const char *subject)
{
    return is_subject_of_api(subject) || bucket_of_subject(sim, subject) != NULL;
}

static void count_lost_request_to_store(domi_sim *sim, const domi_sim_message *message,
                                        const char *why)
{
    domi_sim_count_lost_message(sim, message,
                                (domi_sim_loss){DOMUS_FATE_LOST_REQUEST, DOMUS_EVERY, why});
}

bool domi_sim_store_take_or_route_request(domi_sim *sim, uint32_t server, domi_sim_message *message)
{
    uint32_t leader = sim->store.leader;

    if (message->node == DOMUS_EVERY)
        return false; /* an entry that the store itself sends to a subscriber is no request */
    if (leader == server) {
        domi_sim_store_lose_or_delay_request(sim, server, message);
        return true;
    }
    if (leader != DOMUS_EVERY && !sim->routes[server][leader].broken) {
        domi_sim_send_packet_over_route(sim, server, leader,
                                        domi_sim_packet_new(sim, DOMI_SIM_REQUEST, message));
        return true;
    }
    if (!is_subject_of_api(message->subject))
        /* only the leader has subscribed to the subjects of keys, so without a leader nobody has */
        return false;
    count_lost_request_to_store(sim, message, "there is no leader");
    return true;
}

static bool may_lose_requests_of_publisher(const domus_testkit_store_faults *faults,
                                           const domi_sim_message *message)
{
    return faults->request_loss_of == 0 || faults->request_loss_of == message->node + 1;
}

void domi_sim_store_lose_or_delay_request(domi_sim *sim, uint32_t server, domi_sim_message *message)
{
    if (sim->store.leader != server)
        count_lost_request_to_store(sim, message, "the leader has ended");
    else if (may_lose_requests_of_publisher(&sim->store.faults, message) &&
             domi_sim_draw_whether_happens(sim, sim->store.faults.request_loss_ppm))
        count_lost_request_to_store(sim, message, "by chance");
    else
        domi_sim_send_or_lose_packet(
            sim, &sim->store.leg, domi_sim_packet_new(sim, DOMI_SIM_REQUEST, message),
            (domi_sim_loss){DOMUS_FATE_LOST_REQUEST, DOMUS_EVERY, "never"});
}

void domi_sim_store_serve_next_request(domi_sim *sim)
{
    domi_sim_packet *packet = domi_sim_take_first_packet_of_leg(&sim->store.leg);
    domi_sim_message *message = packet->message;
    domi_sim_bucket *bucket = bucket_of_subject(sim, message->subject);

    if (bucket != NULL)
        domi_sim_store_put_or_removal_of_key(sim, bucket, message);
    else if (is_subject_of_api(message->subject))
        domi_sim_dispatch_request_of_api(sim, message);
    else
        count_lost_request_to_store(sim, message, "its bucket is gone");
    domi_sim_packet_free(packet);
}

void domi_sim_store_free(domi_sim *sim)
{
    while (sim->store.buckets != NULL) {
        domi_sim_bucket *bucket = sim->store.buckets;
        sim->store.buckets = bucket->next;
        domi_sim_bucket_free(bucket);
    }
    for (domi_sim_packet *packet;
         (packet = domi_sim_take_first_packet_of_leg(&sim->store.leg)) != NULL;)
        domi_sim_packet_free(packet);
}
