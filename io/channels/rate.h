/* How fast the peer of a channel sends, and how old the channel may become.
 *
 * The library sees bytes, no messages: a message is under way while `received_bytes` is more than
 * `answered_bytes`, which catches up when the actor writes, says that a message is done, or ends a
 * conversation that on_read began. So messages cost one store each. The rate is looked at by the
 * timer of the channel, over spans of channel.minRateGrace one after the other; a span counts only
 * if the same message was under way from its start to its end, and this side was reading.
 *
 * Owner thread. */
#ifndef DOMI_IO_CHANNELS_RATE_H
#define DOMI_IO_CHANNELS_RATE_H

#include "io/channels/channel.h"

/* True if the peer has to keep to a rate. A peer that this side has connected to need not, unless
 * the channel has settings of its own: when such a peer has answered, this side is to send next. A
 * datagram is a whole message. */
static inline bool domi_channel_has_rate(const domus_channel *channel)
{
    return channel->settings->rate_min_bytes != 0 && channel->state == DOMI_CHANNEL_OPEN &&
           !channel->ended && channel->special == NULL &&
           !(channel->is_outbound && channel->settings == &channel->io->settings);
}

/* True if the channel is to be closed at an age. A channel of datagrams is not a connection. */
static inline bool domi_channel_has_age(const domus_channel *channel)
{
    return channel->settings->age_max_ns != 0 && channel->state == DOMI_CHANNEL_OPEN &&
           channel->special == NULL;
}

/* Note that this side does not read, so that the present span does not count. */
static inline void domi_channel_void_rate(domus_channel *channel)
{
    channel->rate.answered = UINT64_MAX;
}

/* If a span is over, measure it and begin the next one. `is_read` is false if this side does not
 * read now. Returns whether the peer was too slow. */
bool domi_channel_is_slow(domus_channel *channel, bool is_read);

/* Returns when the channel is too old: channel.maxAge after it was made, give or take a part that
 * is different for each channel. UINT64_MAX: never. */
uint64_t domi_channel_age_due(const domus_channel *channel);

#endif
