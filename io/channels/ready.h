/* Channels that have something for their actor: on_open, bytes, the end of the peer, or on_close.
 * Owner thread. */
#ifndef DOMI_IO_CHANNELS_READY_H
#define DOMI_IO_CHANNELS_READY_H

#include "io/channels/channel.h"

/* Let the channel's actor run, because it has something to do for the channel. */
void domi_channel_make_ready(domus_channel *channel);

/* Some bytes have left, here or elsewhere on the thread: let the actor run if the answer at the
 * front may go on (domi_channel_may_take_turn()), because its writer waits for that. */
void domi_channel_give_turn(domus_channel *channel);

#endif
