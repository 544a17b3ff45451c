/* Routes: legs between servers, over which they tell each other of subscriptions and pass messages
 * on. A route that is cut holds what is said; if it is cut for too long, or one of its servers has
 * stopped, it is broken, and both forget what they knew of each other. */
#include "protocols/cluster/testkit/sim.h"

#include <errno.h>

static const domi_sim_loss lost = {DOMUS_FATE_LOST_ROUTE, DOMUS_EVERY, "the route is broken"};

void domi_sim_send_over(domi_sim *sim, uint32_t from, uint32_t to, domi_sim_packet *packet)
{
    domi_sim_send(sim, &sim->routes[from][to].leg, packet, lost);
}

bool domi_sim_is_routed(const domi_sim *sim, uint32_t one, uint32_t other)
{
    return one == other ||
           (!sim->routes[one][other].broken && sim->routes[one][other].way.cut == 0);
}

static void spread_to(domi_sim *sim, domi_sim_interest *interest, domi_sim_kind kind, uint32_t to)
{
    domi_sim_packet *packet = domi_sim_packet_new(sim, kind, NULL);

    if (packet == NULL)
        return;
    packet->interest = interest;
    interest->packets++;
    domi_sim_send_over(sim, interest->server, to, packet);
}

void domi_sim_spread(domi_sim *sim, domi_sim_interest *interest, domi_sim_kind kind)
{
    for (uint32_t other = 0; other < sim->options.servers; other++) {
        if (other != interest->server && !sim->routes[interest->server][other].broken)
            spread_to(sim, interest, kind, other);
    }
}

void domi_sim_arrive_route(domi_sim *sim, uint32_t from, uint32_t to)
{
    domi_sim_packet *packet = domi_sim_pop(&sim->routes[from][to].leg);
    domi_sim_interest *interest = packet->interest;

    switch (packet->kind) {
    case DOMI_SIM_INTEREST:
        if (interest->connection != NULL)
            interest->known |= UINT32_C(1) << to;
        break;
    case DOMI_SIM_NO_INTEREST:
        interest->known &= ~(UINT32_C(1) << to);
        break;
    case DOMI_SIM_REQUEST:
        domi_sim_store_put(sim, to, packet->message);
        break;
    default:
        domi_sim_routed(sim, to, packet->message, interest);
        break;
    }
    domi_sim_packet_free(packet);
}

/* --- broken routes ---------------------------------------------------------------------------- */

static void break_one_way(domi_sim *sim, uint32_t from, uint32_t to)
{
    sim->routes[from][to].broken = true;
    domi_sim_lose_all(sim, &sim->routes[from][to].leg, lost);
    for (domi_sim_interest *at = sim->interests; at != NULL; at = at->next) {
        if (at->server == from)
            at->known &= ~(UINT32_C(1) << to);
    }
}

static void break_route(domi_sim *sim, uint32_t one, uint32_t other)
{
    if (sim->routes[one][other].broken)
        return;
    domi_sim_note(sim, "the route of servers %u and %u breaks", one, other);
    break_one_way(sim, one, other);
    break_one_way(sim, other, one);
}

/* Let two servers tell each other all that they have, if nothing keeps them apart. */
static void mend_route(domi_sim *sim, uint32_t one, uint32_t other)
{
    domi_sim_route *there = &sim->routes[one][other];

    if (!there->broken || there->way.cut != 0 || !sim->running[one] || !sim->running[other])
        return;
    domi_sim_note(sim, "the route of servers %u and %u is made", one, other);
    there->broken = sim->routes[other][one].broken = false;
    for (domi_sim_interest *at = sim->interests; at != NULL; at = at->next) {
        if (at->connection != NULL && at->server == one)
            spread_to(sim, at, DOMI_SIM_INTEREST, other);
        if (at->connection != NULL && at->server == other)
            spread_to(sim, at, DOMI_SIM_INTEREST, one);
    }
}

/* When a route breaks; DOMI_SIM_NEVER. */
static uint64_t break_due(const domi_sim *sim, uint32_t one, uint32_t other)
{
    const domi_sim_route *route = &sim->routes[one][other];

    return one < other && route->way.cut != 0 && !route->broken
               ? route->cut_ns + sim->options.route_stale_ns
               : DOMI_SIM_NEVER;
}

