/* The way out of a channel: the buffers that wait to be sent to its peer. Owner thread. */
#ifndef DOMI_IO_CHANNELS_SEND_H
#define DOMI_IO_CHANNELS_SEND_H

#include "io/channels/channel.h"

/* Put the channel on the list of those that have something to send. */
void domi_channel_mark_dirty(domus_channel *channel);

/* Queue `bytes` to be sent, as domus_channel_write() says, for whoever calls. */
int domi_channel_write(domus_channel *channel, domus_buffer *bytes);

/* Queue a copy of `size` bytes to be sent, as domus_channel_append() says, for whoever calls. */
int domi_channel_append(domus_channel *channel, const void *data, size_t size);

/* Queue an answer of a pipeline, from the begin of the list to its end, or a message for the peer.
 * It has room whatever waits already, if there is memory. Takes the buffers. Returns as
 * domus_channel_write(), and nothing is queued then. */
int domi_channel_write_all(domus_channel *channel, domi_buffer_list *bytes, uint64_t size);

/* The same with a copy of `size` bytes. */
int domi_channel_write_copy(domus_channel *channel, const void *data, size_t size);

/* Queue one send of the bytes that wait, unless one is in flight or the channel closes. */
void domi_channel_send(domus_channel *channel);

/* Throw away the bytes that are not sent. No send may be in flight. */
void domi_channel_drop_outbound(domus_channel *channel);

/* Note that the kernel has taken `size` bytes, and free the buffers that are sent as a whole. */
void domi_channel_drop_sent(domus_channel *channel, uint32_t size);

#endif
