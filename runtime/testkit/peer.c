/* The functions of scripted peers (domus/testkit_net.h), except what a test expects of them. The
 * network calls the peer's callback whenever the peer's socket may be readable or writable. Then
 * the peer reads all bytes that have arrived, unless it is paused, and sends the bytes that
 * wait. */
#include "runtime/testkit/peer.h"

#include "base/memory.h"
#include "runtime/network/parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define BACKLOG     128u  /* backlog of a test's listener, unless the test sets another one */
#define READ_BYTES  4096u /* most bytes that a peer reads from its socket at a time */
#define BYTES_FIRST 256u  /* size in bytes of the first memory of a peer's buffer */

int domi_peer_move_network_time_to_kit(domus_testkit *kit)
{
    if (kit->stepping)
        return -EBUSY;
    domi_net_advance_time(kit->net, domi_clock_now(&kit->system->clock));
    return 0;
}

static bool append_bytes_to_buffer(domi_peer_bytes *bytes, const void *data, size_t size)
{
    size_t held = domi_peer_bytes_count(bytes);
    size_t capacity = bytes->capacity != 0 ? bytes->capacity : BYTES_FIRST;

    if (size == 0)
        return true;
    if (bytes->end + size > bytes->capacity) {
        while (capacity < held + size)
            capacity *= 2;
        char *grown = domi_memory_new(capacity);
        if (grown == NULL)
            return false;
        if (held != 0)
            memcpy(grown, bytes->data + bytes->begin, held);
        domi_memory_free(bytes->data);
        *bytes = (domi_peer_bytes){.data = grown, .end = held, .capacity = capacity};
    }
    memcpy(bytes->data + bytes->end, data, size);
    bytes->end += size;
    return true;
}

/* --- reading and sending --------------------------------------------------------------------- */

static void store_first_error_and_drop_output(domus_peer *peer, int error)
{
    if (peer->error == 0)
        peer->error = error;
    peer->out.begin = peer->out.end = 0;
}

static void read_all_bytes_for_peer(domus_peer *peer)
{
    char piece[READ_BYTES];

    while (!peer->is_paused && !peer->has_end) {
        int result = domi_net_socket_receive(peer->socket, piece, sizeof piece);

        if (result == -EAGAIN)
            return;
        if (result < 0)
            store_first_error_and_drop_output(peer, result);
        else if (result == 0)
            peer->has_end = peer->error == 0;
        else if (!append_bytes_to_buffer(&peer->got, piece, (size_t)result))
            peer->kit->net->is_out_of_memory = true;
        if (result <= 0)
            return;
    }
}

static void send_waiting_bytes_of_peer(domus_peer *peer)
{
    domi_peer_bytes *out = &peer->out;

    while (domi_peer_bytes_count(out) != 0) {
        size_t left = domi_peer_bytes_count(out);
        int result = domi_net_socket_send(peer->socket, out->data + out->begin,
                                          left < UINT32_MAX ? (uint32_t)left : UINT32_MAX);

        if (result == -EAGAIN)
            return;
        if (result < 0) {
            store_first_error_and_drop_output(peer, result);
            return;
        }
        out->begin += (size_t)result;
    }
}

static void close_socket_of_peer(domus_peer *peer)
{
    domi_net_socket *socket = peer->socket;

    peer->socket = NULL;
    domi_net_socket_close(socket);
}

static void read_and_send_as_far_as_possible(domus_peer *peer)
{
    domi_net_socket *socket = peer->socket;

    if (socket == NULL || socket->state == DOMI_NET_CONNECTING)
        return;
    /* a paused peer does not read, but it also has to notice a reset */
    if (socket->is_dead && socket->error != 0)
        store_first_error_and_drop_output(peer, -domi_net_socket_take_error(socket));
    else
        peer->is_connected = true;
    read_all_bytes_for_peer(peer);
    if (!socket->is_dead)
        send_waiting_bytes_of_peer(peer);
    if (domi_peer_bytes_count(&peer->out) != 0 || !peer->is_finished)
        return;
    if (!socket->is_dead && socket->state == DOMI_NET_CONNECTED)
        domi_net_finish_stream_of_side(socket->connection, socket->side);
    if (peer->closes)
        close_socket_of_peer(peer);
}

