/* Closes listeners. Connections in the backlog come first (backlog.c), and one call takes a bounded
 * number of them, so a stop may take several iterations. */
#include "io/acceptors/acceptors.h"

#include "base/memory.h"
#include "house/message/mailbox.h"
#include "io/resources/socket.h"

#include <errno.h>
#include <sys/socket.h>

/* wait until the next step of closing a listener when descriptors have run out, in nanoseconds */
#define NO_DESCRIPTOR_NS UINT64_C(10000000)

/* Release: a thread that sees that no listener is open (is_quiet()) also sees the connections that
 * were handed over before. */
void domi_io_count_open_listener(domi_io *io, uint64_t by)
{
    atomic_store_explicit(&io->counters.listeners_open,
                          domi_counter_read(&io->counters.listeners_open) + by,
                          memory_order_release);
}

void domi_acceptor_handle_late_connection(domi_acceptor *acceptor, int fd)
{
    domi_connection arrival = {.fd = fd};

    if (domi_acceptor_check_proxy_source(acceptor, &arrival))
        domi_acceptor_refuse_connection(acceptor, fd);
    else if (acceptor->serves_rest)
        domi_arrival_hand_to_target(acceptor, &arrival);
    else
        domi_arrival_turn_away(acceptor, &arrival);
}

void domi_acceptor_close_listener(domi_acceptor *acceptor)
{
    while (acceptor->waiting_count != 0)
        domi_arrival_turn_away(acceptor, &acceptor->waiting[--acceptor->waiting_count]);
    domi_memory_free(acceptor->waiting);
    acceptor->waiting = NULL;
    acceptor->waiting_capacity = 0;
    if (acceptor->fd < 0)
        return;
    domi_backlog_count_as_turned_away(acceptor);
    domi_socket_close_used_in_ring(acceptor->io, acceptor->fd);
    acceptor->fd = -1;
    domi_io_count_open_listener(acceptor->io, UINT64_MAX);
}

/* Arm the acceptor's timer for the next step of closing after `delay_ns`. */
static void schedule_next_close_step(domi_acceptor *acceptor, uint64_t delay_ns)
{
    domi_io *io = acceptor->io;

    domi_wheel_arm_node(&io->wheel, &acceptor->timer.node, io->manager->now_ns + delay_ns);
}

/* Accept waiting connections, then close the listener, once no operation is in flight. A peer that
 * connects afterwards is refused, and does not wait for the end of a drain. One call accepts a
 * bounded number, and the next iteration goes on. In a drain without free descriptors this is tried
 * again later, because channels that end give theirs back. */
static void accept_waiting_then_close_listener(domi_acceptor *acceptor)
{
    domi_io *io = acceptor->io;

    if (acceptor->armed || acceptor->cancelling)
        return;
    /* the last accept may have armed the acceptor's timer for a pause, which is not needed now */
    domi_wheel_disarm_node(&io->wheel, &acceptor->timer.node);
    int result = acceptor->fd >= 0
                     ? domi_backlog_accept_waiting(acceptor, domi_acceptor_handle_late_connection)
                     : 0;
    if (result == -EAGAIN)
        schedule_next_close_step(acceptor, DOMI_WHEEL_TICK_NS);
    else if (result != 0 && io->draining)
        schedule_next_close_step(acceptor, NO_DESCRIPTOR_NS);
    else
        domi_acceptor_close_listener(acceptor);
}

static void begin_acceptor_stop(domi_acceptor *acceptor, bool serves_rest)
{
    acceptor->stopping = true;
    acceptor->serves_rest = serves_rest;
    domi_wheel_disarm_node(&acceptor->io->wheel, &acceptor->timer.node);
    domi_acceptor_cancel_accept(acceptor);
}

uint32_t domi_acceptor_begin_stop(domi_acceptor *acceptor)
{
    begin_acceptor_stop(acceptor, false);
    if (acceptor->armed || acceptor->cancelling)
        return 1;
    /* If the thread has ended, no later step comes: domi_acceptor_close_listener() counts what is
     * left in the backlog as turned away. */
    if (acceptor->fd >= 0 &&
        domi_backlog_accept_waiting(acceptor, domi_acceptor_handle_late_connection) == -EAGAIN &&
        !acceptor->io->manager->ending.has_stopped) {
        schedule_next_close_step(acceptor, DOMI_WHEEL_TICK_NS);
        return 1;
    }
    domi_acceptor_close_listener(acceptor);
    return 0;
}

void domi_acceptor_begin_drain(domi_acceptor *acceptor)
{
    if (acceptor->fd < 0)
        return;
    begin_acceptor_stop(acceptor, true);
    for (uint32_t i = 0; i < acceptor->waiting_count; i++)
        domi_arrival_hand_to_target(acceptor, &acceptor->waiting[i]);
    acceptor->waiting_count = 0;
    domi_backlog_set_to_zero(acceptor);
    accept_waiting_then_close_listener(acceptor);
}

void domi_acceptor_abort_drain(domi_acceptor *acceptor)
{
    if (acceptor->fd < 0)
        return;
    begin_acceptor_stop(acceptor, false);
    accept_waiting_then_close_listener(acceptor);
}

void domi_acceptor_stop_after_ring_failure(domi_acceptor *acceptor)
{
    if (acceptor->fd >= 0 && !acceptor->is_shared)
        domi_socket_shutdown(acceptor->io, acceptor->fd, SHUT_RDWR);
    acceptor->armed = acceptor->cancelling = false;
    domi_acceptor_abort_drain(acceptor);
}

void domi_acceptor_continue_stop(domi_acceptor *acceptor)
{
    accept_waiting_then_close_listener(acceptor);
    if (acceptor->fd < 0 && acceptor->house->state == DOMI_WAITING)
        domi_house_make_ready(acceptor->io->manager, acceptor->house);
}
