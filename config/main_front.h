/* The fronts of the listeners of a program, and of its connections to the servers of its cluster
 * (domus/front.h): opened before anything is started, found when a listener is served or the
 * cluster is opened, and read again by SIGHUP.
 *
 * They belong to the process, which has one domus_main() at a time. Thread: the main thread, except
 * that an actor lets a helper thread do the work of a reload. */
#ifndef DOMI_CONFIG_MAIN_FRONT_H
#define DOMI_CONFIG_MAIN_FRONT_H

#include "config/sink.h"

#include <domus/main.h>

#include <stdbool.h>

/* Open the front of each listener that wants one, and that of the servers if the program is in a
 * cluster, and print to stderr what is wrong. Returns
 * whether all is right; if not, none is open. */
bool domi_fronts_open(const domus_program *program, const domus_config *config);

/* Begin to serve reloads, when the system runs: make the actor that reads files again, if there is
 * any front. It writes to `sink`. Returns 0; a negative errno. */
int domi_fronts_start_reader(domus_system *system, domi_sink *sink);

/* Returns the stages in front of a listener; NULL: it has none. */
const domus_pipeline_stage *domi_fronts_find(const char *listener);

/* Returns the stages in front of connections to the servers of the cluster; NULL: there are none.
 */
const domus_pipeline_stage *domi_fronts_find_servers(void);

/* Have all files read again. Lines of the sink tell of the outcome later. While a reading is under
 * way, all further calls together lead to one more. */
void domi_fronts_reload(domus_system *system);

/* Close all fronts, when the system has stopped. If the system is `stuck`, nothing is freed,
 * because a thread may still use them. While a helper thread still reads files, all stays as it
 * is. */
void domi_fronts_close(bool is_stuck);

#endif
