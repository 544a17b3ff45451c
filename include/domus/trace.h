/* The trace: the last moments of each thread, for the page ui.perfetto.dev and other readers of
 * Perfetto's traces.
 *
 * With `profile.level: spans` each thread keeps its newest records in a ring of profile.records
 * places, which overwrites itself. A trace is what is in these rings now. In it each thread is a
 * track, on which the things lie within each other. Nothing stops for it. They are:
 *
 *   iteration             and in it its phases by their names, as "state"
 *   run NAME (TYPE)       of an actor with this behaviour, with the type of the last message; of
 *                         runs below about 3 us samples, as in DOMUS_HISTOGRAM_RUN
 *   park                  the thread sleeps
 *   steal NAME            it runs an actor of another thread, whose number is there
 *   stand in for NAME     the same, while the other thread sleeps on (idle.standIn)
 *   lend NAME             an actor of this thread is back, which another one had stolen
 *   stall in NAME (TYPE)  a run was longer than stall.threshold (domus/stall.h)
 *   ask TYPE, take ask TYPE, answer TYPE, take answer TYPE
 *                         a flow: where an ask to an actor of another thread was made, handled and
 *                         answered, and where its answer was handled; samples
 *
 * With profile.stallFile and this level, a stall leaves a trace of the 10 s before it in that file,
 * once a minute at most and of 64 MiB at most. It is written as that of a crash (see below), while
 * the stall goes on; the log tells of it.
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

/* Install the handler that writes such a trace to a file when the process crashes: for SIGSEGV,
 * SIGBUS, SIGFPE, SIGILL and SIGABRT. libdomus installs no handler by itself: a program that wants
 * this calls it before it starts a system (domus_main() does, with profile.crashFile).
 *
 * The trace names, on the thread that has crashed, the signal and the run of the actor that was
 * under way, as "run NAME (TYPE)": also if no spans are recorded; then there is nothing else in it.
 * Threads of systems that are started later have an alternate stack of some 70 KiB for the handler,
 * so that it runs after an overflow of their stack, too. When the file is written, what the signal
 * does by default happens: the process ends by it, with a core file if that is wanted.
 *
 * The file is made with the mode 0600, and the one of an earlier crash is overwritten. Another one
 * at this path (of another user, a link, no regular file) is left alone, and there is no trace. A
 * relative path begins at the working directory of that moment.
 *
 * A signal for which the program, or a sanitizer, has a handler, or that is ignored, is left as it
 * is. Returns 0; -EINVAL if `path` is NULL, empty or longer than 1,023 bytes. Thread-safety: one
 * thread at a time, before domus_system_start(). */
DOMUS_API int domus_trace_crash_signals(const char *path);

#ifdef __cplusplus
}
#endif

#endif
