/* Losses of a system, and how the program learns of them: a ring that fails, actors that did not
 * stop in time, channels that were cut while they owed bytes. */
#ifndef DOMI_RUNTIME_SYSTEM_LOSSES_H
#define DOMI_RUNTIME_SYSTEM_LOSSES_H

#include "runtime/system/system.h"

/* Handle that the ring of `thread` has failed for good: log it, tell the program
 * (domus_hooks.failed), and let the program stop the system. The hook is called for the first
 * failure only. Called by the thread itself. */
void domi_system_report_failed_ring(domus_system *system, uint32_t thread, int error);

/* Record which actors are left on a thread whose loop has ended, before they are ended. Called by
 * the owner of `manager`. */
void domi_system_record_left_actors(domus_system *system, domi_manager *manager);

/* Record the actor whose handler runs on a thread that has not left its loop, if a handler runs
 * there. Called under the system's mutex. */
void domi_system_record_running_actor(domus_system *system, const domi_manager *manager);

/* Log each recorded line about an actor that did not stop in time, unless it was logged already.
 * Called by the thread that stops the system. */
void domi_system_log_left_actors(domus_system *system);

/* Returns how many channels and connections the library has ended until now while they owed bytes
 * to a peer or to an actor (domi_cut), and how many bytes, on all threads. Any thread may call
 * this. */
domi_cut domi_system_count_cut_channels(const domus_system *system);

/* Returns how many connections are accepted and not closed, on all threads. A caller that finds 0
 * also sees the counters that those connections wrote before they were closed. Any thread may call
 * this. */
uint64_t domi_system_count_accepted_connections(const domus_system *system);

/* Returns how many open connections of all threads this system itself has made, which it did not
 * accept. Any thread may call this. */
uint64_t domi_system_count_made_connections(const domus_system *system);

/* Log how many connections the threads have whose handlers have not returned. Called by the thread
 * that stops the system. */
void domi_system_log_connections_held_up(domus_system *system);

/* Log the channels that were cut since the last call. Returns how many channels were cut since the
 * drain began. Called by the thread that stops the system. */
int domi_system_log_cut_channels(domus_system *system);

#endif
