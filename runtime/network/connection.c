/* Connections of the simulated network: how they are opened, carry bytes, are reset and are closed.
 *
 * A connect takes two events: one reaches the listener's machine, the other brings the answer back.
 * The accepted side exists as soon as the connect has reached the listener; nothing that it sends
 * overtakes the answer. A connect that finds the queue of the listener full gets no answer, and is
 * tried again after a delay that doubles each time, as TCP repeats a SYN.
 *
 * A reset travels behind the bytes that left before, as a RST does, and no window holds it up. The
 * side that gets the reset loses the bytes that it has not sent, and can still read the bytes that
 * had arrived. */
#include "runtime/network/parts.h"

#include "base/check.h"
#include "base/memory.h"

#include <errno.h>

/* delay before the first retry of a connect; each further one doubles */
#define RETRY_FIRST_NS UINT64_C(1000000000)
/* longest delay between retries; beyond it the connect fails */
#define RETRY_LAST_NS (RETRY_FIRST_NS << 6)
#define SECOND_NS     UINT64_C(1000000000)

static void count_lost_bytes(domi_net_connection *connection, uint64_t bytes)
{
    connection->net->totals.lost += bytes;
}

/* --- making and freeing connections ---------------------------------------------------------- */

/* Draw at random the faults of one direction of a connection. */
static void draw_faults(domi_net *net, domi_net_pipe *pipe)
{
    const domus_net_faults *faults = &net->faults;

    pipe->cut_at = pipe->end_at = UINT64_MAX;
    if (domi_net_draw_fault(net, faults->resets))
        pipe->cut_at = faults->reset_within_bytes != 0
                           ? domi_random_below(&net->random, faults->reset_within_bytes)
                           : 0;
    if (domi_net_draw_fault(net, faults->ends))
        pipe->end_at = faults->end_within_bytes != 0
                           ? domi_random_below(&net->random, faults->end_within_bytes)
                           : 0;
}

static domi_net_connection *connection_new(domi_net_socket *socket, const domus_endpoint *to)
{
    domi_net *net = socket->net;
    domi_net_connection *connection = domi_memory_new(sizeof *connection);

    if (connection == NULL)
        return NULL;
    connection->net = net;
    connection->number = net->connection_count++;
    connection->ends[0] = socket->local;
    connection->ends[1] = *to;
    connection->sockets[0] = socket;
    connection->retry_ns = RETRY_FIRST_NS;
    draw_faults(net, &connection->pipes[0]);
    draw_faults(net, &connection->pipes[1]);
    connection->next = net->first;
    if (net->first != NULL)
        net->first->previous = connection;
    net->first = connection;
    socket->connection = connection;
    socket->side = 0;
    socket->state = DOMI_NET_CONNECTING;
    domi_net_trace_connection(connection, "opens to port", 1, to->port);
    return connection;
}

void domi_net_connection_free(domi_net_connection *connection)
{
    domi_net *net = connection->net;

    for (int side = 0; side < 2; side++) {
        domi_net_socket *socket = connection->sockets[side];

        if (socket != NULL)
            socket->connection = NULL;
        if (socket != NULL && socket->fd < 0 && socket->owner == NULL)
            /* a socket without a descriptor and an owner was never accepted */
            domi_net_socket_free(socket);
        count_lost_bytes(connection, domi_net_pipe_drop_all(&connection->pipes[side]));
        domi_memory_free(connection->pipes[side].bytes);
    }
    while (connection->held.head != NULL)
        domi_memory_free(domi_net_events_take(&connection->held));
    if (connection->previous != NULL)
        connection->previous->next = connection->next;
    else
        net->first = connection->next;
    if (connection->next != NULL)
        connection->next->previous = connection->previous;
    domi_memory_free(connection);
}

void domi_net_connection_free_if_over(domi_net_connection *connection)
{
    if (connection->sockets[0] == NULL && connection->sockets[1] == NULL &&
        connection->events == 0 && !connection->is_kept)
        domi_net_connection_free(connection);
}

/* --- bytes leave a side ---------------------------------------------------------------------- */

/* Returns the time at which bytes that leave for `side` now arrive there, after all that left
 * before. */
