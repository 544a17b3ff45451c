/* The library itself closes a channel for these reasons: everything is answered in a drain, or the
 * ring has failed. (When the peer has finished: half_close.h.) Owner thread. */
#ifndef DOMI_IO_CHANNELS_CLOSE_H
#define DOMI_IO_CHANNELS_CLOSE_H

#include "io/channels/channel.h"

/* Called when a drain begins: note how many bytes have come so far, which will be answered before
 * the channel closes. */
void domi_channel_drain(domus_channel *channel);

/* Close a draining channel if everything that it had received is answered, and no rest of a body is
 * awaited. One that only has become too old (timeouts.c) waits for the end of any message that is
 * under way, for shutdown.drainTimeout at most. */
void domi_channel_drain_step(domus_channel *channel);

/* Called when the settings of an open channel have changed: one that was too old stays if it is not
 * too old by these. */
void domi_channel_stay(domus_channel *channel);

/* Called when the channel is freed: if a drain has ended it, count it as answered, cut or idle. One
 * that its peer or its actor has reset meanwhile was not ended by the drain. */
void domi_channel_count_drained(const domus_channel *channel);

/* End the channel with `error` and RST, because the ring has failed and its operations do not come
 * back. The bytes that are lost are counted (domi_channel_count_cut). The socket is disconnected
 * first: the kernel may still hold a send of bytes that are freed here, and a send on a socket
 * without a peer reads none of them. */
void domi_channel_fail(domus_channel *channel, int error);

/* Reset the channel because of an error of its actor. */
void domi_channel_refuse(domus_channel *channel, int error);

/* Count an error of the actor, or of what the peer has sent: once for each channel. */
void domi_channel_count_refused(domus_channel *channel);

#endif
