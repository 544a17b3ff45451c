/* Scripted peers that send and receive datagrams (domus/testkit_net.h). The network calls the
 * peer's callback whenever the peer's socket may be readable. Then the peer receives all datagrams
 * that have arrived, unless it is paused. */
#include "runtime/testkit/peer.h"

#include "base/memory.h"
#include "runtime/network/parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* Receive the datagrams that have arrived for a peer. It is called as `changed` of the peer's
 * socket. */
static void receive_arrived_datagrams(domi_net_socket *socket)
{
    domus_datagram_peer *peer = socket->owner;
    int result = 0;

    while (!peer->is_paused && result == 0) {
        domi_net_datagram *datagram;

        result = domi_net_datagram_receive(socket, &datagram);
        if (result == 0)
            domi_net_datagrams_put(&peer->got, datagram);
        else if (result != -EAGAIN)
            peer->error = result;
    }
}

/* --- making and freeing peers ---------------------------------------------------------------- */

/* Make the socket of a datagram peer, bound to `at` and connected to `to` if that is given. Returns
 * 0; a negative errno. */
static int open_socket_of_datagram_peer(domus_testkit *kit, const char *at, const char *to,
                                        domi_net_socket **ret_socket)
{
    domus_endpoint own, other;
    domi_net_socket *socket;

    if ((at == NULL && to == NULL) || (at != NULL && domus_endpoint_parse(at, &own) != 0) ||
        (to != NULL && domus_endpoint_parse(to, &other) != 0))
        return -EINVAL;
    if (at != NULL && to != NULL && own.family != other.family)
        return -EAFNOSUPPORT;
    int result = domi_peer_make_and_bind_socket(kit, at != NULL ? own.family : other.family,
                                                DOMI_NET_DATAGRAMS, at, &socket);
    if (result != 0)
        return result;
    result = to != NULL ? domi_net_datagram_connect(socket, &other) : 0;
    if (result != 0)
        domi_net_socket_close(socket);
    else
        *ret_socket = socket;
    return result;
}

int domus_datagram_peer_open(domus_testkit *kit, const char *at, const char *to,
                             domus_datagram_peer **ret_peer)
{
    domi_net_socket *socket = NULL;
    int result = domi_peer_move_network_time_to_kit(kit);

    if (result == 0)
        result = open_socket_of_datagram_peer(kit, at, to, &socket);
    domus_datagram_peer *peer = result == 0 ? domi_memory_new(sizeof *peer) : NULL;
    if (result == 0 && peer == NULL) {
        domi_net_socket_close(socket);
        result = -ENOMEM;
    }
    if (result != 0)
        return domi_peer_write_error(kit, "send datagrams from", at != NULL ? at : "anywhere",
                                     result);
    *peer = (domus_datagram_peer){
        .kit = kit,
        .next = kit->datagram_peers,
        .number = kit->peer_count++,
        .socket = socket,
        .at = socket->local,
    };
    kit->datagram_peers = peer;
    socket->owner = peer;
    socket->changed = receive_arrived_datagrams;
    *ret_peer = peer;
    return 0;
}

void domi_datagram_peers_free(domus_testkit *kit)
{
    while (kit->datagram_peers != NULL) {
        domus_datagram_peer *peer = kit->datagram_peers;

        kit->datagram_peers = peer->next;
        if (peer->socket != NULL)
            domi_net_socket_close(peer->socket);
        while (peer->got.head != NULL)
            domus_datagram_peer_take(peer);
        domi_memory_free(peer);
    }
}

/* --- acts of a peer -------------------------------------------------------------------------- */

int domus_datagram_peer_send(domus_datagram_peer *peer, const domus_endpoint *to, const void *data,
                             size_t size)
{
    int result = domi_peer_move_network_time_to_kit(peer->kit);

    if (result != 0)
        return result;
    if (peer->socket == NULL)
        return -EPIPE;
    if (peer->error != 0) {
        result = peer->error;
        peer->error = 0;
        return result;
    }
    return size <= UINT32_MAX ? domi_net_datagram_send(peer->socket, to, data, (uint32_t)size)
                              : -EMSGSIZE;
}

