/* Listeners: their sockets, the acceptors (the actors that accept connections from them), the
 * hand-over of connections to the actors that serve them, and the close of a listener. Owner
 * thread, where nothing else is said. */
#ifndef DOMI_IO_ACCEPTORS_ACCEPTORS_H
#define DOMI_IO_ACCEPTORS_ACCEPTORS_H

#include "io/acceptors/acceptor.h"
#include "io/resources/io.h"

#include <domus/endpoint.h>

/* ---- listen.c ---------------------------------------------------------------------------------*/

/* Functions that make listening sockets, or take them over. Any thread. */

/* The plan of a new listening socket: its backlog, whether others share its port, and its
 * options. */
typedef struct domi_listen_plan {
    uint32_t backlog; /* most connections that may wait in the listener's backlog to be accepted */
    /* other sockets may listen at the same endpoint as this listener (SO_REUSEPORT) */
    bool shares_port;
    /* options of the listener's sockets; NULL: the options of the configuration */
    const domi_channel_settings *settings;
} domi_listen_plan;

/* Make a listening socket, whose connections get the socket options of its settings, as far as its
 * family has them. `io` is the io of any thread of the system. `ret_at` gets the endpoint, with the
 * port that the kernel has chosen. Returns the descriptor; a negative errno. */
int domi_acceptor_open_listener(const domi_io *io, const domus_endpoint *at,
                                const domi_listen_plan *plan, domus_endpoint *ret_at);

/* Check that `fd` is a stream socket that listens, and set the options of its settings, which its
 * connections get; its address and its backlog stay. `ret_at` gets its endpoint. Returns 0;
 * -ENOTSOCK; -EPROTOTYPE if it is no stream; -ENOTCONN if it does not listen; -EAFNOSUPPORT if it
 * is neither of IPv4, IPv6 nor of Unix; another negative errno. The descriptor stays open in each
 * case. */
int domi_acceptor_adopt_listener(const domi_io *io, int fd, const domi_listen_plan *plan,
                                 domus_endpoint *ret_at);

/* Make a listening socket as domi_acceptor_open_listener() does, for an address as text, such as
 * "127.0.0.1:7000", "[::1]:7000" or "unix:/run/a". A Unix socket that is left over from a service
 * that has ended is removed from its path before. `ret_port` (NULL: nothing) gets the port; 0 for a
 * Unix socket. */
int domi_acceptor_listen_at_address(const domi_io *io, const char *address,
                                    const domi_listen_plan *plan, uint16_t *ret_port);

/* ---- accept.c ---------------------------------------------------------------------------------*/

/* The accept of a listener, which is either in flight or paused. Owner thread. */

/* Arm the accept of a listener, unless it is in flight or the listener will be closed. */
void domi_acceptor_arm_accept(domi_acceptor *acceptor);

/* Cancel the accept of a listener if it is in flight. */
void domi_acceptor_cancel_accept(domi_acceptor *acceptor);

/* Pause the accept of a listener, and try it again later. `full` says why: true, the limits on
 * connections or memory are reached; false, no descriptors are free, and then an accept that is
 * armed again at once would fail at once, for ever. */
void domi_acceptor_pause_accept(domi_acceptor *acceptor, bool full);

/* Make the acceptor's next pause as short as its first one again, because a connection has come. */
void domi_acceptor_reset_backoff(domi_acceptor *acceptor);

/* Pause the accept of a listener if memory is so short that io->pressure.pauses is set. Called
 * after each change of that field. The timer of the acceptor ends the pause. */
void domi_acceptor_pause_if_memory_is_short(domi_acceptor *acceptor);

/* ---- hand_over.c ------------------------------------------------------------------------------*/

/* The hand-over of accepted connections to the channels actors that serve them. Owner thread. */

