/* Turns samples of a CPU profile into the stacks of a flame (flame.h): addresses become names of
 * functions, and each stack gets a root. */
#ifndef DOMI_RUNTIME_CONTROL_CPU_STACKS_H
#define DOMI_RUNTIME_CONTROL_CPU_STACKS_H

#include "runtime/control/flame.h"
#include "runtime/system/backtrace_samples.h"

/* Add all samples of a buffer, into which no thread writes any more, to `flame`, and sort it.
 * Returns 0; -ENOMEM. */
int domi_cpu_stacks_add_to_flame(const domi_samples *samples, domi_flame *flame);

#endif
