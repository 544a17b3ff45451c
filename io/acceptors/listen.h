/* Listening sockets. Any thread. */
#ifndef DOMI_IO_ACCEPTORS_LISTEN_H
#define DOMI_IO_ACCEPTORS_LISTEN_H

#include "io/resources/io.h"

#include <domus/endpoint.h>

/* The properties of a new listening socket. */
typedef struct domi_listen_plan {
    uint32_t backlog; /* most connections that wait to be accepted */
    bool shares_port; /* other sockets may listen at the same endpoint */
    /* options of the sockets; NULL: the options of the configuration */
    const domi_channel_settings *settings;
} domi_listen_plan;

/* Make a listening socket, whose connections get the socket options of its settings, as far as its
 * family has them. `io` is the io of any thread of the system. `ret_at` gets the endpoint, with the
 * port that the kernel has chosen. Returns the descriptor; a negative errno. */
int domi_acceptor_open(const domi_io *io, const domus_endpoint *at, const domi_listen_plan *plan,
                       domus_endpoint *ret_at);

/* Check that `fd` is a stream socket that listens, and set the options of its settings, which its
 * connections get; its address and its backlog stay. `ret_at` gets its endpoint. Returns 0;
 * -ENOTSOCK; -EPROTOTYPE if it is no stream; -ENOTCONN if it does not listen; -EAFNOSUPPORT if it
 * is neither of IPv4, IPv6 nor of Unix; another negative errno. The descriptor stays open in each
 * case. */
int domi_acceptor_adopt(const domi_io *io, int fd, const domi_listen_plan *plan,
                        domus_endpoint *ret_at);

/* Do the same as domi_acceptor_open(), for a text such as "127.0.0.1:7000", "[::1]:7000" or
 * "unix:/run/a". A socket that is left over from a service that has ended is removed from its path
 * before. `ret_port` (NULL: nothing) gets the port; 0 for a Unix socket. */
int domi_acceptor_listen(const domi_io *io, const char *address, const domi_listen_plan *plan,
                         uint16_t *ret_port);

#endif
