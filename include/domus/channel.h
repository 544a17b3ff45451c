/* Channels: connections, and the buffers that move through them.
 *
 * A channel is an actor of its own: a channels actor on the thread of the actor that it belongs to,
 * which is the one that listens, or that has connected (domus/connect.h). It is that actor's child
 * and never leaves its thread. It has an address, which any actor on any thread can notice, ask and
 * watch; the address is stale when the connection is gone, and domus_down_type then brings the
 * error. It joins groups, arms timers, spawns children and has conversations as every actor does,
 * and all of that ends with it.
 *
 * Its behaviour is the `channel` of the behaviour of the actor that it belongs to. It has a state
 * of its own, which begins zeroed, or with `shares_state` it has that actor's state. Where
 * `channel` is NULL, it has the same behaviour as that actor, and shares its state. A channel and
 * the actor that it belongs to never run at the same time, so one state can serve all connections
 * of a thread.
 *
 * These functions of the behaviour run on its thread, in phase 2, in this order:
 *   on_mount  once, before anything else, if the channel has a state of its own
 *   on_open   once, when the connection is there; a negative errno resets it
 *   on_read   for each piece of bytes that came, in order; owns `bytes`; a negative errno resets
 *   on_end    once, when the peer has finished sending (half close), also while conversations of
 *             this channel have not ended; without one the channel is closed (see below)
 *   on_close  once: `error` is 0 after a close, else why it was reset; the pointer is gone when the
 *             handler returns
 *   on_stop   once, last, if the channel has a state of its own
 *
 * on_open, on_read, on_end and on_close are handlers (domus_call in domus/actor.h) whose payload is
 * a domus_channel_event. Each call may begin a conversation, also as a sequence with a frame
 * (DOMUS_BY() in domus/await.h). The event is gone when the handler has returned, or at the first
 * await: then domus_channel_running() gives the channel, or NULL if the connection is gone. A
 * handler that has a frame is called even if there is no memory for it; then its first ask, sleep
 * or other wait fails with -ENOMEM.
 *
 * A conversation that on_close begins lives as those of the channel that have not ended: with
 * `conversations_go_on` it goes on to its end, and otherwise it is cancelled as when an actor
 * stops, so that an ask is sent, but its answer is -ECANCELED. While the actor stops, nothing can
 * wait at all (-ECANCELED). The result of on_close has no effect.
 *
 * When the connection is gone, the channel's conversations are cancelled, or, with
 * `conversations_go_on`, go on to their end. domus_stop() of the channel's address closes it as
 * domus_channel_close() does. A stop of the actor that it belongs to closes its channels first; a
 * restart of that actor resets them.
 *
 * A negative errno that one of a channel's functions returns, or with which one of its
 * conversations ends, refuses the channel: the channel is reset with this error and counted
 * (channels_refused in domus/profile.h). No supervisor is asked, and the actor that it belongs to
 * has not failed, so no stranger can make it fail by what he sends.
 *
 * Half close: if the actor has no on_end and the peer has finished sending, the channel is closed
 * when the conversations that its bytes began (on_read has parked) have ended and everything that
 * was queued is sent. So a peer that sends a request and FIN gets its answer. But it may be gone:
 * asks that any actor of this node keeps for it (domus_keep()) are cancelled after
 * channel.halfCloseKept, and those that are kept later when the time since the FIN has doubled. A
 * reset behind the FIN is seen at the same times. The close does not wait for conversations that
 * on_open or other messages began, nor for an answer that the actor gets by a notice: an actor that
 * needs this has an on_end and closes the channel itself. If such a conversation does not end,
 * channel.idleTimeout closes the channel, as it does with any silent connection (if that is 0, only
 * the conversation's own deadlines can end it), and in a drain shutdown.drainTimeout does. A stop
 * of the actor does not wait, nor does a reset.
 *
 * Back-pressure: while more than channel.sendHigh bytes wait to be sent, or the channel holds 1/16
 * of its thread's receive buffers, the channel does not read, so TCP slows the peer. It reads again
 * when at most channel.sendLow bytes wait and it holds at most 1/32 of the buffers. It does not
 * read either while channel.requestsMax conversations that its on_read began have not ended; with
 * 1, each piece of bytes is done with when the next one comes, also if its sequence waits. (on_end
 * is called all the same, once all bytes before it were shown.) Where memory is limited, the bytes
 * that all channels of a thread have queued have a bound together, and a channel that has more than
 * its part of this bound does not read (domus/memory.h).
 *
 * While more than channel.sendHigh bytes wait, until at most channel.sendLow do, the mailbox of the
 * channel's actor is full: notices and asks to its address, from whichever thread, are refused with
 * -ENOBUFS, and domus_watch_room() (domus/supervise.h) tells a sender when the bytes have left.
 * Messages that wait there already are handled; replies, exceptions and events still come. A
 * publication (domus/group.h) skips such a channel, and is counted: so a broadcast to connections
 * drops what slow readers cannot take, and no reader holds up the others. A sender that may not
 * drop sends notices and waits for room.
 *
 * Relays: two channels that pass on each other's bytes must not stop reading because of what they
 * have to send. Otherwise a peer that does not read before it has sent waits for the relay, and the
 * relay for that peer. So give both a sendHigh and a sendMax that they never reach, and pass on the
 * buffers themselves: the bound on the receive buffers of each channel then holds up the sender
 * (examples/proxy.c).
 *
 * Thread-safety of all functions here: only from functions of the channel itself, of the actor that
 * it belongs to, and of channels that share the state of one of these (shares_state). */
