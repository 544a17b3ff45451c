/* How a system, its threads and its helper threads are made, started, stopped and freed. */
#ifndef DOMI_RUNTIME_CONTROL_LIFE_H
#define DOMI_RUNTIME_CONTROL_LIFE_H

#include "runtime/system/system.h"
#include "runtime/system/thread.h"

/* ---- system_life.c ----------------------------------------------------------------------------*/

/* A system with a simulator, which the test kit makes. domus/system.h has the other functions. */

/* Do what domus_system_new() does. With a simulator (NULL: none), which stays the caller's, the
 * system has config.system.threads threads, which must not be 0, and domus_system_start() makes no
 * OS thread. */
int domi_system_new(const domus_config *config, domi_simulator *simulator, char *error,
                    size_t error_size, domus_system **ret_system);

/* Returns the time for scheduler.idle.spin, which may be `auto`. Any thread. */
uint64_t domi_system_choose_spin(const domus_system *system, uint64_t spin_ns);

/* ---- thread_life.c ----------------------------------------------------------------------------*/

/* The life of a thread of a system: it is made, runs the loop, and is freed. */

/* The hooks of the managers of real threads. */
extern const domi_runtime_hooks domi_hooks_of_threads;

/* Make the parts that a thread needs. On failure `error` holds one line of text, and nothing is
 * made. */
int domi_thread_init(domi_thread *thread, struct domus_system *system, uint32_t index, int cpu,
                     const domi_backend *backend, char *error, size_t error_size);

/* Start a thread, which runs the loop. On failure `error` holds one line of text. */
int domi_thread_start(domi_thread *thread, char *error, size_t error_size);

/* Wait until a thread has ended, if it was started. */
void domi_thread_join(domi_thread *thread);

/* Free the parts that domi_thread_init() has made. */
void domi_thread_fini(domi_thread *thread);

/* ---- helpers.c --------------------------------------------------------------------------------*/

/* The helper threads of a system and what is built on them: files and the look-up of names. The
 * thread that makes or frees the system. */

/* Make the helper threads, and the parts that use them. A simulation has no helper threads. Returns
 * 0; -ENOMEM; an errno of the kernel. */
int domi_helpers_init(domus_system *system);

/* Free the helper threads and the parts that use them, except the files, which domus_system_free()
 * frees sooner. The helper threads have been stopped, if they ever ran. */
void domi_helpers_fini(domus_system *system);

/* ---- config_copy.c ----------------------------------------------------------------------------*/

/* The system's own copy of the configuration that it was given. The thread that makes or
 * frees the system. */

/* Copy a checked configuration, and resolve the settings of its listeners. Returns 0; -ENOMEM, and
 * the system holds nothing of it. */
int domi_config_copy(domus_system *system, const domus_config *config);

/* Free the system's copy of its configuration. */
void domi_config_free(domus_system *system);

/* ---- stop.c -----------------------------------------------------------------------------------*/

/* The steps of a stop that starting a system needs, too, when it fails. */

/* Change the stage of the system under outside_mutex, so no foreign thread is inside meanwhile. */
void domi_system_set_stage(domus_system *system, domi_stage stage);

/* Tell every thread which step of the stop is wanted (runtime/system/stop_step.h), and wake those
 * that sleep. Before DOMI_STOP_ACTORS detached actors have to be closed. */
void domi_system_set_stop_step(domus_system *system, domi_stop_step step);

/* Let the threads leave their loops, and join them, by `until_ns`. Returns false if one has not
 * left by then. */
bool domi_system_end(domus_system *system, uint64_t until_ns);

#endif
