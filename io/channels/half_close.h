/* The library closes a channel whose peer has finished sending when all is answered. Owner thread.
 */
#ifndef DOMI_IO_CHANNELS_HALF_CLOSE_H
#define DOMI_IO_CHANNELS_HALF_CLOSE_H

#include "io/channels/channel.h"

/* Called when the peer has finished sending and the actor has no on_end. The channel is closed when
 * the last conversation that its bytes began has ended; at once if there is none. */
void domi_channel_close_when_answered(domus_channel *channel);

/* True if nothing of the peer is under way: neither on the channel nor in one that it carries. */
static inline bool domi_channel_has_answered_all(const domus_channel *channel)
{
    return channel->conversations == 0 && channel->asks == 0 && channel->carried == 0;
}

#endif