/* Read and send for a peer as far as possible. It is called as `changed` of the peer's socket. */
static void read_and_send_for_peer_of_socket(domi_net_socket *socket)
{
    read_and_send_as_far_as_possible(socket->owner);
}

/* --- making and freeing peers ---------------------------------------------------------------- */

static domus_peer *make_peer_of_socket(domus_testkit *kit, domi_net_socket *socket)
{
    domus_peer *peer = domi_memory_new(sizeof *peer);

    if (peer == NULL)
        return NULL;
    peer->kit = kit;
    peer->number = kit->peer_count++;
    peer->next = kit->peers;
    kit->peers = peer;
    peer->socket = socket;
    socket->owner = peer;
    socket->changed = read_and_send_for_peer_of_socket;
    return peer;
}

static void store_connection_and_side_of_peer(domus_peer *peer)
{
    peer->connection = peer->socket->connection;
    peer->connection->is_kept = true;
    peer->side = peer->socket->side;
}

int domi_peer_make_for_accepted_socket(domus_testkit *kit, domi_net_socket *socket,
                                       domus_peer **ret_peer)
{
    domus_peer *peer = make_peer_of_socket(kit, socket);

    if (peer == NULL)
        return -ENOMEM;
    store_connection_and_side_of_peer(peer);
    peer->is_connected = true;
    *ret_peer = peer;
    read_and_send_as_far_as_possible(peer);
    return 0;
}

int domi_peer_make_and_bind_socket(domus_testkit *kit, uint16_t family, domi_net_state state,
                                   const char *from, domi_net_socket **ret_socket)
{
    domus_endpoint own;

    if (from != NULL && (domus_endpoint_parse(from, &own) != 0 || own.family != family))
        return -EINVAL;
    domi_net_socket *socket = domi_net_socket_new(kit->net, family);
    if (socket == NULL)
        return -ENOMEM;
    socket->state = (uint8_t)state;
    int result = from != NULL ? domi_net_bind_socket(socket, &own) : 0;
    if (result != 0) {
        domi_net_socket_free(socket);
        return result;
    }
    *ret_socket = socket;
    return 0;
}

int domi_peer_write_error(domus_testkit *kit, const char *what, const char *where, int result)
{
    if (result != -EBUSY)
        snprintf(kit->error, sizeof kit->error, "a peer cannot %s %s: %s", what, where,
                 strerror(-result));
    return result;
}

int domus_peer_connect(domus_testkit *kit, const char *to, const char *from, domus_peer **ret_peer)
{
    domi_net_socket *socket = NULL;
    domus_endpoint at;
    int result = domi_peer_move_network_time_to_kit(kit);

    if (result == 0 && domus_endpoint_parse(to, &at) != 0)
        result = -EINVAL;
    if (result == 0)
        result = domi_peer_make_and_bind_socket(kit, at.family, DOMI_NET_FRESH, from, &socket);
    if (result != 0)
        return domi_peer_write_error(kit, "connect to", to, result);
    domus_peer *peer = make_peer_of_socket(kit, socket);
    if (peer == NULL) {
        domi_net_socket_free(socket);
        return domi_peer_write_error(kit, "connect to", to, -ENOMEM);
    }
    result = domi_net_socket_connect(socket, &at);
    if (result == 0) {
        store_connection_and_side_of_peer(peer);
        read_and_send_as_far_as_possible(peer);
    } else { /* a connect of a Unix socket fails at once, and this is its error */
        store_first_error_and_drop_output(peer, result);
        close_socket_of_peer(peer);
    }
    *ret_peer = peer;
    return 0;
}

