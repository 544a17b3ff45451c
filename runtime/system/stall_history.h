/* The last stalls of a system, for viewers (domus_stalls_read() of domus/stall.h).
 *
 * The monitor's thread stores a stall when it logs that stall, and completes the record when the
 * stall is over. A record holds addresses of code; only a reader looks up the names of the
 * functions. */
#ifndef DOMI_RUNTIME_SYSTEM_STALL_HISTORY_H
#define DOMI_RUNTIME_SYSTEM_STALL_HISTORY_H

#include "base/clock.h"
#include "runtime/system/backtrace.h"

#include <domus/stall.h>

/* A record of one stall. */
typedef struct domi_stall_record {
    uint64_t number;       /* number of the stall, from 1 on; 0: this place was never used */
    uint64_t began_ns;     /* begin of the stall on the system's clock */
    uint64_t began_utc_ns; /* begin of the stall on CLOCK_REALTIME */
    uint64_t length_ns;    /* length of a stall that is over; 0 while it goes on */
    /* name of the pool if a runner stalled, constant; NULL: a thread of the loop stalled */
    const char *pool;
    uint32_t index; /* index of the thread, or of the runner in its pool */
    uint32_t count; /* entries of `frames` */
    char behaviour[DOMUS_STALL_NAME_SIZE];
    char type[DOMUS_STALL_NAME_SIZE];
    void *frames[DOMUS_STALL_FRAMES_MAX]; /* return addresses, the innermost first */
} domi_stall_record;

typedef struct domi_stall_history {
    pthread_mutex_t mutex;
    /* how many stalls there were, which is the number of the newest */
    uint64_t count;
    domi_stall_record records[DOMUS_STALLS_KEPT]; /* stall N lies at index N modulo the size */
} domi_stall_history;

/* Copy a name into a record; NULL becomes "". */
void domi_stall_record_name(char into[DOMUS_STALL_NAME_SIZE], const char *name);

/* Copy the frames of a complete backtrace into a record. */
void domi_stall_record_trace(domi_stall_record *record, const domi_backtrace *trace);

/* Keep a stall that goes on, in place of the oldest record. `record` says which thread stalls and
 * when that began on `clock`. Returns the number of the stall. */
uint64_t domi_stall_history_add(domi_stall_history *history, const domi_clock *clock,
                                const domi_stall_record *record);

/* Complete the record of a stall that is over. Nothing happens if the record is not kept any more,
 * or `number` is 0. */
void domi_stall_history_end(domi_stall_history *history, uint64_t number, uint64_t length_ns);

/* Copy the newest records, at most `room`, the oldest of them first. Returns how many were
 * copied. */
uint32_t domi_stall_history_copy(domi_stall_history *history, domi_stall_record *into,
                                 uint32_t room);

#endif
