/* A watchdog tells whether all threads of a system go on, so that a supervisor can restart a
 * program of which one hangs. domus_main() feeds the watchdog of systemd by it (docs/systemd.md);
 * programs that have another supervisor can do the same.
 *
 * A thread of the loop shows life by what it does: an iteration, or the end of a run. (A run is one
 * visit to an actor, which handles up to scheduler.maxMessagesPerRun messages in it.) A thread that
 * sleeps because there is nothing to do is alive, too, unless it is overdue by more than a second:
 * it wakes by itself once a second. A runner of a pool (domus/pools.h) shows life by each turn that
 * it gives, and while it waits for one. So a thread is silent if its handler does not return, or if
 * the library or the kernel holds it up.
 *
 * Detached actors, blocking work and the program's own threads are not watched, because they may
 * take their time.
 *
 * A look costs the caller some loads for each thread, and the threads nothing: they count what they
 * do in any case. */
#ifndef DOMUS_WATCHDOG_H
#define DOMUS_WATCHDOG_H

#include <domus/system.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A watchdog of one system. */
typedef struct domus_watchdog domus_watchdog;

/* Make a watchdog of a system that was started. Its first period begins.
 *
 * Ownership: the caller's, who frees it before the system. Returns 0; -ESHUTDOWN before
 * domus_system_start(); -ENOMEM; -ECHILD in a child made by fork(). Thread-safety: any foreign
 * thread, while none starts or frees the system. */
DOMUS_API int domus_watchdog_new(domus_system *system, domus_watchdog **ret_watchdog);

/* Look whether every thread and runner has shown life since the period began. If so, that period is
 * over and the next one begins. A thread that has ended, as all have when the system has stopped,
 * counts as alive.
 *
 * Look several times within the longest silence that is allowed, and feed the supervisor when this
 * returns 0. Then a thread that hangs is noticed at the latest one look after that time.
 *
 * Returns 0 if all have shown life; else the number of those that have not, yet; -ECHILD in a child
 * made by fork(). Thread-safety: any foreign thread, one at a time for each watchdog. It holds up
 * no thread of the system. */
DOMUS_API int domus_watchdog_look(domus_watchdog *watchdog);

/* Free a watchdog. NULL is allowed. Thread-safety: as domus_watchdog_look(). */
DOMUS_API void domus_watchdog_free(domus_watchdog *watchdog);

#ifdef __cplusplus
}
#endif

#endif
