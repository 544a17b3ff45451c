/* The end of asks that actors keep for a peer which has finished sending: it may be gone, and the
 * asks would wait for ever. Owner thread. */
#ifndef DOMI_IO_CHANNELS_KEPT_H
#define DOMI_IO_CHANNELS_KEPT_H

#include "io/channels/channel.h"

/* Cancel those asks of the peer's requests that actors keep, because channel.halfCloseKept has
 * passed since the peer has finished, or since the last call. */
void domi_channel_cancel_kept(domus_channel *channel);

#endif