#ifndef DOMUS_CHANNEL_H
#define DOMUS_CHANNEL_H

#include <domus/actor.h>
#include <domus/channel_options.h>
#include <domus/conversation.h>
#include <domus/endpoint.h>
#include <domus/slice.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One connection. The pointer is valid from on_open to the return of on_close. An actor that keeps
 * the pointer, in its state or in a conversation that parks, has to forget it in on_close
 * (domus_channel_data() is a place to note where it is kept). An address can be kept for ever. */
typedef struct domus_channel domus_channel;

/* A piece of bytes. It has one owner at a time. */
typedef struct domus_buffer domus_buffer;

/* The payload of on_open, on_read, on_end and on_close. */
typedef struct domus_channel_event {
    domus_channel *channel;
    /* the bytes that came, owned by the handler of on_read; NULL in the other handlers */
    domus_buffer *bytes;
    int error; /* in on_close the negative errno of the reset, or 0 after a close; otherwise 0 */
} domus_channel_event;

/* The channel whose actor runs; NULL if the actor is not that of a channel, or if the connection is
 * gone. A handler of a message, and a function that goes on with a conversation, finds its channel
 * by this. */
DOMUS_API domus_channel *domus_channel_running(const domus_stack *stack);

/* Returns the address of the channel's actor. */
DOMUS_API domus_address domus_channel_address(const domus_channel *channel);

/* Notes on the writes below. They also work on a channel with a pipeline: the bytes stand between
 * two of its messages, in the order of the calls; whether its protocol allows that is the actor's
 * affair. Byte stages wrap the bytes as they wrap messages: nothing leaves beside TLS. So the bytes
 * are copied then, and an error of a stage is returned, and resets the channel. */

/* The functions below act on a channel. They are for the channel's own functions, for those of the
 * actor that it belongs to, and for channels that share the state of one of these two: so one state
 * can have several channels that write to each other. Any other actor gets -EPERM. */

/* Queue `bytes` for sending. Bytes that an actor queues in one iteration of its thread's loop leave
 * in one send.
 *
 * Ownership: consumed in every case, also when this fails.
 * Returns 0; -EPERM; -EPIPE after domus_channel_finish() or domus_channel_close(), or when the
 * connection is broken, and in on_mount of a channel with byte stages; -ENOBUFS when more than
 * channel.sendMax bytes would wait on this channel, or when the channels of this thread have as
 * many bytes queued together as they may (domus/memory.h). */
DOMUS_API int domus_channel_write(domus_stack *stack, domus_channel *channel, domus_buffer *bytes);

