/* Properties of sockets, and the ways to end a connection. `io` is the io of any thread of the
 * system: only its backend is used. Any thread. */
#ifndef DOMI_IO_RESOURCES_SOCKET_H
#define DOMI_IO_RESOURCES_SOCKET_H

#include "io/resources/io.h"

#include <stdint.h>
#include <sys/socket.h>

/* Returns the number of bytes that the kernel holds for a socket: with FIONREAD the bytes that
 * nobody has read, with SIOCOUTQ the bytes that the peer has not acknowledged. Returns 0 if `fd` is
 * negative or the kernel does not tell. */
uint64_t domi_socket_count_bytes_in_kernel(const domi_io *io, int fd, unsigned long request);

/* Returns the error of a socket, a negative errno, which the kernel tells once; 0 if there is none,
 * or the kernel does not tell. When a peer has finished sending, no receive is armed that would
 * tell of a reset. */
int domi_socket_take_error(const domi_io *io, int fd);

/* Find the address of the peer of a connected socket. If none is found, the family is AF_UNSPEC. */
void domi_socket_find_address_of_peer(const domi_io *io, int fd,
                                      struct sockaddr_storage *ret_address);

/* Let the close of the socket `fd` send a reset (RST) and no FIN. */
void domi_socket_abort_at_close(const domi_io *io, int fd);

/* Close a connection by a reset (RST), because a FIN would look to the peer like an
 * empty answer. */
void domi_socket_reset(const domi_io *io, int fd);

/* Throw away the bytes that the kernel has still to send, and reset the connection, but keep the
 * descriptor. A failed ring still holds the socket, so a close would leave the connection open; and
 * after a FIN the peer would take half an answer for a whole one. */
void domi_socket_disconnect(const domi_io *io, int fd);

/* End a connection without closing its descriptor: SHUT_WR sends FIN; SHUT_RDWR also ends the
 * operations in flight on the socket. */
void domi_socket_shutdown(const domi_io *io, int fd, int how);

/* Close a socket that was never used in a ring, or whose ring has ended. */
void domi_socket_close(const domi_io *io, int fd);

/* Close a socket on which operations of this io's ring were begun. Owner thread. */
void domi_socket_close_used_in_ring(const domi_io *io, int fd);

#endif
