/* The times within which a channel has to do something: its time-outs, the rate at which its peer
 * has to send, and its age. Owner thread. */
#ifndef DOMI_IO_CHANNELS_DUE_H
#define DOMI_IO_CHANNELS_DUE_H

#include "io/channels/channel.h"

/* ---- timeouts.c -------------------------------------------------------------------------------*/

/* The time-outs of a channel: for its idle time, for the first byte of the peer, for a message that
 * takes too long to come, and for a send that takes too long. Owner thread. */

/* Arm the timer of a new channel for the first of its time-outs. */
void domi_channel_arm_timeouts(domus_channel *channel);

/* Make sure that the timer of the channel fires at `due_ns` or earlier; a `due_ns` of 0 changes
 * nothing. */
void domi_channel_set_timer_no_later(domus_channel *channel, uint64_t due_ns);

/* Handle the timer of the channel, which has fired: check each time-out, and act on those that are
 * over. */
void domi_channel_check_all_timeouts(domus_channel *channel);

/* ---- rate.c -----------------------------------------------------------------------------------*/

/* The speed at which the peer of a channel sends, and the age that the channel may reach.
 *
 * The library sees bytes, no messages: a message is under way while `received_bytes` is more than
 * `answered_bytes`, which catches up when the actor writes, says that a message is done, or ends a
 * conversation that on_read began. So messages cost one store each. The timer of the channel
 * measures the rate, over spans of channel.minRateGrace one after the other; a span counts only if
 * the same message was under way from its start to its end, and this side was reading.
 *
 * Owner thread. */

/* True if the channel's peer has to send at a minimum rate. A peer to which this side has connected
 * need not, unless the channel has settings of its own: when such a peer has answered, this side
 * has to send next. A datagram is a whole message, so its peer need not, either. */
static inline bool domi_channel_has_minimum_rate(const domus_channel *channel)
{
    return channel->settings->rate_min_bytes != 0 && channel->state == DOMI_CHANNEL_OPEN &&
           !channel->ended && channel->special == NULL &&
           !(channel->is_outbound && channel->settings == &channel->io->settings);
}

/* True if the channel has to close at a certain age. A channel of datagrams has none, because it is
 * no connection. */
static inline bool domi_channel_has_maximum_age(const domus_channel *channel)
{
    return channel->settings->age_max_ns != 0 && channel->state == DOMI_CHANNEL_OPEN &&
           channel->special == NULL;
}

/* Record that this side does not read the channel, so that the present span of the rate's
 * measurement does not count. */
static inline void domi_channel_void_rate_measurement(domus_channel *channel)
{
    channel->rate.answered = UINT64_MAX;
}

/* If a span of the rate's measurement is over, judge it and begin the next one. `is_read` is false
 * if this side does not read now. Returns whether the peer was too slow. */
bool domi_channel_is_peer_too_slow(domus_channel *channel, bool is_read);

/* Returns the time at which the channel is too old: channel.maxAge after it was made, plus or minus
 * a part that differs from channel to channel; UINT64_MAX: never. */
uint64_t domi_channel_get_end_of_age(const domus_channel *channel);

#endif
