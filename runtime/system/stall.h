/* The stall watch finds out whether a thread is still in the same run as some time ago.
 *
 * Only the monitor's thread calls these functions; a thread's own signal handler calls
 * domi_stall_record_in_interrupted_thread() (backtrace.h). The monitor reads only counters and
 * words of a thread that other threads may read. */
#ifndef DOMI_RUNTIME_SYSTEM_STALL_H
#define DOMI_RUNTIME_SYSTEM_STALL_H

#include <stdbool.h>
#include <stdint.h>

struct domus_system;

/* The shortest and the longest time between two looks for stalls, in nanoseconds. */
#define DOMI_STALL_LOOK_MIN_NS UINT64_C(1000000)
#define DOMI_STALL_LOOK_MAX_NS UINT64_C(250000000)

/* Most stalls in a system in one second that are reported with a backtrace. */
#define DOMI_STALL_TRACES_MAX 4u

/* Forget the last looks for stalls, because after the monitor's sleep they do not tell whether a
 * run went on. */
void domi_stalls_forget_last_looks(struct domus_system *system);

/* Look at every thread for a stall. Returns the nanoseconds until the next look. */
uint64_t domi_stalls_look_at_all_threads(struct domus_system *system);

/* True if a stall was found that is not known to be over. */
bool domi_stalls_is_any_open(const struct domus_system *system);

/* Record for the report of a stall what only the interrupted thread `thread_` (a domi_thread)
 * itself can read. Called in its signal handler (domi_backtrace.note). */
void domi_stall_record_in_interrupted_thread(void *thread_);

#endif
