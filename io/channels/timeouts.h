/* The time-outs of a channel: for its idle time, for the first byte of the peer, for a message that
 * takes too long to come, and for a send that takes too long. Owner thread. */
#ifndef DOMI_IO_CHANNELS_TIMEOUTS_H
#define DOMI_IO_CHANNELS_TIMEOUTS_H

#include "io/channels/channel.h"

/* Arm the timer of a new channel for the first of its time-outs. */
void domi_channel_arm_timeouts(domus_channel *channel);

/* Make sure that the timer of the channel fires at `due_ns` or earlier; 0: nothing is due. */
void domi_channel_advance_timer(domus_channel *channel, uint64_t due_ns);

/* End what is over, because the timer of the channel has fired. */
void domi_channel_handle_timer(domus_channel *channel);

#endif
