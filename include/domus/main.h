/* domus_main(): options, configuration, signals and log, as most programs want them around a
 * system. It is part of libdomus-config, as the YAML reader is. */
#ifndef DOMUS_MAIN_H
#define DOMUS_MAIN_H

#include <domus/domus.h>
#include <domus/front.h>
#include <domus/section.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOMUS_OPTIONS_MAX 32 /* most options that a program may have of its own */

/* An option of the program's own: a short way to set a key, or a call of a function. A table of
 * options ends with one without a name. */
typedef struct domus_option {
    /* name of the option, "port" for --port: letters, digits and '-'; at most 31 bytes */
    const char *name;
    /* short name, 'p' for -p: a letter or digit, but not c, s or h; 0: none */
    char letter;
    const char *argument; /* name of the option's value in --help, such as "PORT"; NULL: no value */
    const char *help;     /* text that --help shows about the option, in one line */

    /* The key that is set, as --set does: one of the program's section ("chat.timeout") or of domus
     * ("system.threads"). So the row of the key says the type and the range, and the option holds
     * over all files, in a reload, too. NULL: `take` is called instead. */
    const char *key;
    const char *value; /* value that an option without an argument sets `key` to; NULL: "true" */

    /* A function that takes the value of the option (NULL if it has none), with
     * domus_program.argument. If this returns a negative number, the option is wrong, and `error`
     * gets one line that says in what way. It runs on the main thread, before anything is started,
     * for each time that the option is given. It also runs if another option or a file is wrong, so
     * it should do no more than store the value. Reloads do not call it. */
    int (*take)(const char *value, void *argument, char *error, size_t error_size);
} domus_option;

/* A program. Hooks may be NULL. All of them run on the main thread, one at a time, so they may use
 * what foreign threads may use of the system (domus_outside_spawn() and the like), and
 * domus_main_quit(). While `start` or `reload` runs, signals wait. */
typedef struct domus_program {
    const char *name; /* name of the program, with which lines of domus_main() begin */

    /* A hook that runs once the threads of the system run. Nothing listens yet: the hook serves the
     * listeners (domus_main_serve()), spawns actors, and reads `settings`. A negative errno ends
     * the program with a line and status 1; `stop` and `end` do not run then. */
    int (*start)(domus_system *system, void *argument);
    void *argument; /* argument that all hooks of the program get */

    /* A hook that runs at SIGHUP, when everything was read again, and is right as a whole.
     * `settings` has the new values of the section, and is valid during the call; NULL without a
     * section. The program's own struct is not written to, because actors may be reading it on
     * other threads: send them the new values. A negative errno refuses the new values, which a
     * line then says. */
    int (*reload)(domus_system *system, const void *settings, void *argument);

    /* A hook that runs once if `start` returned 0, when the program has to end, before the drain
     * begins: the system still runs (unless one of its rings has failed) and accepts. Signals are
     * answered meanwhile, so a second SIGTERM ends a program whose hook hangs. */
    void (*stop)(domus_system *system, void *argument);

    /* A hook that runs once after `stop`, when the system has stopped: no actor is left, unless a
     * handler did not return (domus_system_left()), and domus_outside_spawn() and the like return
     * -ESHUTDOWN. Signals are answered as for `stop`. */
    void (*end)(domus_system *system, void *argument);

    const domus_option *options; /* command line options of the program's own; NULL: none */

    /* The program's section of the configuration (domus/section.h), or NULL, and the struct of
     * section->size bytes that domus_main() writes once, before `start`. */
    const domus_section *section;
    void *settings;

    /* A front that listeners may have (domus/front.h), such as domus_tls_front of domus/tls.h;
     * NULL: nothing, and then `tls` of a listener is an error. It is opened for each listener
     * before anything is started, an error of it is one of the configuration (status 2), and SIGHUP
     * reads its files again. */
    const domus_front *front;

    /* The port by which the program is observed (domus/front.h), such as domus_observe_front of
     * domus/observe.h; NULL: the program has no such port, and then the key observe.listen is an
     * error. With that key it is opened when the threads run, before `start`, and closed when the
     * system has stopped, after `end`. */
    const domus_observer *observe;

    /* The cluster that the program is in (domus/front.h), by domus_cluster_front of
     * domus/cluster.h; NULL: the program is in no cluster, and then the keys of the section
     * `cluster` are errors. It is checked before anything is started (status 2), and the system
     * becomes a node when its threads run, before `start`, which finds the cluster where the member
     * says: without `cluster.servers` it is one of this machine alone. The node leaves after
     * `stop`, before the drain begins, and the cluster is closed after `end`. */
    const domus_cluster_member *cluster;
} domus_program;

