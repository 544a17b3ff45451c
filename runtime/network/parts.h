/* The parts of the simulated network: sockets and their names, links that may break, events in
 * time, connections, streams and datagrams. One thread at a time: that of the simulator. */
#ifndef DOMI_RUNTIME_NETWORK_PARTS_H
#define DOMI_RUNTIME_NETWORK_PARTS_H

#include "io/backend/backend.h"
#include "runtime/network/network.h"

/* ---- life.c -----------------------------------------------------------------------------------*/

/* The life of a simulated network as a whole. */

/* Make a simulated network whose time begins at `now_ns`. Returns NULL if there is no memory. */
domi_net *domi_net_new(uint64_t seed, uint64_t now_ns);

/* Free a simulated network with everything in it. All its rings must be closed before. NULL is
 * allowed. */
void domi_net_free(domi_net *net);

/* Break the link between two machines, or repair it (`is_broken` says which), for
 * domus_testkit_net_part(). */
int domi_net_set_link_broken(domi_net *net, const domus_endpoint *one, const domus_endpoint *other,
                             bool is_broken);

/* ---- socket.c ---------------------------------------------------------------------------------*/

/* Sockets of the simulated network, and their descriptors. The calls of programs on sockets are in
 * stream.c. */

/* Make a socket of the simulated network, without a descriptor. Returns NULL if there is no
 * memory. */
domi_net_socket *domi_net_socket_new(domi_net *net, uint16_t family);

/* Free a socket of the simulated network to which nothing refers any more. */
void domi_net_socket_free(domi_net_socket *socket);

/* Give a socket the lowest free descriptor of the network. Returns the descriptor; -ENOMEM. */
int domi_net_socket_add_descriptor(domi_net_socket *socket);

/* Returns the socket that has the descriptor `fd`; NULL: there is none. */
domi_net_socket *domi_net_socket_find_by_descriptor(const domi_net *net, int fd);

/* Call the socket's function `changed`, because the socket may have become readable or writable. */
void domi_net_socket_notify_change(domi_net_socket *socket);

/* Drop the operations that wait at a socket, and remove the socket from the list of ready
 * sockets. */
void domi_net_socket_drop_operations(domi_net_socket *socket);

/* ---- sockets.c --------------------------------------------------------------------------------*/

/* Functions for the calls on sockets, which the backend of the network offers to io (ring.h). */

extern const domi_sockets domi_net_sockets;

/* ---- names.c ----------------------------------------------------------------------------------*/

/* Names (addresses) of simulated sockets: which socket listens where, and which ports are in
 * use. */

/* Bind a socket to the name `at`. Port 0 means a port that the network chooses, and a Unix endpoint
 * without a name an abstract name. Returns 0; -EINVAL if the socket has a name already;
 * -EADDRINUSE. */
int domi_net_bind_socket(domi_net_socket *socket, const domus_endpoint *at);

/* Bind a socket that is about to connect to `to`, unless it has a name. Returns 0; -EADDRINUSE. */
int domi_net_bind_if_unbound(domi_net_socket *socket, const domus_endpoint *to);

/* Remove the name of a socket, if it has one, so that no connect or datagram finds the socket. */
void domi_net_remove_name_of_socket(domi_net_socket *socket);

/* Returns the listener that gets a connect to the address `at`; NULL: no socket listens there.
 * Among listeners that share a port one is drawn at random. */
domi_net_socket *domi_net_find_listener(domi_net *net, const domus_endpoint *at);

/* Returns the socket that receives a datagram which is sent from `from` to `to`; NULL: there is
 * none. A connected socket receives only what its peer sends. Among sockets that share a port
 * the sender's address decides, so that all datagrams of one sender come to one socket. */
domi_net_socket *domi_net_find_receiver(const domi_net *net, const domus_endpoint *from,
                                        const domus_endpoint *to);

/* True if the address of an endpoint is 0.0.0.0 or [::]. */
bool domi_net_is_any_address(const domus_endpoint *at);

/* ---- links.c ----------------------------------------------------------------------------------*/

/* Links between the simulated machines, which a test may break. */

/* True if both endpoints are on one machine, which means that they have the same address; their
 * ports may differ. */
bool domi_net_is_same_host(const domus_endpoint *one, const domus_endpoint *other);