/* Queue a copy of `size` bytes at `data` (0 B..1 MiB). Small pieces that follow each other, by this
 * or by domus_channel_write(), are copied together, so they leave in one piece of memory. On a
 * channel of datagrams the bytes are one datagram (domus/datagram.h).
 *
 * Returns as domus_channel_write(); -EMSGSIZE; -ENOMEM. Nothing is queued then. */
DOMUS_API int domus_channel_append(domus_stack *stack, domus_channel *channel, const void *data,
                                   size_t size);

/* Queue the bytes of a slice, which are not copied, except small ones and those of a received
 * message. So what is encoded once can be written to thousands of channels; each of them counts the
 * bytes as queued. On a channel of datagrams they are one datagram.
 *
 * Ownership: consumed in every case, also when this fails.
 * Returns as domus_channel_write(); -ENOMEM. */
DOMUS_API int domus_channel_write_slice(domus_stack *stack, domus_channel *channel,
                                        domus_slice slice);

/* Wait until the kernel has taken all bytes that were queued at this call: write `return
 * domus_channel_flush(...)`, or DOMUS_AWAIT(domus_channel_flush(stack, channel, then)) in a
 * sequence. Bytes that are written later are not waited for. The answer has neither type nor
 * payload; its error is 0, or, when the connection is gone before, the error of its on_close
 * (-EPIPE if that is 0). The kernel's having taken bytes does not say that the peer has them.
 *
 * domus_channel_flush_to() does not wait for the last `left_bytes` of what is queued, so that the
 * connection does not run dry before the actor writes more.
 *
 * Several conversations may wait for one channel. A pause of the actor, and a deadline of the ask
 * that the conversation answers, do not end the wait; a cancel of the conversation does, and
 * channel.sendTimeout resets a peer that takes nothing.
 *
 * Returns DOMUS_PARKED; -EPERM; -ENOMEM; -ECANCELED as domus_sleep(). */
DOMUS_API int domus_channel_flush(domus_stack *stack, domus_channel *channel, domus_resumed *then);
DOMUS_API int domus_channel_flush_to(domus_stack *stack, domus_channel *channel,
                                     uint64_t left_bytes, domus_resumed *then);

/* Read no more: on_read and on_end are not called until domus_channel_resume(). Bytes that have
 * come wait here, bytes that still come wait in the kernel, and the peer is slowed down as its
 * window fills. While bytes of the peer wait the channel is not idle; otherwise channel.idleTimeout
 * goes on. In a drain a paused channel is waited for like any other, for shutdown.drainTimeout at
 * most. To pause a channel twice changes nothing, nor does a resume of one that is not paused.
 *
 * Returns 0; -EPERM; -EPIPE when the channel is being closed. */
DOMUS_API int domus_channel_pause(domus_stack *stack, domus_channel *channel);
DOMUS_API int domus_channel_resume(domus_stack *stack, domus_channel *channel);

/* Say that the channel belongs to a relay, whose actor passes on what comes from elsewhere, so that
 * nothing that is under way can be seen here. In a drain such a channel stays until no byte has
 * come or gone for channel.linger, or its actor closes it, for shutdown.drainTimeout at most. Bytes
 * that are cut then count (channels_cut and cut_bytes of domus/profile.h), and the log has them.
 * Both channels of a relay are marked.
 *
 * Returns 0; -EPERM. */
DOMUS_API int domus_channel_set_relay(domus_stack *stack, domus_channel *channel, bool relays);

/* Finish sending (half close): when everything queued is sent, FIN is sent. The channel goes on
 * reading until the peer finishes, too, or one of the two closes.
 *
 * Returns 0; -EPERM; -EALREADY when this was done, or when the channel is being closed; -EBUSY
 * while a body leaves in pieces (domus/stream.h), unless the bytes of the channel are those of a
 * tunnel (domus_channel_open_rest()). */
DOMUS_API int domus_channel_finish(domus_stack *stack, domus_channel *channel);

