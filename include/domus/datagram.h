/* Datagrams: UDP, and Unix sockets of type SOCK_DGRAM.
 *
 * A datagram channel is a channel (domus/channel.h): an actor of its own on the thread of the actor
 * that opened it, and its child. on_open, on_read and on_close are called as for a connection, and
 * each on_read is one datagram, also one without bytes. domus_buffer_peer() tells who sent it.
 * These things differ from a connection:
 *   - Nothing ends the channel but domus_channel_close(), domus_channel_reset(), the stop of its
 *     actor or of the system, and an error of the socket itself. There is no half close: on_end is
 *     never called, and domus_channel_finish() returns -EOPNOTSUPP.
 *   - idleTimeout and maxAge hold only if the options say so, firstByteTimeout and minRate never.
 * At sendTimeout the datagrams for which the kernel had no room are thrown away and counted, and
 * the channel stays.
 *   - Back-pressure: a channel that is paused, whose own datagrams wait to be sent, or that holds
 *     1/16 of its thread's receive buffers, does not read. Then the kernel keeps what fits into the
 *     socket's receive buffer and throws the rest away (`lost` below).
 *   - A close sends what is queued and then closes at once. A drain does so when every datagram
 *     that was read is handled; datagrams that nobody has read by then are lost. Connected channels
 *     drain as connections do that actors have opened: when no accepted connection and no channel
 *     without a peer of its own is left.
 *
 * Sizes: the longest datagram that can be received is io.buffers.size less 128 bytes (3,968 B of
 * 4 KiB); a longer one is thrown away and counted. For every UDP datagram (65,507 B over IPv4)
 * io.buffers.size has to be at least 65,635 B. A UDP datagram to be sent has at most 65,507 B
 * (IPv6: 65,527 B), a Unix one as many as its socket's send buffer takes.
 *
 * Errors: a datagram that the kernel does not take is counted with its error, and the channel goes
 * on. The peer of an unconnected channel cannot end it. On a connected one the kernel tells when
 * nobody takes the datagrams (-ECONNREFUSED by ICMP, or by a Unix socket that is gone): that is
 * counted, too, and ends the channel only with `ends_on_error`.
 *
 * The sender of a UDP datagram may write any address into it. A service that answers with more
 * bytes than it was asked with can be used to flood others, and what a datagram says proves nothing
 * about its sender.
 *
 * Thread-safety of all functions here: as domus/channel.h says. */
#ifndef DOMUS_DATAGRAM_H
#define DOMUS_DATAGRAM_H

#include <domus/channel.h>
#include <domus/channel_options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options of domus_datagram_open(). All fields may be 0. */
typedef struct domus_datagram_options {
    /* The one peer of the channel: domus_channel_write() sends there, and datagrams of others are
     * not received. Zeroed: the channel is not connected, and domus_channel_send_to() names a peer
     * for each datagram. */
    domus_endpoint connected;
    /* The behaviour of the channel, a channels actor. NULL: the behaviour of an accepted
     * connection. */
    const struct domus_behaviour *behaviour;
    /* settings of this channel that differ from the configuration; copied; NULL: none */
    const domus_channel_options *channel;
    bool shares_port; /* SO_REUSEPORT: an actor on each thread can have a channel of its own at the
                         same endpoint, and the kernel spreads the peers over them */
    /* whether a connected channel ends at the first error that its peer causes */
    bool ends_on_error;
} domus_datagram_options;

