/* Endpoints and the socket addresses of the kernel (domus/endpoint.h). Any thread. */
#ifndef DOMI_IO_RESOURCES_ENDPOINT_H
#define DOMI_IO_RESOURCES_ENDPOINT_H

#include "io/resources/io.h"

#include <domus/endpoint.h>
#include <sys/socket.h>

/* Read a socket address of `size` bytes. One of another family, or one that is too short, gives an
 * endpoint that names nothing. */
void domi_endpoint_from_socket(const struct sockaddr_storage *address, socklen_t size,
                               domus_endpoint *ret_endpoint);

/* Returns the length of the socket address; -EAFNOSUPPORT for an endpoint that names nothing. */
int domi_endpoint_to_socket(const domus_endpoint *endpoint, struct sockaddr_storage *ret_address);

/* Read the endpoint of a connection's peer, or its own one. Returns 0; -ENOTCONN when the kernel
 * does not tell it any more. */
int domi_endpoint_of(const domi_io *io, int fd, bool is_peer, domus_endpoint *ret_endpoint);

#endif
