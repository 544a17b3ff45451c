/* Sets the options of the sockets of connections, as the configuration says. Any thread. */
#ifndef DOMI_IO_RESOURCES_OPTIONS_H
#define DOMI_IO_RESOURCES_OPTIONS_H

#include "io/resources/io.h"

/* An option of a socket for setsockopt(2) whose value is an int. */
typedef struct domi_socket_option {
    int level; /* level of the socket option, as SOL_SOCKET */
    int name;  /* name of the socket option, as SO_RCVBUF */
    /* value of the socket option; 0: the option is not set, so that the kernel's value stays */
    uint64_t value;
    bool sets_zero; /* the socket option is set also if its value is 0 */
} domi_socket_option;

/* Set the options of a socket that a table lists, up to the first that fails. Returns 0; a negative
 * errno. `io` is the io of any thread of the system. */
int domi_socket_set_int_options(const domi_io *io, int fd, const domi_socket_option *options,
                                size_t count);

/* Set the sizes of the kernel's send and receive buffers of a socket. They have to be set before
 * listen() and connect(), because the first packet tells the scale of the window. Returns as
 * domi_socket_set_int_options(). */
int domi_socket_set_buffer_sizes(const domi_io *io, int fd, const domi_channel_settings *settings);

/* Set the options of a socket that only TCP has. With `resets` the socket is not new: options that
 * somebody has set before are then set back, too, if the settings have none; times and counts of
 * keep-alives stay while keep-alives are off. Returns as domi_socket_set_int_options(). */
int domi_socket_set_tcp_options(const domi_io *io, int fd, const domi_channel_settings *settings,
                                bool resets);

#endif