/* The payload of the event that hands an accepted connection over to an actor. */
typedef struct domi_accepted {
    /* the connection that is handed over; the event counts as one of the users of its settings */
    domi_connection connection;
    /* the io of the thread that gets the connection; its field `connections` counts this
     * connection */
    domi_io *io;
} domi_accepted;
extern const domus_type domi_accepted_type;

/* Let the actor that handles the event of a handed-over connection make a channel of the
 * connection; if that fails, reset the connection. */
void domi_accepted_make_channel_or_reset(const domi_accepted *accepted, domi_house *owner);

/* True if all threads of the system together have accepted as many connections as they may have
 * (channel.maxConnections). */
bool domi_acceptor_is_at_max_connections(const domi_acceptor *acceptor);

/* Returns true if all threads to which the acceptor hands connections have as many as they may
 * have, or if memory is short; then no connection is handed over now. */
bool domi_acceptor_has_no_room_for_arrival(const domi_acceptor *acceptor);

/* Check where a connection comes from, if proxies use the listener. Returns true if it does not
 * come from a network of proxies, and then it is counted as refused; otherwise the connection is
 * marked as that of a proxy. */
bool domi_acceptor_check_proxy_source(domi_acceptor *acceptor, domi_connection *arrival);

/* Reset a connection whose address has all connections that it may have, and count it at its
 * listener. */
void domi_acceptor_refuse_connection(domi_acceptor *acceptor, int fd);

/* Reset and count an accepted connection that gets no channel. */
void domi_arrival_turn_away(domi_acceptor *acceptor, const domi_connection *arrival);

/* Hand an accepted connection over to the target that has the fewest connections. If that fails,
 * the connection is reset and counted. */
void domi_arrival_hand_to_target(domi_acceptor *acceptor, const domi_connection *arrival);

/* Keep an accepted connection for which there is no room, until there is. One multishot accept
 * brings all connections that wait in the backlog. If these were turned away, their peers would
 * have to connect again, so they wait in the acceptor instead. */
void domi_arrival_keep_until_there_is_room(domi_acceptor *acceptor, const domi_connection *arrival);

/* Hand over as many of the acceptor's kept connections as there is room for now. */
void domi_acceptor_hand_over_waiting_arrivals(domi_acceptor *acceptor);

/* ---- backlog.c --------------------------------------------------------------------------------*/

/* Connections that get no channel: those that still wait to be accepted when a listener is closed,
 * and those that are turned away. Owner thread, unless a function says any thread. */

/* Reset an accepted connection that gets no channel. Count it and the bytes that its peer had sent,
 * also at the listener that has these settings (NULL: none). Any thread. */
void domi_connection_reset_and_count(domi_io *io, const domi_channel_settings *settings, int fd);

/* Set the backlog of the listener to 0 before it is closed, so that hardly any further connection
 * can wait. */
void domi_backlog_set_to_zero(domi_acceptor *acceptor);

/* Accept waiting connections without blocking, at most io.completionEntries of them, and give each
 * to `take`. No operation may be in flight on the listener. Returns 0 when no connection waits any
 * more, or when so many were taken in all (131,072) that this must be a flood; -EAGAIN when there
 * may be more, for the next iteration; -EMFILE when descriptors or memory have run out. */
int domi_backlog_accept_waiting(domi_acceptor *acceptor,
                                void (*take)(domi_acceptor *acceptor, int fd));

/* Count the connections that still wait in the listener's backlog as turned away, before the
 * listener is closed. */
void domi_backlog_count_as_turned_away(domi_acceptor *acceptor);

/* ---- serve.c ----------------------------------------------------------------------------------*/

/* The behaviour of acceptors, and the calls for their completions and timers. Owner thread. */

/* The behaviour of an acceptor. The state of the actor is a pointer to its domi_acceptor. Once the
 * actor was mounted, it frees the domi_acceptor at its end. */
extern const domus_behaviour domi_acceptor_behaviour;

/* Attach the acceptor to the io of its thread, and to `house`, the house of its actor. Returns 0;
 * -EMFILE when the thread has DOMI_ACCEPTORS_MAX acceptors. */
