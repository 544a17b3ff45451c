/* The helper threads of a system and what is built on them: files and the look-up of names. The
 * thread that makes or frees the system. */
#ifndef DOMI_RUNTIME_CONTROL_HELPERS_H
#define DOMI_RUNTIME_CONTROL_HELPERS_H

#include "runtime/system/system.h"

/* Make the helper threads, and the parts that use them. A simulation has no helper threads. Returns
 * 0; -ENOMEM; an errno of the kernel. */
int domi_helpers_init(domus_system *system);

/* Free the helper threads and the parts that use them, except the files, which domus_system_free()
 * frees sooner. The helper threads have been stopped, if they ever ran. */
void domi_helpers_fini(domus_system *system);

#endif
