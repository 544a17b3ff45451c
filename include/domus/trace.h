/* The trace: the last moments of each thread, for the page ui.perfetto.dev and other readers of
 * Perfetto's traces.
 *
 * With `profile.level: spans` each thread keeps its newest records in a ring of profile.records
 * places, which overwrites itself: its iterations and their phases, and the runs of its actors with
 * the type of the last message (of runs below about 3 us samples, as in DOMUS_HISTOGRAM_RUN). A
 * trace is what is in these rings now. In it each thread is a track, on which the things lie within
 * each other. Nothing stops for it.
 *
 * The form is that of Perfetto's TrackEvent (protobuf). Times are of CLOCK_MONOTONIC; where the
 * system counts the cycles of the CPU, they may be off it by some milliseconds a day. */
#ifndef DOMUS_TRACE_H
#define DOMUS_TRACE_H

#include <domus/export.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct domus_system;

/* Take `length` bytes of a trace, at most 8192, which are valid until this returns. Returns 0; a
 * negative errno, which ends the trace. */
typedef int domus_trace_sink(void *context, const void *bytes, size_t length);

/* Write a trace of what ended at `since_ns` (CLOCK_MONOTONIC, in nanoseconds; 0: all that is left)
 * or later, and of what is under way: `sink` is called for its pieces, with `context`, on this
 * thread. It takes about 25 bytes for each begin and end, and for its time as much memory as the
 * largest ring has.
 *
 * Returns 0; -ENODATA if the system records no spans; -ENOMEM; what `sink` has returned.
 * Thread-safety: any thread, from domus_system_start() until domus_system_free(). On a thread of
 * the system its actors wait meanwhile. */
DOMUS_API int domus_trace_write(const struct domus_system *system, uint64_t since_ns,
                                domus_trace_sink *sink, void *context);

/* Write a trace of all systems of the process to a descriptor, from the handler of a signal that
 * ends the process: what each thread did last, and, begun and not ended, what it was doing. It
 * allocates nothing and takes no lock (it is async-signal-safe), but needs 2 KiB of stack. The
 * records are read from memory that the fault may have spoilt, so the handler should not handle a
 * second fault. From then on systems keep the memory of their records when they are freed.
 *
 * Returns 0; -EBUSY if a thread has called this already; -ENODATA if no system records spans; the
 * negative errno of write(2). It keeps errno. Thread-safety: any thread. */
DOMUS_API int domus_trace_crash_write(int fd);

#ifdef __cplusplus
}
#endif

#endif
