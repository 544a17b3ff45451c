/* The questions that io asks the kernel about a socket, and the ways in which a connection ends.
 * Any thread. */
#ifndef DOMI_IO_RESOURCES_SOCKET_H
#define DOMI_IO_RESOURCES_SOCKET_H

#include <stdint.h>
#include <sys/socket.h>

/* Returns how many bytes the kernel holds for a socket. With FIONREAD these are bytes that nobody
 * has read, with SIOCOUTQ bytes that the peer has not acknowledged. Returns 0 if `fd` is negative
 * or the kernel does not tell. */
uint64_t domi_socket_bytes(int fd, unsigned long request);

/* Find the address of a peer. If none is found, the family is AF_UNSPEC. */
void domi_socket_name_peer(int fd, struct sockaddr_storage *ret_address);

/* Let the close of `fd` send a reset (RST). */
void domi_socket_abort_at_close(int fd);

/* Close a connection by a reset (RST), because a FIN would look to the peer like an empty answer.
 */
void domi_socket_reset(int fd);

/* Take the queued bytes away from the kernel and reset the connection, but keep the descriptor. A
 * ring that has failed still holds the socket, so a close would leave the connection open; and
 * after a FIN the peer would take half an answer for a whole one. */
void domi_socket_disconnect(int fd);

#endif
