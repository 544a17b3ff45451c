/* Listening sockets. Any thread. */
#ifndef DOMI_IO_ACCEPTORS_LISTEN_H
#define DOMI_IO_ACCEPTORS_LISTEN_H

#include "io/resources/io.h"

#include <domus/endpoint.h>

/* How to listen. */
typedef struct domi_listen_plan {
    uint32_t backlog;                      /* connections that wait to be accepted */
    bool shares_port;                      /* others may listen at the same endpoint */
    const domi_channel_settings *settings; /* options of the sockets; NULL: those that the
                                              configuration says */
} domi_listen_plan;

/* Make a listening socket, whose connections get the socket options of its settings, as far as its
 * family has them. `io` is that of any thread of the system. `ret_at` gets the endpoint, with the
 * port that the kernel has chosen. Returns the descriptor; a negative errno. */
int domi_acceptor_open(const domi_io *io, const domus_endpoint *at, const domi_listen_plan *plan,
                       domus_endpoint *ret_at);

/* As domi_acceptor_open(), for a text such as "127.0.0.1:7000", "[::1]:7000" or "unix:/run/a". A
 * socket that is left over from a service that has ended is removed from its path before.
 * `ret_port` (NULL: nothing) gets the port; 0 for a Unix socket. */
int domi_acceptor_listen(const domi_io *io, const char *address, const domi_listen_plan *plan,
                         uint16_t *ret_port);

#endif
