/* Makes the actors of channels ready to run: for on_open, bytes, the end of the peer, or on_close.
 * Owner thread. */
#ifndef DOMI_IO_CHANNELS_READY_H
#define DOMI_IO_CHANNELS_READY_H

#include "io/channels/channel.h"

/* Make the channel's actor ready to run, because the channel has work for it. */
void domi_channel_make_actor_ready(domus_channel *channel);

/* Make the channel's actor ready to run if the answer to its oldest request may go on
 * (domi_channel_may_oldest_answer_go_on()), because the writer of the answer waits for that. Called
 * when bytes have left, of this channel or of another one of the thread. */
void domi_channel_wake_writer_of_answer(domus_channel *channel);

#endif
