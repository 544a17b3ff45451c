/* The table of functions of the simulated backend (ring.h), the simulated ring's part. ready.c
 * carries out the operations. */
#include "runtime/network/ring.h"

#include "base/check.h"
#include "base/memory.h"
#include "runtime/network/parts.h"
#include "runtime/network/ready.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* network in which a ring that this OS thread opens will be */
static _Thread_local domi_net *opening;

domi_net *domi_net_set_network_of_new_rings(domi_net *net)
{
    domi_net *before = opening;

    opening = net;
    return before;
}

static void ring_close_simulated(void *ring_)
{
    domi_net_ring *ring = ring_;

    if (ring == NULL)
        return;
    for (uint32_t i = 0; i < ring->net->socket_capacity; i++) {
        domi_net_socket *socket = ring->net->sockets[i];
        if (socket != NULL && socket->ring == ring) {
            domi_net_socket_drop_operations(socket);
            socket->ring = NULL;
            socket->changed = NULL;
        }
    }
    domi_memory_free(ring->entries);
    domi_completion_queue_fini(&ring->queue);
    domi_memory_free(ring->buffers);
    domi_memory_free(ring->free);
    domi_memory_free(ring);
}

static int ring_open_simulated(const domus_config *config, char *error, size_t error_size,
                               void **ret_ring)
{
    uint32_t buffers = config->io.buffers.count;
    domi_net_ring *ring = domi_memory_new(sizeof *ring);

    DOMI_CHECK(opening != NULL);
    if (ring != NULL) {
        ring->net = opening;
        ring->entry_capacity = config->io.ring_entries;
        ring->visible_max = config->io.completion_entries;
        ring->buffer_mask = buffers - 1;
        ring->entries = domi_memory_new(ring->entry_capacity * sizeof *ring->entries);
        bool has_queue = domi_completion_queue_init(&ring->queue, config->io.completion_entries);
        ring->buffers = domi_memory_new(buffers * sizeof *ring->buffers);
        ring->free = domi_memory_new(buffers * sizeof *ring->free);
        if (ring->entries != NULL && has_queue && ring->buffers != NULL && ring->free != NULL) {
            *ret_ring = ring;
            return 0;
        }
        ring_close_simulated(ring);
    }
    if (error_size != 0)
        snprintf(error, error_size, "out of memory for a simulated ring");
    return -ENOMEM;
}

static int ring_start_simulated(void *ring)
{
    (void)ring;
    return 0;
}

/* --- queueing operations --------------------------------------------------------------------- */

static void carry_out_queued_operations(domi_net_ring *ring)
{
    for (uint32_t i = 0; i < ring->entry_count; i++)
        domi_net_begin_operation(ring, &ring->entries[i]);
    ring->entry_count = 0;
}

/* Queue an operation on a descriptor. If the queue is full, its operations are carried out
 * first. */
static domi_net_entry *queue_operation(void *ring_, domi_net_op op, int fd, uint64_t user_data)
{
    domi_net_ring *ring = ring_;

    DOMI_CHECK(user_data != 0);
    if (ring->entry_count == ring->entry_capacity)
        carry_out_queued_operations(ring);
    domi_net_entry *entry = &ring->entries[ring->entry_count++];
    *entry = (domi_net_entry){.user_data = user_data, .op = op, .fd = fd};
    return entry;
}

static void ring_queue_accept(void *ring, int fd, uint64_t user_data)
{
    (void)queue_operation(ring, DOMI_NET_OP_ACCEPT, fd, user_data);
}

static void ring_queue_receive(void *ring, int fd, bool once, uint64_t user_data)
{
    (void)queue_operation(ring, once ? DOMI_NET_OP_RECEIVE_ONCE : DOMI_NET_OP_RECEIVE, fd,
                          user_data);
}

static void ring_queue_poll(void *ring, int fd, uint64_t user_data)
{
    (void)queue_operation(ring, DOMI_NET_OP_POLL, fd, user_data);
}

static void ring_queue_poll_once(void *ring, int fd, uint32_t events, uint64_t user_data)
{
    queue_operation(ring, DOMI_NET_OP_POLL_ONCE, fd, user_data)->events = events;
}

static void ring_queue_send(void *ring, int fd, const void *data, uint32_t size, uint64_t user_data)
{
    domi_net_output *output = &queue_operation(ring, DOMI_NET_OP_SEND, fd, user_data)->output;

    output->pieces[0] = (struct iovec){.iov_base = (void *)(uintptr_t)data, .iov_len = size};
    output->count = 1;
}

static void ring_queue_send_message(void *ring, int fd, const struct msghdr *message,
                                    uint64_t user_data)
{
    domi_net_output *output = &queue_operation(ring, DOMI_NET_OP_SEND, fd, user_data)->output;
    /* msg_iovlen has the type int in musl, and size_t elsewhere */
    size_t count = (size_t)message->msg_iovlen;

    DOMI_CHECK(count <= DOMI_PIECES_MAX);
    memcpy(output->pieces, message->msg_iov, count * sizeof *output->pieces);
    output->count = (uint32_t)count;
    output->is_gathered = true;
}

static void ring_queue_receive_datagrams(void *ring, int fd, uint64_t user_data)
{
    (void)queue_operation(ring, DOMI_NET_OP_RECEIVE_DATAGRAMS, fd, user_data);
}

static void ring_queue_send_datagram(void *ring, int fd, const domi_datagram_out *datagram,
                                     uint64_t user_data)
{
    queue_operation(ring, DOMI_NET_OP_SEND_DATAGRAM, fd, user_data)->datagram = *datagram;
}

