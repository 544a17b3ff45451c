/* Listeners: sockets that listen, the actors that accept from them, the hand-over of connections to
 * the actors that serve them, and the end. Owner thread, where nothing else is said. */
#ifndef DOMI_IO_ACCEPTORS_ACCEPTORS_H
#define DOMI_IO_ACCEPTORS_ACCEPTORS_H

#include "io/acceptors/acceptor.h"
#include "io/resources/io.h"

#include <domus/endpoint.h>

/* ---- listen.c ---------------------------------------------------------------------------------*/

/* Listening sockets. Any thread. */

/* The properties of a new listening socket. */
typedef struct domi_listen_plan {
    uint32_t backlog; /* most connections that wait to be accepted */
    bool shares_port; /* other sockets may listen at the same endpoint */
    /* options of the sockets; NULL: the options of the configuration */
    const domi_channel_settings *settings;
} domi_listen_plan;

/* Make a listening socket, whose connections get the socket options of its settings, as far as its
 * family has them. `io` is the io of any thread of the system. `ret_at` gets the endpoint, with the
 * port that the kernel has chosen. Returns the descriptor; a negative errno. */
int domi_acceptor_open(const domi_io *io, const domus_endpoint *at, const domi_listen_plan *plan,
                       domus_endpoint *ret_at);

/* Check that `fd` is a stream socket that listens, and set the options of its settings, which its
 * connections get; its address and its backlog stay. `ret_at` gets its endpoint. Returns 0;
 * -ENOTSOCK; -EPROTOTYPE if it is no stream; -ENOTCONN if it does not listen; -EAFNOSUPPORT if it
 * is neither of IPv4, IPv6 nor of Unix; another negative errno. The descriptor stays open in each
 * case. */
int domi_acceptor_adopt(const domi_io *io, int fd, const domi_listen_plan *plan,
                        domus_endpoint *ret_at);

/* Do the same as domi_acceptor_open(), for a text such as "127.0.0.1:7000", "[::1]:7000" or
 * "unix:/run/a". A socket that is left over from a service that has ended is removed from its path
 * before. `ret_port` (NULL: nothing) gets the port; 0 for a Unix socket. */
int domi_acceptor_listen(const domi_io *io, const char *address, const domi_listen_plan *plan,
                         uint16_t *ret_port);

/* ---- accept.c ---------------------------------------------------------------------------------*/

/* The accept of a listener, which is either in flight or paused. Owner thread. */

/* Arm the accept, unless it is in flight or the listener will be closed. */
void domi_acceptor_arm(domi_acceptor *acceptor);

/* Cancel the accept if it is in flight. */
void domi_acceptor_cancel(domi_acceptor *acceptor);

/* Pause the accept, and try it again later. `full` says why: true, the limits on connections and
 * memory; false, no descriptors, and then an accept that is armed again at once would fail at once,
 * for ever. */
void domi_acceptor_pause(domi_acceptor *acceptor, bool full);

/* Make the next pause short again, because a connection has come. */
void domi_acceptor_end_backoff(domi_acceptor *acceptor);

/* Pause the accept if io->pressure.pauses was set. Called after each change of that field. The
 * timer of the acceptor ends the pause. */
void domi_acceptor_apply_pressure(domi_acceptor *acceptor);

/* ---- hand_over.c ------------------------------------------------------------------------------*/

/* The hand-over of accepted connections to the channels actors that serve them. Owner thread. */

/* The payload of the event that hands a connection over. */
typedef struct domi_accepted {
    /* the connection; the event counts as one of the users of its settings */
    domi_connection connection;
    domi_io *io; /* the io of the receiving thread, whose `connections` counts this connection */
} domi_accepted;
extern const domus_type domi_accepted_type;

/* Let the actor that has got such an event adopt the connection, or reset it. */
void domi_accepted_adopt(const domi_accepted *accepted, domi_house *owner);

/* True if all threads of the system together have as many connections as they may have. */
bool domi_acceptor_is_at_max(const domi_acceptor *acceptor);

/* Returns true if the acceptor's targets are full or memory is short: no connection is handed over
 * now. */
bool domi_acceptor_is_full(const domi_acceptor *acceptor);

/* Check the source of a connection, if proxies use the listener: true if it does not come from a
 * network of proxies, and then it is counted as refused; otherwise the connection is marked as that
 * of a proxy. */
bool domi_acceptor_is_from_elsewhere(domi_acceptor *acceptor, domi_connection *arrival);

/* Reset a connection that its address may not have, and count it at its listener. */
void domi_acceptor_refuse(domi_acceptor *acceptor, int fd);

/* Turn away a connection that gets no channel. */
void domi_arrival_drop(domi_acceptor *acceptor, const domi_connection *arrival);

/* Hand a connection over to the target that has the fewest connections. If that fails, it is
 * dropped. */
void domi_arrival_hand_over(domi_acceptor *acceptor, const domi_connection *arrival);

/* Keep a connection that was accepted although there was no room. One multishot accept brings all
 * connections that wait in the backlog. If these were turned away, their peers would have to
 * connect again; so they wait here instead. */
void domi_arrival_keep(domi_acceptor *acceptor, const domi_connection *arrival);

