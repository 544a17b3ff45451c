/* The closes that the library itself begins: everything is answered in a drain, or the ring has
 * failed. (For a peer that has finished: half_close.h.) Owner thread. */
#ifndef DOMI_IO_CHANNELS_CLOSE_H
#define DOMI_IO_CHANNELS_CLOSE_H

#include "io/channels/channel.h"

/* Begin a drain of the channel: record how many bytes have come so far, which will be answered
 * before the channel closes. */
void domi_channel_drain(domus_channel *channel);

/* Close a draining channel if everything that it had received is answered, and no rest of a body is
 * awaited. A channel that only has become too old (timeouts.c) waits for the end of any message
 * that is under way, for shutdown.drainTimeout at most. */
void domi_channel_drain_step(domus_channel *channel);

/* End the drain of an open channel that was too old, if its settings have changed and it is not too
 * old by the new ones. */
void domi_channel_end_retirement(domus_channel *channel);

/* Count a channel that is freed as answered, cut or idle, if a drain has ended it. A channel that
 * its peer or its actor has reset meanwhile was not ended by the drain. */
void domi_channel_count_drained(const domus_channel *channel);

/* End the channel with `error` and RST, because the ring has failed and its operations do not come
 * back. The bytes that are lost are counted (domi_channel_count_cut). The socket is disconnected
 * first: the kernel may still hold a send of bytes that are freed here, and a send on a socket
 * without a peer reads none of them. */
void domi_channel_fail(domus_channel *channel, int error);

/* Reset the channel because of an error of its actor. */
void domi_channel_refuse(domus_channel *channel, int error);

/* Count an error of the actor, or of the bytes of the peer: once for each channel. */
void domi_channel_count_refused(domus_channel *channel);

#endif
