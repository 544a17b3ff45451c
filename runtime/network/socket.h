/* Sockets of the network, and their descriptors. stream.h has what programs do with them. */
#ifndef DOMI_RUNTIME_NETWORK_SOCKET_H
#define DOMI_RUNTIME_NETWORK_SOCKET_H

#include "runtime/network/network.h"

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

#endif
