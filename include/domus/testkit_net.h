/* The simulated network of a test kit (domus/testkit.h), and the scripted peers in it.
 *
 * In a kit, domus_serve(), domus_listen(), domus_connect() and domus_datagram_open() work, between
 * actors of the system and with peers that the test drives, over IPv4, IPv6 and Unix sockets (also
 * abstract ones). No socket of the kernel is made: bytes travel on the virtual clock, and
 * everything that chance decides is drawn from the seed of the kit. One network is all there is:
 * any address can be listened at and connected from, and the system and all peers see the same one.
 *
 *     domus_peer *client;
 *     domus_peer_connect(kit, "127.0.0.1:80", NULL, &client);
 *     domus_peer_send(client, "hello\n", 6);
 *     domus_peer_expect(client, "hello\n", 6, 1000000000);
 *     domus_peer_finish(client);
 *     domus_peer_expect_end(client, 1000000000);
 *
 * A peer reads what arrives at once, unless it is paused, and keeps it until the test expects it.
 *
 * Without faults the network is perfect: a connect is answered and bytes arrive at once, each side
 * buffers DOMUS_NET_BUFFER_BYTES, and an error happens only where somebody causes it. Faults
 * (domus_net_faults) make it slow, small and unreliable, by the seed.
 *
 * Every byte is accounted for: it was received, was thrown away by a reset or by a reader that had
 * gone, or is still in the network (domus_net_totals, domus_peer_counts). So is every datagram
 * (domus_net_datagrams).
 *
 * Thread-safety, as of domus/testkit.h: one thread at a time for each kit and its peers; never from
 * a handler (-EBUSY, or nothing happens). */
#ifndef DOMUS_TESTKIT_NET_H
#define DOMUS_TESTKIT_NET_H

#include <domus/endpoint.h>
#include <domus/testkit.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The bytes that a send buffer, and a receive buffer, hold if the faults do not say another
 * number. */
#define DOMUS_NET_BUFFER_BYTES 65536u

/* A probability of 1, in the unit of domus_net_faults. */
#define DOMUS_NET_ALWAYS 1000000u

/* The faults of a network. Zeroed: none, and everything takes no time.
 *
 * Probabilities are those of one try, in millionths. Faults of a connection are drawn when it
 * begins, and others when they might happen. They hit sockets of the system; sockets of peers have
 * no faults of calls and rings. */
typedef struct domus_net_faults {
    /* The time that bytes, ends, resets and connects take in one direction, drawn for each between
     * these bounds. Bytes of one stream never overtake each other. */
    uint64_t latency_min_ns;
    uint64_t latency_max_ns;
    /* bytes that pass in a second in one direction of a connection; 0: no bound */
    uint64_t bandwidth_bytes;
    /* bytes of the send buffer of sockets made later; 0: DOMUS_NET_BUFFER_BYTES */
    uint32_t send_buffer_bytes;
    /* bytes of the receive buffer of sockets made later; 0: DOMUS_NET_BUFFER_BYTES */
    uint32_t receive_buffer_bytes;
    /* probability that a send takes fewer bytes than there is room for */
    uint32_t short_writes;
    /* probability that a receive brings fewer bytes than have arrived */
    uint32_t short_reads;
    /* Probability that a connection is reset when a certain byte would arrive, for each direction.
     * The byte is drawn below reset_within_bytes; 0: before the first byte. */
    uint32_t resets;
    uint32_t reset_within_bytes;
    /* Probability that one direction of a connection ends before a certain byte; a byte behind that
     * end causes a reset. The byte is drawn below end_within_bytes; 0: before the first byte. */
    uint32_t ends;
    uint32_t end_within_bytes;
    uint32_t refusals;   /* probability that a connect is refused, although somebody listens */
    uint32_t no_buffers; /* probability that a receive ends with -ENOBUFS */
    /* probability that a new socket or an accept fails: -ENOBUFS, -ENOMEM */
    uint32_t no_memory;
    uint32_t no_descriptors; /* probability that a new socket or an accept fails with -EMFILE */
    /* probability that the completion queue overflows, which ends a multishot */
    uint32_t overflows;
    /* probability that a ring refuses to enter: -EBUSY, -EAGAIN, -ENOMEM */
    uint32_t refused_enters;
    /* The next five fields are faults of UDP. Without any of them, too, a datagram overtakes one
     * that has a longer latency. */
    uint32_t datagram_losses;   /* probability that a datagram is lost on its way */
    uint32_t datagram_doubles;  /* probability that a datagram comes twice */
    uint32_t datagram_reorders; /* probability that a datagram is held up, by 1 ms at most */
    /* probability that a datagram is refused, although it has a receiver */
    uint32_t datagram_refusals;
    /* most bytes of a datagram; a longer one fails with -EMSGSIZE; 0: no bound */
    uint32_t datagram_bytes_max;
} domus_net_faults;

