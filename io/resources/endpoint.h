/* Converts endpoints (domus/endpoint.h) to the socket addresses of the kernel and back. Any
 * thread. */
#ifndef DOMI_IO_RESOURCES_ENDPOINT_H
#define DOMI_IO_RESOURCES_ENDPOINT_H

#include "io/resources/io.h"

#include <domus/endpoint.h>
#include <sys/socket.h>

/* Read a socket address of the kernel, of `size` bytes, into an endpoint. An address of another
 * family, or one that is too short, gives an endpoint that names nothing. */
void domi_endpoint_from_socket_address(const struct sockaddr_storage *address, socklen_t size,
                                       domus_endpoint *ret_endpoint);

/* Write an endpoint as a socket address of the kernel. Returns its length; -EAFNOSUPPORT for an
 * endpoint that names nothing. */
int domi_endpoint_to_socket_address(const domus_endpoint *endpoint,
                                    struct sockaddr_storage *ret_address);

/* Read the endpoint of a connection's peer (`is_peer`), or the local one. Returns 0; -ENOTCONN when
 * the kernel does not tell it any more. */
int domi_endpoint_of_socket(const domi_io *io, int fd, bool is_peer, domus_endpoint *ret_endpoint);

#endif