/* Read options (--config FILE, --set KEY=VALUE, --tell WHAT, --help, and the program's own), start
 * a system, call program->start, and wait for signals:
 *
 * - SIGTERM and SIGINT stop the system (shutdown.drainTimeout), print the profile (unless
 *   profile.atExit is false), and the call returns. Another such signal within a second counts as
 *   the same one; a later one ends the process at once, with a status of 128 plus the number of the
 *   signal.
 * - SIGQUIT prints a dump of all actors (domus/dump.h, up to 1 MiB), then does what SIGTERM does.
 * - SIGUSR1 prints the profile, SIGUSR2 a dump of all actors.
 * - SIGHUP reads the files of the start again, and the options over them; paths are looked up anew,
 *   which counts for a program that has changed its directory. It is all or nothing: if anything is
 *   wrong, or a key differs that counts at a start (config/domus.yaml; the program's section is
 * such a key without program->reload), or program->reload refuses, lines say so and nothing
 * changes. Otherwise program->reload gets the new settings, and the keys of domus hold on each
 * thread from its next iteration on (domus_system_change()). While the program ends, a line says so
 * and nothing is read. Files of fronts (certificates and keys of TLS) are read again in each case,
 * in blocking work: connections that come later get what they hold. If one is wrong, a line names
 * the key, the file and the reason, and that listener, or the node of a cluster, keeps what it has.
 * Files that were read are told in a line, too.
 * - SIGPIPE is ignored, unless the program has a handler for it. Programs that it executes inherit
 *   this.
 *
 * If the drain cut channels, the status is shutdown.cutStatus, unless that is 0 or the program
 * asked for another one than 0 (domus_main_quit()).
 *
 * SIGQUIT, SIGUSR1 and SIGUSR2 print while the system stops, too. Profiles, dumps and the lines of
 * the log (domus/hooks.h) go to stderr. domus_main() calls domus_stall_signal(), so the log also
 * tells where a thread is stuck, and domus_cpu_profile_signal() (domus/cpu_profile.h). One thread
 * writes to stderr, from a queue of log.queueMax lines and 4 longer texts, so a reader that does
 * not read holds up neither the program nor a signal. Lines that do not fit are dropped and counted
 * (log_lines_dropped in domus/profile.h), and a line says so when lines get through again. At the
 * end the queue has log.flushTimeout to be written.
 *
 * domus_main() raises the process's limit of descriptors (RLIMIT_NOFILE) to the hard limit; child
 * processes inherit that. If even so there are too few for channel.maxConnections (besides those
 * that threads, listeners with their backlogs, detached actors and 64 others may need), it warns
 * with both figures, and only so many connections are accepted as there is room for.
 *
 * With --tell nothing is started, and JSON goes to stdout: `keys` prints what the program knows of
 * its keys, `values` what files and options give, with origins and without secrets, and `check`
 * whether it would start with them (docs/config.md); errors go to stderr, and the status is 0 or 2.
 *
 * If $NOTIFY_SOCKET names a socket of systemd or of another supervisor, it is told when the program
 * is ready, reads its configuration again, and stops, what it does, and that all threads go on
 * (docs/systemd.md). If it has passed sockets ($LISTEN_FDS, $LISTEN_PID, $LISTEN_FDNAMES),
 * listeners of their names serve these. All such variables are taken out of the environment.
 *
 * For each served listener one line `listening NAME ADDRESS:PORT` goes to stdout, and for the port
 * of `observe` one with the name "observe".
 * The program, its tables and argv must stay as they are during the call.
 *
 * Returns the exit status: 0; 1 when the system could not start, or a table of the program is
 * wrong (a line says how); 2 for a wrong option or configuration (every error of it on stderr,
 * nothing started). */
DOMUS_API int domus_main(int argc, char **argv, const domus_program *program);

/* Do what domus_serve() does, with the front of this listener and, if a socket of its name was
 * passed to this program, with that (`listening` in domus/system.h), and print the `listening`
 * line, with the address of the socket. For use in program->start. */
DOMUS_API int domus_main_serve(domus_system *system, const char *name,
                               const domus_behaviour *behaviour, const void *state);

/* Take a socket that systemd, or another supervisor, has passed to this program by this name
 * ($LISTEN_FDS, $LISTEN_FDNAMES; "unknown" without names), and that domus_main_serve() is not to
 * serve, such as one of datagrams. It is not looked at. Sockets of listeners and of the port of
 * `observe` need no such call: domus_main_serve() takes the one that has the name of its listener
 * (docs/systemd.md).
 *
 * Ownership: the caller's, who closes it. Returns the descriptor, from 3 on; of several with one
 * name the next one at each call; -ENOENT when there is none, any more. Thread-safety: the main
 * thread, in hooks. */
DOMUS_API int domus_main_passed(const char *name);

/* End the program from any thread or handler with `status`, as SIGTERM would; the first call
 * counts, and domus_quit() is such a call with 0. A negative status counts with its lowest 8 bits,
 * as with exit(). Before domus_main(), the call is remembered: the program then starts, and ends at
 * once. */
DOMUS_API void domus_main_quit(int status);

#ifdef __cplusplus
}
#endif

#endif
