/* Channels: the connections that a channels actor owns, and the buffers that move through them.
 *
 * A channel belongs to one channels actor on one thread. Its callbacks (domus/actor.h) run there,
 * in phase 2, in this order for each channel:
 *   on_open   once, when the connection is there; a negative errno resets it
 *   on_read   for each piece of bytes that came, in order; owns `bytes`; a negative errno resets
 *   on_end    once, when the peer has finished sending (half close), also while conversations of
 *             this channel have not ended; without one the channel is closed (see below)
 *   on_close  once, last: `error` is 0 after a close, else why it was reset; the pointer is gone
 *
 * A negative errno from on_open, on_read or on_end, or at the end of a conversation that one of
 * them began, refuses the channel: it is reset, with this error, and counted (channels_refused in
 * domus/profile.h). The actor has not failed, whatever a stranger sends.
 *
 * Half close: a channel whose actor has no on_end is closed when the conversations that its bytes
 * began (on_read has parked) have ended and everything queued is sent. So a peer that sends a
 * request and FIN gets its answer. Conversations that on_open or other messages began are not
 * waited for, and an answer that comes by a notice is not known of: an actor that needs more than
 * this has an on_end and closes the channel itself. A conversation that does not end is cut by
 * channel.idleTimeout, as on any silent connection (with 0 by nothing but its own deadlines), and
 * in a drain by shutdown.drainTimeout. A reset, and a stop of the actor, do not wait.
 *
 * Back-pressure: while more than channel.sendHigh bytes wait to be sent, or the channel holds 1/16
 * of its thread's receive buffers, it does not read; TCP slows the peer. It reads again below
 * channel.sendLow and half of its share. Where memory is limited there is a bound of all bytes that
 * a thread's channels have queued, too, and a channel that has more than its part of it does not
 * read (domus/memory.h).
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
 * channel.sendMax bytes would wait, or as many bytes wait on this thread's channels as may wait
 * there in all (domus/memory.h). */
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

/* Bytes queued and not yet taken by the kernel; in on_close, those that the kernel never took. */
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
