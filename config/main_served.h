/* The listeners of a program: which socket each one serves, and at which address it listens.
 *
 * Thread: the main thread. */
#ifndef DOMI_CONFIG_MAIN_SERVED_H
#define DOMI_CONFIG_MAIN_SERVED_H

#include "config/sink.h"

#include <domus/main.h>

/* Print the line that says at which address a listener listens, unless nobody reads standard
 * output. */
void domi_main_print_listening(const char *name, const char *address, uint16_t port);

/* Write to the log, when the program has started, which listeners nothing serves, and what has
 * become of the sockets that were passed. */
void domi_main_log_served(domus_system *system, const domus_config *given, domi_sink *sink);

#endif