int domi_acceptor_attach_to_io(domi_acceptor *acceptor, domi_io *io, domi_house *house);

/* Close the listener of an attached acceptor, and free the acceptor. None of its operations may be
 * in flight, unless the ring has failed. */
void domi_acceptor_close_and_free(domi_acceptor *acceptor);

/* Free an acceptor whose actor has ended before it was mounted. Its listener is closed, and the
 * connections that waited there are counted as turned away on its first target. Called after all
 * threads have ended. An `acceptor` of NULL is allowed. */
void domi_acceptor_free_unmounted(domi_acceptor *acceptor);

/* Give a completion of `op` (an accept, or its cancel) to the acceptor that it names. */
void domi_acceptor_handle_completion(domi_io *io, enum domi_op op,
                                     const domi_completion *completion);

/* Handle the timer of the acceptor, which has fired: end the pause, or take the next step of a
 * stop. */
void domi_acceptor_end_pause_or_continue_stop(domi_acceptor *acceptor);

/* ---- listener_spells.c ------------------------------------------------------------------------*/

/* The spells of shortage of a listener, for the log (shortage.h). Owner thread. */

/* Record a shortage at the acceptor: channel.maxConnections is reached. */
void domi_shortage_record_max_connections(domi_acceptor *acceptor);

/* Record that an accept has failed with `error`, a negative errno, because descriptors or memory
 * had run out. */
void domi_shortage_record_failed_accept(domi_acceptor *acceptor, int error);

/* Record that a connection is refused, because its address, `key`, has `most` connections
 * already. */
void domi_shortage_record_full_address(domi_acceptor *acceptor, const domi_peer_key *key,
                                       uint32_t most);

/* Log the end of all spells of shortage of the thread that are over, also those of its receive
 * buffers, and arm the timer again while other spells last. The timer calls this. */
void domi_shortages_end_spells_at_timer(domi_io *io);

/* ---- stop.c -----------------------------------------------------------------------------------*/

/* The end of a listener: by a stop of its actor, in a drain, or because the ring has failed. Owner
 * thread. */

/* Count a change in the number of open listeners: `by` is 1 for one that was opened, and UINT64_MAX
 * (that is -1) for one that was closed. */
void domi_io_count_open_listener(domi_io *io, uint64_t by);

/* Handle a connection that is accepted while the listener is being closed. In a drain it is handed
 * over, beyond all limits, because a backlog is bounded and a request that is not answered now will
 * never be. */
void domi_acceptor_handle_late_connection(domi_acceptor *acceptor, int fd);

/* Turn away the connections that wait in the acceptor or its backlog, and close the listener. */
void domi_acceptor_close_listener(domi_acceptor *acceptor);

/* Begin to stop an acceptor: cancel its accept, and turn away waiting connections. Returns 1 while
 * an operation is still in flight or more connections may wait; 0 when the listener is closed. */
uint32_t domi_acceptor_begin_stop(domi_acceptor *acceptor);

/* Begin to drain a listener: hand over every connection that waits to be accepted, beyond all
 * limits, because a backlog is bounded; then close the listener. */
void domi_acceptor_begin_drain(domi_acceptor *acceptor);

/* Turn away the connections that still wait at a draining listener, because the time of the drain
 * is over. */
void domi_acceptor_abort_drain(domi_acceptor *acceptor);

/* Stop an acceptor whose ring has failed, so that its operations in flight never complete. The
 * socket is shut down, because the ring may still hold it: new connections are refused then. */
void domi_acceptor_stop_after_ring_failure(domi_acceptor *acceptor);

/* Continue the stop of an acceptor, because the accept or its cancel has come back, or the next
 * step is due; nothing happens while an operation is in flight. When the listener is closed, the
 * acceptor's house is made ready, because a stopping actor waits for that. */
void domi_acceptor_continue_stop(domi_acceptor *acceptor);

#endif
