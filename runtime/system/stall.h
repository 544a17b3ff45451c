/* The stall watch: is a thread still in the run that it was in some time ago?
 *
 * By the monitor, and only by it, except what the thread's signal handler writes (backtrace.h).
 * What it reads of a thread are counters and words that are made for being read. */
#ifndef DOMI_RUNTIME_SYSTEM_STALL_H
#define DOMI_RUNTIME_SYSTEM_STALL_H

#include "house/message/manager.h"
#include "runtime/system/backtrace.h"

#include <domus/profile.h>

struct domus_system;
struct domi_thread;

/* Bounds of the time between two looks. */
#define DOMI_STALL_LOOK_MIN_NS UINT64_C(1000000)
#define DOMI_STALL_LOOK_MAX_NS UINT64_C(250000000)

/* Stalls of a system in one second that are reported with a trace. */
#define DOMI_STALL_TRACES_MAX 4u

typedef enum domi_stall_stage {
    DOMI_STALL_NONE,
    DOMI_STALL_FOUND, /* counted; its trace is waited for */
    DOMI_STALL_TOLD,
} domi_stall_stage;

typedef struct domi_stall {
    /* Written by the monitor, read by anyone. */
    alignas(DOMI_LINES) domi_counter count;
    domi_counter total_ns; /* of those that are over */
    domi_counter lengths[DOMUS_STALL_LENGTHS];

    /* The monitor's. */
    domi_stall_stage stage;
    uint64_t beat;      /* at the last look */
    uint64_t looked_ns; /* when that was; 0: it has slept meanwhile */
    uint64_t from_ns;   /* the run began then or later */
    uint64_t since_ns;  /* ... and was under way then */
    uint64_t found_ns;
    uint64_t cpu_ns;                  /* of the thread's CPU clock, at `cpu_since_ns` */
    uint64_t cpu_since_ns;            /* 0: not read yet */
    const domus_behaviour *behaviour; /* whose handler it is in; NULL: none */
    const domus_type *type;
    int no_trace; /* why there will be none; 0: it is waited for */

    domi_backtrace backtrace;
} domi_stall;

/* The bound of traces: how many in which second. */
typedef struct domi_stall_bound {
    uint64_t second;
    uint32_t count;
} domi_stall_bound;

/* Begin to look: whatever was seen before is old. */
void domi_stalls_begin(struct domus_system *system);

/* Look at every thread. Returns in how many nanoseconds to look again. */
uint64_t domi_stalls_look(struct domus_system *system);

/* One is found, and not known to be over. */
bool domi_stalls_any(const struct domus_system *system);

/* What grows with everything that a thread does, but not within one run. Anyone. */
uint64_t domi_thread_beat(const struct domi_thread *thread);

/* Houses that are ready. The thread itself, also within a signal handler. */
uint32_t domi_thread_queued(const struct domi_thread *thread);

#endif
