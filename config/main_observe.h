/* The observation port of a program (domus/front.h), which belongs to the process, as domus_main()
 * does: its settings are checked before anything is started, and it is open while its system runs.
 *
 * Thread: the main thread. */
#ifndef DOMI_CONFIG_MAIN_OBSERVE_H
#define DOMI_CONFIG_MAIN_OBSERVE_H

#include <domus/main.h>

#include <stdbool.h>

/* Print to stderr what is wrong with the section `observe`. Returns whether it is right. */
bool domi_main_observe_check(const domus_program *program, const domus_config *config);

/* Open the port of a system that runs, if its configuration has one. Returns 0; a negative errno,
 * and `error` says why. */
int domi_main_observe_open(const domus_program *program, domus_system *system, char *error,
                           size_t error_size);

/* The program has started: let the port say that it is ready. Returns whether there is a port, and
 * then `ret_port` gets that of TCP (0: it is a Unix socket). */
bool domi_main_observe_begin(const domus_program *program, uint16_t *ret_port);

/* The program begins to stop, so it is not ready any more. */
void domi_main_observe_end(const domus_program *program);

/* Close the port, if it is open. */
void domi_main_observe_close(const domus_program *program);

#endif
