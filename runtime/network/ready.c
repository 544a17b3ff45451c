/* This file carries out the operations on sockets of the simulated network.
 *
 * One enter brings at most 16 completions of a multishot receive or accept, so that one socket
 * cannot hold up the others. If the completion queue is full, or a fault says so, a multishot
 * operation ends with the completion that found no room, as in an io_uring. */
#include "runtime/network/ready.h"

#include "base/check.h"
#include "base/memory.h"
#include "io/resources/endpoint.h"
#include "runtime/network/parts.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>

#define INPUT_EVENTS  (POLLIN | POLLERR | POLLHUP)
#define OUTPUT_EVENTS (POLLOUT | POLLERR | POLLHUP)
#define PIECES_MAX    16 /* most completions that one multishot operation brings in one enter */

void domi_net_complete_operation(domi_net_ring *ring, uint64_t user_data, int result,
                                 uint32_t flags, uint16_t buffer)
{
    bool was_put = domi_completion_queue_put(
        &ring->queue,
        (domi_completion){
            .user_data = user_data, .result = result, .flags = (uint16_t)flags, .buffer = buffer});

    /* the put into the queue of completions fails only without memory, and then a test kit
     * cannot go on */
    DOMI_CHECK(was_put);
}

/* Complete the operation that waits at a socket for input. A multishot operation goes on after
 * that, unless the queue of completions is full or a fault ends it. Returns true if the
 * operation goes on. */
static bool complete_input_operation(domi_net_ring *ring, domi_net_socket *socket, int result,
                                     uint32_t flags, uint16_t buffer)
{
    uint64_t user_data = socket->input_data;
    bool goes_on = socket->input != DOMI_NET_RECEIVE_ONCE &&
                   domi_completion_queue_count(&ring->queue) < ring->visible_max &&
                   !domi_net_draw_whether_fault_happens(ring->net, ring->net->faults.overflows);

    if (!goes_on)
        socket->input_data = 0;
    domi_net_complete_operation(ring, user_data, result, flags | (goes_on ? DOMI_MORE : 0), buffer);
    return goes_on;
}

static void end_input_operation(domi_net_ring *ring, domi_net_socket *socket, int result)
{
    uint64_t user_data = socket->input_data;

    socket->input_data = 0;
    domi_net_complete_operation(ring, user_data, result, 0, 0);
}

static void end_send_operation(domi_net_ring *ring, domi_net_socket *socket, int result)
{
    uint64_t user_data = socket->output_data;

    socket->output_data = 0;
    domi_net_complete_operation(ring, user_data, result, 0, 0);
}

/* Returns `size`, or, if the fault of a short transfer happens, a random number from 1 to
 * `size`. */
static uint32_t draw_size_of_short_transfer(domi_net *net, uint32_t of_a_million, uint32_t size)
{
    return size > 1 && domi_net_draw_whether_fault_happens(net, of_a_million)
               ? 1 + (uint32_t)domi_random_below(&net->random, size)
               : size;
}

/* Receive one piece of a stream into a provided buffer. Returns true if the operation goes on
 * and may receive more. */
static bool receive_piece_of_stream(domi_net_ring *ring, domi_net_socket *socket)
{
    domi_net *net = ring->net;
    char nothing;

    if (ring->free_head == ring->free_tail ||
        ((domi_net_socket_get_poll_events(socket) & POLLIN) != 0 &&
         domi_net_draw_whether_fault_happens(net, net->faults.no_buffers))) {
        end_input_operation(ring, socket, -ENOBUFS);
        return false;
    }
    uint16_t index = ring->free[ring->free_head & ring->buffer_mask];
    const domi_net_buffer *buffer = &ring->buffers[index];
    uint32_t size = draw_size_of_short_transfer(net, net->faults.short_reads, buffer->size);
    int result = domi_net_socket_receive(socket, size != 0 ? buffer->data : &nothing, size);
    if (result == -EAGAIN)
        return false;
    if (result <= 0) {
        end_input_operation(ring, socket, result);
        return false;
    }
    ring->free_head++;
    return complete_input_operation(ring, socket, result, DOMI_BUFFERED, index);
}

/* Write a received datagram into a provided buffer, behind a head with its sender and size. The
 * datagram is cut if the buffer is too small. Returns how many bytes were written. */
