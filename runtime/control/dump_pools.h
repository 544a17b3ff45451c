/* The part of a dump (domus/dump.h) that describes the actors of pools of runners. */
#ifndef DOMI_RUNTIME_CONTROL_DUMP_POOLS_H
#define DOMI_RUNTIME_CONTROL_DUMP_POOLS_H

#include "house/dispatch/describe.h"
#include "runtime/system/system.h"

#include <domus/dump.h>

/* Append to `text` the actors of all pools that `filter` wants (NULL: all actors), at most `share`
 * bytes for each pool. Called inside the outside (visit.h). */
void domi_dump_describe_pools(domus_system *system, const domus_dump_filter *filter,
                              domi_text *text, size_t share);

/* Describe the actor of a pool that has this address. Returns 0; -ESTALE if the actor is gone;
 * -EMSGSIZE if `text` is too small; -ETIMEDOUT if its handler does not return within
 * DOMUS_DUMP_WAIT_NS. Called inside the outside (visit.h). */
int domi_dump_describe_pooled_actor(domus_system *system, domus_address address, domi_text *text);

#endif
