/* The parts of the simulated network: sockets and their names, links that may break, events in
 * time, connections, streams and datagrams. One thread at a time: that of the simulator. */
#ifndef DOMI_RUNTIME_NETWORK_PARTS_H
#define DOMI_RUNTIME_NETWORK_PARTS_H

#include "io/backend/backend.h"
#include "runtime/network/network.h"

/* ---- life.c -----------------------------------------------------------------------------------*/

/* The life of a network as a whole. */

/* Make a network at the time `now_ns`. Returns NULL if there is no memory. */
domi_net *domi_net_new(uint64_t seed, uint64_t now_ns);

/* Free the network with everything in it. All rings are closed. NULL is allowed. */
void domi_net_free(domi_net *net);

/* Break the link between two machines, or repair it (domus_testkit_net_part). */
int domi_net_part(domi_net *net, const domus_endpoint *one, const domus_endpoint *other,
                  bool is_broken);

/* ---- socket.c ---------------------------------------------------------------------------------*/

/* Sockets of the network, and their descriptors. stream.c has what programs do with them. */

/* Make a socket without a descriptor. Returns NULL if there is no memory. */
domi_net_socket *domi_net_socket_new(domi_net *net, uint16_t family);

/* Free a socket that nothing refers to any more. */
void domi_net_socket_free(domi_net_socket *socket);

/* Give a socket a descriptor. Returns it; -ENOMEM. */
int domi_net_socket_open(domi_net_socket *socket);

/* Returns the socket of a descriptor; NULL: there is none. */
domi_net_socket *domi_net_socket_find(const domi_net *net, int fd);

/* Tell the ring or the peer that the socket may have become readable or writable. */
void domi_net_socket_changed(domi_net_socket *socket);

/* Drop the operations that wait at the socket, and take it out of the list in which it is. */
void domi_net_socket_forget(domi_net_socket *socket);

/* ---- sockets.c --------------------------------------------------------------------------------*/

/* The calls on sockets, for the backend of the network (ring.h). */

extern const domi_sockets domi_net_sockets;

/* ---- names.c ----------------------------------------------------------------------------------*/

/* Names of sockets: who listens where, and which ports are taken. */

/* Give a socket its name; port 0 chooses one, and a Unix socket whose endpoint has no name gets an
 * abstract one. Returns 0; -EINVAL if it has one already;
 * -EADDRINUSE. */
int domi_net_bind(domi_net_socket *socket, const domus_endpoint *at);

/* Give a socket that is about to connect to `to` a name, if it has none. Returns 0; -EADDRINUSE. */
int domi_net_bind_for(domi_net_socket *socket, const domus_endpoint *to);

/* Take the name of a socket away, if it has one. */
void domi_net_unbind(domi_net_socket *socket);

/* Returns the socket that gets a connect to `at`; NULL: nobody listens there. Among listeners that
 * share a port the seed chooses. */
domi_net_socket *domi_net_find_listener(domi_net *net, const domus_endpoint *at);

/* Returns the socket that gets a datagram; NULL: there is none. One that is connected gets only
 * what its peer sends. Among sockets that share a port the sender decides, so that all that one
 * sender sends comes to one socket. */
domi_net_socket *domi_net_find_receiver(const domi_net *net, const domus_endpoint *from,
                                        const domus_endpoint *to);

/* True for 0.0.0.0 and [::]. */
bool domi_net_is_any(const domus_endpoint *at);

/* ---- links.c ----------------------------------------------------------------------------------*/

/* Links between machines, which a test may break. */

/* True if both endpoints are on one machine: the ports may differ. */
bool domi_net_is_same_host(const domus_endpoint *one, const domus_endpoint *other);

/* True if the link between the machines of these endpoints is broken. */
bool domi_net_is_link_broken(const domi_net *net, const domus_endpoint *one,
                             const domus_endpoint *other);

/* True if nothing passes on the link of this connection now. */
bool domi_net_is_blocked(const domi_net_connection *connection);

/* Break the link between two machines; NULL: every machine. Returns 0; -ENOSPC. */
int domi_net_break_link(domi_net *net, const domus_endpoint *one, const domus_endpoint *other);

/* Repair such a link; the caller lets go on what was held up. Returns 0; -ENOENT. */
int domi_net_repair_link(domi_net *net, const domus_endpoint *one, const domus_endpoint *other);

/* ---- events.c ---------------------------------------------------------------------------------*/

/* The events of a network, in a heap by the time at which they are due; chance; and the notes that
 * a trace shows. */

/* Set the time to `now_ns`, and carry out the events that are due by then. */
void domi_net_advance(domi_net *net, uint64_t now_ns);

/* Returns when the next event is due; UINT64_MAX: there is none. */
uint64_t domi_net_due_ns(const domi_net *net);

/* Add an event that is due at `due_ns`. Returns whether there was memory; if not, the network notes
 * it, and what the event owns stays with the caller. */
bool domi_net_add_event(domi_net *net, const domi_net_event *event);

/* The link of a connection works again: what was held up goes on. */
void domi_net_release_held(domi_net_connection *connection);

/* Returns true as often as `of_a_million` says. */
bool domi_net_draw(domi_net *net, uint32_t of_a_million);

/* Draw the errno with which a call that makes a socket fails by a fault; 0: none. */
int domi_net_draw_failure(domi_net *net);

/* Draw the time that something takes from one side to the other. */
uint64_t domi_net_draw_latency(domi_net *net);

/* Tell the trace. */
void domi_net_tell(const domi_net_connection *connection, const char *what, uint8_t side,
                   uint64_t amount);

