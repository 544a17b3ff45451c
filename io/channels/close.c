/* Begins to close a channel for one of the reasons in ends.h; state.c then moves the channel
 * through its states. */
#include "io/channels/ends.h"

#include "io/channels/due.h"
#include "io/channels/receive.h"
#include "io/channels/state.h"
#include "io/resources/socket.h"

#include <errno.h>
#include <sys/ioctl.h>

void domi_channel_begin_drain(domus_channel *channel)
{
    channel->drain = true;
    domi_channel_schedule_carrying_stage(channel);
    if (channel->special == NULL) /* a drain may lose datagrams that nobody has read yet */
        channel->drain_bytes =
            domi_socket_count_bytes_in_kernel(channel->io, channel->fd, FIONREAD);
    channel->served = channel->state != DOMI_CHANNEL_OPEN || channel->drain_bytes != 0 ||
                      channel->inbound.head != NULL || channel->outbound.head != NULL ||
                      channel->house->stacks != NULL || channel->conversations != 0 ||
                      channel->asks != 0 || channel->carried != 0 || channel->behind;
}

/* True if no request of the channel's peer is under way, and the peer has no ask to answer. A
 * channel that closes only because it is too old waits for a message under way, too, but only for
 * shutdown.drainTimeout, and for no conversation but those that on_read began. */
static bool has_nothing_to_answer(const domus_channel *channel)
{
    const domi_io *io = channel->io;

    if (channel->carried != 0)
        return false;
    if (!channel->aged || io->draining)
        return channel->house->stacks == NULL && channel->conversations == 0 && channel->asks == 0;
    return channel->conversations == 0 && channel->asks == 0 &&
           (channel->answered_bytes == channel->received_bytes ||
            io->manager->now_ns >=
                domi_channel_get_end_of_age(channel) + io->config->shutdown.drain_timeout_ns);
}

/* True if nothing of the channel has been under way since the drain began. */
static bool has_been_idle_in_drain(const domus_channel *channel)
{
    return !channel->served && channel->outbound.head == NULL &&
           !domi_channel_has_unacknowledged_bytes(channel);
}

/* True if no byte came or went on the channel for channel.linger. A peer in the middle of a
 * dialogue may send at this moment, and a close at once would answer with a reset, which throws
 * away what the peer has acknowledged and not read yet. */
static bool has_been_quiet_for_linger(const domus_channel *channel)
{
    return channel->io->manager->now_ns - channel->active_ns >= channel->settings->linger_ns;
}

void domi_channel_count_result_of_drain(const domus_channel *channel)
{
    domi_io_counters *counters = &channel->io->counters;

    if (!channel->io->draining || !channel->drain)
        return;
    if (channel->cut)
        domi_counter_add(&counters->drained_cut, 1);
    else if (channel->idle)
        domi_counter_add(&counters->drained_idle, 1);
    else if (channel->error == 0)
        domi_counter_add(&counters->drained_answered, 1);
}

/* Find out whether the drain of a channel waits for the rest of a body of the peer. */
static bool is_rest_of_body_awaited(domus_channel *channel)
{
    return channel->io->draining && channel->pipe != NULL &&
           channel->io->pipe_ways->await_body(channel);
}

/* Stop reading a draining channel if the bytes that had come when the drain began are read, but not
 * yet answered. Otherwise a peer that goes on sending would always have requests under way, until
 * the time of the drain is over and its channel is cut. An awaited body is read on. A behaviour
 * without a pipeline may need more bytes before it answers, so its channel goes on reading; so does
 * a channel that carries inner ones, whose peer tells how much it takes of each. */
static void stop_reading_if_all_is_read(domus_channel *channel, bool is_awaited)
{
    if (!channel->io->draining || channel->pipe == NULL || channel->drain_bytes != 0 ||
        channel->sated != is_awaited || channel->carried != 0)
        return;
    channel->sated = !is_awaited;
    domi_channel_decide_receive_by_slow_path(channel);
    domi_channel_take_due_steps(channel);
}

void domi_channel_close_if_drained(domus_channel *channel)
{
    if (!channel->drain || channel->state != DOMI_CHANNEL_OPEN ||
        (!channel->opened && channel->proxy == NULL))
        return;
    bool is_awaited = is_rest_of_body_awaited(channel);
    if (channel->inbound.head != NULL || channel->behind ||
        (channel->drain_bytes != 0 && !channel->ended) || !has_nothing_to_answer(channel) ||
        is_awaited) {
        channel->served = true;
        stop_reading_if_all_is_read(channel, is_awaited);
        return;
    }
    if (channel->relays && channel->io->draining && !has_been_quiet_for_linger(channel)) {
        channel->served = true;
        return;
    }
    channel->idle = channel->io->draining && has_been_idle_in_drain(channel);
    if (channel->idle && has_been_quiet_for_linger(channel) && !channel->says_end) {
        domi_channel_end_at_once(channel, 0, false);
        return;
    }
    if (channel->aged && !channel->io->draining)
        domi_counter_add(&channel->io->counters.channels_aged, 1);
    (void)domi_channel_close(channel);
}

void domi_channel_end_drain_if_not_too_old(domus_channel *channel)
{
    if (!channel->aged || channel->io->draining ||
        channel->io->manager->now_ns >= domi_channel_get_end_of_age(channel))
        return;
    channel->aged = false;
    channel->drain = false;
}

void domi_channel_end_on_failed_ring(domus_channel *channel, int error)
{
    if (channel->state == DOMI_CHANNEL_CLOSED)
        return;
    if (channel->state < DOMI_CHANNEL_CLOSING)
        domi_channel_count_as_cut(channel, 0);
    if (channel->fd >= 0)
        domi_socket_disconnect(channel->io, channel->fd);
    channel->receiving = channel->cancelling = channel->sending = false;
    channel->cancels = 0;
    if (channel->state == DOMI_CHANNEL_CLOSING)
        channel->abort = true;
    domi_channel_end_at_once(channel, error, true);
}

void domi_channel_count_refused_once(domus_channel *channel)
{
    if (!channel->refused)
        domi_counter_add(&channel->io->counters.channels_refused, 1);
    channel->refused = true;
}

void domi_channel_reset_after_error(domus_channel *channel, int error)
{
    /* Only the channel is reset, and its actor does not fail: if it failed, any peer that can send
     * bytes could have the parent of the actor restarted and could fill the log. */
    if (channel->state < DOMI_CHANNEL_CLOSING)
        domi_channel_count_refused_once(channel);
    domi_channel_end_at_once(channel, error, true);
}
