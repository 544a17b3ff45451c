/* Serves all time-outs of a channel by one timer, which fires at the earliest of them.
 *
 * The timer is not moved when bytes come or go. When it fires, domi_channel_check_all_timeouts()
 * checks whether a time-out is really over, and arms the timer again if not. So time-outs cost no
 * work for each message. In LINGERING the timer ends the peer's time to close (state.c). */
#include "io/channels/due.h"

#include "house/message/house.h"
#include "io/channels/ends.h"
#include "io/channels/ready.h"
#include "io/channels/receive.h"
#include "io/channels/state.h"
#include "io/resources/socket.h"

#include <domus/inner.h>

#include <errno.h>
#include <sys/ioctl.h>

/* time for the header of a proxy if channel.firstByteTimeout is 0, in nanoseconds */
#define PROXY_TIMEOUT_NS UINT64_C(10000000000)
/* time between two checks of a channel that is too old, or whose peer is late while this side does
 * not read, in nanoseconds */
#define LOOK_NS UINT64_C(100000000)

/* Returns the earlier of the times `next_ns` and `since_ns + timeout_ns`. A time-out of 0 is never
 * due. */
static uint64_t get_earlier_deadline(uint64_t next_ns, uint64_t since_ns, uint64_t timeout_ns)
{
    uint64_t due_ns = since_ns + timeout_ns;

    return timeout_ns != 0 && due_ns < next_ns ? due_ns : next_ns;
}

/* True if the channel waits for the first byte of the peer. It does not if the actor has closed the
 * channel, or if the peer has finished sending. */
static bool is_first_byte_awaited(const domus_channel *channel)
{
    return channel->silent_ns != 0 && !channel->ended && channel->state == DOMI_CHANNEL_OPEN;
}

/* Returns the time of the next check of the channel's age. Once the channel is too old, each check
 * finds out whether its last message is over. */
static uint64_t get_next_age_check_ns(const domus_channel *channel)
{
    return channel->aged ? channel->io->manager->now_ns + LOOK_NS
                         : domi_channel_get_end_of_age(channel);
}

/* Returns the time that the channel's peer has for its first byte, or a proxy for its whole header,
 * in nanoseconds; 0: no bound. */
static uint64_t get_first_byte_timeout_ns(const domus_channel *channel)
{
    uint64_t timeout_ns = channel->settings->first_byte_timeout_ns;

    return timeout_ns == 0 && channel->proxy != NULL ? PROXY_TIMEOUT_NS : timeout_ns;
}

/* True if the inner channel was declared to be resting by its stage, and its actor has nothing to
 * do, either. */
static bool is_inner_channel_resting(const domus_channel *channel)
{
    return channel->rests && channel->house->stacks == NULL;
}

/* Returns the time that the channel may be idle, in nanoseconds; 0: no bound. */
static uint64_t get_idle_timeout_ns(const domus_channel *channel)
{
    uint64_t timeout_ns = channel->settings->idle_timeout_ns;

    return is_inner_channel_resting(channel) &&
                   (timeout_ns == 0 || timeout_ns > DOMUS_INNER_REST_NS)
               ? DOMUS_INNER_REST_NS
               : timeout_ns;
}

/* Returns the time at which the first time-out of the channel is due; UINT64_MAX: none is set. */
static uint64_t get_next_timeout_ns(const domus_channel *channel)
{
    const domi_channel_settings *settings = channel->settings;
    uint64_t next_ns = UINT64_MAX;

    if (channel->state <= DOMI_CHANNEL_FLUSHING)
        next_ns = get_earlier_deadline(next_ns, channel->active_ns, get_idle_timeout_ns(channel));
    if (is_first_byte_awaited(channel))
        next_ns =
            get_earlier_deadline(next_ns, channel->silent_ns, get_first_byte_timeout_ns(channel));
    if (channel->ask_due_ns != 0 && channel->state == DOMI_CHANNEL_OPEN)
        next_ns = get_earlier_deadline(next_ns, 0, channel->ask_due_ns);
    if (channel->look_ns != 0 && channel->state == DOMI_CHANNEL_OPEN)
        next_ns = get_earlier_deadline(next_ns, 0, channel->look_ns);
    if (channel->wake_ns != 0 && channel->state == DOMI_CHANNEL_OPEN)
        next_ns = get_earlier_deadline(next_ns, 0, channel->wake_ns);
    if (channel->message_due_ns != 0 && channel->state == DOMI_CHANNEL_OPEN)
        next_ns = get_earlier_deadline(next_ns, 0, channel->message_due_ns);
    if (channel->kept_ns != 0 && channel->state == DOMI_CHANNEL_OPEN)
        next_ns = get_earlier_deadline(next_ns, 0, channel->kept_ns);
    if (channel->sending)
        next_ns = get_earlier_deadline(next_ns, channel->send_ns, settings->send_timeout_ns);
    if (domi_channel_has_minimum_rate(channel))
        next_ns = get_earlier_deadline(next_ns, channel->rate.begun_ns, settings->rate_grace_ns);
    if (domi_channel_has_maximum_age(channel))
        next_ns = get_earlier_deadline(next_ns, 0, get_next_age_check_ns(channel));
    return next_ns;
}

