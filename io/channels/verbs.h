/* The check with which all public functions begin that act on a channel. Owner thread. */
#ifndef DOMI_IO_CHANNELS_VERBS_H
#define DOMI_IO_CHANNELS_VERBS_H

#include "io/channels/channel.h"

/* True if the actor that runs on `stack` may act on the channel. */
bool domi_channel_may_be_used_by(const domus_stack *stack, const domus_channel *channel);

#endif