/* Bytes of all streams of the network so far. At any time sent == received + lost + in_flight. */
typedef struct domus_net_totals {
    uint64_t connections; /* connects that were begun in the network */
    uint64_t sent;        /* bytes that sockets have taken from their senders */
    uint64_t received;    /* bytes that receivers have got */
    uint64_t lost;        /* bytes thrown away by resets, or because the receiver had gone */
    uint64_t in_flight;   /* bytes that are in buffers or on their way now */
    uint32_t descriptors; /* sockets of the system that are open now, with the wakes of threads */
} domus_net_totals;

/* Datagrams of the network so far. At any time sent + doubled == received + lost + overflowed +
 * unclaimed + in_flight. */
typedef struct domus_net_datagrams {
    uint64_t sent;     /* datagrams that sockets have taken from their senders */
    uint64_t doubled;  /* datagrams that the network has made by doubling one */
    uint64_t received; /* datagrams that receivers have got */
    /* datagrams that were thrown away by a fault, or because a link is broken */
    uint64_t lost;
    uint64_t overflowed; /* datagrams that were thrown away because a receive buffer was full */
    uint64_t unclaimed;  /* datagrams that were refused, and those not read when a socket closed */
    uint64_t in_flight;  /* datagrams that are on their way now, or wait to be received */
} domus_net_datagrams;

/* Set the faults from now on. NULL: no faults. Returns 0; -EINVAL if a probability is above 1
 * or a bound below its counterpart; -EBUSY. */
DOMUS_API int domus_testkit_net_set(domus_testkit *kit, const domus_net_faults *faults);

DOMUS_API domus_net_totals domus_testkit_net_totals(const domus_testkit *kit);
DOMUS_API domus_net_datagrams domus_testkit_net_datagrams(const domus_testkit *kit);

/* Break the link between two machines, or (`broken` false) let it work again. Ports are ignored,
 * and NULL stands for every machine. Bytes, ends, resets and connects that are on their way
 * wait, and go on when the link works; UDP datagrams that would arrive meanwhile are lost. At
 * most 16 links can be broken at a time. Returns 0; -ENOSPC; -ENOENT when such a link was not
 * broken; -EBUSY. */
DOMUS_API int domus_testkit_net_part(domus_testkit *kit, const domus_endpoint *one,
                                     const domus_endpoint *other, bool broken);

/* --- peers ----------------------------------------------------------------------------------- */

/* A simulated peer of connections, and a listener of such peers. */
typedef struct domus_peer domus_peer;
typedef struct domus_peer_listener domus_peer_listener;

typedef struct domus_peer_counts {
    uint64_t sent;      /* bytes of the peer that its socket has taken */
    uint64_t unsent;    /* bytes of the peer that wait, because its socket is full */
    uint64_t delivered; /* bytes of `sent` that the other side has received */
    uint64_t lost;      /* bytes of `sent` that were thrown away on the way */
    uint64_t received;  /* bytes that the peer has received */
    uint64_t missed; /* bytes that the other side has sent to the peer, and that were thrown away */
} domus_peer_counts;

/* Begin to connect a peer to `to`: "127.0.0.1:80", "[::1]:80", "unix:/run/a", "unix:@name". `from`
 * is the peer's own endpoint, whose port may be 0; NULL: the network chooses one.
 *
 * Ownership: the kit's, until domus_testkit_free().
 * Returns 0: the connect is under way, and what is sent meanwhile follows it; -EINVAL for a text
 * that is no endpoint; -EADDRINUSE; -ENOMEM; -EBUSY. */
DOMUS_API int domus_peer_connect(domus_testkit *kit, const char *to, const char *from,
                                 domus_peer **ret_peer);

/* Let the test listen at `at`. With port 0 the network chooses one. A `backlog` of 0 stands for
 * 128. Returns 0; -EINVAL; -EADDRINUSE; -ENOMEM; -EBUSY. */