void domi_channel_arm_timeouts(domus_channel *channel)
{
    domi_channel_set_timer(channel, get_next_timeout_ns(channel));
}

void domi_channel_set_timer_no_later(domus_channel *channel, uint64_t due_ns)
{
    if (due_ns != 0 &&
        (!domi_wheel_is_armed(&channel->timer.node) || channel->timer.node.expires_ns > due_ns))
        domi_channel_arm_timeouts(channel);
}

/* True if bytes of the peer wait for this side to read them, in the channel for its actor, or in
 * the socket because the thread had no buffer. False for a peer that takes no answers
 * (`blocked`). */
static bool has_unread_bytes(const domus_channel *channel)
{
    if (channel->state != DOMI_CHANNEL_OPEN ||
        (channel->blocked && !channel->halted && !channel->busy))
        return false;
    return channel->inbound.head != NULL ||
           domi_socket_count_bytes_in_kernel(channel->io, channel->fd, FIONREAD) != 0;
}

/* True if an open channel of datagrams has waited too long for room in the kernel. Its datagrams
 * are thrown away then, and the channel goes on. */
static bool have_datagrams_waited_too_long(const domus_channel *channel, uint64_t now_ns)
{
    return domi_channel_is_of_datagrams(channel) && channel->state == DOMI_CHANNEL_OPEN &&
           channel->sending &&
           get_earlier_deadline(UINT64_MAX, channel->send_ns, channel->settings->send_timeout_ns) <=
               now_ns;
}

static bool is_channel_too_old(const domus_channel *channel)
{
    return domi_channel_has_maximum_age(channel) &&
           channel->io->manager->now_ns >= domi_channel_get_end_of_age(channel);
}

/* Close a channel that is too old in the way of a drain, once it has answered everything. Returns
 * whether it is closed or being closed; then the timer is set for the next step. */
static bool close_too_old_channel(domus_channel *channel)
{
    if (!channel->aged && !channel->drain)
        domi_channel_begin_drain(channel);
    channel->aged = true;
    domi_channel_close_if_drained(channel);
    if (channel->state == DOMI_CHANNEL_FLUSHING)
        domi_channel_arm_timeouts(channel);
    return channel->state != DOMI_CHANNEL_OPEN;
}

/* Call the message stage of an open channel, if the time that the stage has set has come. Returns
 * whether the channel is still open. `is_unread` says that this side has not read all bytes of the
 * peer. */
static bool wake_message_stage_if_due(domus_channel *channel, bool is_unread)
{
    if (channel->state != DOMI_CHANNEL_OPEN)
        return true;
    if (channel->wake_ns == 0 || channel->wake_ns > channel->io->manager->now_ns)
        return true;
    channel->wake_ns = 0;
    int error = channel->io->pipe_ways->wake(channel, is_unread || channel->queued_bytes != 0);
    if (error != 0) {
        domi_channel_count_as_cut(channel, 0);
        domi_channel_end_at_once(channel, error, true);
    }
    return channel->state == DOMI_CHANNEL_OPEN;
}

/* Cancel the asks that are kept for a peer that has finished sending, if the time for that has
 * come; if the peer has reset the connection meanwhile, end the channel instead. Returns whether
 * the channel is still open; otherwise its time-outs need nothing more. */
static bool cancel_kept_asks_if_due(domus_channel *channel)
{
    if (channel->state != DOMI_CHANNEL_OPEN)
        return true;
    if (channel->kept_ns == 0 || channel->kept_ns > channel->io->manager->now_ns)
        return true;
    int error = channel->fd >= 0 ? domi_socket_take_error(channel->io, channel->fd) : 0;
    if (error != 0) { /* no bytes count as cut, because the peer has reset the connection */
        domi_channel_end_at_once(channel, error, false);
        return false;
    }
    domi_channel_cancel_kept_asks(channel);
    if (channel->state == DOMI_CHANNEL_FLUSHING)
        domi_channel_arm_timeouts(channel);
    return channel->state == DOMI_CHANNEL_OPEN;
}

/* True if the time that the peer has for the rest of a message is over, and this side has read all
 * that has come. */
static bool is_message_late(domus_channel *channel, bool is_read)
{
    uint64_t now_ns = channel->io->manager->now_ns;

    if (channel->message_due_ns == 0 || channel->message_due_ns > now_ns ||
        channel->state != DOMI_CHANNEL_OPEN)
        return false;
    if (is_read && channel->receiving && !channel->cancelling && !channel->paused)
        return channel->io->pipe_ways->is_late(channel);
    domi_channel_add_unread_time(channel);
    if (channel->message_due_ns <= now_ns)
        channel->message_due_ns = now_ns + LOOK_NS;
    return false;
}

