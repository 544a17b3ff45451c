/* domus_main(): what most programs want around a system. In libdomus-config, with the YAML. */
#ifndef DOMUS_MAIN_H
#define DOMUS_MAIN_H

#include <domus/domus.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct domus_program {
    const char *name; /* begins its messages */

    /* Runs on the main thread once the threads run: serve listeners, spawn actors. A negative
     * errno ends the program with status 1. */
    int (*start)(domus_system *system, void *argument);
    void *argument;
} domus_program;

/* Read options (--config FILE, --set KEY=VALUE, --help), start a system, call program->start, and
 * wait for signals: SIGUSR1 prints the profile to stderr, SIGUSR2 what all actors are doing
 * (domus/dump.h, up to 1 MiB); SIGTERM and SIGINT stop the system
 * (shutdown.drainTimeout), print the profile and return; a second one ends the process at once.
 *
 * The log (domus/hooks.h) goes to stderr, a line each; with domus_stall_signal(), so that it tells
 * where a thread is stuck.
 *
 * For each served listener one line `listening NAME ADDRESS:PORT` goes to stdout.
 * Returns the exit status: 0; 1 when the system could not start; 2 for a wrong option or
 * configuration (every error of it on stderr, nothing started). */
DOMUS_API int domus_main(int argc, char **argv, const domus_program *program);

/* As domus_serve(), and prints the `listening` line. For use in program->start. */
DOMUS_API int domus_main_serve(domus_system *system, const char *name,
                               const domus_behaviour *behaviour, const void *state);

/* End the program from any thread or handler with `status`, as SIGTERM would. */
DOMUS_API void domus_main_quit(int status);

#ifdef __cplusplus
}
#endif

#endif
