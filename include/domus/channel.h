/* Channels: the connections that a channels actor owns, and the buffers that move through them.
 *
 * A channel belongs to one channels actor on one thread. Its callbacks (domus/actor.h) run there,
 * in phase 2, in this order for each channel:
 *   on_open   once, when the connection is there; a negative errno resets it
 *   on_read   for each piece of bytes that came, in order; owns `bytes`; a negative errno resets
 *   on_end    once, when the peer has finished sending (half close); without one the channel is
 *             closed as soon as everything queued is sent
 *   on_close  once, last: `error` is 0 after a close, else why it was reset; the pointer is gone
 *
 * Back-pressure: while more than channel.sendHigh bytes wait to be sent, or the channel holds 1/16
 * of its thread's receive buffers, it does not read; TCP slows the peer. It reads again below
 * channel.sendLow and half of its share.
 *
 * Thread-safety of all functions here: only from the handlers of the channel's own actor. */
#ifndef DOMUS_CHANNEL_H
#define DOMUS_CHANNEL_H

#include <domus/actor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One connection. Valid from on_open to the return of on_close: who keeps the pointer, in the state
 * or in a conversation that parks, forgets it in on_close (domus_channel_data() is a place to note
 * who has it). */
typedef struct domus_channel domus_channel;

/* A piece of bytes. Has one owner at a time. */
typedef struct domus_buffer domus_buffer;

/* Queue `bytes` for sending; what one tick queues leaves in one system call.
 *
 * Ownership: consumed in every case, also when this fails.
 * Returns 0; -EPIPE after close, or when the connection is broken; -ENOBUFS when more than
 * channel.sendMax bytes would wait. */
DOMUS_API int domus_channel_write(domus_channel *channel, domus_buffer *bytes);

/* Close once everything queued is sent: FIN, then up to channel.linger for the peer to close (what
 * it sends meanwhile is read and thrown away, so that no reset overtakes the answer). on_read is
 * not called any more. Returns 0; -EALREADY. */
DOMUS_API int domus_channel_close(domus_channel *channel);

/* Close at once with a reset (RST); what is queued is thrown away. `error` (a negative errno) is
 * given to on_close, which is called after the handler that runs. Never fails. */
DOMUS_API void domus_channel_reset(domus_channel *channel, int error);

/* A pointer of the actor's own, NULL at first. */
DOMUS_API void domus_channel_set_data(domus_channel *channel, void *data);
DOMUS_API void *domus_channel_data(const domus_channel *channel);

/* Bytes queued and not yet taken by the kernel. */
DOMUS_API uint64_t domus_channel_queued(const domus_channel *channel);

/* A buffer with room for `size` bytes (1 B..1 MiB) on the running thread.
 *
 * Ownership: the caller's, until written or freed. Returns 0; -ENOMEM; -EMSGSIZE. */
DOMUS_API int domus_buffer_new(domus_stack *stack, size_t size, domus_buffer **ret_buffer);

/* Give a buffer back. NULL is taken. */
DOMUS_API void domus_buffer_free(domus_buffer *buffer);

/* The bytes and how many; a received buffer may be changed in place. */
DOMUS_API void *domus_buffer_data(domus_buffer *buffer);
DOMUS_API size_t domus_buffer_size(const domus_buffer *buffer);

/* Keep the first `size` bytes (at most what is there). Returns 0; -EINVAL. */
DOMUS_API int domus_buffer_trim(domus_buffer *buffer, size_t size);

#ifdef __cplusplus
}
#endif

#endif