DOMUS_API int domus_peer_listen(domus_testkit *kit, const char *at, uint32_t backlog,
                                domus_peer_listener **ret_listener);

/* Returns the endpoint at which a listener listens. */
DOMUS_API domus_endpoint domus_peer_listener_endpoint(const domus_peer_listener *listener);

/* Let a listener of the test stop listening. Connections that were not accepted are reset. */
DOMUS_API void domus_peer_listener_close(domus_peer_listener *listener);

/* Accept the next connection that comes to a listener of the test within `within_ns`. Returns 0;
 * -ETIMEDOUT; -ENOMEM; -EBUSY. */
DOMUS_API int domus_peer_accept(domus_peer_listener *listener, uint64_t within_ns,
                                domus_peer **ret_peer);

/* Wait until the connect of a peer was answered. Returns 0; -ECONNREFUSED and other errors of
 * connect(2); -ETIMEDOUT, also when there was no answer within `within_ns`. */
DOMUS_API int domus_peer_expect_connected(domus_peer *peer, uint64_t within_ns);

/* Send bytes of a peer, which are copied. Bytes that the socket does not take wait in the peer,
 * without a bound. Returns 0; -EPIPE after a finish, close or reset of either side; -ENOMEM;
 * -EBUSY. */
DOMUS_API int domus_peer_send(domus_peer *peer, const void *data, size_t size);

/* Take steps and let time pass until the peer has `size` bytes; then take these bytes, and compare
 * them. Returns 0; -EBADMSG when other bytes came (they stay); -ETIMEDOUT; -EPIPE at the end of the
 * stream, -ECONNRESET after a reset, before so many bytes had come.
 * domus_testkit_error() has a line. */
DOMUS_API int domus_peer_expect(domus_peer *peer, const void *data, size_t size,
                                uint64_t within_ns);

/* Wait for the end of the other side's stream; no unexpected byte may come before it. Returns 0;
 * -EBADMSG; -ECONNRESET; -ETIMEDOUT. */
DOMUS_API int domus_peer_expect_end(domus_peer *peer, uint64_t within_ns);

/* Wait until the connection of a peer is reset, whatever comes before. Returns 0; -EPIPE when the
 * stream ends in order; -ETIMEDOUT. */
DOMUS_API int domus_peer_expect_reset(domus_peer *peer, uint64_t within_ns);

/* Expect that within `within_ns` nothing comes: no byte, no end and no reset. Returns 0; -EBADMSG;
 * -ETIMEDOUT as of domus_testkit_run(). */
DOMUS_API int domus_peer_expect_nothing(domus_peer *peer, uint64_t within_ns);

/* Returns the bytes that have come and were not expected yet. Ownership: the peer's; valid until
 * the next call on the kit. domus_peer_take() drops the first `size` of them. */
DOMUS_API const char *domus_peer_got(const domus_peer *peer, size_t *ret_size);
DOMUS_API void domus_peer_take(domus_peer *peer, size_t size);

/* Finish the stream of a peer: the other side reads its end behind all bytes; the peer goes on
 * reading. */
DOMUS_API void domus_peer_finish(domus_peer *peer);

/* Close a peer as close(2) does: bytes that wait are still sent, but bytes that arrive later are
 * answered by a reset, and so are bytes that had arrived and were not read. */
DOMUS_API void domus_peer_close(domus_peer *peer);

/* Reset the connection of a peer; bytes that wait are thrown away. */
DOMUS_API void domus_peer_reset(domus_peer *peer);

/* Pause a peer: it stops reading, so that the buffers fill; or let it read again. */
DOMUS_API void domus_peer_pause(domus_peer *peer);
DOMUS_API void domus_peer_resume(domus_peer *peer);

/* Hold up the link of this connection: no byte passes in either direction until it is released. */
DOMUS_API void domus_peer_hold(domus_peer *peer);
DOMUS_API void domus_peer_release(domus_peer *peer);

/* Return the state of a peer, at any time. */
/* whether the connect was answered, also after the connection has ended */
DOMUS_API bool domus_peer_is_connected(const domus_peer *peer);
/* whether the end of the other side's stream was read */
DOMUS_API bool domus_peer_has_end(const domus_peer *peer);
/* the error of the peer's connection, a negative errno; 0: none */
DOMUS_API int domus_peer_error(const domus_peer *peer);
DOMUS_API domus_peer_counts domus_peer_count(const domus_peer *peer);

