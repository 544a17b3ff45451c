/* Applies changed settings to the channels that use them. */
#ifndef DOMI_IO_CHANNELS_RENEW_H
#define DOMI_IO_CHANNELS_RENEW_H

#include "io/channels/channel.h"

/* Apply the settings of an open channel, because they have changed or the channel has got other
 * ones. The channel may have ended when this returns. Owner thread. */
void domi_channel_apply_settings(domus_channel *channel);

/* Apply the settings of all open channels of the thread, because those of the thread or of
 * listeners of the configuration have changed. It takes about 0.1 us for each channel. Owner
 * thread, in phase 2. */
void domi_io_apply_settings_to_channels(domi_io *io);

#endif