int domus_peer_listen(domus_testkit *kit, const char *at, uint32_t backlog,
                      domus_peer_listener **ret_listener)
{
    domus_endpoint endpoint;
    domi_net_socket *socket = NULL;
    int result = domi_peer_move_network_time_to_kit(kit);

    if (result == 0 && domus_endpoint_parse(at, &endpoint) != 0)
        result = -EINVAL;
    if (result == 0)
        result = domi_peer_make_and_bind_socket(kit, endpoint.family, DOMI_NET_FRESH, at, &socket);
    if (result != 0)
        return domi_peer_write_error(kit, "listen at", at, result);
    domus_peer_listener *listener = domi_memory_new(sizeof *listener);
    if (listener == NULL) {
        domi_net_socket_free(socket);
        return domi_peer_write_error(kit, "listen at", at, -ENOMEM);
    }
    (void)domi_net_socket_listen(socket, backlog != 0 ? (int)backlog : (int)BACKLOG);
    *listener = (domus_peer_listener){.kit = kit, .next = kit->listeners, .socket = socket};
    socket->owner = listener;
    kit->listeners = listener;
    *ret_listener = listener;
    return 0;
}

domus_endpoint domus_peer_listener_endpoint(const domus_peer_listener *listener)
{
    return listener->socket != NULL ? listener->socket->local : (domus_endpoint){0};
}

void domus_peer_listener_close(domus_peer_listener *listener)
{
    if (listener->socket == NULL || domi_peer_move_network_time_to_kit(listener->kit) != 0)
        return;
    domi_net_socket_close(listener->socket);
    listener->socket = NULL;
}

void domi_kit_peers_free(domus_testkit *kit)
{
    while (kit->listeners != NULL) {
        domus_peer_listener *listener = kit->listeners;

        kit->listeners = listener->next;
        if (listener->socket != NULL)
            domi_net_socket_close(listener->socket);
        domi_memory_free(listener);
    }
    while (kit->peers != NULL) {
        domus_peer *peer = kit->peers;

        kit->peers = peer->next;
        if (peer->socket != NULL)
            domi_net_socket_close(peer->socket);
        domi_memory_free(peer->got.data);
        domi_memory_free(peer->out.data);
        domi_memory_free(peer);
    }
}

/* --- acts of a peer -------------------------------------------------------------------------- */

int domus_peer_send(domus_peer *peer, const void *data, size_t size)
{
    int result = domi_peer_move_network_time_to_kit(peer->kit);

    if (result != 0)
        return result;
    if (peer->socket == NULL || peer->is_finished || peer->error != 0)
        return -EPIPE;
    if (!append_bytes_to_buffer(&peer->out, data, size))
        return -ENOMEM;
    read_and_send_as_far_as_possible(peer);
    return 0;
}

/* Finish the peer's stream behind the bytes that wait to be sent. With `closes`, close the peer's
 * socket after that. */
static void finish_stream_of_peer(domus_peer *peer, bool closes)
{
    if (domi_peer_move_network_time_to_kit(peer->kit) != 0 || peer->socket == NULL)
        return;
    peer->is_finished = true;
    peer->closes |= closes;
    read_and_send_as_far_as_possible(peer);
}

void domus_peer_finish(domus_peer *peer)
{
    finish_stream_of_peer(peer, false);
}

void domus_peer_close(domus_peer *peer)
{
    peer->is_paused = true; /* from now on the peer does not read the bytes that arrive */
    finish_stream_of_peer(peer, true);
}

void domus_peer_reset(domus_peer *peer)
{
    if (domi_peer_move_network_time_to_kit(peer->kit) != 0 || peer->socket == NULL)
        return;
    peer->out.begin = peer->out.end = 0;
    peer->is_finished = true;
    peer->socket->aborts = true;
    close_socket_of_peer(peer);
}

void domus_peer_pause(domus_peer *peer)
{
    peer->is_paused = true;
}

void domus_peer_resume(domus_peer *peer)
{
    peer->is_paused = false;
    if (domi_peer_move_network_time_to_kit(peer->kit) == 0)
        read_and_send_as_far_as_possible(peer);
}

void domus_peer_hold(domus_peer *peer)
{
    if (peer->connection != NULL && domi_peer_move_network_time_to_kit(peer->kit) == 0)
        peer->connection->is_held = true;
}

