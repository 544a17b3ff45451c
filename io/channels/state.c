/* This file moves a channel from state to state, and is the only one that writes `state`. Each
 * arrow has a letter, and the list below names the function that makes the move.
 *
 *          | A
 *          v      B                C
 *        OPEN ------> FLUSHING ------> LINGERING
 *          |             |                 |
 *          | D           | D, E            | D, F
 *          v             v                 v
 *        CLOSING <-------+-----------------+
 *          |
 *          | G
 *          v
 *        CLOSED
 *
 *   A  domi_channel_adopt_connection (table.c): the channel begins
 *   B  domi_channel_close
 *   C  take_next_step_of_flushing_channel: FIN is sent
 *   D  domi_channel_end_at_once
 *   E  take_next_step_of_flushing_channel, if the peer had finished sending
 *   F  domi_channel_take_due_steps, if the peer has finished sending
 *   G  take_next_step_of_closing_channel: close(2); then come on_close and domi_channel_free
 * (table.c)
 *
 * In each state this is true; channel_check.c checks it whenever a channel has settled.
 *
 *   OPEN       The actor reads and writes. Once on_open was called, a receive is in flight whenever
 *              one is wanted (receive.c).
 *   FLUSHING   The actor has closed the channel: `inbound` is empty, and bytes that arrive are
 *              thrown away. The queued bytes are being sent.
 *   LINGERING  Everything was sent, and FIN behind it: `outbound` is empty and no send is in
 *              flight. The channel still reads, because a close with bytes unread would send a
 *              reset. Its timer fires when it has waited long enough for the FIN of the peer.
 *   CLOSING    `error` and `abort` are set, and `inbound` is empty. Nothing new is asked of the
 *              ring but one cancel of everything; `outbound` stays only for a send in flight.
 *   CLOSED     The descriptor is closed, the timer is off, and the channel is in no list but those
 *              of its actor. Only its on_close is due.
 *
 * One operation of each kind is in flight at most (M13). The descriptor is closed only when nothing
 * is in flight, so its number cannot be reused while a completion may still come. The generation of
 * the slot changes with it all the same, and is compared with that of every completion. */
#include "io/channels/state.h"

#include "base/check.h"
#include "house/message/stop.h"
#include "io/channels/crowd.h"
#include "io/channels/ends.h"
#include "io/channels/flush.h"
#include "io/channels/ready.h"
#include "io/channels/receive.h"
#include "io/channels/send.h"
#include "io/resources/socket.h"

#include <errno.h>
#include <sys/socket.h>

static const uint8_t moves[DOMI_CHANNEL_STATES] = {
    [DOMI_CHANNEL_OPEN] = 1u << DOMI_CHANNEL_FLUSHING | 1u << DOMI_CHANNEL_CLOSING,
    [DOMI_CHANNEL_FLUSHING] = 1u << DOMI_CHANNEL_LINGERING | 1u << DOMI_CHANNEL_CLOSING,
    [DOMI_CHANNEL_LINGERING] = 1u << DOMI_CHANNEL_CLOSING,
    [DOMI_CHANNEL_CLOSING] = 1u << DOMI_CHANNEL_CLOSED,
};

static void move_channel_to_state(domus_channel *channel, domi_channel_state to)
{
    DOMI_CHECK((moves[channel->state] >> to & 1) != 0);
    domi_channel_leave_crowded_list(channel);
    channel->state = (uint8_t)to;
}

static void begin_closing_channel(domus_channel *channel, int error, bool abort)
{
    if (channel->state >= DOMI_CHANNEL_CLOSING)
        return;
    channel->error = error;
    channel->abort = abort || channel->streams != 0;
    move_channel_to_state(channel, DOMI_CHANNEL_CLOSING);
    domi_channel_drop_inbound_bytes(channel);
    /* While a send is in flight, the kernel reads the queued buffers. They are dropped when the
     * send ends. */
    if (!channel->sending)
        domi_channel_drop_unsent_bytes(channel);
    domi_flush_fail_all_waits(channel, error);
}

/* Send FIN, once, when everything that was queued in the channel before it is sent. */
static void send_fin(domus_channel *channel)
{
    if (channel->fin_sent)
        return;
    channel->fin_sent = true;
    if (DOMI_UNLIKELY(domi_channel_is_inner(channel))) {
        domi_channel_get_special_functions(channel)->finish(channel);
        return;
    }
    domi_socket_shutdown(channel->io, channel->fd, SHUT_WR);
}

static bool has_sent_all_bytes(const domus_channel *channel)
{
    return !channel->sending && channel->outbound.head == NULL;
}

static void take_next_step_of_flushing_channel(domus_channel *channel)
{
    if (!has_sent_all_bytes(channel))
        return;
    if (channel->broken) {
        begin_closing_channel(channel, channel->error, true);
        return;
    }
    /* If the peer has finished sending, its FIN need not be waited for, except in a drain: then the
     * channel stays open until the peer has acknowledged everything. Datagrams have no end, and the
     * end of an inner channel reaches its outer one at once. */
    if (channel->special != NULL || (channel->ended && !channel->io->draining)) {
        begin_closing_channel(channel, 0, false);
        return;
    }
    /* Send FIN and wait for the peer's FIN. To close the socket while bytes are unread would send a
     * reset, which can overtake the bytes that were sent. */
    send_fin(channel);
    move_channel_to_state(channel, DOMI_CHANNEL_LINGERING);
    domi_channel_set_timer(channel, channel->io->manager->now_ns + channel->settings->linger_ns);
}

/* Cancel all operations of the channel in flight, each by its number, by which the kernel finds it
 * at once. A cancel by descriptor would walk over all operations of the ring, so thousands of
 * channels that close at the same time would hold up the thread. */
