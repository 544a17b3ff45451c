/* The time-outs of a channel: idle, silent (no first byte), and a send that takes too long. Owner
 * thread. */
#ifndef DOMI_IO_CHANNELS_TIMEOUTS_H
#define DOMI_IO_CHANNELS_TIMEOUTS_H

#include "io/channels/channel.h"

/* Arm the timer of a new channel for the first of its time-outs. */
void domi_channel_arm_timeouts(domus_channel *channel);

/* Called when the timer of the channel fires: a time-out may be over. */
void domi_channel_handle_timer(domus_channel *channel);

#endif
