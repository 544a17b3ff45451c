/* The observation port of a program (domus/front.h), which belongs to the process, as domus_main()
 * does: its settings are checked before anything is started, and it is open while its system runs.
 *
 * Thread: the main thread. */
#ifndef DOMI_CONFIG_MAIN_OBSERVE_H
#define DOMI_CONFIG_MAIN_OBSERVE_H

#include "config/reader.h"

#include <domus/main.h>

#include <stdbool.h>

/* Print to stderr what is wrong with the section `observe`. Returns whether it is right. */
bool domi_main_observe_check(const domus_program *program, const domus_config *config);

/* Returns whether a configuration wants a port. */
bool domi_main_observe_is_wanted(const domus_config *config);

/* Open the port of a system that runs, if its configuration wants one. Viewers read `log`. Returns
 * 0; a negative errno, and `error` says why. */
int domi_main_observe_open(const domus_program *program, domus_system *system,
                           const domus_log_source *log, char *error, size_t error_size);

/* Let viewers see the configuration, if there is a port: the configuration of the system with its
 * places in the reader of the start, or in the newest reader from which values were taken. */
void domi_main_observe_show_config(const domus_program *program, domus_system *system,
                                   const domus_yaml *start, const domus_yaml *newest);

/* Let the port say that the program is ready, when it has started. Returns whether there is a port,
 * and then `ret_port` gets the port of TCP (0: it is a Unix socket). */
bool domi_main_observe_set_ready(const domus_program *program, uint16_t *ret_port);

/* Returns the address at which an open port listens: its own, or that of the socket that was
 * passed. */
const char *domi_main_observe_get_address(const domus_config *config);

/* Let the port say that the program is not ready any more, when it begins to stop. */
void domi_main_observe_set_not_ready(const domus_program *program);

/* Close the port, if it is open. */
void domi_main_observe_close(const domus_program *program);

#endif
