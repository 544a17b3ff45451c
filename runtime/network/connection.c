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

/* simulated nanoseconds before the first retry of a connect; each further delay doubles */
#define RETRY_FIRST_NS UINT64_C(1000000000)
/* longest delay between two tries of a connect, after which the connect fails */
#define RETRY_LAST_NS (RETRY_FIRST_NS << 6)
#define SECOND_NS     UINT64_C(1000000000)

static void count_bytes_as_lost(domi_net_connection *connection, uint64_t bytes)
{
    connection->net->totals.lost += bytes;
}

/* --- making and freeing connections ---------------------------------------------------------- */

/* Draw at random which faults will happen to the bytes of one direction of a connection. */
static void draw_faults_of_pipe(domi_net *net, domi_net_pipe *pipe)
{
    const domus_net_faults *faults = &net->faults;

    pipe->cut_at = pipe->end_at = UINT64_MAX;
    if (domi_net_draw_whether_fault_happens(net, faults->resets))
        pipe->cut_at = faults->reset_within_bytes != 0
                           ? domi_random_below(&net->random, faults->reset_within_bytes)
                           : 0;
    if (domi_net_draw_whether_fault_happens(net, faults->ends))
        pipe->end_at = faults->end_within_bytes != 0
                           ? domi_random_below(&net->random, faults->end_within_bytes)
                           : 0;
}

static domi_net_connection *make_connection_of_opener(domi_net_socket *socket,
                                                      const domus_endpoint *to)
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
    draw_faults_of_pipe(net, &connection->pipes[0]);
    draw_faults_of_pipe(net, &connection->pipes[1]);
    connection->next = net->first;
    if (net->first != NULL)
        net->first->previous = connection;
    net->first = connection;
    socket->connection = connection;
    socket->side = 0;
    socket->state = DOMI_NET_CONNECTING;
    domi_net_trace_event_of_connection(connection, "opens to port", 1, to->port);
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
            /* a socket without a descriptor and an owner was never accepted, so nobody else
             * frees it */
            domi_net_socket_free(socket);
        count_bytes_as_lost(connection, domi_net_pipe_drop_all(&connection->pipes[side]));
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

/* Returns the time at which bytes that leave for `side` now will arrive there, which is never
 * before anything that left earlier. */
static uint64_t time_of_arrival_at_side(domi_net_connection *connection, uint8_t side,
                                        uint64_t size)
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
    uint64_t due_ns = start_ns + domi_net_draw_latency_of_packet(net);
    if (due_ns < pipe->last_ns)
        due_ns = pipe->last_ns;
    pipe->last_ns = due_ns;
    return due_ns;
}

static void schedule_event_at_side(domi_net_connection *connection, uint8_t side,
                                   domi_net_event_kind kind, uint32_t size, bool is_end)
{
    domi_net_add_event(connection->net,
                       &(domi_net_event){
                           .due_ns = time_of_arrival_at_side(connection, side, size),
                           .connection = connection,
                           .kind = (uint8_t)kind,
                           .side = side,
                           .size = size,
                           .is_end = is_end,
                       });
}

/* Returns how many of the pipe's waiting bytes may leave now, as far as the receiver's window
 * and a drawn fault allow. */
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

void domi_net_send_waiting_bytes(domi_net_connection *connection, uint8_t side)
{
    domi_net_pipe *pipe = &connection->pipes[side];
    uint64_t size = count_bytes_to_send(pipe);

    if (pipe->is_dead || pipe->has_cut || pipe->receive_max == 0)
        return; /* no byte can leave: receive_max is 0 until the connect has reached the listener */
    if (size != 0) {
        pipe->departed += size;
        schedule_event_at_side(connection, side, DOMI_NET_ARRIVAL, (uint32_t)size, false);
    }
    if (pipe->departed == pipe->cut_at) {
        pipe->has_cut = true;
        schedule_event_at_side(connection, side, DOMI_NET_CUT, 0, false);
    } else if (pipe->departed == pipe->end_at && !pipe->end_departed) {
        pipe->end_departed = pipe->has_ended_early = true;
        schedule_event_at_side(connection, side, DOMI_NET_ARRIVAL, 0, true);
    } else if (pipe->is_finished && pipe->departed == pipe->tail && !pipe->end_departed) {
        pipe->end_departed = true;
        schedule_event_at_side(connection, side, DOMI_NET_ARRIVAL, 0, true);
    }
    if (pipe->has_ended_early && pipe->tail > pipe->end_at) {
        pipe->has_cut = true;
        schedule_event_at_side(connection, side, DOMI_NET_CUT, 0, false);
    }
}

