/* The steps of a channel from state to state; state.c draws the states. Owner thread. */
#ifndef DOMI_IO_CHANNELS_STATE_H
#define DOMI_IO_CHANNELS_STATE_H

#include "io/channels/channel.h"

/* Take each step that the state of the channel makes due, for a channel that may have such steps:
 * arm a receive, send FIN, cancel, close. */
void domi_channel_take_steps_of_state(domus_channel *channel);

/* Take each step that the state of the channel makes due: arm a receive, send FIN, cancel, close.
 * Any code may call this at any time. Each message leads to several calls, so this returns at once
 * for an open channel that receives. */
static inline void domi_channel_take_due_steps(domus_channel *channel)
{
    if (DOMI_UNLIKELY(channel->state != DOMI_CHANNEL_OPEN || channel->finished ||
                      !channel->receiving))
        domi_channel_take_steps_of_state(channel);
    DOMI_CHECK_SLOW(domi_channel_fits_its_state(channel));
}

/* Close the channel when the queued bytes are sent, as domus_channel_close() does. Returns 0;
 * -EALREADY if the channel is being closed. */
int domi_channel_close(domus_channel *channel);

/* Close the channel when the queued bytes are sent, but reset it at its end, with `error` for
 * on_close. Returns as domi_channel_close(). */
int domi_channel_reset_when_sent(domus_channel *channel, int error);

/* Send FIN on the channel when the queued bytes are sent, and go on reading, as
 * domus_channel_finish() does. Returns 0; -EALREADY if that was done, or if the channel is being
 * closed. */
int domi_channel_finish(domus_channel *channel);

/* End the channel with `error` for on_close, without sending the queued bytes. With `abort` the
 * peer gets RST. */
void domi_channel_end_at_once(domus_channel *channel, int error, bool abort);

#endif