static uint64_t schedule_arrival(domi_net_connection *connection, uint8_t side, uint64_t size)
{
    domi_net *net = connection->net;
    domi_net_pipe *pipe = &connection->pipes[side];
    uint64_t start_ns = net->now_ns;

    if (net->faults.bandwidth_bytes != 0) {
        if (pipe->clear_ns > start_ns)
            start_ns = pipe->clear_ns;
        start_ns += size * SECOND_NS / net->faults.bandwidth_bytes;
        pipe->clear_ns = start_ns;
    }
    uint64_t due_ns = start_ns + domi_net_draw_latency(net);
    if (due_ns < pipe->last_ns)
        due_ns = pipe->last_ns;
    pipe->last_ns = due_ns;
    return due_ns;
}

static void send_event_to_peer(domi_net_connection *connection, uint8_t side,
                               domi_net_event_kind kind, uint32_t size, bool is_end)
{
    domi_net_add_event(connection->net, &(domi_net_event){
                                            .due_ns = schedule_arrival(connection, side, size),
                                            .connection = connection,
                                            .kind = (uint8_t)kind,
                                            .side = side,
                                            .size = size,
                                            .is_end = is_end,
                                        });
}

/* Returns how many waiting bytes of the pipe may leave now. */
static uint64_t count_bytes_to_send(const domi_net_pipe *pipe)
{
    uint64_t limit = pipe->cut_at < pipe->end_at ? pipe->cut_at : pipe->end_at;
    uint64_t window_end = pipe->head + pipe->receive_max;

    if (window_end < limit)
        limit = window_end;
    if (pipe->tail < limit)
        limit = pipe->tail;
    return limit > pipe->departed ? limit - pipe->departed : 0;
}

void domi_net_send_waiting(domi_net_connection *connection, uint8_t side)
{
    domi_net_pipe *pipe = &connection->pipes[side];
    uint64_t size = count_bytes_to_send(pipe);

    if (pipe->is_dead || pipe->has_cut || pipe->receive_max == 0)
        return; /* receive_max is 0 until the connect has reached the listener */
    if (size != 0) {
        pipe->departed += size;
        send_event_to_peer(connection, side, DOMI_NET_ARRIVAL, (uint32_t)size, false);
    }
    if (pipe->departed == pipe->cut_at) {
        pipe->has_cut = true;
        send_event_to_peer(connection, side, DOMI_NET_CUT, 0, false);
    } else if (pipe->departed == pipe->end_at && !pipe->end_departed) {
        pipe->end_departed = pipe->has_ended_early = true;
        send_event_to_peer(connection, side, DOMI_NET_ARRIVAL, 0, true);
    } else if (pipe->is_finished && pipe->departed == pipe->tail && !pipe->end_departed) {
        pipe->end_departed = true;
        send_event_to_peer(connection, side, DOMI_NET_ARRIVAL, 0, true);
    }
    if (pipe->has_ended_early && pipe->tail > pipe->end_at) {
        pipe->has_cut = true;
        send_event_to_peer(connection, side, DOMI_NET_CUT, 0, false);
    }
}

void domi_net_finish_stream(domi_net_connection *connection, uint8_t side)
{
    domi_net_pipe *out = &connection->pipes[!side];

    if (out->is_finished || out->is_dead)
        return;
    out->is_finished = true;
    domi_net_send_waiting(connection, !side);
}

/* --- resets and closes ----------------------------------------------------------------------- */

static void notify_socket_of_side(domi_net_connection *connection, uint8_t side)
{
    if (connection->sockets[side] != NULL)
        domi_net_socket_notify_change(connection->sockets[side]);
}

/* Stop reading at `side`: the bytes that lie there, and those that arrive later, are thrown
 * away. */
static void stop_reading(domi_net_connection *connection, uint8_t side)
{
    domi_net_pipe *in = &connection->pipes[side];

    in->reader_gone = true;
    count_lost_bytes(connection, domi_net_pipe_drop_readable(in));
}

void domi_net_reset_connection(domi_net_connection *connection, uint8_t side)
{
    domi_net_pipe *out = &connection->pipes[!side];

    stop_reading(connection, side);
    if (connection->has_reset[side] || connection->was_reset[side])
        return;
    connection->has_reset[side] = true;
    count_lost_bytes(connection, domi_net_pipe_drop_unsent(out));
    out->is_dead = true;
    if (connection->sockets[!side] != NULL || side == 0)
        send_event_to_peer(connection, !side, DOMI_NET_RESET, 0, false);
}

