/* The completions of the operations of channels are handed out here. Owner thread. */
#ifndef DOMI_IO_CHANNELS_COMPLETE_H
#define DOMI_IO_CHANNELS_COMPLETE_H

#include "io/channels/channel.h"

/* Hand a completion of `op` (a receive, a send, or a cancel) to the channel that it names. */
void domi_channel_complete(domi_io *io, enum domi_op op, const domi_completion *completion);

/* Keep a received piece until the run of the actor. */
void domi_channel_keep_piece(domus_channel *channel, domus_buffer *buffer);

#endif
