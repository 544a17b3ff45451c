/* The time-outs of a channel: idle, silent (no first byte), a message that takes too long to come,
 * and a send that takes too long. Owner thread. */
#ifndef DOMI_IO_CHANNELS_TIMEOUTS_H
#define DOMI_IO_CHANNELS_TIMEOUTS_H

#include "io/channels/channel.h"

/* Arm the timer of a new channel for the first of its time-outs. */
void domi_channel_arm_timeouts(domus_channel *channel);

/* Let the timer of the channel fire at `due_ns` or before; 0: nothing is due. */
void domi_channel_note_due(domus_channel *channel, uint64_t due_ns);

/* Called when the timer of the channel fires: a time-out may be over. */
void domi_channel_handle_timer(domus_channel *channel);

#endif
