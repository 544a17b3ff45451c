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
#ifndef DOMI_RUNTIME_NETWORK_DATAGRAM_H
#define DOMI_RUNTIME_NETWORK_DATAGRAM_H

#include "runtime/network/network.h"

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
