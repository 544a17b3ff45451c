/* The store as a part of a program, for main.c and for programs that serve something else beside it
 * (examples/web).
 *
 * Thread-safety: the main thread, in the hooks of domus_main(). */
#ifndef KV_START_H
#define KV_START_H

#include "kv.h"

#include <domus/section.h>

/* The keys of the configuration that fill kv_settings. The last row has no path. */
extern const domus_config_key kv_keys[];

/* Start the store: make the shards and all other actors, by kv_settings. kv_sessions then serves a
 * port. Returns 0; a negative errno. */
int kv_start_actors_of_store(domus_system *system);

/* Stop the store when the program ends: clients stop waiting. */
void kv_stop_store(domus_system *system);

#endif
