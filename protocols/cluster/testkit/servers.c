/* Simulated servers as a whole: packets that come over the routes between two of them, routes that
 * are cut, and servers that stop and start. */
#include "protocols/cluster/testkit/sim.h"

#include <errno.h>

void domi_sim_deliver_packet_of_route(domi_sim *sim, uint32_t from, uint32_t to)
{
    domi_sim_packet *packet = domi_sim_take_first_packet_of_leg(&sim->routes[from][to].leg);
    domi_sim_interest *interest = packet->interest;

    sim->known_changes++;
    switch (packet->kind) {
    case DOMI_SIM_INTEREST:
        if (interest->connection != NULL)
            interest->known |= UINT32_C(1) << to;
        break;
    case DOMI_SIM_NO_INTEREST:
        interest->known &= ~(UINT32_C(1) << to);
        break;
    case DOMI_SIM_REQUEST:
        domi_sim_store_lose_or_delay_request(sim, to, packet->message);
        break;
    default:
        domi_sim_deliver_message_from_route(sim, to, packet->message, interest);
        break;
    }
    domi_sim_packet_free(packet);
}

/* --- faults ----------------------------------------------------------------------------------- */

static int check_numbers_of_two_servers(domi_sim *sim, uint32_t server, uint32_t other)
{
    if (sim->stepping)
        return domi_sim_record_error(sim, -EBUSY, "a handler runs");
    if (server >= sim->options.servers || server == other ||
        (other != DOMUS_EVERY && other >= sim->options.servers))
        return domi_sim_record_error(sim, -EINVAL, "there is no route of servers %u and %u", server,
                                     other);
    return 0;
}

static void set_cut_of_route(domi_sim *sim, uint32_t one, uint32_t other, uint32_t cut)
{
    domi_sim_route *ways[2] = {&sim->routes[one][other], &sim->routes[other][one]};

    if (one == other || ways[0]->way.cut == cut)
        return;
    domi_sim_add_line_to_trace(sim, "the route of servers %u and %u is %s", one, other,
                               cut != 0 ? "cut" : "healed");
    for (int i = 0; i < 2; i++) {
        ways[i]->way.cut = cut;
        ways[i]->cut_ns = sim->now_ns;
    }
    if (cut == 0)
        domi_sim_reconnect_route(sim, one, other);
}

int domus_testkit_cluster_cut_route(domus_testkit_cluster *cluster, uint32_t server, uint32_t other)
{
    int error = check_numbers_of_two_servers(cluster, server, other);

    for (uint32_t i = 0; error == 0 && i < cluster->options.servers; i++) {
        if (other == DOMUS_EVERY || other == i)
            set_cut_of_route(cluster, server, i, DOMUS_CUT_HOLDS);
    }
    return error;
}

int domus_testkit_cluster_heal_route(domus_testkit_cluster *cluster, uint32_t server,
                                     uint32_t other)
{
    int error = check_numbers_of_two_servers(cluster, server, other);

    for (uint32_t i = 0; error == 0 && i < cluster->options.servers; i++) {
        if (other == DOMUS_EVERY || other == i)
            set_cut_of_route(cluster, server, i, 0);
    }
    return error;
}

/* Check whether a server may be stopped or started, so that `running` holds. Returns 0; a negative
 * errno. */
static int check_that_server_can_start_or_stop(domi_sim *sim, uint32_t server, bool running)
{
    if (sim->stepping)
        return domi_sim_record_error(sim, -EBUSY, "a handler runs");
    if (server >= sim->options.servers)
        return domi_sim_record_error(sim, -EINVAL, "there is no server %u", server);
    if (sim->running[server] == running)
        return domi_sim_record_error(sim, -EALREADY, "server %u %s", server,
                                     running ? "runs" : "has stopped");
    return 0;
}

int domus_testkit_cluster_stop_server(domus_testkit_cluster *cluster, uint32_t server)
{
    int error = check_that_server_can_start_or_stop(cluster, server, false);

    if (error != 0)
        return error;
    domi_sim_add_line_to_trace(cluster, "server %u stops", server);
    cluster->running[server] = false;
    for (domi_sim_connection *at = cluster->connections; at != NULL; at = at->next) {
        if (at->server == server)
            domi_sim_close_side_of_server(at, -ECONNRESET, "the server stops");
    }
    for (uint32_t other = 0; other < cluster->options.servers; other++) {
        if (other != server)
            domi_sim_break_route(cluster, server, other);
    }
    domi_sim_elect_leader_of_store(cluster);
    return 0;
}

int domus_testkit_cluster_start_server(domus_testkit_cluster *cluster, uint32_t server)
{
    int error = check_that_server_can_start_or_stop(cluster, server, true);

    if (error != 0)
        return error;
    domi_sim_add_line_to_trace(cluster, "server %u starts", server);
    cluster->running[server] = true;
    for (uint32_t other = 0; other < cluster->options.servers; other++) {
        if (other != server)
            domi_sim_reconnect_route(cluster, server, other);
    }
    return 0;
}
