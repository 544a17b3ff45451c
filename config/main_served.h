/* The listeners of a program: which socket each one serves, and where that listens.
 *
 * Thread: the main thread. */
#ifndef DOMI_CONFIG_MAIN_SERVED_H
#define DOMI_CONFIG_MAIN_SERVED_H

#include "config/sink.h"

#include <domus/main.h>

/* Print the line that says where a listener listens, unless nobody reads standard output. */
void domi_main_print_listening(const char *name, const char *address, uint16_t port);

/* The program has started: write to the log which listeners nothing serves, and what has become of
 * the sockets that were passed. */
void domi_main_tell_served(domus_system *system, const domus_config *given, domi_sink *sink);

#endif
