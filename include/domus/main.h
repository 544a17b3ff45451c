/* domus_main(): options, configuration, signals and log, as most programs want them around a
 * system. It is part of libdomus-config, as the YAML reader is. */
#ifndef DOMUS_MAIN_H
#define DOMUS_MAIN_H

#include <domus/domus.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct domus_program {
    const char *name; /* the beginning of the lines that domus_main() prints */

    /* Runs on the main thread once the threads run: serve listeners, spawn actors. A negative
     * errno ends the program with status 1. */
    int (*start)(domus_system *system, void *argument);
    void *argument;
} domus_program;

/* Read options (--config FILE, --set KEY=VALUE, --help), start a system, call program->start, and
 * wait for signals:
 *
 * - SIGTERM and SIGINT stop the system (shutdown.drainTimeout), print the profile, and the call
 *   returns. Another such signal within a second counts as the same one; a later one ends the
 *   process at once, with a status of 128 plus the number of the signal.
 * - SIGQUIT prints a dump of all actors (domus/dump.h, up to 1 MiB), then does what SIGTERM does.
 * - SIGUSR1 prints the profile, SIGUSR2 a dump of all actors.
 * - SIGHUP is reserved for a reload of the configuration: a line says so, and nothing changes.
 * - SIGPIPE is ignored, unless the program has a handler for it. Programs that it executes inherit
 *   this.
 *
 * If the drain cut channels, the status is shutdown.cutStatus, unless that is 0 or the program
 * asked for another one than 0 (domus_main_quit()).
 *
 * SIGQUIT, SIGUSR1 and SIGUSR2 print while the system stops, too. Profiles, dumps and the lines of
 * the log (domus/hooks.h) go to stderr. domus_main() calls domus_stall_signal(), so the log also
 * tells where a thread is stuck. One thread writes to stderr, from a queue of log.queueMax lines
 * and 4 longer texts, so a reader that does not read holds up neither the program nor a signal.
 * Lines that do not fit are dropped and counted (log_lines_dropped in domus/profile.h), and a line
 * says so when lines get through again. At the end the queue has log.flushTimeout to be written.
 *
 * domus_main() raises the process's limit of descriptors (RLIMIT_NOFILE) to the hard limit; child
 * processes inherit that. If even so there are too few for channel.maxConnections (besides those
 * that threads, listeners with their backlogs, detached actors and 64 others may need), it warns
 * with both figures, and only so many connections are accepted as there is room for.
 *
 * For each served listener one line `listening NAME ADDRESS:PORT` goes to stdout.
 * Returns the exit status: 0; 1 when the system could not start; 2 for a wrong option or
 * configuration (every error of it on stderr, nothing started). */
DOMUS_API int domus_main(int argc, char **argv, const domus_program *program);

/* Do what domus_serve() does, and print the `listening` line. For use in program->start. */
DOMUS_API int domus_main_serve(domus_system *system, const char *name,
                               const domus_behaviour *behaviour, const void *state);

/* End the program from any thread or handler with `status`, as SIGTERM would; the first call
 * counts. A negative status counts with its lowest 8 bits, as with exit(). Before domus_main(), the
 * call is remembered: the program then starts, and ends at once. */
DOMUS_API void domus_main_quit(int status);

#ifdef __cplusplus
}
#endif

#endif