/* Open a datagram channel at `at`: an IPv4 or IPv6 endpoint (port 0: the kernel chooses one), a
 * Unix socket with a path or an abstract name, or one without a name (family AF_UNIX, size 0: the
 * kernel chooses an abstract one). `at` may be NULL if `options->connected` is set: then the kernel
 * chooses address and port, and a Unix channel has no name, so that its peer cannot answer.
 *
 * The channel belongs to the running actor, a channels actor. If it is connected, it counts as a
 * connection that the actors of its thread have opened (connect.maxConnections); otherwise it takes
 * the place of an accepted one (channel.maxConnections), but that limit does not keep it from being
 * opened. A path of a Unix socket is made by this call and stays in the file system when the
 * channel ends; whoever opens one there again removes it before that. `options` (NULL: all 0),
 * `ret_address` (the address of the channel's actor) and `ret_at` (the endpoint that the channel
 * has) may be NULL.
 *
 * Returns 0; -EINVAL if the running actor or the behaviour is of another kind, or `at` names
 * nothing; -EOPNOTSUPP if the behaviour has a pipeline, because datagrams have no stream of bytes
 * in which messages follow each other; -EAFNOSUPPORT if `connected` is of another family;
 * -ESHUTDOWN when the actor or the system stops; -ENOBUFS at connect.maxConnections; -EMFILE,
 * -ENFILE, -ENOMEM; -EINVAL for wrong options of the channel; the error of bind(2) or connect(2);
 * the error with which the ring of the thread has failed. */
DOMUS_API int domus_datagram_open(domus_stack *stack, const domus_endpoint *at,
                                  const domus_datagram_options *options, domus_address *ret_address,
                                  domus_endpoint *ret_at);

/* Queue a datagram for `to`; NULL: for the peer that sent `bytes`. It is sent as a whole or not at
 * all. Datagrams leave in the order in which they were queued, but if the kernel has no room for
 * one of UDP, those queued after it in the same turn may overtake it. (A network may change their
 * order in any case.) domus_channel_write() does the same on a connected channel.
 *
 * An unconnected Unix channel waits for no receiver: a datagram for a peer that has no room is
 * thrown away and counted. Other channels wait until the kernel has room.
 *
 * Each datagram counts as 128 B more than it has, for channel.sendMax, domus_channel_queued() and
 * domus_channel_flush(). `sent_bytes` of domus_channel_counts() counts so, too, and includes what
 * the kernel did not take.
 *
 * Ownership: `bytes` is consumed in every case, also when this fails. A buffer that was trimmed to
 * 0 B is an empty datagram.
 * Returns 0; -EPERM; -EINVAL on a channel that has no datagrams; -EISCONN on a connected channel;
 * -EDESTADDRREQ when `to` is NULL and `bytes` has no peer, or by domus_channel_write() on a channel
 * that is not connected; -EAFNOSUPPORT for an endpoint of another family; -EMSGSIZE when it is too
 * long; -EPIPE and -ENOBUFS as domus_channel_write(); -ENOMEM. */
DOMUS_API int domus_channel_send_to(domus_stack *stack, domus_channel *channel,
                                    const domus_endpoint *to, domus_buffer *bytes);

/* The sender of a received datagram, also after it was trimmed or kept. Returns 0; -ENOENT if the
 * sender is a Unix socket without a name, or if the buffer is no received datagram: then
 * `ret_peer` names nothing. */
DOMUS_API int domus_buffer_peer(const domus_buffer *buffer, domus_endpoint *ret_peer);

/* Figures of one datagram channel. The profile has the sums of a thread (domus/profile.h). */
typedef struct domus_datagram_counters {
    uint64_t received; /* datagrams of peers that came while the channel was open */
    uint64_t sent;     /* datagrams for peers that the kernel has taken */
    /* received datagrams that were thrown away because they were longer than a receive buffer */
    uint64_t too_long;
    /* received datagrams that were thrown away because the channel did not read and memory was
     * short */
    uint64_t dropped;
    uint64_t lost; /* datagrams that the kernel has thrown away, mostly because its receive buffer
                      was full; noted once a second, while datagrams come, and at the close */
    /* datagrams for peers that the kernel did not take, and those that waited at sendTimeout */
    uint64_t unsent;
    uint64_t errors; /* errors that the kernel told about datagrams that were sent before */
    /* the last error that `unsent` or `errors` counts, a negative errno; 0: none */
    int last_error;
} domus_datagram_counters;

/* Write the figures of a datagram channel. Returns 0; -EINVAL on a channel that has no
 * datagrams. */
DOMUS_API int domus_datagram_counts(const domus_channel *channel,
                                    domus_datagram_counters *ret_counters);

#ifdef __cplusplus
}
#endif

#endif
