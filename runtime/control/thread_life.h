/* The life of a thread of a system: it is made, runs the loop, and is freed. */
#ifndef DOMI_RUNTIME_CONTROL_THREAD_LIFE_H
#define DOMI_RUNTIME_CONTROL_THREAD_LIFE_H

#include "runtime/system/thread.h"

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

#endif