static void ring_queue_cancel(void *ring, int fd, uint64_t target, uint64_t user_data)
{
    queue_operation(ring, DOMI_NET_OP_CANCEL, fd, user_data)->target = target;
}

static void ring_return_buffer(void *ring_, uint16_t index, void *data, uint32_t size)
{
    domi_net_ring *ring = ring_;

    DOMI_CHECK(ring->given_tail - ring->free_head <= ring->buffer_mask);
    ring->buffers[index] = (domi_net_buffer){data, size};
    ring->free[ring->given_tail++ & ring->buffer_mask] = index;
}

static void ring_publish_buffers(void *ring_)
{
    domi_net_ring *ring = ring_;

    ring->free_tail = ring->given_tail;
}

static void ring_drop_operations(void *ring_, int fd)
{
    const domi_net_ring *ring = ring_;
    domi_net_socket *socket = domi_net_socket_find_by_descriptor(ring->net, fd);

    if (socket != NULL)
        domi_net_socket_drop_operations(socket);
}

/* --- enter and reap -------------------------------------------------------------------------- */

bool domi_net_would_waiting_enter_return(const void *ring_)
{
    const domi_net_ring *ring = ring_;

    return domi_completion_queue_count(&ring->queue) != 0 || ring->ready.head != NULL;
}

/* Show queued completions to the thread, as many as its completion queue may hold. */
static void show_completions_to_thread(domi_net_ring *ring)
{
    uint32_t count = domi_completion_queue_count(&ring->queue);

    ring->queue.shown = ring->queue.head + (count < ring->visible_max ? count : ring->visible_max);
}

void domi_net_ring_end_sleep(void *ring)
{
    domi_net_continue_ready_operations(ring);
    show_completions_to_thread(ring);
}

/* Let the network's time pass until an operation can complete or the time-out is over. Used only
 * if no test kit drives the network. */
static void let_time_pass_without_kit(domi_net_ring *ring, uint64_t timeout_ns)
{
    domi_net *net = ring->net;
    uint64_t until_ns =
        timeout_ns < UINT64_MAX - net->now_ns ? net->now_ns + timeout_ns : UINT64_MAX;

    while (!domi_net_would_waiting_enter_return(ring) && net->now_ns < until_ns) {
        uint64_t due_ns = domi_net_time_of_next_event(net);

        domi_net_advance_time(net, due_ns < until_ns ? due_ns : until_ns);
    }
}

/* Draw whether an enter fails. Returns the negative errno with which the kernel would refuse
 * operations: -EAGAIN, -ENOMEM, or -EBUSY, which asks for a reap; 0: it does not fail. */
static int draw_whether_enter_fails(domi_net_ring *ring)
{
    static const int errors[] = {-EAGAIN, -ENOMEM, -EBUSY};

    return domi_net_draw_whether_fault_happens(ring->net, ring->net->faults.refused_enters)
               ? errors[domi_random_below(&ring->net->random, 3)]
               : 0;
}

static int ring_enter_simulated(void *ring_, uint32_t min_complete, uint64_t timeout_ns)
{
    domi_net_ring *ring = ring_;
    int result = draw_whether_enter_fails(ring);

    if (result != 0)
        return result;
    show_completions_to_thread(ring);
    if (ring->queue.tail != ring->queue.shown)
        return -EBUSY; /* the completion queue is full, so the thread has to reap first */
    carry_out_queued_operations(ring);
    domi_net_continue_ready_operations(ring);
    if (ring->net->is_alone && min_complete != 0 &&
        domi_completion_queue_count(&ring->queue) == 0) {
        let_time_pass_without_kit(ring, timeout_ns);
        domi_net_continue_ready_operations(ring);
    }
    show_completions_to_thread(ring);
    return 0;
}

static int ring_submit_queued_operations(void *ring)
{
    return ring_enter_simulated(ring, 0, 0);
}

static uint32_t ring_reap_completions(void *ring_, domi_completion *completions, uint32_t max)
{
    return domi_completion_queue_reap(&((domi_net_ring *)ring_)->queue, completions, max);
}

static bool ring_has_completions(const void *ring_)
{
    const domi_net_ring *ring = ring_;

    return ring->queue.head != ring->queue.shown;
}

static bool ring_has_pending_work(void *ring_)
{
    const domi_net_ring *ring = ring_;

    return ring->entry_count != 0 || ring->queue.shown != ring->queue.tail ||
           ring->ready.head != NULL;
}

const domi_backend domi_backend_net = {
    .name = "simulated",
    .sockets = &domi_net_sockets,
    .is_simulated = true,
    .open = ring_open_simulated,
    .start = ring_start_simulated,
    .close = ring_close_simulated,
    .enter = ring_enter_simulated,
    .submit = ring_submit_queued_operations,
    .reap = ring_reap_completions,
    .ready = ring_has_completions,
    .pending = ring_has_pending_work,
    .accept = ring_queue_accept,
    .receive = ring_queue_receive,
    .poll = ring_queue_poll,
    .poll_once = ring_queue_poll_once,
    .send = ring_queue_send,
    .send_message = ring_queue_send_message,
    .receive_datagrams = ring_queue_receive_datagrams,
    .send_datagram = ring_queue_send_datagram,
    .cancel = ring_queue_cancel,
    .forget = ring_drop_operations,
    .give = ring_return_buffer,
    .publish = ring_publish_buffers,
};
