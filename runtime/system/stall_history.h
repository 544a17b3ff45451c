/* The newest stalls of a system, for viewers (domus_stalls_read() of domus/stall.h).
 *
 * The monitor's thread stores a stall when it logs that stall, and completes the record when the
 * stall is over. A record holds addresses of code; only a reader looks up the names of the
 * functions. */
#ifndef DOMI_RUNTIME_SYSTEM_STALL_HISTORY_H
#define DOMI_RUNTIME_SYSTEM_STALL_HISTORY_H

#include "base/clock.h"
#include "runtime/system/backtrace.h"

#include <domus/stall.h>

/* A record of one stall of a thread or runner. */
typedef struct domi_stall_record {
    /* number of the stall in the system, from 1 on; 0: this place was never used */
    uint64_t number;
    uint64_t began_ns;     /* time of the system's clock at which the stall began */
    uint64_t began_utc_ns; /* time of CLOCK_REALTIME at which the stall began */
    /* length of the stall in nanoseconds if it is over; 0 while it goes on */
    uint64_t length_ns;
    /* name of the pool whose runner stalled, constant; NULL: a thread of the loop stalled */
    const char *pool;
    uint32_t index; /* index of the thread that stalled, or of the runner in its pool */
    uint32_t count; /* number of entries of `frames` */
    char behaviour[DOMUS_STALL_NAME_SIZE];
    char type[DOMUS_STALL_NAME_SIZE];
    /* stack of the stalled thread as return addresses, the innermost first */
    void *frames[DOMUS_STALL_FRAMES_MAX];
} domi_stall_record;

typedef struct domi_stall_history {
    pthread_mutex_t mutex;
    /* number of stalls so far, which is also the number of the newest stall */
    uint64_t count;
    /* records of the newest stalls: stall N lies at index N modulo the size */
    domi_stall_record records[DOMUS_STALLS_KEPT];
} domi_stall_history;

/* Copy the name of a behaviour or type into the record of a stall; NULL becomes "". */
void domi_stall_record_set_name(char into[DOMUS_STALL_NAME_SIZE], const char *name);

/* Copy the frames of a complete backtrace into the record of a stall. */
void domi_stall_record_set_frames(domi_stall_record *record, const domi_backtrace *trace);

/* Keep the record of a stall that goes on, in place of the oldest record. `record` says which
 * thread stalls and when that began on `clock`. Returns the number of the stall. */
uint64_t domi_stall_history_add_stall(domi_stall_history *history, const domi_clock *clock,
                                      const domi_stall_record *record);

/* Complete the record of a stall that is over, in the history. Nothing happens if the record is not
 * kept any more, or `number` is 0. */
void domi_stall_history_end_stall(domi_stall_history *history, uint64_t number, uint64_t length_ns);

/* Copy the newest records of stalls, at most `room`, the oldest of them first. Returns how many
 * were copied. */
uint32_t domi_stall_history_copy_newest(domi_stall_history *history, domi_stall_record *into,
                                        uint32_t room);

#endif
