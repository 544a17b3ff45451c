/* The stall watch: an actor that holds its thread too long is found while it does.
 *
 * A run is what an actor does until its thread goes on to the next one: a handler, or up to
 * scheduler.maxMessagesPerRun of them. One that lasts longer than stall.threshold is reported once,
 * while it goes on: a line in the system's log (domus/hooks.h) with the thread, the actor's
 * behaviour, the type of the message, the CPU time that it used (little of it: it waits for
 * something, or the machine is busy with others) and how many actors wait behind it; then where it
 * is, a line for each function. A thread that does not come back from elsewhere (this library, or
 * the kernel) is reported as being in no handler. In the end the length goes into a histogram
 * (stalls, stall_lengths in domus/profile.h).
 *
 * What lasts a quarter of the threshold longer is found for sure, what is shorter never. Detached
 * actors and blocking work may take their time, and are not watched. */
#ifndef DOMUS_STALL_H
#define DOMUS_STALL_H

#include <domus/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where a thread is, only the thread itself can tell: it is sent a signal, and its handler writes
 * down the addresses. libdomus installs no handler by itself, so a program that wants them in its
 * log calls this with stall.signal before it starts a system (domus_main() does). Without it,
 * reports come without them.
 *
 * The handler is the process's, for all systems; it is called on their threads, and only on one
 * that is stuck, at most 4 times a second in a system. It keeps errno; calls that restart after a
 * signal are restarted, others end with EINTR on that thread (poll, nanosleep).
 *
 * Returns 0, also when it is there; -EINVAL when `signal` is not within SIGRTMIN..SIGRTMAX; -EBUSY
 * when the program has a handler of its own for it, or ignores it.
 * Thread-safety: one thread at a time, before domus_system_start(). */
DOMUS_API int domus_stall_signal(int signal);

#ifdef __cplusplus
}
#endif

#endif