/* True if a test has broken the link between the machines of the two endpoints. */
bool domi_net_is_link_broken(const domi_net *net, const domus_endpoint *one,
                             const domus_endpoint *other);

/* True if nothing passes on a connection now, because its link is broken or a test holds it. */
bool domi_net_is_connection_blocked(const domi_net_connection *connection);

/* Break the link between two machines; NULL stands for every machine. Returns 0; -ENOSPC. */
int domi_net_break_link(domi_net *net, const domus_endpoint *one, const domus_endpoint *other);

/* Repair the broken link between two machines; the caller then releases the events that the link
 * has held up. Returns 0; -ENOENT. */
int domi_net_repair_link(domi_net *net, const domus_endpoint *one, const domus_endpoint *other);

/* ---- events.c ---------------------------------------------------------------------------------*/

/* The events of a simulated network, in a heap by the time at which they are due; its random draws;
 * and its entries for the trace. */

/* Set the network's time to `now_ns`, and carry out all events that are due by then. */
void domi_net_advance_time(domi_net *net, uint64_t now_ns);

/* Returns when the network's next event is due; UINT64_MAX: there is none. */
uint64_t domi_net_time_of_next_event(const domi_net *net);

/* Add a copy of an event to the heap, which is carried out at its `due_ns`. Returns false if
 * there is no memory; then the network records that, and the caller still owns what the event
 * owns. */
bool domi_net_add_event(domi_net *net, const domi_net_event *event);

/* Put the events that were held up on a connection back into the heap, because the connection is
 * not blocked any more. */
void domi_net_release_held_events(domi_net_connection *connection);

/* Draw whether a fault happens: true with a probability of `of_a_million` / 1,000,000. */
bool domi_net_draw_whether_fault_happens(domi_net *net, uint32_t of_a_million);

/* Draw whether a call that makes a socket fails. Returns the negative errno with which the call
 * fails; 0: it does not fail. */
int domi_net_draw_socket_failure(domi_net *net);

/* Draw the simulated time that a packet takes from one side to the other. */
uint64_t domi_net_draw_latency_of_packet(domi_net *net);

/* Write an entry about a connection or a datagram to the trace of the test kit. */
void domi_net_trace_event_of_connection(const domi_net_connection *connection, const char *what,
                                        uint8_t side, uint64_t amount);

void domi_net_trace_event_of_datagram(const domi_net *net, const char *what,
                                      const domi_net_datagram *datagram);

/* Returns how many datagrams of the network are under way or wait to be received. */
uint64_t domi_net_count_datagrams_in_flight(const domi_net *net);

/* Check that each byte and each datagram of the network is accounted for by the counts. */
void domi_net_check_that_counts_add_up(const domi_net *net);

/* ---- connection.c -----------------------------------------------------------------------------*/

/* The life of a simulated connection: it is opened, carries bytes both ways, ends or is reset. */

/* Begin a connect from `socket`, whose address `local` is set, to the address `to`. Returns 0;
 * -ENOMEM. */
int domi_net_begin_connect(domi_net_socket *socket, const domus_endpoint *to);

/* Do what domi_net_begin_connect() does, but for a Unix socket, whose connect is answered at once.
 * Returns 0; -ECONNREFUSED; -EAGAIN when the queue of the listener is full; -ENOMEM. */
int domi_net_connect_unix(domi_net_socket *socket, const domus_endpoint *to);

/* Let the bytes that wait in the pipe to `side` leave, as far as the window allows, and the end
 * of the stream behind them. */
void domi_net_send_waiting_bytes(domi_net_connection *connection, uint8_t side);

/* Finish the stream that `side` sends: the end follows behind all its bytes. */
void domi_net_finish_stream_of_side(domi_net_connection *connection, uint8_t side);

/* Reset the connection from `side`. The bytes that this side has not sent yet are thrown away. */
void domi_net_reset_connection(domi_net_connection *connection, uint8_t side);

/* Close `side` of a connection in order: bytes that wait there are still sent. The caller frees
 * the side's socket. */
void domi_net_close_side_of_connection(domi_net_connection *connection, uint8_t side);

/* Carry out an event of a connection that is due now. */
void domi_net_carry_out_connection_event(const domi_net_event *event);

