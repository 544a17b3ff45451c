/* The parts of domus_main(), each in a file of its own: what a program opens before its system
 * starts, does while it runs, and closes behind it. Thread: the main thread, where nothing else is
 * said. */
#ifndef DOMI_CONFIG_MAIN_PARTS_H
#define DOMI_CONFIG_MAIN_PARTS_H

#include "config/main_options.h"
#include "config/reader.h"
#include "config/sink.h"

#include <domus/main.h>

#include <stdbool.h>
#include <stddef.h>

/* ---- main_run.c -------------------------------------------------------------------------------*/

/* Runs a program: starts its system, answers signals, prints what they ask for, and stops the
 * system. */

/* Run the program with a configuration that was read from its arguments and checked. Returns its
 * exit status. */
int domi_main_run_program(const struct domi_arguments *arguments, const domus_yaml *yaml);

/* ---- main_served.c ----------------------------------------------------------------------------*/

/* The listeners of a program: which socket each one serves, and at which address it listens.
 *
 * Thread: the main thread. */

/* Print the line that says at which address a listener listens, unless nobody reads standard
 * output. */
void domi_main_print_listening(const char *name, const char *address, uint16_t port);

/* Write to the log, when the program has started, which listeners nothing serves, and what has
 * become of the sockets that were passed. */
void domi_main_log_unserved_listeners(domus_system *system, const domus_config *given,
                                      domi_sink *sink);

/* ---- main_inherited.c -------------------------------------------------------------------------*/

/* Sockets that a supervisor has made and passes to this process, by name: the descriptors from 3
 * on, $LISTEN_FDS of them, whose names are in $LISTEN_FDNAMES, if $LISTEN_PID is this process
 * (sd_listen_fds_with_names(3)). A listener of the same name serves such a socket.
 *
 * They belong to the process, which has one domus_main() at a time. Thread: the main thread. */

#define DOMI_INHERITED_MAX 128u /* most sockets that a supervisor may pass; more are an error */

/* Read the environment variables of passed sockets, take them out of the environment, and keep
 * children from inheriting the descriptors. Returns 0; -EINVAL, and `error` says which variable is
 * wrong and how. */
int domi_inherited_read_variables(char *error, size_t error_size);

/* Check whether the sockets that listeners of the configuration are going to serve can be served,
 * and print to stderr what is wrong. Returns whether all is right. */
bool domi_inherited_check_sockets(const domus_program *program, const domus_config *config);

/* Returns the first passed descriptor of this name that nobody has taken; 0: there is none. */
int domi_inherited_find_socket(const char *name);

/* Mark a passed descriptor as taken by an owner, who closes it. 0 is allowed. */
void domi_inherited_mark_socket_taken(int fd);

/* Find the endpoint at which a passed descriptor listens. Returns 0; a negative errno. */
int domi_inherited_get_endpoint_of_socket(int fd, domus_endpoint *ret_at);

/* Write to the log which passed sockets listeners have taken in place of their addresses, and which
 * nobody has taken. */
void domi_inherited_log_sockets(const domus_config *config, domi_sink *sink);

/* ---- main_front.c -----------------------------------------------------------------------------*/

/* The fronts of the listeners of a program, and of its connections to the servers of its cluster
 * (domus/front.h): opened before anything is started, found when a listener is served or the
 * cluster is opened, and read again by SIGHUP.
 *
 * They belong to the process, which has one domus_main() at a time. Thread: the main thread, except
 * that an actor lets a helper thread do the work of a reload. */

/* Open the front of each listener that wants one, and that of the cluster's servers if the program
 * is in a cluster, and print to stderr what is wrong. Returns whether all is right; if not, no
 * front is open. */
bool domi_fronts_open(const domus_program *program, const domus_config *config);

/* Begin to serve reloads of fronts, when the system runs: make the actor that reads their files
 * again, if there is any front. It writes to `sink`. Returns 0; a negative errno. */
int domi_fronts_start_reader(domus_system *system, domi_sink *sink);

/* Returns the stages of the front of a listener; NULL: it has no front. */
const domus_pipeline_stage *domi_fronts_find_stages_of_listener(const char *listener);

/* Returns the stages of the front of connections to the cluster's servers; NULL: there is no such
 * front. */
const domus_pipeline_stage *domi_fronts_find_stages_of_servers(void);

/* Have the files of all fronts read again. Lines of the sink tell of the outcome later. While a
 * reading is under way, all further calls together lead to one more. */
void domi_fronts_read_files_again(domus_system *system);

/* Close all fronts, when the system has stopped. If the system `is_stuck`, nothing is freed,
 * because a thread may still use the fronts. While a helper thread still reads files, all stays as
 * it is. */
void domi_fronts_close(bool is_stuck);

/* ---- main_observe.c ---------------------------------------------------------------------------*/

/* The observation port of a program (domus/front.h), which belongs to the process, as domus_main()
 * does: its settings are checked before anything is started, and it is open while its system runs.
 *
 * Thread: the main thread. */

