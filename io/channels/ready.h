/* Makes actors run for their channels: for on_open, bytes, the end of the peer, or on_close. Owner
 * thread. */
#ifndef DOMI_IO_CHANNELS_READY_H
#define DOMI_IO_CHANNELS_READY_H

#include "io/channels/channel.h"

/* Let the channel's actor run, because the channel has work for it. */
void domi_channel_make_ready(domus_channel *channel);

/* Let the actor run if the answer at the front may go on (domi_channel_may_take_turn()), because
 * its writer waits for that. Called when bytes have left, of this channel or of another one of the
 * thread. */
void domi_channel_continue_answer(domus_channel *channel);

#endif
