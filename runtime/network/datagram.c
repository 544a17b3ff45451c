/* This file sends datagrams, carries them over the simulated network, and delivers them (parts.h).
 *
 * The send buffer of a UDP socket holds what the wire has not taken yet, so the buffer fills only
 * if the network has a limited bandwidth. In the receive buffer a datagram counts its size and COST
 * bytes more. As in Linux, a buffer that is not full takes one more datagram of any length, and the
 * queue of a Unix socket is bounded by the number of datagrams. */
#include "runtime/network/parts.h"

#include "base/memory.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

/* bytes for which a datagram counts in the receive buffer besides its size */
#define COST           256u
#define UNIX_QUEUE_MAX 10u    /* most datagrams that wait in the receive queue of a Unix socket */
#define UDP_BYTES_MAX  65507u /* most bytes of one UDP datagram over IPv4 */
#define UDP6_BYTES_MAX 65527u /* most bytes of one UDP datagram over IPv6 */
/* simulated nanoseconds by which a fault delays a datagram at most, so that others overtake it */
#define REORDER_NS UINT64_C(1000000)
#define SECOND_NS  UINT64_C(1000000000)

/* --- making and ending datagrams ------------------------------------------------------------- */

static domi_net_datagram *make_datagram_with_bytes(domi_net *net, const domus_endpoint *from,
                                                   const domus_endpoint *to, const void *data,
                                                   uint32_t size)
{
    domi_net_datagram *datagram = domi_memory_new(sizeof *datagram + size);

    if (datagram == NULL)
        return NULL;
    datagram->number = net->datagrams.sent;
    datagram->from = *from;
    datagram->to = *to;
    datagram->size = size;
    if (size != 0)
        memcpy(datagram->bytes, data, size);
    return datagram;
}

static void count_and_free_datagram(domi_net *net, domi_net_datagram *datagram, uint64_t *counter,
                                    const char *what)
{
    (*counter)++;
    domi_net_trace_event_of_datagram(net, what, datagram);
    domi_memory_free(datagram);
}

static void put_datagram_into_inbox(domi_net_socket *receiver, domi_net_datagram *datagram)
{
    domi_net_mail *mail = &receiver->mail;

    domi_net_trace_event_of_datagram(receiver->net, "arrives", datagram);
    domi_net_datagrams_put(&mail->inbox, datagram);
    mail->inbox_count++;
    mail->inbox_bytes += datagram->size + COST;
    domi_net_socket_notify_change(receiver);
}

/* --- room in send buffers -------------------------------------------------------------------- */

/* Returns how many bytes wait in the send buffer of a UDP socket, because the wire has not taken
 * them yet. */
static uint64_t count_bytes_in_udp_send_buffer(const domi_net_socket *socket)
{
    const domi_net *net = socket->net;
    uint64_t clear_ns = socket->mail.clear_ns;

    if (net->faults.bandwidth_bytes == 0 || clear_ns <= net->now_ns)
        return 0;
    return (clear_ns - net->now_ns) * net->faults.bandwidth_bytes / SECOND_NS;
}

static domi_net_socket *find_bound_socket_by_number(const domi_net *net, uint64_t number)
{
    for (domi_net_socket *one = net->bound; one != NULL; one = one->next_bound)
        if (one->number == number)
            return one;
    return NULL;
}

static bool has_room_in_send_buffer(const domi_net_socket *socket)
{
    if (socket->local.family != AF_UNIX)
        return count_bytes_in_udp_send_buffer(socket) < socket->send_max;
    const domi_net_socket *peer =
        socket->mail.peer_number != 0
            ? find_bound_socket_by_number(socket->net, socket->mail.peer_number)
            : NULL;
    return peer == NULL || peer->mail.inbox_count < UNIX_QUEUE_MAX;
}

/* Returns the time at which a datagram that is sent now will have left the socket. If it fills
 * the send buffer, an event is scheduled for the time when there is room again. */