/* Print to stderr what is wrong with the section `observe`. Returns whether it is right. */
bool domi_main_observe_check_section(const domus_program *program, const domus_config *config);

/* Returns whether a configuration wants an observation port. */
bool domi_main_observe_is_wanted(const domus_config *config);

/* Open the observation port of a system that runs, if its configuration wants one. Viewers read
 * `log`. Returns 0; a negative errno, and `error` says why. */
int domi_main_observe_open_port(const domus_program *program, domus_system *system,
                                const domus_log_source *log, char *error, size_t error_size);

/* Let viewers of the observation port, if there is one, see the configuration: that of the
 * system, with its places in the reader of the start, or in the newest reader from which values
 * were taken. */
void domi_main_observe_show_config(const domus_program *program, domus_system *system,
                                   const domus_yaml *start, const domus_yaml *newest);

/* Let the observation port say that the program is ready, when it has started. Returns whether
 * there is a port, and then `ret_port` gets the port of TCP (0: it is a Unix socket). */
bool domi_main_observe_set_program_ready(const domus_program *program, uint16_t *ret_port);

/* Returns the address at which an open observation port listens: its own, or that of the socket
 * that was passed. */
const char *domi_main_observe_get_address_of_port(const domus_config *config);

/* Let the observation port say that the program is not ready any more, when it begins to stop. */
void domi_main_observe_set_program_not_ready(const domus_program *program);

/* Close the observation port, if it is open. */
void domi_main_observe_close_port(const domus_program *program);

/* ---- main_cluster.c ---------------------------------------------------------------------------*/

/* The cluster of a program (domus/front.h), which belongs to the process, as domus_main() does: its
 * settings are checked before anything is started, and its system is a node while it runs.
 *
 * Thread: the main thread. */

/* Print to stderr what is wrong with the section `cluster`, when the fronts are open
 * (main_front.c). Returns whether it is right. */
bool domi_main_cluster_check_section(const domus_program *program, const domus_config *config);

/* Make the system a node of the cluster, if the program is in a cluster. Returns 0; a negative
 * errno, and `error` says why. */
int domi_main_cluster_open(const domus_program *program, domus_system *system, char *error,
                           size_t error_size);

/* Tell the other nodes of the cluster that this one ends. */
void domi_main_cluster_leave(const domus_program *program);

/* Free the cluster's state, when its system has stopped. If the system is stuck, nothing is freed,
 * because a thread may still use the cluster. */
void domi_main_cluster_close(const domus_program *program, bool is_stuck);

/* ---- main_notify.c ----------------------------------------------------------------------------*/

/* How a program of domus_main() tells systemd, or a supervisor that speaks as it does, of its
 * states: that it is ready, reads its configuration again, stops, what it does, and that its
 * threads go on (docs/systemd.md).
 *
 * A message that the supervisor does not take at once is sent again until it does; nobody waits for
 * that, but the end for a second. Without $NOTIFY_SOCKET all of this does nothing, and there is no
 * thread. It belongs to the process, which has one domus_main() at a time. Thread: the main thread.
 */

/* Read the environment variables of the supervisor, and take them out of the environment.
 * domi_main_notify_begin_thread() tells of a fault of theirs. */
void domi_main_notify_read_variables(void);

/* Make the thread that tells the supervisor, and the watchdog of `system`, which has started.
 * Returns 0; a negative errno, and `error` says why: then the start has to fail, because a program
 * that is ready and feeds no watchdog would be ended later. */
int domi_main_notify_begin_thread(domus_system *system, domi_sink *sink, char *error,
                                  size_t error_size);

/* Tell the supervisor that the program has started and serves. From here on the notifying thread
 * looks at the threads of the system. */
void domi_main_notify_send_ready(void);

/* Tell the supervisor that the program reads its configuration again, and then that it has read it.
 * `is_taken` is false if nothing was changed, because the configuration is wrong. */
void domi_main_notify_send_reloading(void);
void domi_main_notify_send_reloaded(bool is_taken);

/* Tell the supervisor that the program begins to stop. The program asks for more time until
 * domi_main_notify_close(). */
void domi_main_notify_send_stopping(void);

/* End the looks at the system, which has stopped and is about to be freed: the notifying thread
 * looks neither at it nor at the log from here on. */
void domi_main_notify_end_looks_at_system(void);

/* Close what tells the supervisor, when the program is about to return, also after a start that
 * failed. */
void domi_main_notify_close(void);

/* ---- main_reload.c ----------------------------------------------------------------------------*/

/* A reload reads the configuration again, from the files and options of the start.
 *
 * It is all or nothing: when all sources are right, every key that has changed is live, and the
 * program agrees, the new configuration holds. Otherwise the log says why, and nothing has changed.
 * Files of fronts (certificates) are read again in each case. Thread: the main thread of
 * domus_main(). */

/* Reload the configuration. `start` is the reader of the start, by which the observation port tells
 * where values come from. Returns whether the new configuration holds. */
bool domi_reload_config(const struct domi_arguments *arguments, domus_system *system,
                        const domus_yaml *start, domi_sink *sink);

#endif
