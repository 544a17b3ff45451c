/* How a system, its threads and its helper threads are made, started, stopped and freed. */
#ifndef DOMI_RUNTIME_CONTROL_LIFE_H
#define DOMI_RUNTIME_CONTROL_LIFE_H

#include "runtime/system/system.h"
#include "runtime/system/thread.h"

/* ---- system_life.c ----------------------------------------------------------------------------*/

/* Makes a system with a simulator, as the test kit needs it. domus/system.h has the other functions
 * of a system's life. */

/* Do what domus_system_new() does. If `simulator` is not NULL, the system has config.system.threads
 * threads, which must not be 0, and domus_system_start() makes no OS thread. The simulator stays
 * the caller's. */
int domi_system_new(const domus_config *config, domi_simulator *simulator, char *error,
                    size_t error_size, domus_system **ret_system);

/* Returns how long an idle thread spins, in nanoseconds: `spin_ns`, or the library's choice if
 * scheduler.idle.spin is `auto`. Any thread. */
uint64_t domi_system_choose_spin_time(const domus_system *system, uint64_t spin_ns);

/* ---- thread_life.c ----------------------------------------------------------------------------*/

/* The life of a thread of the loop: it is made, runs the loop, and is freed. */

/* The functions of runtime that managers of real threads call (of simulated ones the test kit has
 * others). */
extern const domi_runtime_hooks domi_hooks_of_threads;

/* Make the parts that a thread of the loop needs. On failure `error` holds one line of text, and
 * nothing is made. */
int domi_thread_init(domi_thread *thread, struct domus_system *system, uint32_t index, int cpu,
                     const domi_backend *backend, char *error, size_t error_size);

/* Start the OS thread of a thread of the loop. On failure `error` holds one line of text. */
int domi_thread_start(domi_thread *thread, char *error, size_t error_size);

/* Wait until the OS thread has ended, if it was started. */
void domi_thread_wait_for_end(domi_thread *thread);

/* Free the parts of a thread of the loop that domi_thread_init() has made. */
void domi_thread_fini(domi_thread *thread);

/* ---- helpers.c --------------------------------------------------------------------------------*/

/* The helper threads of a system and the parts that are built on them: files and the look-up of
 * names. Run by the thread that makes or frees the system. */

/* Make the helper threads of a system, and the parts that use them. A simulation has no helper
 * threads. Returns 0; -ENOMEM; an errno of the kernel. */
int domi_helpers_init(domus_system *system);

/* Free the helper threads and the parts that use them, except the files, which domus_system_free()
 * frees sooner. The helper threads have been stopped, if they ever ran. */
void domi_helpers_fini(domus_system *system);

/* ---- config_copy.c ----------------------------------------------------------------------------*/

/* The system's own copy of the configuration that it was given. Run by the thread that makes or
 * frees the system. */

/* Copy a checked configuration into a system, and resolve the settings of its listeners. Returns 0;
 * -ENOMEM, and then the system holds no part of the copy. */
int domi_config_copy_into_system(domus_system *system, const domus_config *config);

/* Free the system's copy of its configuration. */
void domi_config_free_copy_of_system(domus_system *system);

/* ---- stop.c -----------------------------------------------------------------------------------*/

/* The steps of a stop that a start needs, too, when it has failed half-way. */

/* Change the stage of the system under outside_mutex, so no foreign thread is inside the outside
 * meanwhile. */
void domi_system_set_stage(domus_system *system, domi_stage stage);

/* Tell every thread which step of the stop is wanted now (runtime/system/stop_step.h), and wake
 * those that sleep. Detached actors must be closed before DOMI_STOP_ACTORS is set. */
void domi_system_set_stop_step(domus_system *system, domi_stop_step step);

/* Let all threads leave their loops, and join them. Returns false if a thread has not left its loop
 * by `until_ns`. */
bool domi_system_end_threads(domus_system *system, uint64_t until_ns);

#endif
