/* The sending side of a channel: the buffers that wait to be sent to its peer. Owner thread. */
#ifndef DOMI_IO_CHANNELS_SEND_H
#define DOMI_IO_CHANNELS_SEND_H

#include "io/channels/channel.h"

/* Put the channel into the list of channels that have bytes to send (io->dirty). */
void domi_channel_mark_to_be_sent(domus_channel *channel);

/* Queue `bytes` to be sent on the channel, as domus_channel_write() does, but for any caller in
 * io. */
int domi_channel_write(domus_channel *channel, domus_buffer *bytes);

/* Queue a copy of `size` bytes to be sent on the channel, as domus_channel_append() does, but for
 * any caller in io. */
int domi_channel_append_copy(domus_channel *channel, const void *data, size_t size);

/* Returns 0 if domi_channel_write() would accept `size` bytes for the channel; else the error that
 * it would return. */
int domi_channel_check_may_write(const domus_channel *channel, uint64_t size);

/* Returns 0 if a pipeline may queue `size` bytes of an answer, or of a message for the peer;
 * -EPIPE; -ENOBUFS by the bound of the thread (crowd.h) alone: sendMax does not hold for these. */
int domi_channel_check_may_answer(const domus_channel *channel, uint64_t size);

/* Queue all buffers of a list to be sent on the channel, after domi_channel_check_may_answer() has
 * allowed that. Consumes them. Returns 0; -EPIPE, and nothing is queued then. */
int domi_channel_write_list_of_buffers(domus_channel *channel, domi_buffer_list *bytes);

/* Queue a copy of `size` bytes of an answer, or of a message for the peer. Returns as
 * domi_channel_check_may_answer(); -ENOMEM. */
int domi_channel_write_copy_of_answer(domus_channel *channel, const void *data, size_t size);

/* Queue one send of the channel's waiting bytes, unless one is in flight or the channel is being
 * closed. */
void domi_channel_send_waiting_bytes(domus_channel *channel);

/* Throw away the bytes of the channel that are not sent yet. No send may be in flight. */
void domi_channel_drop_unsent_bytes(domus_channel *channel);

/* Record that the kernel has taken `size` bytes of the channel, and free the buffers that are
 * completely sent. */
void domi_channel_free_sent_buffers(domus_channel *channel, uint32_t size);

#endif
