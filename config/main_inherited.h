/* Sockets that a supervisor has made and passes to this process, by name: the descriptors from 3
 * on, $LISTEN_FDS of them, whose names are in $LISTEN_FDNAMES, if $LISTEN_PID is this process
 * (sd_listen_fds_with_names(3)). A listener of the same name serves such a socket.
 *
 * They belong to the process, which has one domus_main() at a time. Thread: the main thread. */
#ifndef DOMI_CONFIG_MAIN_INHERITED_H
#define DOMI_CONFIG_MAIN_INHERITED_H

#include "config/sink.h"

#include <domus/main.h>

#include <stdbool.h>
#include <stddef.h>

#define DOMI_INHERITED_MAX 128u /* most sockets that are passed; more are an error */

/* Read the variables, take them out of the environment, and keep children from inheriting the
 * descriptors. Returns 0; -EINVAL, and `error` says which variable is wrong and how. */
int domi_inherited_read(char *error, size_t error_size);

/* Check whether the sockets that listeners of the configuration are going to serve can be served,
 * and print to stderr what is wrong. Returns whether all is right. */
bool domi_inherited_check(const domus_program *program, const domus_config *config);

/* Returns the first descriptor of this name that nobody has taken; 0: there is none. */
int domi_inherited_find(const char *name);

/* Mark a descriptor as taken by an owner, who closes it. 0 is allowed. */
void domi_inherited_mark_taken(int fd);

/* Find the endpoint at which a descriptor listens. Returns 0; a negative errno. */
int domi_inherited_get_endpoint(int fd, domus_endpoint *ret_at);

/* Write to the log which sockets listeners have taken in place of their addresses, and which nobody
 * has taken. */
void domi_inherited_log(const domus_config *config, domi_sink *sink);

#endif
