/* These functions apply changed settings to the channels that use them. */
#ifndef DOMI_IO_CHANNELS_RENEW_H
#define DOMI_IO_CHANNELS_RENEW_H

#include "io/channels/channel.h"

/* The settings of an open channel have changed, or it has got other ones. The channel may have
 * ended when this returns. Owner thread. */
void domi_channel_renew(domus_channel *channel);

/* Settings of the thread, or of listeners of the configuration, have changed: renew all open
 * channels that use them. It takes some 0.1 us for each channel. Owner thread, in phase 2. */
void domi_io_renew_channels(domi_io *io);

#endif