void domi_net_close_side(domi_net_connection *connection, uint8_t side)
{
    domi_net_socket *socket = connection->sockets[side];
    bool has_unread = domi_net_pipe_count_readable(&connection->pipes[side]) != 0;

    connection->sockets[side] = NULL;
    if (socket->state == DOMI_NET_CONNECTING || socket->aborts || has_unread) {
        domi_net_reset_connection(connection, side);
    } else {
        stop_reading(connection, side);
        domi_net_finish_stream(connection, side);
    }
    domi_net_connection_free_if_over(connection);
}

/* Handle a reset that has reached `side`: this side can send nothing more, and can still read the
 * bytes that had arrived. */
static void handle_reset(domi_net_connection *connection, uint8_t side, int error)
{
    domi_net_pipe *out = &connection->pipes[!side];
    domi_net_pipe *in = &connection->pipes[side];
    domi_net_socket *socket = connection->sockets[side];

    if (connection->was_reset[side])
        return;
    connection->was_reset[side] = true;
    domi_net_trace_connection(connection, "reset", side, 0);
    /* bytes that the other side can read already stay readable, unless it has sent a reset
     * itself */
    count_lost_bytes(connection, connection->has_reset[!side]
                                     ? domi_net_pipe_drop_all(out)
                                     : domi_net_pipe_drop_not_arrived(out));
    count_lost_bytes(connection, domi_net_pipe_drop_not_arrived(in));
    in->is_dead = out->is_dead = true;
    if (socket != NULL && !socket->is_dead) {
        socket->is_dead = true;
        socket->error = error;
        domi_net_socket_notify_change(socket);
    }
}

/* --- connects -------------------------------------------------------------------------------- */

static void send_connect_answer(domi_net_connection *connection, int error)
{
    domi_net_add_event(connection->net, &(domi_net_event){
                                            .due_ns = schedule_arrival(connection, 0, 0),
                                            .connection = connection,
                                            .kind = DOMI_NET_ANSWER,
                                            .error = error,
                                        });
}

/* Make the socket of side 1, which the listener will accept. */
static int add_accepted_side(domi_net_connection *connection, domi_net_socket *listener)
{
    domi_net_socket *socket = domi_net_socket_new(connection->net, listener->local.family);
    domi_net_socket *opener = connection->sockets[0];

    if (socket == NULL)
        return -ENOMEM;
    socket->state = DOMI_NET_CONNECTED;
    socket->connection = connection;
    socket->side = 1;
    socket->local = connection->ends[1];
    if (listener->sets_send_max)
        socket->send_max = listener->send_max;
    if (listener->sets_receive_max)
        socket->receive_max = listener->receive_max;
    connection->sockets[1] = socket;
    connection->pipes[0].send_max = socket->send_max;
    connection->pipes[1].receive_max = socket->receive_max;
    connection->pipes[0].receive_max = opener->receive_max;
    connection->pipes[1].send_max = opener->send_max;
    domi_net_waiting_put(&listener->waiting, connection);
    listener->waiting_count++;
    return 0;
}

static bool has_room_in_backlog(const domi_net_socket *listener)
{
    /* as in Linux, the queue holds one connection more than the backlog */
    return listener->waiting_count <= listener->backlog;
}

/* Handle a connect that has reached the listener's machine: queue it at the listener, refuse it, or
 * schedule a retry. */
static void handle_connect(domi_net_connection *connection)
{
    domi_net *net = connection->net;

    if (connection->has_reset[0] || connection->was_reset[0])
        return; /* the opener has closed its socket, or its connect has timed out */
    domi_net_socket *listener = domi_net_find_listener(net, &connection->ends[1]);
    if (listener == NULL || domi_net_draw_fault(net, net->faults.refusals)) {
        send_connect_answer(connection, -ECONNREFUSED);
        return;
    }
    if (!has_room_in_backlog(listener)) {
        domi_net_add_event(net, &(domi_net_event){
                                    .due_ns = net->now_ns + connection->retry_ns,
                                    .connection = connection,
                                    .kind = DOMI_NET_SYN,
                                    .side = 1,
                                });
        connection->retry_ns *= 2;
        if (connection->retry_ns > RETRY_LAST_NS)
            send_connect_answer(connection, -ETIMEDOUT);
        return;
    }
    if (add_accepted_side(connection, listener) != 0) {
        net->is_out_of_memory = true;
        send_connect_answer(connection, -ECONNREFUSED);
        return;
    }
    send_connect_answer(connection, 0);
    domi_net_socket_notify_change(listener);
    domi_net_send_waiting(connection, 0); /* a fault may cut the connection before its first byte */
}

