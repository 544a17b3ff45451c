/* A system: threads, houses, configuration. A process may have several.
 *
 * Unstable for now: names and layouts may change until 1.0.
 *
 * libdomus prints nothing and installs no signal handler; programs may use domus_main()
 * (domus/main.h), which does both. A SIGPIPE is never caused by domus. */
#ifndef DOMUS_SYSTEM_H
#define DOMUS_SYSTEM_H

#include <domus/actor.h>
#include <domus/config.h>
#include <domus/group.h>
#include <domus/profile.h>
#include <domus/router.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct domus_system domus_system;

/* Make a system; nothing runs yet. `config` is copied with its strings.
 *
 * Ownership: the caller's, until domus_system_free().
 * Returns 0; -EINVAL (`error` has one line, as of domus_config_check()); -ENOMEM.
 * Thread-safety: any thread. */
DOMUS_API int domus_system_new(const domus_config *config, char *error, size_t error_size,
                               domus_system **ret_system);

/* Start the threads, each with its ring, and wait until all of them run.
 *
 * Returns 0; a negative errno when one could not be set up: nothing runs then, and
 * domus_system_error() says in one line what is missing and what to do.
 * Thread-safety: one thread at a time (also stop and free). Signals: the threads block all that
 * the caller may receive, so a program's handlers run on its own threads. */
DOMUS_API int domus_system_start(domus_system *system);

/* Stop accepting, let every channel send what it was given (each byte received is answered, then
 * FIN); what has not drained within shutdown.drainTimeout is reset and counted. Then stop every
 * actor, children before their parents; those that have not stopped within shutdown.actorTimeout
 * are ended as they are (on_stop runs), and domus_system_left() says who they were. Then end the
 * threads.
 *
 * Returns how many channels were reset: 0 when all drained; -ETIMEDOUT when a handler does not
 * return: its thread cannot be ended, and nothing is freed; calling this again waits again;
 * -EDEADLK from a handler or from blocking work, and nothing happens (see domus_quit()). */
DOMUS_API int domus_system_stop(domus_system *system);

/* From any handler: the program that waits in domus_system_wait() goes on, to stop the system.
 * Never waits itself. */
DOMUS_API void domus_quit(domus_stack *stack);

/* Wait until an actor has called domus_quit(). Thread-safety: any foreign thread. */
DOMUS_API void domus_system_wait(domus_system *system);

/* After domus_system_stop(): a line for each of the first 16 actors that had not stopped in time,
 * and why; "" when all had. Ownership: the system's. */
DOMUS_API const char *domus_system_left(const domus_system *system);

/* Free a system that is stopped, or was never started. NULL is taken. */
DOMUS_API void domus_system_free(domus_system *system);

/* One line about the last call that failed; "" at first. Ownership: the system's. */
DOMUS_API const char *domus_system_error(const domus_system *system);

/* One line about something odd but allowed (more threads than CPUs), "" when there is nothing.
 * Ownership: the system's. */
DOMUS_API const char *domus_system_warning(const domus_system *system);

/* Its configuration, as it was given. Ownership: the system's. Thread-safety: any thread. */
DOMUS_API const domus_config *domus_system_config(const domus_system *system);

/* How many threads it has. Thread-safety: any thread. */
DOMUS_API uint32_t domus_system_threads(const domus_system *system);

/* Serve the listener called `name` in the configuration: one channels actor of `behaviour` on each
 * thread, each with a copy of `state`; every accepted connection goes to the thread that has the
 * fewest. An actor that stops, or whose on_mount fails, gets no more; when all are gone,
 * connections are closed as they come. After start. `ret_port` gets the port (the kernel's choice
 * for port 0) and may be NULL.
 *
 * Returns 0; -ENOENT without such a listener; -EALREADY when it is served; -EINVAL when the
 * behaviour is not DOMUS_CHANNELS; what bind and listen say; -ENOMEM.
 * Thread-safety: any foreign thread, one at a time. */
DOMUS_API int domus_serve(domus_system *system, const char *name, const domus_behaviour *behaviour,
                          const void *state, uint16_t *ret_port);

/* From foreign threads: as domus_spawn() (the new actor's thread is chosen round robin),
 * domus_notice() and domus_stop(). Thread-safety: any thread, between start and stop. */
DOMUS_API int domus_outside_spawn(domus_system *system, const domus_behaviour *behaviour,
                                  const void *state, domus_address *ret_address);
DOMUS_API int domus_outside_notice(domus_system *system, domus_address to, const domus_type *type,
                                   const void *payload);
DOMUS_API int domus_outside_stop(domus_system *system, domus_address address);

/* As domus_spawn_many(). */
DOMUS_API int domus_outside_spawn_many(domus_system *system, const domus_behaviour *behaviour,
                                       const void *state, uint32_t count,
                                       const domus_routing *routing,
                                       const domus_spawn_options *options,
                                       domus_address *ret_address);

/* As domus_group_open() and domus_publish(); members see that nobody sent it. Also -ESHUTDOWN. */
DOMUS_API int domus_outside_group_open(domus_system *system, const char *name,
                                       domus_group *ret_group);
DOMUS_API int domus_outside_publish(domus_system *system, domus_group group, const domus_type *type,
                                    const void *payload);

/* As domus_outside_spawn(), on thread `thread` (0..threads-1; -EINVAL beyond). */
DOMUS_API int domus_outside_spawn_on(domus_system *system, uint32_t thread,
                                     const domus_behaviour *behaviour, const void *state,
                                     domus_address *ret_address);

#ifdef __cplusplus
}
#endif

#endif
