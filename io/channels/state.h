/* The states of a channel; state.c draws them. Owner thread. */
#ifndef DOMI_IO_CHANNELS_STATE_H
#define DOMI_IO_CHANNELS_STATE_H

#include "io/channels/channel.h"

/* Take each step that the state of the channel makes due: arm a receive, send FIN, cancel, close.
 * May be called at any time. */
void domi_channel_settle(domus_channel *channel);

/* Close the channel when the queued bytes are sent, as domus_channel_close() says. Returns 0;
 * -EALREADY if the channel is being closed. */
int domi_channel_close(domus_channel *channel);

/* Send FIN when the queued bytes are sent, and go on reading, as domus_channel_finish() says.
 * Returns 0; -EALREADY if that was done, or if the channel is being closed. */
int domi_channel_finish(domus_channel *channel);

/* End the channel with `error` for on_close, without sending the queued bytes. With `abort` the
 * peer gets RST. */
void domi_channel_end(domus_channel *channel, int error, bool abort);

#endif
