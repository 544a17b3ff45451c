/* The close of a channel whose peer has finished sending, when all is answered. Owner thread. */
#ifndef DOMI_IO_CHANNELS_HALF_CLOSE_H
#define DOMI_IO_CHANNELS_HALF_CLOSE_H

#include "io/channels/channel.h"

/* Close the channel when the last conversation that its bytes began has ended; at once if there is
 * none. Called when the peer has finished sending and the actor has no on_end. */
void domi_channel_close_when_answered(domus_channel *channel);

/* True if no work for the peer is under way: neither on the channel nor in one that it carries. */
static inline bool domi_channel_has_answered_all(const domus_channel *channel)
{
    return channel->conversations == 0 && channel->asks == 0 && channel->carried == 0;
}

#endif
