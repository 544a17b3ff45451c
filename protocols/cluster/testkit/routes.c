/* Routes: legs between servers, over which they tell each other of subscriptions and forward
 * messages. A route that is cut holds its packets; if it is cut for too long, or one of its servers
 * has stopped, it is broken, and both servers forget what they knew of each other. */
#include "protocols/cluster/testkit/sim.h"

static const domi_sim_loss lost = {DOMUS_FATE_LOST_ROUTE, DOMUS_EVERY, "the route is broken"};

void domi_sim_send_packet_over_route(domi_sim *sim, uint32_t from, uint32_t to,
                                     domi_sim_packet *packet)
{
    domi_sim_send_or_lose_packet(sim, &sim->routes[from][to].leg, packet, lost);
}

bool domi_sim_can_servers_reach_each_other(const domi_sim *sim, uint32_t one, uint32_t other)
{
    return one == other ||
           (!sim->routes[one][other].broken && sim->routes[one][other].way.cut == 0);
}

static void send_subscription_to_server(domi_sim *sim, domi_sim_interest *interest,
                                        domi_sim_kind kind, uint32_t to)
{
    domi_sim_packet *packet = domi_sim_packet_new(sim, kind, NULL);

    if (packet == NULL)
        return;
    packet->interest = interest;
    interest->packets++;
    domi_sim_send_packet_over_route(sim, interest->server, to, packet);
}

void domi_sim_tell_servers_subscription(domi_sim *sim, domi_sim_interest *interest,
                                        domi_sim_kind kind)
{
    for (uint32_t other = 0; other < sim->options.servers; other++) {
        if (other != interest->server && !sim->routes[interest->server][other].broken)
            send_subscription_to_server(sim, interest, kind, other);
    }
}

/* --- broken routes ---------------------------------------------------------------------------- */

static void break_direction_and_forget_interests(domi_sim *sim, uint32_t from, uint32_t to)
{
    sim->routes[from][to].broken = true;
    sim->known_changes++;
    domi_sim_lose_packets_of_leg(sim, &sim->routes[from][to].leg, lost);
    for (domi_sim_interest *at = sim->interests; at != NULL; at = at->next) {
        if (at->server == from)
            at->known &= ~(UINT32_C(1) << to);
    }
}

void domi_sim_break_route(domi_sim *sim, uint32_t one, uint32_t other)
{
    if (sim->routes[one][other].broken)
        return;
    domi_sim_add_line_to_trace(sim, "the route of servers %u and %u breaks", one, other);
    break_direction_and_forget_interests(sim, one, other);
    break_direction_and_forget_interests(sim, other, one);
}

void domi_sim_reconnect_route(domi_sim *sim, uint32_t one, uint32_t other)
{
    domi_sim_route *there = &sim->routes[one][other];

    if (!there->broken || there->way.cut != 0 || !sim->running[one] || !sim->running[other])
        return;
    domi_sim_add_line_to_trace(sim, "the route of servers %u and %u is made", one, other);
    there->broken = sim->routes[other][one].broken = false;
    for (domi_sim_interest *at = sim->interests; at != NULL; at = at->next) {
        if (at->connection != NULL && at->server == one)
            send_subscription_to_server(sim, at, DOMI_SIM_INTEREST, other);
        if (at->connection != NULL && at->server == other)
            send_subscription_to_server(sim, at, DOMI_SIM_INTEREST, one);
    }
}

/* Returns the time at which a route that is cut breaks; DOMI_SIM_NEVER if it does not. */
static uint64_t time_at_which_route_breaks(const domi_sim *sim, uint32_t one, uint32_t other)
{
    const domi_sim_route *route = &sim->routes[one][other];

    return one < other && route->way.cut != 0 && !route->broken
               ? route->cut_ns + sim->options.route_stale_ns
               : DOMI_SIM_NEVER;
}

void domi_sim_break_stale_routes(domi_sim *sim)
{
    for (uint32_t one = 0; one < sim->options.servers; one++) {
        for (uint32_t other = one + 1; other < sim->options.servers; other++) {
            if (time_at_which_route_breaks(sim, one, other) <= sim->now_ns)
                domi_sim_break_route(sim, one, other);
        }
    }
}

uint64_t domi_sim_due_time_of_next_route_event(const domi_sim *sim)
{
    uint64_t due_ns = DOMI_SIM_NEVER;

    for (uint32_t one = 0; one < sim->options.servers; one++) {
        for (uint32_t other = 0; other < sim->options.servers; other++) {
            uint64_t leg_ns = domi_sim_due_time_of_leg(&sim->routes[one][other].leg);
            uint64_t break_ns = time_at_which_route_breaks(sim, one, other);
            due_ns = leg_ns < due_ns ? leg_ns : due_ns;
            due_ns = break_ns < due_ns ? break_ns : due_ns;
        }
    }
    return due_ns;
}
