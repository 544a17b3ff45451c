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
 * wait for signals:
 *
 * - SIGTERM and SIGINT stop the system (shutdown.drainTimeout), print the profile, and the call
 *   returns. Another one within a second counts as the same; a later one ends the process at once,
 *   with status 128 and its number.
 * - SIGQUIT prints what all actors are doing (domus/dump.h, up to 1 MiB), then does as SIGTERM.
 * - SIGUSR1 prints the profile, SIGUSR2 what all actors are doing.
 * - SIGHUP is reserved for a reload: a line says so, and nothing changes.
 * - SIGPIPE is ignored, unless the program has a handler for it; what it executes inherits that.
 *
 * If the drain cut channels, the status is shutdown.cutStatus, unless that is 0 or the program
 * asked for another one than 0 (domus_main_quit()).
 *
 * Those that print do so while the system stops, too. What is printed goes to stderr, and so does
 * the log (domus/hooks.h), a line each; with domus_stall_signal(), so that it tells where a thread
 * is stuck. One thread writes all of it, from a queue of log.queueMax lines and 4 longer texts, so
 * a reader that does not read holds up neither the program nor a signal. What does not fit is
 * dropped, counted (log_lines_dropped in domus/profile.h), and told of when lines get through
 * again. At the end the queue has log.flushTimeout to be written.
 *
 * It raises the process's limit of descriptors (RLIMIT_NOFILE) to the hard limit; child processes
 * inherit that. If even so there are too few for channel.maxConnections (besides those that
 * threads, listeners with their backlogs, detached actors and 64 others may need), it warns with
 * both figures, and only so many connections are accepted as there is room for.
 *
 * For each served listener one line `listening NAME ADDRESS:PORT` goes to stdout.
 * Returns the exit status: 0; 1 when the system could not start; 2 for a wrong option or
 * configuration (every error of it on stderr, nothing started). */
DOMUS_API int domus_main(int argc, char **argv, const domus_program *program);

/* As domus_serve(), and prints the `listening` line. For use in program->start. */
DOMUS_API int domus_main_serve(domus_system *system, const char *name,
                               const domus_behaviour *behaviour, const void *state);

/* End the program from any thread or handler with `status`, as SIGTERM would; the first call
 * counts. Before domus_main(), the call is remembered: the program then starts, and ends at once.
 */
DOMUS_API void domus_main_quit(int status);

#ifdef __cplusplus
}
#endif

#endif
