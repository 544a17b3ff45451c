/* A system: threads, houses, configuration. A process may have several.
 *
 * After start, a child made by fork() must not use the system: its threads and rings are the
 * parent's. Every call there answers -ECHILD (a handler that forks and returns in the child ends
 * it), and domus_system_free() does nothing: what the child inherited goes with it, at exec (all
 * descriptors are close-on-exec) or _exit. A system that was made, but not started, before a fork
 * may be started after it.
 *
 * libdomus prints nothing and installs no signal handler by itself; programs may use domus_main()
 * (domus/main.h), which does both. The only handlers that libdomus has are those of domus/stall.h
 * and domus/cpu_profile.h.
 * domus never causes a SIGPIPE. */
#ifndef DOMUS_SYSTEM_H
#define DOMUS_SYSTEM_H

#include <domus/actor.h>
#include <domus/config.h>
#include <domus/group.h>
#include <domus/hooks.h>
#include <domus/pool.h>
#include <domus/profile.h>
#include <domus/router.h>
#include <domus/spawn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A system: its threads, its actors and its configuration. */
typedef struct domus_system domus_system;

/* Make a system; nothing runs yet. `config` is copied with its strings.
 *
 * This looks by an io_uring of its own what the kernel allows. When that ring is gone, a little
 * later, the kernel may interrupt one call of the calling thread: a call that is not begun again,
 * as a receive with SO_RCVTIMEO, then fails with EINTR, although there was no signal.
 *
 * Ownership: the caller's, until domus_system_free().
 * Returns 0; -EINVAL (`error` has one line, as of domus_config_check()); -ENOMEM.
 * Thread-safety: any thread. */
DOMUS_API int domus_system_new(const domus_config *config, char *error, size_t error_size,
                               domus_system **ret_system);

/* Do what domus_system_new() does, with hooks for memory and log lines (domus/hooks.h; NULL:
 * none).
 *
 * `hooks` is copied, but what hooks->allocator points to is not: it stays until the system is freed
 * and, if domus_system_stop() abandoned blocking work, until that has returned. */
DOMUS_API int domus_system_new_with(const domus_config *config, const domus_hooks *hooks,
                                    char *error, size_t error_size, domus_system **ret_system);

/* Start the threads, each with its ring, and wait until all of them run.
 *
 * Returns 0; a negative errno when one could not be set up: nothing runs then, and
 * domus_system_error() says in one line what is missing and what to do.
 * Thread-safety: one thread at a time (also stop and free). Signals: the threads block all that
 * the caller may receive, so a program's handlers run on its own threads. */
DOMUS_API int domus_system_start(domus_system *system);

/* Stop the system. First accept the connections that wait to be accepted, and then no more. Every
 * channel is drained: everything that was received is answered, and so is a request whose body is
 * under way; then comes FIN, and the channel stays until the peer has acknowledged everything. A
 * channel that has not drained within shutdown.drainTimeout is reset, counted (channels_cut and
 * cut_bytes of the profile) and logged.
 * Then each process gets its last event (domus/process.h), and has shutdown.actorTimeout to end.
 * Then stop every actor, children before their parents; actors that have not stopped within
 * shutdown.actorTimeout are ended as they are (on_stop runs), and domus_system_left() names them.
 * Then end the threads.
 *
 * Returns how many channels and connections were cut since it began to drain: 0 when nothing was
 * lost; when a ring had failed meanwhile (domus_hooks.failed), its negative errno, and
 * domus_system_error() says so; -ETIMEDOUT when a handler does not return: its thread cannot be
 * ended, and nothing is freed. Calling this again waits again, for shutdown.actorTimeout or 1 s,
 * whichever is more, and logs only what is new; -EDEADLK from a handler or from blocking work, and
 * nothing happens (see domus_quit()). */
DOMUS_API int domus_system_stop(domus_system *system);

/* Ask for the end of the running actor's system: the program that waits in domus_system_wait() goes
 * on, and should stop the system. A program of domus_main() ends in order, as by
 * domus_main_quit(0); others can hear of the call by domus_hooks.quit. This never waits.
 * Thread-safety: only from within a handler, with the stack that the handler was given. */
DOMUS_API void domus_quit(domus_stack *stack);

/* Wait until an actor has called domus_quit(), or a ring has failed. Thread-safety: any
 * foreign thread. */
