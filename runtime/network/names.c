/* Names (addresses) of sockets. All bound sockets are in one list, which is short in a test.
 *
 * Any address can be bound. A socket that is bound to 0.0.0.0 gets the connects to every IPv4
 * address at which no other socket listens. A socket that is bound to [::] gets the connects to
 * every IPv4 and IPv6 address at which no other socket listens, as in Linux without IPV6_V6ONLY. */
#include "runtime/network/parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* number of ports from which the network chooses one for a socket without a name */
#define PORTS (65536u - DOMI_NET_FIRST_PORT)

bool domi_net_is_any_address(const domus_endpoint *at)
{
    static const unsigned char zeros[16];

    return at->family != AF_UNIX && memcmp(at->bytes, zeros, at->size) == 0;
}

/* True if two names of sockets are in conflict, because one connect could reach either of them. */
static bool may_one_connect_reach_both(const domus_endpoint *one, const domus_endpoint *other)
{
    if (one->family == AF_UNIX || other->family == AF_UNIX)
        return domus_endpoint_is_same(one, other);
    if (one->port != other->port)
        return false;
    if (domi_net_is_any_address(one) && (one->family == AF_INET6 || other->family == AF_INET))
        return true;
    if (domi_net_is_any_address(other) && (other->family == AF_INET6 || one->family == AF_INET))
        return true;
    return domi_net_is_same_host(one, other);
}

static bool is_datagram_socket(const domi_net_socket *socket)
{
    return socket->state == DOMI_NET_DATAGRAMS;
}

static bool is_name_of_socket_taken(const domi_net_socket *socket, const domus_endpoint *at)
{
    for (const domi_net_socket *other = socket->net->bound; other != NULL;
         other = other->next_bound) {
        if (other->connection == NULL && is_datagram_socket(other) == is_datagram_socket(socket) &&
            may_one_connect_reach_both(&other->local, at) &&
            !(other->shares_port && socket->shares_port))
            return true;
    }
    return false;
}

static int choose_free_port(domi_net_socket *socket, domus_endpoint *at)
{
    domi_net *net = socket->net;

    for (uint32_t tries = 0; tries < PORTS; tries++) {
        at->port = net->next_port;
        net->next_port = net->next_port == UINT16_MAX ? DOMI_NET_FIRST_PORT : net->next_port + 1u;
        if (!is_name_of_socket_taken(socket, at))
            return 0;
    }
    return -EADDRINUSE;
}

/* Give a Unix socket the first free abstract name that is made of its number or of a larger one. */
static void choose_abstract_name(const domi_net_socket *socket, domus_endpoint *ret_at)
{
    char text[24];
    uint64_t number = socket->number;

    ret_at->bytes[0] = 0;
    do {
        int length = snprintf(text, sizeof text, "%05" PRIx64, number++);
        memcpy(ret_at->bytes + 1, text, (size_t)length);
        ret_at->size = (uint16_t)(1 + length);
    } while (is_name_of_socket_taken(socket, ret_at));
}

int domi_net_bind_socket(domi_net_socket *socket, const domus_endpoint *at)
{
    domus_endpoint name = *at;

    if (socket->is_bound)
        return -EINVAL;
    if (at->family == AF_UNIX && at->size == 0) {
        choose_abstract_name(socket, &name);
    } else if (at->family != AF_UNIX && at->port == 0) {
        if (choose_free_port(socket, &name) != 0)
            return -EADDRINUSE;
    } else if (is_name_of_socket_taken(socket, at)) {
        return -EADDRINUSE;
    }
    socket->local = name;
    socket->is_bound = true;
    socket->next_bound = socket->net->bound;
    socket->net->bound = socket;
    return 0;
}

int domi_net_bind_if_unbound(domi_net_socket *socket, const domus_endpoint *to)
{
    domus_endpoint from = {.family = to->family, .size = to->size};

    if (socket->is_bound || to->family == AF_UNIX)
        return 0;
    /* the socket gets the address of the machine to which it connects, as if both were on one
     * machine */
    memcpy(from.bytes, to->bytes, sizeof from.bytes);
    return domi_net_bind_socket(socket, &from);
}

void domi_net_remove_name_of_socket(domi_net_socket *socket)
{
    domi_net_socket **place = &socket->net->bound;

    if (!socket->is_bound)
        return;
    while (*place != socket)
        place = &(*place)->next_bound;
    *place = socket->next_bound;
    socket->is_bound = false;
}

/* Returns how well a listener fits the address `at` to which a connect goes: 0 (not at all) to 3
 * (best). */
static int rate_fit_of_listener(const domi_net_socket *listener, const domus_endpoint *at)
{
    if (listener->state != DOMI_NET_LISTENING || !may_one_connect_reach_both(&listener->local, at))
        return 0;
    if (!domi_net_is_any_address(&listener->local))
        return 3;
    return listener->local.family == at->family ? 2 : 1;
}

domi_net_socket *domi_net_find_listener(domi_net *net, const domus_endpoint *at)
{
    domi_net_socket *found = NULL;
    int best = 1;
    uint64_t count = 0;

    for (domi_net_socket *one = net->bound; one != NULL; one = one->next_bound) {
        int now = rate_fit_of_listener(one, at);
        if (now == 0 || now < best)
            continue;
        count = now > best ? 1 : count + 1;
        best = now;
        /* the listener found last takes the place of the chosen one with chance 1 in `count`, so
         * that each of the best listeners is equally likely */
        if (count == 1 || domi_random_below(&net->random, count) == 0)
            found = one;
    }
    return found;
}

/* Returns how well a socket fits a datagram from `from` to `to`; 0: not at all. A socket that is
 * connected to the sender fits better than any other. */
static int rate_fit_of_receiver(const domi_net_socket *socket, const domus_endpoint *from,
                                const domus_endpoint *to)
{
    const domus_endpoint *peer = &socket->mail.peer;
    int score = domi_net_is_any_address(&socket->local) ? 1 : 2;

    if (!is_datagram_socket(socket) || !may_one_connect_reach_both(&socket->local, to))
        return 0;
    if (peer->family == 0 || peer->family == AF_UNIX)
        return score;
    return domus_endpoint_is_same(peer, from) ? score + 2 : 0;
}

domi_net_socket *domi_net_find_receiver(const domi_net *net, const domus_endpoint *from,
                                        const domus_endpoint *to)
{
    static const uint64_t key[2] = {0, 0};
    int best = 1;
    uint64_t count = 0;

    for (const domi_net_socket *one = net->bound; one != NULL; one = one->next_bound) {
        int now = rate_fit_of_receiver(one, from, to);

        if (now > best) {
            best = now;
            count = 0;
        }
        count += now == best;
    }
    if (count == 0)
        return NULL;
    uint64_t left = domus_endpoint_hash(from, key, true) % count;
    domi_net_socket *one = net->bound;
    while (one != NULL && (rate_fit_of_receiver(one, from, to) != best || left-- != 0))
        one = one->next_bound;
    return one;
}