static int write_datagram_into_buffer(const domi_net_datagram *datagram,
                                      const domi_net_buffer *buffer)
{
    domi_datagram_head head = {0};
    uint32_t room = buffer->size - (uint32_t)sizeof head;
    struct sockaddr_storage name;
    int name_size = domi_endpoint_to_socket_address(&datagram->from, &name);

    head.name_size = name_size > 0 ? (uint32_t)name_size : 0;
    head.size = datagram->size < room ? datagram->size : room;
    head.flags = datagram->size > room ? MSG_TRUNC : 0;
    memcpy(head.name, &name, head.name_size);
    memcpy(buffer->data, &head, sizeof head);
    memcpy((char *)buffer->data + sizeof head, datagram->bytes, head.size);
    return (int)(sizeof head + head.size);
}

/* Receive one datagram into a provided buffer. An empty datagram ends the operation by chance,
 * as it may in an io_uring. Returns true if the operation goes on and may receive more. */
static bool receive_datagram_into_buffer(domi_net_ring *ring, domi_net_socket *socket)
{
    domi_net *net = ring->net;
    bool has_some = (domi_net_socket_get_poll_events(socket) & POLLIN) != 0;
    domi_net_datagram *datagram;

    if (ring->free_head == ring->free_tail ||
        (has_some && domi_net_draw_whether_fault_happens(net, net->faults.no_buffers))) {
        end_input_operation(ring, socket, -ENOBUFS);
        return false;
    }
    int result = domi_net_datagram_receive(socket, &datagram);
    if (result == -EAGAIN)
        return false;
    if (result != 0) {
        end_input_operation(ring, socket, result == -ESHUTDOWN ? 0 : result);
        return false;
    }
    uint16_t index = ring->free[ring->free_head++ & ring->buffer_mask];
    int size = write_datagram_into_buffer(datagram, &ring->buffers[index]);
    bool ends = datagram->size == 0 && domi_random_below(&net->random, 2) == 0;
    domi_memory_free(datagram);
    if (!ends)
        return complete_input_operation(ring, socket, size, DOMI_BUFFERED, index);
    uint64_t user_data = socket->input_data;
    socket->input_data = 0;
    domi_net_complete_operation(ring, user_data, size, DOMI_BUFFERED, index);
    return false;
}

static bool accept_connection_of_listener(domi_net_ring *ring, domi_net_socket *listener)
{
    if (listener->waiting_count == 0)
        return false;
    int result = domi_net_draw_socket_failure(ring->net);
    if (result == 0) {
        domi_net_socket *socket = domi_net_socket_accept(listener);

        result = domi_net_socket_add_descriptor(socket);
        DOMI_CHECK(result >= 0);
        return complete_input_operation(ring, listener, result, 0, 0);
    }
    end_input_operation(ring, listener, result);
    return false;
}

static void continue_input_operation(domi_net_ring *ring, domi_net_socket *socket)
{
    int left = PIECES_MAX;

    switch ((domi_net_input)socket->input) {
    case DOMI_NET_ACCEPT:
        while (left-- != 0 && accept_connection_of_listener(ring, socket))
            continue;
        break;
    case DOMI_NET_RECEIVE:
    case DOMI_NET_RECEIVE_ONCE:
        while (left-- != 0 && receive_piece_of_stream(ring, socket))
            continue;
        break;
    case DOMI_NET_RECEIVE_DATAGRAMS:
        while (left-- != 0 && receive_datagram_into_buffer(ring, socket))
            continue;
        break;
    case DOMI_NET_POLL:
        if (socket->wakes != 0) {
            socket->wakes = 0;
            (void)complete_input_operation(ring, socket, POLLIN, 0, 0);
        }
        break;
    }
}

/* Send the bytes of a send operation by its socket. Returns how many the socket took; -EAGAIN
 * when it is full; another negative errno. */
static int try_to_send_bytes(domi_net_ring *ring, domi_net_socket *socket,
                             const domi_net_output *output)
{
    uint32_t limit = 0;
    int sent = 0;
    int result = 0;

    for (uint32_t i = 0; i < output->count; i++)
        limit += (uint32_t)output->pieces[i].iov_len;
    limit = draw_size_of_short_transfer(ring->net, ring->net->faults.short_writes, limit);
    for (uint32_t i = 0; i < output->count && limit != 0; i++) {
        const struct iovec *piece = &output->pieces[i];
        uint32_t size = piece->iov_len < limit ? (uint32_t)piece->iov_len : limit;

        result = domi_net_socket_send(socket, piece->iov_base, size);
        if (result > 0) {
            sent += result;
            limit -= (uint32_t)result;
        }
        if (result != (int)size)
            break;
    }
    return sent != 0 ? sent : result;
}