/* Give the channel settings of its own, in place of those of its listener or of its connect, for
 * instance more time once its peer has logged in. As always, fields that are 0 are as the
 * configuration says (domus/channel_options.h). Time-outs that have begun go on from where they
 * began. Options of the socket (from keepalive.idle on) do not change any more. NULL: as if all
 * fields were 0.
 *
 * Returns 0; -EPERM; -EPIPE when the channel is being closed; -EINVAL when an option is wrong
 * (domus_channel_options_check() tells which); -ENOMEM. */
DOMUS_API int domus_channel_set_options(domus_stack *stack, domus_channel *channel,
                                        const domus_channel_options *options);

/* Close the channel when everything queued is sent: then FIN is sent, and the peer has up to
 * channel.linger to close. Bytes that the peer sends meanwhile are read and thrown away, because a
 * reset could overtake the answer otherwise. on_read is not called any more. In the midst of a body
 * that leaves in pieces (domus/stream.h) the channel is reset instead when everything queued is
 * sent, with -EPIPE.
 *
 * Returns 0; -EPERM; -EALREADY when the channel is being closed. */
DOMUS_API int domus_channel_close(domus_stack *stack, domus_channel *channel);

/* Say that the message of the peer that is under way has come to its end, and gets no answer by a
 * write now.
 *
 * This matters where channel.minRate or channel.maxAge is set. The library sees bytes and no
 * messages, so it goes by this: a message is under way from its first byte, which is the first byte
 * that comes after the actor has last written to the channel, after a conversation that on_read
 * began has ended, or after this call; and it is under way until the next of these three. While a
 * conversation that on_read began goes on, the actor is at work and no message is under way.
 *
 * With channel.minRate the library looks at the channel once every channel.minRateGrace. If one
 * message was under way all that time, and this side was reading all that time, then the peer has
 * to have sent minRate * minRateGrace bytes in it. Otherwise the channel is closed with -ETIMEDOUT
 * and counted (channels_slow in domus/profile.h). So a peer that drips has at most twice
 * minRateGrace, and each message has one minRateGrace at least. An actor that answers a message
 * not at all, or later and without a conversation, has to call this where the message ends, or its
 * peers have to be that fast always.
 *
 * minRate does not bind a peer that this side has connected to, unless the options of the connect
 * say so: when such a peer has answered, it waits for this side. Neither of the two concerns
 * datagrams.
 *
 * With channel.maxAge a connection that has reached its age (give or take channel.maxAgeJitter, a
 * part that is drawn for each) is closed as by domus_channel_close() as soon as no message is under
 * way, no conversation that on_read began goes on, and everything that had come by then was read;
 * it is counted (channels_aged). The library waits for a message that is
 * under way, shutdown.drainTimeout at most; for a conversation it waits as long as it takes.
 *
 * A channel with a pipeline knows messages. When it is closed by minRate or channel.idleTimeout in
 * the midst of one, its stage may answer that (domus/stage.h), and channel.headTimeout and
 * channel.bodyRate hold where a stage says so.
 *
 * Returns 0; -EPERM. */
DOMUS_API int domus_channel_message_done(domus_stack *stack, domus_channel *channel);

/* Close the channel at once with a reset (RST). Bytes that are queued are thrown away. `error` (a
 * negative errno; any other number means -ECONNABORTED) is given to on_close, which is called after
 * the running handler has returned. On a channel that is closed already nothing happens.
 *
 * Returns 0; -EPERM. */
DOMUS_API int domus_channel_reset(domus_stack *stack, domus_channel *channel, int error);

/* Get the endpoints of the channel's connection. domus_channel_peer() tells the client, also if it
 * comes by a proxy that has named it (domus/listen.h); domus_channel_direct_peer() tells who is
 * connected, which is the proxy then. Each call asks the kernel, unless a proxy has named the
 * client. Returns 0; -ENOTCONN when the kernel does not tell any more, as in on_close. */
DOMUS_API int domus_channel_peer(const domus_channel *channel, domus_endpoint *ret_peer);
DOMUS_API int domus_channel_direct_peer(const domus_channel *channel, domus_endpoint *ret_peer);
DOMUS_API int domus_channel_local(const domus_channel *channel, domus_endpoint *ret_local);