static uint64_t schedule_departure_of_datagram(domi_net_socket *socket, uint32_t size)
{
    domi_net *net = socket->net;
    domi_net_mail *mail = &socket->mail;
    uint64_t bandwidth = net->faults.bandwidth_bytes;

    if (bandwidth == 0)
        return net->now_ns;
    if (mail->clear_ns < net->now_ns)
        mail->clear_ns = net->now_ns;
    mail->clear_ns += size * SECOND_NS / bandwidth;
    if (!has_room_in_send_buffer(socket))
        (void)domi_net_add_event(net, &(domi_net_event){.due_ns = mail->clear_ns,
                                                        .kind = DOMI_NET_ROOM,
                                                        .socket = socket->number});
    return mail->clear_ns;
}

void domi_net_datagram_notify_senders(const domi_net_socket *receiver)
{
    const domi_net *net = receiver->net;

    for (uint32_t i = 0; i < net->socket_capacity; i++)
        if (net->sockets[i] != NULL && net->sockets[i]->mail.peer_number == receiver->number)
            domi_net_socket_notify_change(net->sockets[i]);
}

/* --- UDP sockets ----------------------------------------------------------------------------- */

/* Schedule when one copy of a datagram arrives at the receiver's machine. */
static void schedule_arrival_of_datagram(domi_net *net, domi_net_datagram *datagram,
                                         uint64_t start_ns)
{
    uint64_t due_ns = start_ns + domi_net_draw_latency_of_packet(net);

    if (domi_net_draw_whether_fault_happens(net, net->faults.datagram_reorders))
        due_ns += 1 + domi_random_below(&net->random, REORDER_NS);
    if (!domi_net_add_event(
            net,
            &(domi_net_event){.due_ns = due_ns, .kind = DOMI_NET_DATAGRAM, .datagram = datagram}))
        count_and_free_datagram(net, datagram, &net->datagrams.lost, "is lost");
}

/* Send a datagram over the simulated network, which may lose or double it by chance. */
static void send_datagram_over_network(domi_net *net, domi_net_datagram *datagram,
                                       uint64_t start_ns)
{
    net->datagrams.sent++;
    if (domi_net_draw_whether_fault_happens(net, net->faults.datagram_losses)) {
        count_and_free_datagram(net, datagram, &net->datagrams.lost, "is lost");
        return;
    }
    if (domi_net_draw_whether_fault_happens(net, net->faults.datagram_doubles)) {
        domi_net_datagram *copy = make_datagram_with_bytes(net, &datagram->from, &datagram->to,
                                                           datagram->bytes, datagram->size);

        if (copy != NULL) {
            copy->number = datagram->number;
            net->datagrams.doubled++;
            schedule_arrival_of_datagram(net, copy, start_ns);
        }
    }
    schedule_arrival_of_datagram(net, datagram, start_ns);
}

/* Check that a UDP socket can send `size` bytes to `to`, and bind the socket if it has no name.
 * Returns 0; a negative errno. */
static int check_udp_send_and_bind_socket(domi_net_socket *socket, const domus_endpoint *to,
                                          uint32_t size)
{
    uint32_t fault_max = socket->net->faults.datagram_bytes_max;
    uint32_t most = to->family == AF_INET ? UDP_BYTES_MAX : UDP6_BYTES_MAX;

    if (to->family != socket->local.family &&
        !(to->family == AF_INET && socket->local.family == AF_INET6))
        return -EAFNOSUPPORT;
    if (to->port == 0)
        return -EINVAL;
    if (size > most || (fault_max != 0 && size > fault_max))
        return -EMSGSIZE;
    return domi_net_bind_if_unbound(socket, to);
}

/* Returns the address that the receiver of a datagram sees as its sender. A socket bound to 0.0.0.0
 * or [::] appears to send from the receiver's own address, as if both were on one machine. */
static domus_endpoint get_visible_sender(const domi_net_socket *socket, const domus_endpoint *to)
{
    domus_endpoint from = socket->local;

    if (domi_net_is_any_address(&from)) {
        from = *to;
        from.port = socket->local.port;
    }
    return from;
}

