/* Channels that have something for their actor: on_open, bytes, the end of the peer, or on_close.
 * Owner thread. */
#ifndef DOMI_IO_CHANNELS_READY_H
#define DOMI_IO_CHANNELS_READY_H

#include "io/channels/channel.h"

/* Let the channel's actor run, because it has something to do for the channel. */
void domi_channel_make_ready(domus_channel *channel);

#endif