static void handle_connect_answer(domi_net_connection *connection, int error)
{
    domi_net_socket *socket = connection->sockets[0];

    if (socket == NULL || socket->state != DOMI_NET_CONNECTING || connection->was_reset[0])
        return;
    domi_net_trace_connection(connection, error == 0 ? "connected" : "refused", 0, 0);
    if (error != 0) {
        connection->was_reset[0] = true;
        socket->is_dead = true;
        socket->error = -error;
    }
    socket->state = DOMI_NET_CONNECTED;
    domi_net_socket_notify_change(socket);
    if (error == 0)
        domi_net_send_waiting(connection, 1);
}

int domi_net_connect(domi_net_socket *socket, const domus_endpoint *to)
{
    domi_net *net = socket->net;
    domi_net_connection *connection = connection_new(socket, to);

    if (connection == NULL)
        return -ENOMEM;
    domi_net_add_event(net, &(domi_net_event){
                                .due_ns = net->now_ns + domi_net_draw_latency(net),
                                .connection = connection,
                                .kind = DOMI_NET_SYN,
                                .side = 1,
                            });
    return 0;
}

int domi_net_connect_unix(domi_net_socket *socket, const domus_endpoint *to)
{
    domi_net *net = socket->net;
    domi_net_socket *listener = domi_net_find_listener(net, to);

    if (listener == NULL || domi_net_draw_fault(net, net->faults.refusals))
        return listener != NULL || to->bytes[0] == '\0' ? -ECONNREFUSED : -ENOENT;
    if (!has_room_in_backlog(listener))
        return -EAGAIN;
    domi_net_connection *connection = connection_new(socket, to);
    if (connection == NULL)
        return -ENOMEM;
    if (add_accepted_side(connection, listener) != 0) {
        domi_net_connection_free(connection);
        socket->state = DOMI_NET_FRESH;
        return -ENOMEM;
    }
    domi_net_trace_connection(connection, "connected", 0, 0);
    socket->state = DOMI_NET_CONNECTED;
    domi_net_socket_notify_change(listener);
    domi_net_send_waiting(connection, 0);
    domi_net_send_waiting(connection, 1);
    return 0;
}

/* --- carrying out events --------------------------------------------------------------------- */

static void handle_arrival(domi_net_connection *connection, uint8_t side, uint32_t size,
                           bool is_end)
{
    domi_net_pipe *in = &connection->pipes[side];

    if (connection->was_reset[0] || connection->was_reset[1])
        return; /* the bytes were thrown away by the reset */
    in->arrived += size;
    if (is_end) {
        in->end_arrived = true;
        domi_net_trace_connection(connection, "end", side, 0);
    } else {
        domi_net_trace_connection(connection, "bytes", side, size);
    }
    if (in->reader_gone && size != 0) {
        count_lost_bytes(connection, domi_net_pipe_drop_readable(in));
        domi_net_reset_connection(connection, side);
        return;
    }
    notify_socket_of_side(connection, side);
    notify_socket_of_side(connection, !side); /* the arrival has made room in the sender's buffer */
}

static void cut_connection(domi_net_connection *connection)
{
    connection->is_cut = true;
    handle_reset(connection, 0, ECONNRESET);
    handle_reset(connection, 1, ECONNRESET);
}

void domi_net_connection_carry_out(const domi_net_event *event)
{
    domi_net_connection *connection = event->connection;

    switch ((domi_net_event_kind)event->kind) {
    case DOMI_NET_SYN:
        handle_connect(connection);
        break;
    case DOMI_NET_ANSWER:
        handle_connect_answer(connection, event->error);
        break;
    case DOMI_NET_ARRIVAL:
        handle_arrival(connection, event->side, event->size, event->is_end);
        break;
    case DOMI_NET_RESET:
        handle_reset(connection, event->side, ECONNRESET);
        break;
    case DOMI_NET_CUT:
        cut_connection(connection);
        break;
    default:
        DOMI_CHECK(false); /* this kind of event is about a datagram */
    }
    connection->events--;
    domi_net_connection_free_if_over(connection);
}