void domi_net_finish_stream_of_side(domi_net_connection *connection, uint8_t side)
{
    domi_net_pipe *out = &connection->pipes[!side];

    if (out->is_finished || out->is_dead)
        return;
    out->is_finished = true;
    domi_net_send_waiting_bytes(connection, !side);
}

/* --- resets and closes ----------------------------------------------------------------------- */

static void notify_socket_of_side(domi_net_connection *connection, uint8_t side)
{
    if (connection->sockets[side] != NULL)
        domi_net_socket_notify_change(connection->sockets[side]);
}

/* Stop reading at `side`: the bytes that can be received there, and those that arrive later, are
 * thrown away. */
static void stop_reading_at_side(domi_net_connection *connection, uint8_t side)
{
    domi_net_pipe *in = &connection->pipes[side];

    in->reader_gone = true;
    count_bytes_as_lost(connection, domi_net_pipe_drop_readable(in));
}

void domi_net_reset_connection(domi_net_connection *connection, uint8_t side)
{
    domi_net_pipe *out = &connection->pipes[!side];

    stop_reading_at_side(connection, side);
    if (connection->has_reset[side] || connection->was_reset[side])
        return;
    connection->has_reset[side] = true;
    count_bytes_as_lost(connection, domi_net_pipe_drop_unsent(out));
    out->is_dead = true;
    if (connection->sockets[!side] != NULL || side == 0)
        schedule_event_at_side(connection, !side, DOMI_NET_RESET, 0, false);
}

void domi_net_close_side_of_connection(domi_net_connection *connection, uint8_t side)
{
    domi_net_socket *socket = connection->sockets[side];
    bool has_unread = domi_net_pipe_count_readable(&connection->pipes[side]) != 0;

    connection->sockets[side] = NULL;
    if (socket->state == DOMI_NET_CONNECTING || socket->aborts || has_unread) {
        domi_net_reset_connection(connection, side);
    } else {
        stop_reading_at_side(connection, side);
        domi_net_finish_stream_of_side(connection, side);
    }
    domi_net_connection_free_if_over(connection);
}

/* Handle a reset that has reached `side` of a connection: this side can send nothing more, and can
 * still read the bytes that had arrived. */
static void handle_reset_at_side(domi_net_connection *connection, uint8_t side, int error)
{
    domi_net_pipe *out = &connection->pipes[!side];
    domi_net_pipe *in = &connection->pipes[side];
    domi_net_socket *socket = connection->sockets[side];

    if (connection->was_reset[side])
        return;
    connection->was_reset[side] = true;
    domi_net_trace_event_of_connection(connection, "reset", side, 0);
    /* bytes that the other side could already receive stay readable, unless that side has sent a
     * reset itself */
    count_bytes_as_lost(connection, connection->has_reset[!side]
                                        ? domi_net_pipe_drop_all(out)
                                        : domi_net_pipe_drop_not_arrived(out));
    count_bytes_as_lost(connection, domi_net_pipe_drop_not_arrived(in));
    in->is_dead = out->is_dead = true;
    if (socket != NULL && !socket->is_dead) {
        socket->is_dead = true;
        socket->error = error;
        domi_net_socket_notify_change(socket);
    }
}

/* --- connects -------------------------------------------------------------------------------- */

static void schedule_answer_to_connect(domi_net_connection *connection, int error)
{
    domi_net_add_event(connection->net, &(domi_net_event){
                                            .due_ns = time_of_arrival_at_side(connection, 0, 0),
                                            .connection = connection,
                                            .kind = DOMI_NET_ANSWER,
                                            .error = error,
                                        });
}

/* Make the socket of side 1, the accepted side, which waits in the listener's queue to be
 * accepted. */
static int add_socket_of_accepted_side(domi_net_connection *connection, domi_net_socket *listener)
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
    /* as in Linux, the queue of a listener holds one connection more than its backlog */
    return listener->waiting_count <= listener->backlog;
}

/* Handle a connect that has reached the listener's machine: put it into the listener's queue,
 * refuse it, or schedule a retry. */
static void handle_connect_at_listener(domi_net_connection *connection)
{
    domi_net *net = connection->net;

    if (connection->has_reset[0] || connection->was_reset[0])
        /* the connect is forgotten: the opener has closed its socket, or its connect has timed
         * out */
        return;
    domi_net_socket *listener = domi_net_find_listener(net, &connection->ends[1]);
    if (listener == NULL || domi_net_draw_whether_fault_happens(net, net->faults.refusals)) {
        schedule_answer_to_connect(connection, -ECONNREFUSED);
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
            schedule_answer_to_connect(connection, -ETIMEDOUT);
        return;
    }
    if (add_socket_of_accepted_side(connection, listener) != 0) {
        net->is_out_of_memory = true;
        schedule_answer_to_connect(connection, -ECONNREFUSED);
        return;
    }
    schedule_answer_to_connect(connection, 0);
    domi_net_socket_notify_change(listener);
    /* bytes may leave from now on; a fault may even cut the connection before its first byte */
    domi_net_send_waiting_bytes(connection, 0);
}