void domi_sim_break_routes(domi_sim *sim)
{
    for (uint32_t one = 0; one < sim->options.servers; one++) {
        for (uint32_t other = one + 1; other < sim->options.servers; other++) {
            if (break_due(sim, one, other) <= sim->now_ns)
                break_route(sim, one, other);
        }
    }
}

uint64_t domi_sim_routes_due(const domi_sim *sim)
{
    uint64_t due_ns = DOMI_SIM_NEVER;

    for (uint32_t one = 0; one < sim->options.servers; one++) {
        for (uint32_t other = 0; other < sim->options.servers; other++) {
            uint64_t leg_ns = domi_sim_leg_due(&sim->routes[one][other].leg);
            uint64_t break_ns = break_due(sim, one, other);
            due_ns = leg_ns < due_ns ? leg_ns : due_ns;
            due_ns = break_ns < due_ns ? break_ns : due_ns;
        }
    }
    return due_ns;
}

/* --- faults ----------------------------------------------------------------------------------- */

static int check_pair(domi_sim *sim, uint32_t server, uint32_t other)
{
    if (sim->stepping)
        return domi_sim_fail(sim, -EBUSY, "a handler runs");
    if (server >= sim->options.servers || server == other ||
        (other != DOMUS_EVERY && other >= sim->options.servers))
        return domi_sim_fail(sim, -EINVAL, "there is no route of servers %u and %u", server, other);
    return 0;
}

static void set_cut(domi_sim *sim, uint32_t one, uint32_t other, uint32_t cut)
{
    domi_sim_route *ways[2] = {&sim->routes[one][other], &sim->routes[other][one]};

    if (one == other || ways[0]->way.cut == cut)
        return;
    domi_sim_note(sim, "the route of servers %u and %u is %s", one, other,
                  cut != 0 ? "cut" : "healed");
    for (int i = 0; i < 2; i++) {
        ways[i]->way.cut = cut;
        ways[i]->cut_ns = sim->now_ns;
    }
    if (cut == 0)
        mend_route(sim, one, other);
}

int domus_testkit_cluster_cut_route(domus_testkit_cluster *cluster, uint32_t server, uint32_t other)
{
    int error = check_pair(cluster, server, other);

    for (uint32_t i = 0; error == 0 && i < cluster->options.servers; i++) {
        if (other == DOMUS_EVERY || other == i)
            set_cut(cluster, server, i, DOMUS_CUT_HOLDS);
    }
    return error;
}

int domus_testkit_cluster_heal_route(domus_testkit_cluster *cluster, uint32_t server,
                                     uint32_t other)
{
    int error = check_pair(cluster, server, other);

    for (uint32_t i = 0; error == 0 && i < cluster->options.servers; i++) {
        if (other == DOMUS_EVERY || other == i)
            set_cut(cluster, server, i, 0);
    }
    return error;
}

/* Returns 0 if the server can change to `running`. */
static int check_server(domi_sim *sim, uint32_t server, bool running)
{
    if (sim->stepping)
        return domi_sim_fail(sim, -EBUSY, "a handler runs");
    if (server >= sim->options.servers)
        return domi_sim_fail(sim, -EINVAL, "there is no server %u", server);
    if (sim->running[server] == running)
        return domi_sim_fail(sim, -EALREADY, "server %u %s", server,
                             running ? "runs" : "has stopped");
    return 0;
}

int domus_testkit_cluster_stop_server(domus_testkit_cluster *cluster, uint32_t server)
{
    int error = check_server(cluster, server, false);

    if (error != 0)
        return error;
    domi_sim_note(cluster, "server %u stops", server);
    cluster->running[server] = false;
    for (domi_sim_connection *at = cluster->connections; at != NULL; at = at->next) {
        if (at->server == server)
            domi_sim_server_close(at, -ECONNRESET, "the server stops");
    }
    for (uint32_t other = 0; other < cluster->options.servers; other++) {
        if (other != server)
            break_route(cluster, server, other);
    }
    domi_sim_elect(cluster);
    return 0;
}

int domus_testkit_cluster_start_server(domus_testkit_cluster *cluster, uint32_t server)
{
    int error = check_server(cluster, server, true);

    if (error != 0)
        return error;
    domi_sim_note(cluster, "server %u starts", server);
    cluster->running[server] = true;
    for (uint32_t other = 0; other < cluster->options.servers; other++) {
        if (other != server)
            mend_route(cluster, server, other);
    }
    return 0;
}
