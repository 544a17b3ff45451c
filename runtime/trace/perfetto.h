/* A trace as Perfetto reads it (ui.perfetto.dev, trace_processor): packets of its TrackEvent
 * format, written by hand.
 *
 * The process is a track, and each thread is a track below it. The packets of a thread are a
 * sequence of their own, which begins with a packet that has the thread's track, its categories,
 * and what holds for all its events: their track, and that their times are of CLOCK_MONOTONIC. Then
 * comes a packet for each begin, end and instant. The text of an event is in the first packet that
 * has it, with a number, and later events have the number.
 *
 * Nothing here allocates, waits or locks, so a signal handler may use it with a writer that may do
 * the same. Source of the fields: protos/perfetto/trace/ in Perfetto's repository. */
#ifndef DOMI_RUNTIME_TRACE_PERFETTO_H
#define DOMI_RUNTIME_TRACE_PERFETTO_H

#include "runtime/trace/labels.h"
#include "runtime/trace/recorder.h"

#include <sys/types.h>

/* most bytes of a trace that are gathered for one call of `write` */
#define DOMI_PERFETTO_BYTES 8192u

typedef struct domi_perfetto {
    /* A function that takes bytes of the trace. It returns 0, or a negative errno, after which it
     * is not called again. */
    int (*write)(void *context, const void *bytes, size_t length);
    void *context;
    int error;         /* first error that `write` has returned; 0: none */
    pid_t pid;         /* number of the process that is traced */
    uint32_t sequence; /* number of the sequence to which packets are written now */
    size_t used;       /* number of bytes gathered in `bytes`, for the next call of `write` */
    uint8_t bytes[DOMI_PERFETTO_BYTES];
    domi_labels labels; /* labels that have numbers in the present sequence */
} domi_perfetto;

/* Begin a trace: write its clock and the track of its process, whose name may be NULL. `now_ns` is
 * the time. */
void domi_perfetto_begin_trace(domi_perfetto *perfetto,
                               int (*write)(void *context, const void *bytes, size_t length),
                               void *context, const char *process, uint64_t now_ns);

/* Write the track of a thread into a trace, and its events: the records that
 * domi_recorder_copy_records() and domi_recorder_copy_open_things() have copied. Each recorder is
 * written once. */
void domi_perfetto_write_thread(domi_perfetto *perfetto, const domi_recorder *recorder,
                                const domi_record *records, uint32_t count,
                                const domi_record open[DOMI_RECORD_DEPTHS]);

/* End a trace: write the gathered bytes. Returns 0, or the error that `write` has returned. */
int domi_perfetto_end_trace(domi_perfetto *perfetto);

#endif
