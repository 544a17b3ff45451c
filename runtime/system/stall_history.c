/* This file keeps the newest stalls of a system; stall_history.h says what a record of a stall
 * holds.
 *
 * The monitor's thread and the readers share a mutex, which no thread that runs actors takes. */
#include "runtime/system/stall_history.h"

#include <stdio.h>
#include <string.h>

void domi_stall_record_set_name(char into[DOMUS_STALL_NAME_SIZE], const char *name)
{
    snprintf(into, DOMUS_STALL_NAME_SIZE, "%s", name != NULL ? name : "");
}

void domi_stall_record_set_frames(domi_stall_record *record, const domi_backtrace *trace)
{
    uint32_t count = trace->count > trace->first ? trace->count - trace->first : 0;

    record->count = count < DOMUS_STALL_FRAMES_MAX ? count : DOMUS_STALL_FRAMES_MAX;
    memcpy(record->frames, trace->frames + trace->first, record->count * sizeof record->frames[0]);
}

uint64_t domi_stall_history_add_stall(domi_stall_history *history, const domi_clock *clock,
                                      const domi_stall_record *record)
{
    uint64_t utc_ns = domi_clock_read_utc_ns() - (domi_clock_now(clock) - record->began_ns);

    pthread_mutex_lock(&history->mutex);
    uint64_t number = ++history->count;
    domi_stall_record *kept = &history->records[number % DOMUS_STALLS_KEPT];
    *kept = *record;
    kept->number = number;
    kept->began_utc_ns = utc_ns;
    kept->length_ns = 0;
    pthread_mutex_unlock(&history->mutex);
    return number;
}

void domi_stall_history_end_stall(domi_stall_history *history, uint64_t number, uint64_t length_ns)
{
    domi_stall_record *kept = &history->records[number % DOMUS_STALLS_KEPT];

    pthread_mutex_lock(&history->mutex);
    if (number != 0 && kept->number == number)
        kept->length_ns = length_ns;
    pthread_mutex_unlock(&history->mutex);
}

uint32_t domi_stall_history_copy_newest(domi_stall_history *history, domi_stall_record *into,
                                        uint32_t room)
{
    pthread_mutex_lock(&history->mutex);
    uint64_t count = history->count < room ? history->count : room;
    for (uint64_t i = 0; i < count; i++)
        into[i] = history->records[(history->count - count + 1 + i) % DOMUS_STALLS_KEPT];
    pthread_mutex_unlock(&history->mutex);
    return (uint32_t)count;
}
