/* The last stalls of a system, for viewers (domus_stalls_read() of domus/stall.h).
 *
 * The monitor's thread writes a stall down when the log tells of it, and completes it when it is
 * over. A record holds addresses of code; only a reader looks up the names of the functions. */
#ifndef DOMI_RUNTIME_SYSTEM_STALL_HISTORY_H
#define DOMI_RUNTIME_SYSTEM_STALL_HISTORY_H

#include "base/clock.h"
#include "runtime/system/backtrace.h"

#include <domus/stall.h>

/* A stall, as its watch knows it. */
typedef struct domi_stall_record {
    uint64_t number;       /* from 1 on; 0: this place was never used */
    uint64_t began_ns;     /* the begin on the system's clock */
    uint64_t began_utc_ns; /* the begin on CLOCK_REALTIME */
    uint64_t length_ns;    /* once it is over; 0 before */
    const char *pool;      /* the name of the runner's pool, constant; NULL: a thread */
    uint32_t index;        /* the index of the thread, or of the runner in its pool */
    uint32_t count;        /* entries of `frames` */
    char behaviour[DOMUS_STALL_NAME_SIZE];
    char type[DOMUS_STALL_NAME_SIZE];
    void *frames[DOMUS_STALL_FRAMES_MAX]; /* return addresses, the innermost first */
} domi_stall_record;

typedef struct domi_stall_history {
    pthread_mutex_t mutex;
    uint64_t count;                               /* stalls so far; the number of the newest */
    domi_stall_record records[DOMUS_STALLS_KEPT]; /* stall N lies at index N modulo the size */
} domi_stall_history;

/* Copy a name into a record; NULL becomes "". */
void domi_stall_record_name(char into[DOMUS_STALL_NAME_SIZE], const char *name);

/* Copy the frames of a backtrace that is taken into a record. */
void domi_stall_record_trace(domi_stall_record *record, const domi_backtrace *trace);

/* Keep a stall that goes on, over the oldest one. `record` says whose it is and when it began on
 * `clock`. Returns its number. */
uint64_t domi_stall_history_add(domi_stall_history *history, const domi_clock *clock,
                                const domi_stall_record *record);

/* A stall is over; nothing happens if it is kept no longer, or `number` is 0. */
void domi_stall_history_end(domi_stall_history *history, uint64_t number, uint64_t length_ns);

/* Copy the newest records, at most `room`, the oldest of them first. Returns how many. */
uint32_t domi_stall_history_copy(domi_stall_history *history, domi_stall_record *into,
                                 uint32_t room);

#endif