DOMUS_API void domus_system_wait(domus_system *system);

/* Returns, after domus_system_stop(), a line for each of the first 16 actors that had not stopped
 * in time, and why; "" when all had. Ownership: the system's. */
DOMUS_API const char *domus_system_left(const domus_system *system);

/* Free a system that is stopped, or was never started (one that runs is stopped first). NULL is
 * allowed. If a handler has not returned, or abandoned blocking work does not return within 1 s,
 * nothing is freed: call this again later. Called from a handler, it does nothing.
 *
 * After a stop that ended with -ETIMEDOUT this waits once more, as the stop does. If the handler
 * returns meanwhile, everything is freed. Otherwise this returns, the system stays valid and goes
 * on stopping, and its handler may go on to use everything of the system. Everything that the
 * program gave the system must stay valid as well: behaviours, types, memory to which states of
 * actors point, and the hooks. A program that ends then need not call this again; the memory goes
 * with the process. */
DOMUS_API void domus_system_free(domus_system *system);

/* Returns one line about the last call that failed; "" at first. Ownership: the system's. */
DOMUS_API const char *domus_system_error(const domus_system *system);

/* Returns one line about a setting that is allowed but unwise, such as more threads than CPUs; ""
 * if there is none. Ownership: the system's. */
DOMUS_API const char *domus_system_warning(const domus_system *system);

/* Returns the configuration that the system was made with; it never changes. Ownership: the
 * system's. Thread-safety: any thread. */
DOMUS_API const domus_config *domus_system_config(const domus_system *system);

/* Copy the configuration that holds now: that of the start, with what has changed since
 * (domus_system_change(), domus_system_set_profile_level(), domus_system_set_log_level()). The
 * options of listeners (`channel`) in it are those of the start: domus_system_channel_options()
 * copies those that hold now. Ownership: its texts, listeners and pools are the system's.
 * Thread-safety: any thread. */
DOMUS_API void domus_system_config_now(domus_system *system, domus_config *ret_config);

/* Copy the options that listener `index` of the configuration has now. Returns 0; -ENOENT without
 * such a listener. Thread-safety: any thread. */
DOMUS_API int domus_system_channel_options(domus_system *system, size_t index,
                                           domus_channel_options *ret_options);

/* Change the configuration while the system runs. `config` is a whole one; what differs from
 * domus_system_config_now() is changed, all of it or nothing. A key may change if it is `live` in
 * the table (domus/config.h, config/domus.yaml), and for listeners the live ones of their
 * `channel`; listeners that are those of domus_system_config_now() stay as they are. Only from 0
 * stall.threshold may not change if nothing was watched at the start (profile.level: off).
 *
 * Each thread takes it when its next iteration begins, and looks at its open connections (some 0.1
 * us for each) if a key of `channel` has changed: their time-outs go on from where they began, so
 * one that has been silent for longer than a new idleTimeout ends at once. Options that an actor
 * gave to a listener, a connection or datagrams stay. `config` is copied. The log has a line with
 * the keys and their values.
 *
 * Returns how many keys have changed. -EINVAL: a value is wrong, or does not fit another one;
 * -EPERM: a key that is not live differs; -ESHUTDOWN: the system does not run; -ECHILD: this is a
 * forked child. Then nothing has changed, and `error` has a line, cut to fit.
 * domus_system_check_change() returns the same, and changes nothing. Thread-safety: any thread, a
 * handler too. */
DOMUS_API int domus_system_change(domus_system *system, const domus_config *config, char *error,
                                  size_t error_size);
DOMUS_API int domus_system_check_change(domus_system *system, const domus_config *config,
                                        char *error, size_t error_size);

/* Change one key, whatever else changes meanwhile. `path` is as in an assignment
 * ("scheduler.ioRatio", "listeners.echo.channel.linger"), `value` as in YAML. Returns as
 * domus_system_change(), also -ENOENT: there is no such key. Thread-safety: any thread, a handler
 * too. */
DOMUS_API int domus_system_change_key(domus_system *system, const char *path, const char *value,
                                      char *error, size_t error_size);

/* Returns the number of threads of the system. Thread-safety: any thread. */
DOMUS_API uint32_t domus_system_threads(const domus_system *system);