/* Free a connection if both its sides are closed and no event of it is left. */
void domi_net_connection_free_if_over(domi_net_connection *connection);
void domi_net_connection_free(domi_net_connection *connection);

/* ---- stream.c ---------------------------------------------------------------------------------*/

/* The calls that programs make on sockets of the simulated network; they need no ring. */

/* Close a socket, with what its kind demands of its connection, and free it. */
void domi_net_socket_close(domi_net_socket *socket);

/* Reset all connections that wait in a listener's queue. */
void domi_net_socket_reset_unaccepted(domi_net_socket *listener);

/* Let a socket listen, or change the backlog of a listener. Returns 0; -EINVAL. */
int domi_net_socket_listen(domi_net_socket *socket, int backlog);

/* Accept the oldest waiting connection of a listener. Returns its socket, which has no descriptor
 * yet; NULL: none waits. */
domi_net_socket *domi_net_socket_accept(domi_net_socket *listener);

/* Begin a connect of a socket to `to`. Returns 0 if the connect is under way or done; a negative
 * errno. */
int domi_net_socket_connect(domi_net_socket *socket, const domus_endpoint *to);

/* Receive up to `size` bytes from a stream socket. Returns how many; 0 at the end of the stream;
 * -EAGAIN; another negative errno. */
int domi_net_socket_receive(domi_net_socket *socket, void *data, uint32_t size);

/* Send up to `size` bytes by a stream socket. Returns how many it took; -EAGAIN when there is no
 * room; another negative errno. */
int domi_net_socket_send(domi_net_socket *socket, const void *data, uint32_t size);

/* Returns the events that poll(2) would report of the socket now: POLLIN, POLLOUT and others. */
uint32_t domi_net_socket_get_poll_events(const domi_net_socket *socket);

/* Returns the pending error of a socket, a positive errno, and clears it. */
int domi_net_socket_take_error(domi_net_socket *socket);

/* ---- datagram.c -------------------------------------------------------------------------------*/

/* Datagrams of the simulated network: UDP, and Unix sockets of type SOCK_DGRAM.
 *
 * A UDP datagram is an event that is due when the datagram arrives. The network may lose, double or
 * delay it, and looks for the receiver when it arrives. If there is no receiver, a refusal goes
 * back, which only a connected sender is told of. A Unix datagram arrives at once, or the send
 * fails, as in the kernel.
 *
 * Each datagram comes to one of four ends: it is received, lost, overflows (the receiver has no
 * room) or is unclaimed (there is no receiver, or the receiver was closed). So sent + doubled ==
 * received + lost + overflowed + unclaimed + in flight. */

/* Send a datagram to `to`; NULL: to the peer of the socket. The bytes are copied. Returns 0;
 * -EAGAIN when there is no room; -EMSGSIZE; -EDESTADDRREQ or -ENOTCONN if there is no peer;
 * -ECONNREFUSED or -ENOENT; the error of a datagram sent before; -EPERM for a Unix receiver that is
 * connected to somebody else; -EAFNOSUPPORT; -EINVAL for port 0; -EADDRINUSE; -ENOMEM. */
int domi_net_datagram_send(domi_net_socket *socket, const domus_endpoint *to, const void *data,
                           uint32_t size);

/* Receive the oldest datagram that has arrived; the caller frees it with domi_memory_free().
 * Returns 0; the error of a datagram that was sent before; -ESHUTDOWN after a shutdown; -EAGAIN. */
int domi_net_datagram_receive(domi_net_socket *socket, domi_net_datagram **ret_datagram);

/* Connect a datagram socket to `to`, or disconnect it if the family of `to` is 0. Returns 0; the
 * errors of a send that concern the receiver. */
int domi_net_datagram_connect(domi_net_socket *socket, const domus_endpoint *to);

/* Returns the events that poll(2) would report of the datagram socket now. */
uint32_t domi_net_datagram_get_poll_events(const domi_net_socket *socket);

/* Notify the sockets that are connected to this Unix datagram socket that it has room again, or is
 * closed. */
void domi_net_datagram_notify_senders(const domi_net_socket *receiver);

/* Carry out a due event about a datagram, or about room in a socket's send buffer. */
void domi_net_carry_out_datagram_event(domi_net *net, const domi_net_event *event);

#endif
