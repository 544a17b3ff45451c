/* A peer that has finished sending may be gone, and asks that actors keep for it may wait for ever.
 * Owner thread. */
#ifndef DOMI_IO_CHANNELS_KEPT_H
#define DOMI_IO_CHANNELS_KEPT_H

#include "io/channels/channel.h"

/* channel.halfCloseKept is over since then, or since this was called last: cancel those asks of the
 * peer's requests that actors keep. */
void domi_channel_cancel_kept(domus_channel *channel);

#endif
