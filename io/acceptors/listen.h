/* Listening sockets. Any thread. */
#ifndef DOMI_IO_ACCEPTORS_LISTEN_H
#define DOMI_IO_ACCEPTORS_LISTEN_H

#include "io/resources/io.h"

/* Make a listening socket for "127.0.0.1:7000" or "[::1]:7000", whose connections get the socket
 * options of io's configuration. `io` is that of any thread of the system. `ret_port` gets the
 * port. Returns the descriptor; a negative errno. Any thread. */
int domi_acceptor_listen(const domi_io *io, const char *address, uint32_t backlog,
                         uint16_t *ret_port);

#endif
