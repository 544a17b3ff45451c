/* Listening sockets. Any thread. */
#ifndef DOMI_IO_ACCEPTORS_LISTEN_H
#define DOMI_IO_ACCEPTORS_LISTEN_H

#include "io/resources/io.h"

#include <domus/endpoint.h>

/* Make a listening socket, whose connections get the socket options of io's configuration, as far
 * as its family has them. `io` is that of any thread of the system. With `shares_port` others may
 * listen at the same endpoint (SO_REUSEPORT). `ret_at` gets the endpoint, with the port that the
 * kernel has chosen. Returns the descriptor; a negative errno. */
int domi_acceptor_open(const domi_io *io, const domus_endpoint *at, uint32_t backlog,
                       bool shares_port, domus_endpoint *ret_at);

/* As domi_acceptor_open(), for a text such as "127.0.0.1:7000" or "[::1]:7000". `ret_port` gets the
 * port. */
int domi_acceptor_listen(const domi_io *io, const char *address, uint32_t backlog,
                         uint16_t *ret_port);

#endif