static void handle_connect_answer(domi_net_connection *connection, int error)
{
    domi_net_socket *socket = connection->sockets[0];

    if (socket == NULL || socket->state != DOMI_NET_CONNECTING || connection->was_reset[0])
        return;
    domi_net_trace_event_of_connection(connection, error == 0 ? "connected" : "refused", 0, 0);
    if (error != 0) {
        connection->was_reset[0] = true;
        socket->is_dead = true;
        socket->error = -error;
    }
    socket->state = DOMI_NET_CONNECTED;
    domi_net_socket_notify_change(socket);
    if (error == 0)
        domi_net_send_waiting_bytes(connection, 1);
}

int domi_net_begin_connect(domi_net_socket *socket, const domus_endpoint *to)
{
    domi_net *net = socket->net;
    domi_net_connection *connection = make_connection_of_opener(socket, to);

    if (connection == NULL)
        return -ENOMEM;
    domi_net_add_event(net, &(domi_net_event){
                                .due_ns = net->now_ns + domi_net_draw_latency_of_packet(net),
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

    if (listener == NULL || domi_net_draw_whether_fault_happens(net, net->faults.refusals))
        return listener != NULL || to->bytes[0] == '\0' ? -ECONNREFUSED : -ENOENT;
    if (!has_room_in_backlog(listener))
        return -EAGAIN;
    domi_net_connection *connection = make_connection_of_opener(socket, to);
    if (connection == NULL)
        return -ENOMEM;
    if (add_socket_of_accepted_side(connection, listener) != 0) {
        domi_net_connection_free(connection);
        socket->state = DOMI_NET_FRESH;
        return -ENOMEM;
    }
    domi_net_trace_event_of_connection(connection, "connected", 0, 0);
    socket->state = DOMI_NET_CONNECTED;
    domi_net_socket_notify_change(listener);
    domi_net_send_waiting_bytes(connection, 0);
    domi_net_send_waiting_bytes(connection, 1);
    return 0;
}

/* --- carrying out events --------------------------------------------------------------------- */

static void handle_bytes_that_arrive(domi_net_connection *connection, uint8_t side, uint32_t size,
                                     bool is_end)
{
    domi_net_pipe *in = &connection->pipes[side];

    if (connection->was_reset[0] || connection->was_reset[1])
        return; /* the arriving bytes are dropped, because a reset has thrown them away meanwhile */
    in->arrived += size;
    if (is_end) {
        in->end_arrived = true;
        domi_net_trace_event_of_connection(connection, "end", side, 0);
    } else {
        domi_net_trace_event_of_connection(connection, "bytes", side, size);
    }
    if (in->reader_gone && size != 0) {
        count_bytes_as_lost(connection, domi_net_pipe_drop_readable(in));
        domi_net_reset_connection(connection, side);
        return;
    }
    notify_socket_of_side(connection, side);
    /* the bytes have arrived, which has made room in the sender's buffer */
    notify_socket_of_side(connection, !side);
}

static void cut_connection_by_fault(domi_net_connection *connection)
{
    connection->is_cut = true;
    handle_reset_at_side(connection, 0, ECONNRESET);
    handle_reset_at_side(connection, 1, ECONNRESET);
}

void domi_net_carry_out_connection_event(const domi_net_event *event)
{
    domi_net_connection *connection = event->connection;

    switch ((domi_net_event_kind)event->kind) {
    case DOMI_NET_SYN:
        handle_connect_at_listener(connection);
        break;
    case DOMI_NET_ANSWER:
        handle_connect_answer(connection, event->error);
        break;
    case DOMI_NET_ARRIVAL:
        handle_bytes_that_arrive(connection, event->side, event->size, event->is_end);
        break;
    case DOMI_NET_RESET:
        handle_reset_at_side(connection, event->side, ECONNRESET);
        break;
    case DOMI_NET_CUT:
        cut_connection_by_fault(connection);
        break;
    default:
        DOMI_CHECK(false); /* this function gets no event of this kind, which is about a datagram */
    }
    connection->events--;
    domi_net_connection_free_if_over(connection);
}
