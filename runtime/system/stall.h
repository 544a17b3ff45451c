/* The stall watch finds out whether a thread is still in the run in which it was some time ago.
 *
 * Only the monitor's thread calls this, except what the thread's own signal handler writes
 * (backtrace.h). The monitor reads only counters and words of a thread that other threads may
 * read. */
#ifndef DOMI_RUNTIME_SYSTEM_STALL_H
#define DOMI_RUNTIME_SYSTEM_STALL_H

#include "house/message/manager.h"
#include "runtime/system/backtrace.h"

#include <domus/profile.h>

struct domus_system;
struct domi_thread;

/* The shortest and the longest time between two looks. */
#define DOMI_STALL_LOOK_MIN_NS UINT64_C(1000000)
#define DOMI_STALL_LOOK_MAX_NS UINT64_C(250000000)

/* Stalls of a system in one second that are reported with a backtrace. */
#define DOMI_STALL_TRACES_MAX 4u

typedef enum domi_stall_stage {
    DOMI_STALL_NONE,
    DOMI_STALL_FOUND, /* the stall is counted, and its backtrace is awaited */
    DOMI_STALL_TOLD,
} domi_stall_stage;

typedef struct domi_stall {
    /* The monitor writes these three, and any thread reads them. */
    alignas(DOMI_LINES) domi_counter count;
    domi_counter total_ns; /* nanoseconds in stalls that are over */
    domi_counter lengths[DOMUS_STALL_LENGTHS];

    /* Only the monitor reads and writes these. */
    domi_stall_stage stage;
    uint64_t beat;      /* domi_thread_beat() at the last look */
    uint64_t looked_ns; /* the time of the last look; 0: the monitor has slept since */
    uint64_t from_ns;   /* a time at which the run had not begun, or just began */
    uint64_t since_ns;  /* a time at which the run was under way */
    uint64_t found_ns;
    uint64_t cpu_ns;                  /* the thread's CPU clock at `cpu_since_ns` */
    uint64_t cpu_since_ns;            /* when `cpu_ns` was read; 0: not yet */
    const domus_behaviour *behaviour; /* behaviour of the actor whose handler runs; NULL: none */
    const domus_type *type;
    int no_trace; /* why there will be no backtrace, a negative errno; 0: it is awaited */

    domi_backtrace backtrace;
} domi_stall;

/* How many backtraces were taken in which second. */
typedef struct domi_stall_bound {
    uint64_t second;
    uint32_t count;
} domi_stall_bound;

/* Forget what was seen before the monitor's sleep, because it says nothing any more, and begin to
 * look. */
void domi_stalls_begin(struct domus_system *system);

/* Look at every thread. Returns the nanoseconds until the next look. */
uint64_t domi_stalls_look(struct domus_system *system);

/* Is there a stall that was found, and is not known to be over? */
bool domi_stalls_is_any(const struct domus_system *system);

/* A number that grows with everything that a thread does, but not within one run. Any thread. */
uint64_t domi_thread_beat(const struct domi_thread *thread);

/* How many houses are ready. Only the thread itself calls this, also within a signal handler. */
uint32_t domi_thread_queued(const struct domi_thread *thread);

#endif