static int send_udp_datagram(domi_net_socket *socket, const domus_endpoint *to, const void *data,
                             uint32_t size)
{
    domi_net *net = socket->net;
    int result = check_udp_send_and_bind_socket(socket, to, size);

    if (result != 0)
        return result;
    if (!has_room_in_send_buffer(socket))
        return -EAGAIN;
    domus_endpoint from = get_visible_sender(socket, to);
    domi_net_datagram *datagram = make_datagram_with_bytes(net, &from, to, data, size);
    if (datagram == NULL)
        return -ENOMEM;
    send_datagram_over_network(net, datagram, schedule_departure_of_datagram(socket, size));
    return 0;
}

/* Schedule a refusal: the news, which goes back to the sender, that a datagram has found no
 * receiver. */
static void schedule_refusal_of_datagram(domi_net *net, domi_net_datagram *datagram)
{
    net->datagrams.unclaimed++;
    domi_net_trace_event_of_datagram(net, "is refused", datagram);
    if (!domi_net_add_event(
            net, &(domi_net_event){.due_ns = net->now_ns + domi_net_draw_latency_of_packet(net),
                                   .kind = DOMI_NET_REFUSAL,
                                   .datagram = datagram}))
        domi_memory_free(datagram);
}

static void deliver_datagram_to_receiver(domi_net *net, domi_net_datagram *datagram)
{
    domi_net_socket *receiver = domi_net_find_receiver(net, &datagram->from, &datagram->to);

    if (domi_net_is_link_broken(net, &datagram->from, &datagram->to)) {
        count_and_free_datagram(net, datagram, &net->datagrams.lost, "is lost");
    } else if (receiver == NULL ||
               domi_net_draw_whether_fault_happens(net, net->faults.datagram_refusals)) {
        schedule_refusal_of_datagram(net, datagram);
    } else if (receiver->mail.inbox_bytes >= receiver->receive_max) {
        receiver->mail.dropped++;
        count_and_free_datagram(net, datagram, &net->datagrams.overflowed, "overflows");
    } else {
        put_datagram_into_inbox(receiver, datagram);
    }
}

/* Deliver a refusal to the sender of a datagram: a connected sender gets the error ECONNREFUSED,
 * and any other sender nothing. */
static void deliver_refusal_to_sender(domi_net *net, domi_net_datagram *datagram)
{
    domi_net_socket *sender = domi_net_find_receiver(net, &datagram->to, &datagram->from);

    if (sender != NULL && sender->mail.peer.family != 0 &&
        !domi_net_is_link_broken(net, &datagram->from, &datagram->to)) {
        sender->error = ECONNREFUSED;
        domi_net_socket_notify_change(sender);
    }
    domi_memory_free(datagram);
}

/* --- Unix sockets ---------------------------------------------------------------------------- */

/* True if the receiving Unix socket is connected, but to another socket than `socket`. */
static bool is_receiver_connected_to_another(const domi_net_socket *receiver,
                                             const domi_net_socket *socket)
{
    return receiver->mail.peer_number != 0 && receiver->mail.peer_number != socket->number;
}

/* Find the Unix socket that is bound to the name `to`. Returns 0; a negative errno. */
static int find_unix_receiver(const domi_net_socket *socket, const domus_endpoint *to,
                              domi_net_socket **ret_receiver)
{
    domi_net_socket *receiver = domi_net_find_receiver(socket->net, &socket->local, to);

    if (to->family != AF_UNIX)
        return -EAFNOSUPPORT;
    if (receiver == NULL)
        return to->bytes[0] == '\0' ? -ECONNREFUSED : -ENOENT;
    *ret_receiver = receiver;
    return is_receiver_connected_to_another(receiver, socket) ? -EPERM : 0;
}

/* Find the peer of a connected Unix socket. If the peer is gone, the first call after that
 * returns -ECONNREFUSED and disconnects the socket. */
static int find_unix_peer(domi_net_socket *socket, domi_net_socket **ret_receiver)
{
    domi_net_mail *mail = &socket->mail;

    *ret_receiver = find_bound_socket_by_number(socket->net, mail->peer_number);
    if (*ret_receiver != NULL)
        return is_receiver_connected_to_another(*ret_receiver, socket) ? -EPERM : 0;
    mail->peer = (domus_endpoint){0};
    mail->peer_number = 0;
    return -ECONNREFUSED;
}