/* Continue a send operation that has waited for room. A gathered send (send_message) ends at
 * random with -EAGAIN, as in the epoll backend, whose caller repeats it, or goes on, as in an
 * io_uring. */
static void continue_send_operation(domi_net_ring *ring, domi_net_socket *socket)
{
    bool is_again = socket->output.is_gathered && domi_random_below(&ring->net->random, 2) == 0;
    int result = is_again ? -EAGAIN : try_to_send_bytes(ring, socket, &socket->output);

    if (is_again || result != -EAGAIN)
        end_send_operation(ring, socket, result);
}

static void complete_polls_of_socket(domi_net_ring *ring, domi_net_socket *socket)
{
    uint32_t events = domi_net_socket_get_poll_events(socket);
    domi_net_poll **place = &socket->polls;

    while (*place != NULL) {
        domi_net_poll *poll = *place;
        uint32_t holds = events & (poll->events | POLLERR | POLLHUP);

        if (holds == 0) {
            place = &poll->next;
            continue;
        }
        *place = poll->next;
        domi_net_complete_operation(ring, poll->user_data, (int)holds, 0, 0);
        domi_memory_free(poll);
    }
}

static void continue_operations_on_socket(domi_net_ring *ring, domi_net_socket *socket)
{
    if (socket->input_data != 0)
        continue_input_operation(ring, socket);
    if (socket->output_data != 0 && (domi_net_socket_get_poll_events(socket) & OUTPUT_EVENTS) != 0)
        continue_send_operation(ring, socket);
    complete_polls_of_socket(ring, socket);
}

static bool can_operation_on_socket_continue(const domi_net_socket *socket)
{
    uint32_t events = domi_net_socket_get_poll_events(socket);

    if (socket->input_data != 0 && (events & INPUT_EVENTS) != 0)
        return true;
    if (socket->output_data != 0 && (events & OUTPUT_EVENTS) != 0)
        return true;
    for (const domi_net_poll *poll = socket->polls; poll != NULL; poll = poll->next)
        if ((events & (poll->events | POLLERR | POLLHUP)) != 0)
            return true;
    return false;
}

/* Add a socket that has changed to its ring's list of ready sockets, if one of the operations on
 * it can go on. */
static void list_socket_if_operation_can_go_on(domi_net_socket *socket)
{
    if (socket->ring == NULL || socket->is_listed || !can_operation_on_socket_continue(socket))
        return;
    socket->is_listed = true;
    socket->listed_in = &socket->ring->ready;
    domi_net_ready_put(socket->listed_in, socket);
}

void domi_net_continue_ready_operations(domi_net_ring *ring)
{
    domi_net_ready now = ring->ready;

    ring->ready = (domi_net_ready){NULL, NULL};
    while (now.head != NULL) {
        domi_net_socket *socket = domi_net_ready_take(&now);

        socket->is_listed = false;
        continue_operations_on_socket(ring, socket);
        list_socket_if_operation_can_go_on(socket);
    }
}

/* --- beginning and cancelling operations ----------------------------------------------------- */

static int begin_input_operation(domi_net_ring *ring, domi_net_socket *socket,
                                 const domi_net_entry *entry)
{
    static const uint8_t inputs[] = {
        [DOMI_NET_OP_ACCEPT] = DOMI_NET_ACCEPT,
        [DOMI_NET_OP_RECEIVE] = DOMI_NET_RECEIVE,
        [DOMI_NET_OP_RECEIVE_ONCE] = DOMI_NET_RECEIVE_ONCE,
        [DOMI_NET_OP_RECEIVE_DATAGRAMS] = DOMI_NET_RECEIVE_DATAGRAMS,
        [DOMI_NET_OP_POLL] = DOMI_NET_POLL,
    };
    bool is_for_datagrams = entry->op == DOMI_NET_OP_RECEIVE_DATAGRAMS;

    (void)ring;
    DOMI_CHECK(socket->input_data == 0);
    if (entry->op == DOMI_NET_OP_ACCEPT && socket->state != DOMI_NET_LISTENING)
        return -EINVAL;
    if (entry->op != DOMI_NET_OP_POLL && is_for_datagrams != (socket->state == DOMI_NET_DATAGRAMS))
        return -EOPNOTSUPP;
    if (entry->op != DOMI_NET_OP_ACCEPT && entry->op != DOMI_NET_OP_POLL &&
        (socket->state == DOMI_NET_LISTENING || socket->state == DOMI_NET_FRESH))
        return -ENOTCONN;
    socket->input_data = entry->user_data;
    socket->input = inputs[entry->op];
    return 0;
}