static void cancel_all_operations_of_channel(domus_channel *channel)
{
    if (channel->cancelled_all)
        return;
    channel->cancelled_all = true;
    if (!channel->abort && channel->special == NULL)
        domi_socket_shutdown(channel->io, channel->fd, SHUT_RDWR);
    domi_channel_end_receive(channel);
    if (domi_channel_is_inner(channel))
        /* bytes of an inner channel that wait for the outer one are dropped */
        channel->sending = false;
    if (!channel->sending)
        return;
    channel->cancels++;
    /* sends of datagrams do not wait, but their poll for room does, and is cancelled */
    channel->io->backend->cancel(
        channel->io->ring, channel->fd,
        domi_op_user_data(channel->special == NULL ? DOMI_OP_SEND : DOMI_OP_ROOM,
                          channel->slot_generation, channel->slot),
        domi_op_user_data(DOMI_OP_CANCEL, channel->slot_generation, channel->slot));
}

static void take_next_step_of_closing_channel(domus_channel *channel)
{
    if (channel->receiving || channel->sending)
        cancel_all_operations_of_channel(channel);
    if (channel->receiving || channel->sending)
        return;
    /* While the channel is in io->dirty or io->carriers, it is not closed yet:
     * domi_io_resume_reads_and_queue_sends() takes it out of these lists and settles it again. */
    if (channel->cancels != 0 || channel->dirty || channel->carry_due)
        return;
    domi_channel_leave_queue_for_buffer(channel);
    if (channel->abort && channel->fd >= 0)
        domi_socket_abort_at_close(channel->io, channel->fd);
    domi_channel_drop_unsent_bytes(channel);
    bool has_descriptor = channel->fd >= 0;
    if (channel->special != NULL)
        domi_channel_get_special_functions(channel)->note_end(channel);
    domi_channel_set_timer(channel, UINT64_MAX);
    if (has_descriptor)
        domi_socket_close_used_in_ring(channel->io, channel->fd);
    channel->fd = -1;
    move_channel_to_state(channel, DOMI_CHANNEL_CLOSED);
    channel->house->marks |= DOMI_MARK_GONE; /* on_close waits for no conversation from now on */
    /* an actor that waits for the header of a proxy was never mounted, and is not called */
    if (channel->proxy != NULL)
        (void)domi_house_ask_to_stop(channel->io->manager, domi_house_get_address(channel->house));
    domi_channel_make_actor_ready(channel);
}

void domi_channel_take_steps_of_state(domus_channel *channel)
{
    if (channel->state == DOMI_CHANNEL_OPEN && channel->finished && has_sent_all_bytes(channel))
        send_fin(channel);
    if (channel->state == DOMI_CHANNEL_FLUSHING)
        take_next_step_of_flushing_channel(channel);
    if (channel->state == DOMI_CHANNEL_LINGERING && channel->ended &&
        !(channel->io->draining && domi_channel_has_unacknowledged_bytes(channel)))
        begin_closing_channel(channel, 0, false);
    if (channel->state == DOMI_CHANNEL_CLOSING)
        take_next_step_of_closing_channel(channel);
    else if (!channel->receiving)
        domi_channel_arm_receive(channel);
}

/* Let the stages of the channel write what ends their output, unless they have done so (`finished`)
 * or the channel will be reset. Returns 0; otherwise the error with which the caller resets the
 * channel. */
static int let_stages_end_output_unless_reset(domus_channel *channel)
{
    if (channel->pipe == NULL || channel->broken || channel->finished)
        return 0;
    return channel->io->pipe_ways->end_output(channel);
}

int domi_channel_reset_when_sent(domus_channel *channel, int error)
{
    if (channel->state != DOMI_CHANNEL_OPEN)
        return -EALREADY;
    channel->broken = true;
    channel->error = error;
    /* the stage that carries an inner channel hears of the reset at once, before the bytes are
     * sent */
    if (domi_channel_is_inner(channel))
        domi_channel_get_special_functions(channel)->note_used(channel);
    return domi_channel_close(channel);
}

int domi_channel_finish(domus_channel *channel)
{
    if (domi_channel_is_of_datagrams(channel))
        return -EOPNOTSUPP;
    if (channel->state != DOMI_CHANNEL_OPEN || channel->finished)
        return -EALREADY;
    if (channel->streams != 0 && !channel->tunnels)
        return -EBUSY; /* a FIN now would make the peer take a part of a body for the whole */
    int error = let_stages_end_output_unless_reset(channel);
    if (error != 0) {
        domi_channel_end_at_once(channel, error, true);
        return error;
    }
    channel->finished = true;
    domi_channel_take_due_steps(channel);
    return 0;
}

int domi_channel_close(domus_channel *channel)
{
    if (channel->state != DOMI_CHANNEL_OPEN)
        return -EALREADY;
    /* a FIN now would make the peer take a part of a body for the whole */
    if (channel->streams != 0 && !channel->broken) {
        channel->broken = true;
        channel->error = -EPIPE;
    }
    int error = let_stages_end_output_unless_reset(channel);
    if (error != 0) {
        domi_channel_end_at_once(channel, error, true);
        return 0;
    }
    move_channel_to_state(channel, DOMI_CHANNEL_FLUSHING);
    domi_counter_add(&channel->io->counters.discarded_bytes,
                     domi_channel_count_inbound_bytes(channel));
    domi_channel_drop_inbound_bytes(channel);
    if (channel->pipe != NULL)
        /* the channel's actor has to fail asks that the peer will not answer */
        domi_channel_make_actor_ready(channel);
    domi_channel_take_due_steps(channel);
    return 0;
}

void domi_channel_end_at_once(domus_channel *channel, int error, bool abort)
{
    begin_closing_channel(channel, error, abort);
    domi_channel_take_due_steps(channel);
}