/* Answer a peer whose time for a message that it has begun is over: the pipeline writes an answer
 * and ends the channel. Returns whether it does; then the timer is set for the next step. */
static bool answer_peer_of_late_message(domus_channel *channel)
{
    if (channel->pipe == NULL || channel->state != DOMI_CHANNEL_OPEN ||
        !channel->io->pipe_ways->answer_late(channel))
        return false;
    channel->message_due_ns = 0;
    /* from now on the idle time bounds the owed answers */
    channel->active_ns = channel->io->manager->now_ns;
    if (channel->state <= DOMI_CHANNEL_FLUSHING)
        domi_channel_arm_timeouts(channel);
    return true;
}

/* End a channel whose peer was too slow to send a message. */
static void end_slow_channel(domus_channel *channel)
{
    domi_counter_add(&channel->io->counters.channels_slow, 1);
    if (answer_peer_of_late_message(channel))
        return;
    domi_channel_count_as_cut(channel, 0);
    domi_channel_end_at_once(channel, -ETIMEDOUT, channel->sending);
}

/* True if the channel has been idle for too long, no send has taken longer than allowed, and no
 * answer of the peer has a time (`ask_due_ns`). */
static bool is_channel_idle(const domus_channel *channel, uint64_t now_ns)
{
    const domi_channel_settings *settings = channel->settings;

    if (channel->sending &&
        get_earlier_deadline(UINT64_MAX, channel->send_ns, settings->send_timeout_ns) <= now_ns)
        return false;
    return channel->ask_due_ns == 0 && get_earlier_deadline(UINT64_MAX, channel->active_ns,
                                                            get_idle_timeout_ns(channel)) <= now_ns;
}

void domi_channel_check_all_timeouts(domus_channel *channel)
{
    uint64_t now_ns = channel->io->manager->now_ns;

    if (channel->state == DOMI_CHANNEL_LINGERING) {
        if (channel->io->draining && domi_channel_has_unacknowledged_bytes(channel)) {
            domi_channel_set_timer(channel, now_ns + channel->settings->linger_ns);
            return;
        }
        domi_channel_count_as_cut(channel, 0);
        domi_channel_end_at_once(channel, 0, false);
        return;
    }
    bool is_unread = has_unread_bytes(channel);
    bool is_crowded =
        !channel->ended && (channel->crowded || (channel->paused && channel->io->pressure.spares));
    bool is_asked =
        (channel->bounds && channel->asks != 0) || (channel->lends && channel->carried != 0);
    if (is_crowded || is_unread || is_asked)
        /* a channel that this side does not read is not idle, and one whose peer works on an ask is
         * not, either */
        channel->active_ns = now_ns;
    if (channel->silent_ns != 0 && (is_unread || !channel->receiving || channel->cancelling))
        /* while this side did not read, the peer's first byte may have come unseen */
        channel->silent_ns = now_ns;
    if (is_channel_too_old(channel) && close_too_old_channel(channel))
        return;
    bool is_read = !is_crowded && !is_unread;
    if (domi_channel_is_peer_too_slow(channel, is_read) || is_message_late(channel, is_read)) {
        end_slow_channel(channel);
        return;
    }
    if (channel->look_ns != 0 && channel->look_ns <= now_ns) {
        channel->look_ns = 0;
        domi_channel_make_actor_ready(channel); /* the channel's run checks its time-outs, and sets
                                             the time of the next check */
    }
    if (!wake_message_stage_if_due(channel, is_unread || is_crowded))
        return;
    if (!cancel_kept_asks_if_due(channel))
        return;
    uint64_t next_ns = get_next_timeout_ns(channel);
    if (next_ns > now_ns) {
        domi_channel_set_timer(channel, next_ns);
        return;
    }
    if (have_datagrams_waited_too_long(channel, now_ns)) {
        domi_channel_get_special_functions(channel)->be_late(channel);
        domi_channel_arm_timeouts(channel);
        return;
    }
    if (is_inner_channel_resting(channel) && is_channel_idle(channel, now_ns)) {
        domi_channel_end_at_once(channel, 0, false);
        return;
    }
    if (is_channel_idle(channel, now_ns) && answer_peer_of_late_message(channel))
        return;
    if (is_first_byte_awaited(channel) &&
        get_earlier_deadline(UINT64_MAX, channel->silent_ns, get_first_byte_timeout_ns(channel)) <=
            now_ns)
        domi_counter_add(&channel->io->counters.channels_silent, 1);
    domi_channel_count_as_cut(channel, 0);
    domi_channel_end_at_once(channel, -ETIMEDOUT, channel->sending || channel->asks != 0);
}