/* Serve the listener called `name` in the configuration, after domus_system_start(). This makes one
 * channels actor of `behaviour` on each thread, each with a copy of `state`. Every accepted
 * connection goes to the thread that has the fewest. An actor that stops, or whose on_mount fails,
 * gets no more connections; when all these actors are gone, connections are reset as they come, and
 * counted (channels_cut of the profile). `ret_port` (may be NULL) gets the port, which for port 0
 * the kernel has chosen.
 *
 * Returns 0; -ENOENT without such a listener; -EALREADY when it is served; -EINVAL when the
 * behaviour is wrong or its kind is not DOMUS_CHANNELS, or when the configuration wants TLS (`tls`
 * of the listener) and no front is there (domus_serve_with(), and domus_main_serve() of a program
 * with a front); what `check` of a stage of its pipeline returned; the error of bind(2) or
 * listen(2); -ENOMEM. domus_system_error() says what is wrong in a sentence. Thread-safety: any
 * foreign thread, one at a time. */
DOMUS_API int domus_serve(domus_system *system, const char *name, const domus_behaviour *behaviour,
                          const void *state, uint16_t *ret_port);

/* Options of domus_serve_with(). All fields may be 0. */
typedef struct domus_serve_options {
    /* Byte stages in front of the pipeline of each connection (DOMUS_FRONT_MAX in
     * domus/pipeline.h), such as TLS, up to one whose stage is NULL; NULL: none. They and their
     * options have to stay valid until the system is freed. */
    const struct domus_pipeline_stage *front;
    /* A stream socket of IPv4, IPv6 or Unix that listens, to be served in place of one at the
     * address of the configuration, such as one that a supervisor keeps over restarts; 0: none. A
     * call that returns 0 owns the descriptor; another one leaves it to the caller. Its backlog
     * stays as it is, O_NONBLOCK is cleared or set as the library needs it, and the options of
     * `channel` are set. In a stop the library takes nothing more from its backlog and closes the
     * descriptor: connections that wait are left to whoever else holds the socket, or are reset by
     * the kernel if nobody does. */
    int listening;
} domus_serve_options;

/* Do what domus_serve() does, with options (NULL: all 0). Returns, and thread-safety: as
 * domus_serve(); -EINVAL also when `front` is wrong, or when there is a front and the channels have
 * no pipeline. With `listening`: -EBADF, -ENOTSOCK, -EPROTOTYPE if it is no stream, -ENOTCONN if it
 * does not listen, -EAFNOSUPPORT. */
DOMUS_API int domus_serve_with(domus_system *system, const char *name,
                               const domus_behaviour *behaviour, const void *state,
                               const domus_serve_options *options, uint16_t *ret_port);

/* True if domus_serve() or domus_serve_with() serves the listener called `name` in the
 * configuration. domus_main() warns of those that nothing serves when `start` has returned.
 * Thread-safety: as domus_serve(). */
DOMUS_API bool domus_listener_is_served(const domus_system *system, const char *name);

/* The functions below do for foreign threads what domus_spawn() (the thread of the new actor is
 * chosen round robin), domus_notice(), domus_stop() and domus_stop_after_mail() do for handlers.
 *
 * A spawn returns before the actor is mounted. If its on_mount fails then, the actor ends, a log
 * line of the level DOMUS_LOG_ERROR says so (domus/hooks.h), and asks to it fail with -ESTALE. A
 * program that has to know asks it for something before it goes on.
 *
 * Returns as those do; -ESHUTDOWN when the system does not run; -ECHILD in a child made by fork();
 * from domus_outside_notice() also -EBUSY while memory is short (domus/memory.h): try again later.
 * Thread-safety: any thread, until domus_system_free(). */
DOMUS_API int domus_outside_spawn(domus_system *system, const domus_behaviour *behaviour,
                                  const void *state, domus_address *ret_address);
DOMUS_API int domus_outside_notice(domus_system *system, domus_address to, const domus_type *type,
                                   const void *payload);
DOMUS_API int domus_outside_stop(domus_system *system, domus_address address);

DOMUS_API int domus_outside_stop_after_mail(domus_system *system, domus_address address);

/* Do for foreign threads what domus_spawn_many() does. Errors and thread-safety as
 * domus_outside_spawn(). */