void domi_net_tell_datagram(const domi_net *net, const char *what,
                            const domi_net_datagram *datagram);

/* Returns how many datagrams were sent or doubled, and have not come to an end yet. */
uint64_t domi_net_datagrams_in_flight(const domi_net *net);

/* Check that every byte and every datagram is accounted for. */
void domi_net_check(const domi_net *net);

/* ---- connection.c -----------------------------------------------------------------------------*/

/* The life of connections: connects, what goes to and fro, ends, resets. */

/* Begin a connect from `socket`, whose `local` is set, to `to`. Returns 0; -ENOMEM. */
int domi_net_connect(domi_net_socket *socket, const domus_endpoint *to);

/* Do the same as domi_net_connect() for a Unix socket, which is answered at once. Returns 0;
 * -ECONNREFUSED; -EAGAIN when the queue of the listener is full; -ENOMEM. */
int domi_net_connect_unix(domi_net_socket *socket, const domus_endpoint *to);

/* Let bytes that wait leave for `side`, as far as there is room, and the end behind them. */
void domi_net_push(domi_net_connection *connection, uint8_t side);

/* `side` sends no more: the end follows behind all bytes. */
void domi_net_finish(domi_net_connection *connection, uint8_t side);

/* `side` resets the connection. Bytes that it has not sent are thrown away. */
void domi_net_reset(domi_net_connection *connection, uint8_t side);

/* The socket of `side` is closed in order, and is freed by the caller. Bytes that wait are sent. */
void domi_net_leave(domi_net_connection *connection, uint8_t side);

/* Do what an event that is due says about its connection. */
void domi_net_connection_carry_out(const domi_net_event *event);

/* Free the connection if both sides are closed and nothing is on its way. */
void domi_net_connection_free_if_over(domi_net_connection *connection);
void domi_net_connection_free(domi_net_connection *connection);

/* ---- stream.c ---------------------------------------------------------------------------------*/

/* Calls that programs make on sockets of the network, without any ring. */

/* Close a socket, and free it. */
void domi_net_socket_close(domi_net_socket *socket);

/* Reset the connections that wait at a listener. */
void domi_net_socket_drop_waiting(domi_net_socket *listener);

/* Listen, or change the backlog. Returns 0; -EINVAL. */
int domi_net_socket_listen(domi_net_socket *socket, int backlog);

/* Take the oldest connection that waits, without a descriptor. NULL: none waits. */
domi_net_socket *domi_net_socket_accept(domi_net_socket *listener);

/* Begin a connect. Returns 0 if it is under way or done; a negative errno. */
int domi_net_socket_connect(domi_net_socket *socket, const domus_endpoint *to);

/* Receive up to `size` bytes. Returns how many; 0 at the end; -EAGAIN; another negative errno. */
int domi_net_socket_receive(domi_net_socket *socket, void *data, uint32_t size);

/* Send up to `size` bytes. Returns how many; -EAGAIN when there is no room; another
 * negative errno. */
int domi_net_socket_send(domi_net_socket *socket, const void *data, uint32_t size);

/* Returns what a poll(2) of the socket would tell now: POLLIN, POLLOUT and others. */
uint32_t domi_net_socket_events(const domi_net_socket *socket);

/* Returns and clears the error of the socket, a positive errno. */
int domi_net_socket_take_error(domi_net_socket *socket);

/* ---- datagram.c -------------------------------------------------------------------------------*/

/* Datagrams of the simulated network: UDP, and Unix sockets of type SOCK_DGRAM.
 *
 * A UDP datagram is an event that is due when it arrives. It may be lost, doubled or held up on its
 * way, and it finds its receiver when it arrives. If there is none, a word about that goes back,
 * which only a connected sender hears. A Unix datagram is with its receiver at once, or the send
 * fails, as in the kernel.
 *
 * Each datagram comes to one of four ends: it is received, lost, overflows (the receiver has no
 * room) or is unclaimed (there is no receiver, or it was closed). So sent + doubled == received +
 * lost + overflowed + unclaimed + in flight. */

/* Send a datagram to `to`; NULL: to the peer of the socket. The bytes are copied. Returns 0;
 * -EAGAIN when there is no room; -EMSGSIZE; -EDESTADDRREQ or -ENOTCONN if there is no peer;
 * -ECONNREFUSED or -ENOENT; the error of a datagram sent before; -EPERM for a Unix receiver that is
 * connected to somebody else; -EAFNOSUPPORT; -EINVAL for port 0; -EADDRINUSE; -ENOMEM. */
int domi_net_datagram_send(domi_net_socket *socket, const domus_endpoint *to, const void *data,
                           uint32_t size);

/* Take the oldest datagram that has arrived, which the caller frees with domi_memory_free().
 * Returns 0; the error of a datagram that was sent; -ESHUTDOWN after a shutdown; -EAGAIN. */
int domi_net_datagram_receive(domi_net_socket *socket, domi_net_datagram **ret_datagram);

/* Connect a socket to `to`, or (family 0) to nobody. Returns 0; the errors of the send that are
 * about the receiver. */
int domi_net_datagram_connect(domi_net_socket *socket, const domus_endpoint *to);

/* Returns what a poll(2) of the socket would tell now. */
uint32_t domi_net_datagram_events(const domi_net_socket *socket);

/* Tell the sockets that are connected to this Unix socket that it has room, or is gone. */
void domi_net_datagram_tell_senders(const domi_net_socket *receiver);

/* Do what an event that is due says about a datagram, or about room for one. */
void domi_net_datagram_carry_out(domi_net *net, const domi_net_event *event);

#endif
