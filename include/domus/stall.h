/* The stall watch reports an actor that holds its thread for too long, while it does so.
 *
 * A run is one visit of a thread to an actor, which handles up to scheduler.maxMessagesPerRun (64)
 * messages in it. A run that lasts longer than stall.threshold (25 ms) is reported once, while it
 * goes on: a line in the system's log (domus/hooks.h) with the thread, the actor's behaviour, the
 * type of the message, the CPU time that the run used (if that is little, the handler waits for
 * something, or the machine is busy with other programs) and how many actors wait behind it. Then
 * comes a line for each function on the thread's call stack. If a thread is stuck in the library or
 * the kernel, and in no handler, the report says so. When the run is over, its length goes into a
 * histogram (stalls, stall_lengths in domus/profile.h).
 *
 * A run that lasts a quarter of the threshold longer than the threshold is found for sure, and a
 * run that is shorter than the threshold is never reported. Detached actors and blocking work are
 * not watched, because they may take their time.
 *
 * A handler that holds a runner of a pool (domus/pools.h) for so long is counted in the same way.
 * There handlers may take long, so the log tells of one in a second for each pool at most, without
 * the call stack. */
#ifndef DOMUS_STALL_H
#define DOMUS_STALL_H

#include <domus/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Install the signal handler that reports need for the functions of a call stack. Only a thread
 * itself can tell where it is, so it is sent a signal, whose handler writes down the addresses.
 * libdomus installs no handler by itself: a program that wants call stacks in its log calls this
 * with stall.signal before it starts a system (domus_main() does). Without this call, reports have
 * no call stacks.
 *
 * The handler is the process's, for all systems; it is called on their threads, and only on one
 * that is stuck, at most 4 times a second in a system. It keeps errno; calls that restart after a
 * signal are restarted, others end with EINTR on that thread (poll, nanosleep).
 *
 * Returns 0, also when the handler is installed already; -EINVAL when `signal` is not within
 * SIGRTMIN..SIGRTMAX; -EBUSY when the program has a handler of its own for it, or ignores it.
 * Thread-safety: one thread at a time, before domus_system_start(). */
DOMUS_API int domus_stall_signal(int signal);

#ifdef __cplusplus
}
#endif

#endif
