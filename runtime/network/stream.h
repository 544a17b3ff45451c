/* Calls that programs make on sockets of the network, without any ring. */
#ifndef DOMI_RUNTIME_NETWORK_STREAM_H
#define DOMI_RUNTIME_NETWORK_STREAM_H

#include "runtime/network/network.h"

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

#endif