void domus_peer_release(domus_peer *peer)
{
    if (peer->connection == NULL || domi_peer_move_network_time_to_kit(peer->kit) != 0)
        return;
    peer->connection->is_held = false;
    if (!domi_net_is_connection_blocked(peer->connection))
        domi_net_release_held_events(peer->connection);
}

/* --- queries about a peer -------------------------------------------------------------------- */

bool domus_peer_is_connected(const domus_peer *peer)
{
    return peer->is_connected && peer->socket != NULL && peer->error == 0;
}

bool domus_peer_has_end(const domus_peer *peer)
{
    return peer->has_end;
}

int domus_peer_error(const domus_peer *peer)
{
    return peer->error;
}

domus_peer_counts domus_peer_count(const domus_peer *peer)
{
    domus_peer_counts counts = {.unsent = domi_peer_bytes_count(&peer->out)};

    if (peer->connection == NULL)
        return counts;
    const domi_net_pipe *out = &peer->connection->pipes[!peer->side];
    const domi_net_pipe *in = &peer->connection->pipes[peer->side];
    counts.sent = out->taken;
    counts.delivered = out->received;
    counts.lost = out->lost;
    counts.received = in->received;
    counts.missed = in->lost;
    return counts;
}

domus_endpoint domus_peer_endpoint(const domus_peer *peer)
{
    return peer->connection != NULL ? peer->connection->ends[peer->side] : (domus_endpoint){0};
}

domus_endpoint domus_peer_remote(const domus_peer *peer)
{
    return peer->connection != NULL ? peer->connection->ends[!peer->side] : (domus_endpoint){0};
}

const char *domus_peer_got(const domus_peer *peer, size_t *ret_size)
{
    *ret_size = domi_peer_bytes_count(&peer->got);
    return *ret_size != 0 ? peer->got.data + peer->got.begin : "";
}

void domus_peer_take(domus_peer *peer, size_t size)
{
    size_t held = domi_peer_bytes_count(&peer->got);

    peer->got.begin += size < held ? size : held;
}

/* --- the network ----------------------------------------------------------------------------- */

static bool are_faults_of_network_valid(const domus_net_faults *faults)
{
    const uint32_t chances[] = {
        faults->short_writes,
        faults->short_reads,
        faults->resets,
        faults->ends,
        faults->refusals,
        faults->no_buffers,
        faults->no_memory,
        faults->no_descriptors,
        faults->overflows,
        faults->refused_enters,
        faults->datagram_losses,
        faults->datagram_doubles,
        faults->datagram_reorders,
        faults->datagram_refusals,
    };

    for (size_t i = 0; i < sizeof chances / sizeof chances[0]; i++)
        if (chances[i] > DOMUS_NET_ALWAYS)
            return false;
    return faults->latency_max_ns == 0 || faults->latency_min_ns <= faults->latency_max_ns;
}

int domus_testkit_net_set(domus_testkit *kit, const domus_net_faults *faults)
{
    static const domus_net_faults none = {0};
    int result = domi_peer_move_network_time_to_kit(kit);

    if (result != 0)
        return result;
    if (faults != NULL && !are_faults_of_network_valid(faults)) {
        snprintf(kit->error, sizeof kit->error, "faults of the network that cannot be");
        return -EINVAL;
    }
    kit->net->faults = faults != NULL ? *faults : none;
    return 0;
}

domus_net_totals domus_testkit_net_totals(const domus_testkit *kit)
{
    domus_net_totals totals = kit->net->totals;

    totals.connections = kit->net->connection_count;
    totals.in_flight = totals.sent - totals.received - totals.lost;
    totals.descriptors = kit->net->socket_count;
    return totals;
}

domus_net_datagrams domus_testkit_net_datagrams(const domus_testkit *kit)
{
    domus_net_datagrams datagrams = kit->net->datagrams;

    datagrams.in_flight = domi_net_count_datagrams_in_flight(kit->net);
    return datagrams;
}

int domus_testkit_net_part(domus_testkit *kit, const domus_endpoint *one,
                           const domus_endpoint *other, bool broken)
{
    int result = domi_peer_move_network_time_to_kit(kit);

    return result == 0 ? domi_net_set_link_broken(kit->net, one, other, broken) : result;
}
