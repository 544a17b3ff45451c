/* The system's own copy of the configuration that it was given. The thread that makes or
 * frees the system. */
#ifndef DOMI_RUNTIME_CONTROL_CONFIG_COPY_H
#define DOMI_RUNTIME_CONTROL_CONFIG_COPY_H

#include "runtime/system/system.h"

/* Copy a checked configuration, and resolve the settings of its listeners. Returns 0; -ENOMEM, and
 * the system holds nothing of it. */
int domi_config_copy(domus_system *system, const domus_config *config);

/* Free the system's copy of its configuration. */
void domi_config_free(domus_system *system);

#endif