/* Hand over as many kept connections as there is room for now. */
void domi_acceptor_serve_waiting(domi_acceptor *acceptor);

/* ---- backlog.c --------------------------------------------------------------------------------*/

/* Connections that get no channel: those that still wait to be accepted when a listener is closed,
 * and those that are turned away. Owner thread, unless a function says any thread. */

/* Reset a connection that gets no channel. Count it and the bytes that its peer had sent, also at
 * the listener that has these settings (NULL: none). Any thread. */
void domi_connection_turn_away(domi_io *io, const domi_channel_settings *settings, int fd);

/* Set the backlog of the listener to 0, so that hardly any further connection can wait. */
void domi_backlog_shrink(domi_acceptor *acceptor);

/* Accept waiting connections without blocking, at most io.completionEntries of them, and give each
 * to `take`. No operation may be in flight on the listener. Returns 0 when no connection waits any
 * more, or when so many were taken in all (131,072) that this must be a flood; -EAGAIN when there
 * may be more, for the next iteration; -EMFILE when descriptors or memory have run out. */
int domi_backlog_take(domi_acceptor *acceptor, void (*take)(domi_acceptor *acceptor, int fd));

/* Count the connections that still wait as turned away, before the listener is closed. */
void domi_backlog_count_turned_away(domi_acceptor *acceptor);

/* ---- serve.c ----------------------------------------------------------------------------------*/

/* The behaviour of acceptors, and the calls for their completions and timers. Owner thread. */

/* The behaviour of an acceptor. The state of the actor is a pointer to its domi_acceptor. Once the
 * actor was mounted, it frees the domi_acceptor at its end. */
extern const domus_behaviour domi_acceptor_behaviour;

/* Attach the acceptor to the io of its thread, and to `house`, the house of its actor. Returns 0;
 * -EMFILE when the thread has DOMI_ACCEPTORS_MAX of them. */
int domi_acceptor_attach(domi_acceptor *acceptor, domi_io *io, domi_house *house);

/* Close and free an attached acceptor. None of its operations is in flight, or the ring has
 * failed. */
void domi_acceptor_end(domi_acceptor *acceptor);

/* Free an acceptor whose actor has ended before it was mounted. Its listener is closed, and the
 * connections that waited there are counted as turned away on its first target. Called after all
 * threads have ended. NULL is allowed. */
void domi_acceptor_free_unmounted(domi_acceptor *acceptor);

/* Give a completion of `op` (an accept, or its cancel) to the acceptor that it names. */
void domi_acceptor_complete(domi_io *io, enum domi_op op, const domi_completion *completion);

/* End a pause or take the next step of a stop, because the timer of the acceptor has fired. */
void domi_acceptor_handle_timer(domi_acceptor *acceptor);

/* ---- listener_spells.c ------------------------------------------------------------------------*/

/* The spells of shortage of a listener, for the log (shortage.h). Owner thread. */

/* Record that the acceptor has reached channel.maxConnections. */
void domi_shortage_record_connections(domi_acceptor *acceptor);

/* Record that an accept has failed with `error`, a negative errno, because descriptors or memory
 * had run out. */
void domi_shortage_record_accept(domi_acceptor *acceptor, int error);

/* Record that a connection of `key` is refused, because its address has `most` connections. */
void domi_shortage_record_address(domi_acceptor *acceptor, const domi_peer_key *key, uint32_t most);

/* Log all spells of the thread that are over, also those of the receive buffers, and arm the timer
 * again while others last. The timer calls this. */
void domi_shortages_handle_timer(domi_io *io);

/* ---- stop.c -----------------------------------------------------------------------------------*/

/* The end of a listener: by a stop of its actor, in a drain, or because the ring has failed. Owner
 * thread. */

/* Add a listener that was opened (`by` is 1) or closed (UINT64_MAX) to the count. */
void domi_io_count_listener(domi_io *io, uint64_t by);

/* Handle a connection that is accepted while the listener is being closed. In a drain it is handed
 * over, beyond all limits, because a backlog is bounded and a request that is not answered now will
 * never be. */
void domi_acceptor_handle_last(domi_acceptor *acceptor, int fd);

/* Turn away the connections that wait, and close the listener. */
void domi_acceptor_close(domi_acceptor *acceptor);

/* Begin a stop: cancel the accept, and turn away waiting connections. Returns 1 while an operation
 * is still in flight or more connections may wait; 0 when the listener is closed. */
uint32_t domi_acceptor_stop(domi_acceptor *acceptor);

/* Begin a drain: hand over every connection that waits to be accepted, beyond all limits, because a
 * backlog is bounded; then close the listener. */
void domi_acceptor_drain(domi_acceptor *acceptor);

/* Turn away the connections that still wait, because the time of a drain is over. */
void domi_acceptor_abort_drain(domi_acceptor *acceptor);

/* Stop an acceptor whose ring has failed, so that the operations in flight do not come back. The
 * socket is shut down, because the ring may still hold it: new connections are refused then. */
void domi_acceptor_fail(domi_acceptor *acceptor);

/* Continue a stop when the accept or its cancel has come back, or the next step is due, once
 * nothing is in flight. The house is made ready when the listener is closed, because a stopping
 * actor waits for that. */
void domi_acceptor_continue_stop(domi_acceptor *acceptor);

#endif