/* Return the endpoints of the peer and of the other side. */
DOMUS_API domus_endpoint domus_peer_endpoint(const domus_peer *peer);
DOMUS_API domus_endpoint domus_peer_remote(const domus_peer *peer);

/* --- peers of datagrams ----------------------------------------------------------------------- */

/* A scripted socket of datagrams. It receives what comes at once, unless it is paused, and keeps it
 * until the test takes or expects it. It talks to channels of domus_datagram_open() and to other
 * peers.
 *
 * A UDP datagram that nobody receives is refused, and its sender hears of that if it is connected.
 * A receive buffer has room for a UDP datagram until the datagrams in it, each with 256 B more than
 * it has, are as many bytes as the buffer; a send buffer, until as many bytes wait for the
 * network's bandwidth. Unix datagrams have no faults: they are received in their order, or the send
 * fails. 10 of them fit into the queue of a receiver. */
typedef struct domus_datagram_peer domus_datagram_peer;

/* Open a peer at `at`, as the texts of domus_peer_connect(), with port 0 for one that the network
 * chooses. With `to` the peer is connected: it sends to `to`, and receives from it, alone. `at` may
 * then be NULL: the network chooses a port, and a Unix peer has no name.
 *
 * Ownership: the kit's, until domus_testkit_free().
 * Returns 0; -EINVAL if both are NULL, or for a text that is no endpoint; -EAFNOSUPPORT for two
 * families; -EADDRINUSE; for a Unix socket `to` -ENOENT, -ECONNREFUSED, or -EPERM when that one is
 * connected to somebody else; -ENOMEM; -EBUSY. */
DOMUS_API int domus_datagram_peer_open(domus_testkit *kit, const char *at, const char *to,
                                       domus_datagram_peer **ret_peer);

/* Send a datagram to `to`; NULL: to the endpoint to which the peer is connected. The bytes are
 * copied. Returns 0; -EAGAIN when there is no room; -EMSGSIZE; -EDESTADDRREQ or -ENOTCONN when
 * there is no `to`; -ECONNREFUSED also for a datagram that was sent before; -EPERM; -ENOENT;
 * -EAFNOSUPPORT; -EINVAL for port 0; -EPIPE after a close; -ENOMEM; -EBUSY. */
DOMUS_API int domus_datagram_peer_send(domus_datagram_peer *peer, const domus_endpoint *to,
                                       const void *data, size_t size);

/* Take steps and let time pass until the peer has a datagram; then take and compare it. Returns 0;
 * -EBADMSG when it is another one (it stays); -ETIMEDOUT; -ECONNREFUSED, once for each refusal, if
 * no datagram is there; -EPIPE after a close. domus_testkit_error() has a line. */
DOMUS_API int domus_datagram_peer_expect(domus_datagram_peer *peer, const void *data, size_t size,
                                         uint64_t within_ns);

/* Expect that within `within_ns` no datagram and no refusal comes. Returns 0; -EBADMSG; -ETIMEDOUT
 * as of domus_testkit_run(). */
DOMUS_API int domus_datagram_peer_expect_nothing(domus_datagram_peer *peer, uint64_t within_ns);

/* Returns the oldest datagram that has come and was not taken; NULL: there is none. `ret_from` (may
 * be NULL) gets its sender. Ownership: the peer's; valid until domus_datagram_peer_take() drops
 * that datagram, or an expectation takes it. */
DOMUS_API const char *domus_datagram_peer_got(const domus_datagram_peer *peer, size_t *ret_size,
                                              domus_endpoint *ret_from);
DOMUS_API void domus_datagram_peer_take(domus_datagram_peer *peer);

/* Pause a peer: it stops receiving, so that the receive buffer fills; or let it receive again. */
DOMUS_API void domus_datagram_peer_pause(domus_datagram_peer *peer);
DOMUS_API void domus_datagram_peer_resume(domus_datagram_peer *peer);

/* Close a peer: datagrams in the receive buffer are thrown away, and later ones are refused.
 * Datagrams that were received stay until the test takes them. */
DOMUS_API void domus_datagram_peer_close(domus_datagram_peer *peer);

/* Returns the endpoint at which a peer is open; size 0: a Unix socket without a name. */
DOMUS_API domus_endpoint domus_datagram_peer_endpoint(const domus_datagram_peer *peer);

#ifdef __cplusplus
}
#endif

#endif