static int begin_send_operation(domi_net_ring *ring, domi_net_socket *socket,
                                const domi_net_entry *entry)
{
    int result = try_to_send_bytes(ring, socket, &entry->output);

    if (result != -EAGAIN)
        return result;
    DOMI_CHECK(socket->output_data == 0);
    socket->output_data = entry->user_data;
    socket->output = entry->output;
    return 0;
}

/* Send the datagram of an operation and complete the operation at once, because a datagram never
 * waits. An empty datagram is sent, too. */
static void send_datagram_of_operation(domi_net_ring *ring, domi_net_socket *socket,
                                       const domi_net_entry *entry)
{
    const domi_datagram_out *datagram = &entry->datagram;
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    domus_endpoint to = {0};

    if (datagram->address_size != 0) {
        memcpy(&address, datagram->address, datagram->address_size);
        domi_endpoint_from_socket_address(&address, datagram->address_size, &to);
    }
    int result = socket == NULL ? -EBADF : -ENOTSOCK;
    if (socket != NULL && socket->state == DOMI_NET_DATAGRAMS)
        result = domi_net_datagram_send(socket, datagram->address_size != 0 ? &to : NULL,
                                        datagram->data, datagram->size);
    domi_net_complete_operation(ring, entry->user_data, result == 0 ? (int)datagram->size : result,
                                0, 0);
}

static int begin_poll_operation(domi_net_socket *socket, const domi_net_entry *entry)
{
    domi_net_poll *poll = domi_memory_new(sizeof *poll);

    if (poll == NULL)
        return -ENOMEM;
    *poll = (domi_net_poll){socket->polls, entry->user_data, entry->events};
    socket->polls = poll;
    return 0;
}

/* Cancel the operations on a socket whose user_data is `target`. Returns how many operations
 * were cancelled. */
static int cancel_operations_on_socket(domi_net_ring *ring, domi_net_socket *socket,
                                       uint64_t target)
{
    int count = 0;

    if (socket->input_data == target) {
        end_input_operation(ring, socket, -ECANCELED);
        count++;
    }
    if (socket->output_data == target) {
        end_send_operation(ring, socket, -ECANCELED);
        count++;
    }
    for (domi_net_poll **place = &socket->polls; *place != NULL;) {
        domi_net_poll *poll = *place;

        if (poll->user_data != target) {
            place = &poll->next;
            continue;
        }
        *place = poll->next;
        domi_net_complete_operation(ring, poll->user_data, -ECANCELED, 0, 0);
        domi_memory_free(poll);
        count++;
    }
    return count;
}

/* Carry out a cancel operation. Its own completion comes, at random, before or after those of
 * the operations that it cancels. */
static void carry_out_cancel_operation(domi_net_ring *ring, domi_net_socket *socket,
                                       const domi_net_entry *entry)
{
    bool is_first = domi_random_below(&ring->net->random, 2) == 0;
    uint32_t place = ring->queue.tail;

    if (is_first)
        domi_net_complete_operation(ring, entry->user_data, -ENOENT, 0, 0);
    int count = socket != NULL ? cancel_operations_on_socket(ring, socket, entry->target) : 0;
    int result = count != 0 ? 0 : -ENOENT;
    if (is_first)
        domi_completion_queue_get_at(&ring->queue, place)->result = result;
    else
        domi_net_complete_operation(ring, entry->user_data, result, 0, 0);
}

void domi_net_begin_operation(domi_net_ring *ring, const domi_net_entry *entry)
{
    domi_net_socket *socket = domi_net_socket_find_by_descriptor(ring->net, entry->fd);
    int result = -EBADF;

    if (entry->op == DOMI_NET_OP_CANCEL) {
        carry_out_cancel_operation(ring, socket, entry);
        return;
    }
    if (entry->op == DOMI_NET_OP_SEND_DATAGRAM) {
        send_datagram_of_operation(ring, socket, entry);
        return;
    }
    if (socket != NULL) {
        DOMI_CHECK(socket->ring == NULL || socket->ring == ring);
        socket->ring = ring;
        socket->changed = list_socket_if_operation_can_go_on;
        if (entry->op == DOMI_NET_OP_SEND)
            result = begin_send_operation(ring, socket, entry);
        else if (entry->op == DOMI_NET_OP_POLL_ONCE)
            result = begin_poll_operation(socket, entry);
        else
            result = begin_input_operation(ring, socket, entry);
    }
    if (result != 0)
        domi_net_complete_operation(ring, entry->user_data, result, 0, 0);
    else
        list_socket_if_operation_can_go_on(socket);
}
