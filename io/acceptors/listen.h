/* Listening sockets. Any thread. */
#ifndef DOMI_IO_ACCEPTORS_LISTEN_H
#define DOMI_IO_ACCEPTORS_LISTEN_H

#include <domus/config.h>

#include <stdint.h>

/* Make a listening socket for "127.0.0.1:7000" or "[::1]:7000", whose connections get the socket
 * options of `config`. `ret_port` gets its port. Returns the descriptor; a negative errno. Any
 * thread. */
int domi_acceptor_listen(const char *address, uint32_t backlog, const domus_config *config,
                         uint16_t *ret_port);

#endif