static int send_unix_datagram(domi_net_socket *socket, const domus_endpoint *to, const void *data,
                              uint32_t size)
{
    domi_net *net = socket->net;
    domi_net_socket *receiver = NULL;
    int result =
        to != NULL ? find_unix_receiver(socket, to, &receiver) : find_unix_peer(socket, &receiver);

    if (result != 0)
        return result;
    if (size > socket->send_max)
        return -EMSGSIZE;
    if (receiver->mail.inbox_count >= UNIX_QUEUE_MAX)
        return -EAGAIN;
    domi_net_datagram *datagram =
        make_datagram_with_bytes(net, &socket->local, &receiver->local, data, size);
    if (datagram == NULL)
        return -ENOMEM;
    net->datagrams.sent++;
    put_datagram_into_inbox(receiver, datagram);
    return 0;
}

/* --- calls on datagram sockets --------------------------------------------------------------- */

int domi_net_datagram_send(domi_net_socket *socket, const domus_endpoint *to, const void *data,
                           uint32_t size)
{
    bool is_unix = socket->local.family == AF_UNIX;

    if (socket->error != 0) {
        int error = socket->error;

        socket->error = 0;
        return -error;
    }
    if (to == NULL && socket->mail.peer.family == 0)
        return is_unix ? -ENOTCONN : -EDESTADDRREQ;
    if (is_unix)
        return send_unix_datagram(socket, to, data, size);
    return send_udp_datagram(socket, to != NULL ? to : &socket->mail.peer, data, size);
}

int domi_net_datagram_receive(domi_net_socket *socket, domi_net_datagram **ret_datagram)
{
    domi_net_mail *mail = &socket->mail;

    if (socket->error != 0) {
        int error = socket->error;

        socket->error = 0;
        return -error;
    }
    domi_net_datagram *datagram = domi_net_datagrams_take(&mail->inbox);
    if (datagram == NULL)
        return socket->reads_no_more ? -ESHUTDOWN : -EAGAIN;
    mail->inbox_count--;
    mail->inbox_bytes -= datagram->size + COST;
    socket->net->datagrams.received++;
    if (socket->local.family == AF_UNIX)
        domi_net_datagram_notify_senders(socket);
    *ret_datagram = datagram;
    return 0;
}

int domi_net_datagram_connect(domi_net_socket *socket, const domus_endpoint *to)
{
    domi_net_socket *receiver = NULL;
    int result = 0;

    if (to->family == 0) {
        socket->mail.peer = *to;
        socket->mail.peer_number = 0;
        return 0;
    }
    if (socket->local.family == AF_UNIX)
        result = find_unix_receiver(socket, to, &receiver);
    else
        result = check_udp_send_and_bind_socket(socket, to, 0);
    if (result != 0)
        return result;
    socket->mail.peer = *to;
    socket->mail.peer_number = receiver != NULL ? receiver->number : 0;
    if (receiver == NULL)
        /* as connect(2) does, fix the socket's own address, which until then depends on the
         * receiver */
        socket->local = get_visible_sender(socket, to);
    return 0;
}

uint32_t domi_net_datagram_get_poll_events(const domi_net_socket *socket)
{
    uint32_t events = socket->error != 0 ? POLLERR : 0;

    if (socket->mail.inbox_count != 0)
        events |= POLLIN;
    if (socket->reads_no_more)
        events |= POLLIN | POLLRDHUP;
    return has_room_in_send_buffer(socket) ? events | POLLOUT : events;
}

void domi_net_carry_out_datagram_event(domi_net *net, const domi_net_event *event)
{
    domi_net_socket *socket;

    switch ((domi_net_event_kind)event->kind) {
    case DOMI_NET_DATAGRAM:
        deliver_datagram_to_receiver(net, event->datagram);
        break;
    case DOMI_NET_REFUSAL:
        deliver_refusal_to_sender(net, event->datagram);
        break;
    default:
        socket = find_bound_socket_by_number(net, event->socket);
        if (socket != NULL)
            domi_net_socket_notify_change(socket);
        break;
    }
}