/* Returns the name of the stage that carries a channel within another one, as "http2" does with
 * each stream (domus/inner.h); NULL for a channel with a connection of its own, and in on_close.
 * The text is constant. */
DOMUS_API const char *domus_channel_carrier(const domus_channel *channel);

/* The listener from which the channel comes: `ret_listener` gets the address of its actor, which is
 * stale once it is closed, `ret_name` the name that the configuration or domus_listen() gave it (""
 * if none), valid as long as the channel is. Both may be NULL. Returns 0; -ENOENT for a channel
 * that comes from no listener. */
DOMUS_API int domus_channel_listener(const domus_channel *channel, domus_address *ret_listener,
                                     const char **ret_name);

/* The number of the channel's thread, 0..threads-1, as domus_system_profile() counts them. */
DOMUS_API uint32_t domus_channel_thread(const domus_channel *channel);

/* Get, or set, a pointer that the actor may store with the channel. It is NULL at first; the
 * library does not use it. */
DOMUS_API void domus_channel_set_data(domus_channel *channel, void *data);
DOMUS_API void *domus_channel_data(const domus_channel *channel);

/* Bytes that are queued and that the kernel has not taken yet; in on_close, the bytes that the
 * kernel never took. */
DOMUS_API uint64_t domus_channel_queued(const domus_channel *channel);

/* Figures of one channel. Times are those of domus_now_ns(). */
typedef struct domus_channel_counters {
    uint64_t received_bytes; /* bytes that came from the peer while the channel was open */
    uint64_t sent_bytes;     /* bytes for the peer that the kernel has taken */
    /* bytes for the peer that are queued, and that the kernel has not taken yet */
    uint64_t queued_bytes;
    uint64_t opened_ns; /* time at which the channel was made */
    /* time since which the channel is idle: bytes last came or went, or reading went on again */
    uint64_t active_ns;
} domus_channel_counters;

DOMUS_API void domus_channel_counts(const domus_channel *channel,
                                    domus_channel_counters *ret_counters);

/* Run this actor once more at the end of this phase 2, before the bytes of the iteration are sent:
 * it gets one event of domus_later_type, which has no payload, after the channels actors that are
 * ready have run. So an actor can gather what it has to send and write it in one piece, however
 * many messages it handles in one iteration. Several calls before that event bring one event. A
 * call while such events are handled brings one in the next iteration of the loop, so nobody keeps
 * the thread in one phase. The event needs a row in the behaviour; like all events it comes also
 * while the actor stops or raises a barrier.
 *
 * Thread-safety: only from within a handler of a channels actor.
 * Returns 0; -EOPNOTSUPP from a state actor, which may send a notice to itself; -ENOMEM. */
DOMUS_API int domus_later(domus_stack *stack);
DOMUS_API extern const domus_type domus_later_type;

/* Make a buffer of `size` bytes (1 B..1 MiB) from the pool of the running thread.
 *
 * Ownership: the caller's, until it is written to a channel or freed.
 * Returns 0; -ENOMEM; -EMSGSIZE for a size out of range; -EOPNOTSUPP in a pool (domus/pools.h) and
 * on a detached thread, which have no buffers. */
DOMUS_API int domus_buffer_new(domus_stack *stack, size_t size, domus_buffer **ret_buffer);

/* Give a buffer back. NULL is allowed, and does nothing. */
DOMUS_API void domus_buffer_free(domus_buffer *buffer);

/* Return a pointer to the bytes of a buffer, and their number. The owner may change the bytes of a
 * received buffer in place, for instance to send them back. */
DOMUS_API void *domus_buffer_data(domus_buffer *buffer);
DOMUS_API size_t domus_buffer_size(const domus_buffer *buffer);

/* Make the buffer shorter: keep the first `size` bytes. Returns 0; -EINVAL when it has fewer. */
DOMUS_API int domus_buffer_trim(domus_buffer *buffer, size_t size);

#ifdef __cplusplus
}
#endif

#endif