const char *domus_datagram_peer_got(const domus_datagram_peer *peer, size_t *ret_size,
                                    domus_endpoint *ret_from)
{
    const domi_net_datagram *datagram = peer->got.head;

    if (datagram == NULL)
        return NULL;
    *ret_size = datagram->size;
    if (ret_from != NULL)
        *ret_from = datagram->from;
    return datagram->bytes;
}

void domus_datagram_peer_take(domus_datagram_peer *peer)
{
    domi_memory_free(domi_net_datagrams_take(&peer->got));
}

void domus_datagram_peer_pause(domus_datagram_peer *peer)
{
    peer->is_paused = true;
}

void domus_datagram_peer_resume(domus_datagram_peer *peer)
{
    peer->is_paused = false;
    if (peer->socket != NULL && domi_peer_move_network_time_to_kit(peer->kit) == 0)
        receive_arrived_datagrams(peer->socket);
}

void domus_datagram_peer_close(domus_datagram_peer *peer)
{
    domi_net_socket *socket = peer->socket;

    if (socket == NULL || domi_peer_move_network_time_to_kit(peer->kit) != 0)
        return;
    peer->socket = NULL;
    domi_net_socket_close(socket);
}

domus_endpoint domus_datagram_peer_endpoint(const domus_datagram_peer *peer)
{
    return peer->at;
}

/* --- expectations of a peer ------------------------------------------------------------------ */

static bool has_datagram_or_ended(const void *peer_)
{
    const domus_datagram_peer *peer = peer_;

    return peer->got.head != NULL || peer->error != 0 || peer->socket == NULL;
}

/* Write into the kit's error text what the peer expected, and which datagram has come instead.
 * Returns `result`. */
static int write_error_of_expectation(const domus_datagram_peer *peer, const char *what, int result)
{
    const domi_net_datagram *datagram = peer->got.head;
    char got[DOMI_PEER_TEXT_MAX] = "none";

    if (datagram != NULL)
        domi_peer_format_bytes(datagram->bytes, datagram->size, got, sizeof got);
    snprintf(peer->kit->error, sizeof peer->kit->error,
             "peer %u expected %s; its next datagram is %s (%u bytes)", peer->number, what, got,
             datagram != NULL ? datagram->size : 0);
    return result;
}

/* Returns the error of a peer for which no datagram has come, and clears it: that of a refusal, or
 * -EPIPE if the test has closed the peer. */
static int take_error_of_peer(domus_datagram_peer *peer)
{
    int error = peer->error != 0 ? peer->error : -EPIPE;

    peer->error = 0;
    return error;
}

int domus_datagram_peer_expect(domus_datagram_peer *peer, const void *data, size_t size,
                               uint64_t within_ns)
{
    int result = domi_peer_take_steps_until(peer->kit, has_datagram_or_ended, peer, within_ns);
    const domi_net_datagram *datagram = peer->got.head;
    char what[DOMI_PEER_TEXT_MAX];

    if (result != 0 && result != -ETIME)
        return result;
    domi_peer_format_bytes(data, size, what, sizeof what);
    if (datagram == NULL)
        return write_error_of_expectation(peer, what,
                                          result == -ETIME ? -ETIMEDOUT : take_error_of_peer(peer));
    if (datagram->size != size || (size != 0 && memcmp(datagram->bytes, data, size) != 0))
        return write_error_of_expectation(peer, what, -EBADMSG);
    domus_datagram_peer_take(peer);
    return 0;
}

int domus_datagram_peer_expect_nothing(domus_datagram_peer *peer, uint64_t within_ns)
{
    int result = domi_peer_take_steps_until(peer->kit, has_datagram_or_ended, peer, within_ns);

    if (result == -ETIME)
        return 0;
    return result == 0 ? write_error_of_expectation(peer, "nothing", -EBADMSG) : result;
}