DOMUS_API int domus_outside_spawn_many(domus_system *system, const domus_behaviour *behaviour,
                                       const void *state, uint32_t count,
                                       const domus_routing *routing,
                                       const domus_spawn_options *options,
                                       domus_address *ret_address);

/* The two functions below do for foreign threads what domus_group_open() and domus_publish() do for
 * handlers; a publication from outside has no sender. They also return -ESHUTDOWN, and
 * domus_outside_publish() -EBUSY while memory is short. */
DOMUS_API int domus_outside_group_open(domus_system *system, const char *name,
                                       domus_group *ret_group);
DOMUS_API int domus_outside_publish(domus_system *system, domus_group group, const domus_type *type,
                                    const void *payload);

/* Do what domus_pool_open() does: the pool is on the next thread, round robin, and the root is
 * its parent. Thread-safety: any thread, also before the start. Returns as domus_pool_open()
 * and domus_outside_spawn(). */
DOMUS_API int domus_outside_pool_open(domus_system *system, const char *to,
                                      const domus_pool_options *options,
                                      domus_address *ret_address);

/* Do for foreign threads what domus_spawn_with() does; DOMUS_NEAR means DOMUS_SPREAD here. */
DOMUS_API int domus_outside_spawn_with(domus_system *system, const domus_behaviour *behaviour,
                                       const void *state, const domus_spawn_options *options,
                                       domus_address *ret_address);

/* Do for foreign threads what domus_name_find() does. This takes no lock. Thread-safety: any
 * thread, from domus_system_new() until domus_system_free(). */
DOMUS_API int domus_outside_find(const domus_system *system, const char *name,
                                 domus_address *ret_address);

/* The time-out of domus_outside_ask() when 0 is given (10 s), and the longest time-out (1 h), in
 * nanoseconds. */
#define DOMUS_OUTSIDE_ASK_NS     UINT64_C(10000000000)
#define DOMUS_OUTSIDE_ASK_MAX_NS UINT64_C(3600000000000)

/* The place to which domus_outside_ask() copies the answer. */
typedef struct domus_outside_reply {
    /* buffer for the answer's payload, aligned as the payload needs it; the caller's */
    void *buffer;
    uint32_t size; /* size of the buffer in bytes */
    /* the library sets this to the bytes of the answer, also when the buffer is too small */
    uint32_t length;
    const domus_type *type; /* the library sets this to the type of the answer */
} domus_outside_reply;

/* Ask an actor from a foreign thread, and block until the answer is there, for at most `timeout_ns`
 * (rounded up to ticks of 1 ms; never early). This time travels with the ask as its deadline
 * (domus_ask_within()). `reply` may be NULL. Handlers use domus_ask() instead.
 *
 * Ownership: what the payload owns is taken in every case, also when this fails. If this returns 0
 * and there is a buffer, the caller owns what the answer owns; otherwise that is released.
 * Returns 0; the exception's negative errno (domus/conversation.h); -ETIMEDOUT; -EMSGSIZE when the
 * payload is too large, or the buffer too small; -ESHUTDOWN when the system does not run, or stops
 * meanwhile; -EDEADLK on one of the system's own threads; -EBUSY while memory is short; -ENOMEM;
 * -ECHILD; -EOPNOTSUPP in a test kit. Thread-safety: any foreign thread, many at once. */
DOMUS_API int domus_outside_ask(domus_system *system, domus_address to, const domus_type *type,
                                const void *payload, uint64_t timeout_ns,
                                domus_outside_reply *reply);

/* Open a file or a directory for a foreign thread, and block until that is done: as
 * domus_file_open() with the working directory of the process, at the start of a program.
 *
 * Ownership: the file is the caller's, until domus_file_close().
 * Returns as domus_outside_ask(), with the errors of domus_file_open(). Thread-safety: as
 * domus_outside_ask(). */
struct domus_file;
DOMUS_API int domus_outside_file_open(domus_system *system, const char *path, uint32_t flags,
                                      uint32_t mode, struct domus_file **ret_file);

/* Do what domus_outside_spawn() does, but on thread `thread` (0..threads-1; -EINVAL beyond). */
DOMUS_API int domus_outside_spawn_on(domus_system *system, uint32_t thread,
                                     const domus_behaviour *behaviour, const void *state,
                                     domus_address *ret_address);

#ifdef __cplusplus
}
#endif

#endif
