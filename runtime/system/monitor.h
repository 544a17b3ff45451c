/* The monitor is a thread of the system that watches the other threads for things that they cannot
 * see themselves, such as a handler that does not return.
 *
 * It looks now and then while a thread of the loop is awake, and for some time after that. Then it
 * sleeps without a time-out, so an idle system costs nothing. A thread that is about to run an
 * actor wakes it; this costs one load if the monitor is awake. The function
 * take_all_looks_of_monitor() in monitor.c calls all watches. A simulated system has no monitor,
 * and its word is never ASLEEP. */
#ifndef DOMI_RUNTIME_SYSTEM_MONITOR_H
#define DOMI_RUNTIME_SYSTEM_MONITOR_H

#include "base/check.h"
#include "runtime/system/system.h"

/* The monitor stays awake for this time after the last sign of life, so that a thread which sleeps
 * and wakes often need not wake the monitor each time. */
#define DOMI_MONITOR_LINGER_NS UINT64_C(100000000)

/* Start the monitor's thread once the threads run; domi_monitor_stop() ends it before they are
 * joined. If there is nothing to watch, no thread is made. The start returns 0 or a negative errno.
 * A monitor that was not started may be stopped. */
int domi_monitor_start(domus_system *system);
void domi_monitor_stop(domus_system *system);

void domi_monitor_wake_if_asleep(domi_monitor *monitor);

/* Let the monitor sleep once, until a thread wakes it. This returns at once if a thread of the loop
 * is awake or the system is about to end. The monitor's thread calls it; a test calls it, too, to
 * check the second look. */
void domi_monitor_sleep_until_woken(domus_system *system);

/* Wake the monitor if it sleeps. A thread of the loop calls this when it has left its park and is
 * about to run an actor. */
static inline void domi_monitor_wake_if_resting(domi_monitor *monitor)
{
    /* seq_cst, after the thread has exchanged its park word to RUNNING. It pairs with the monitor's
     * exchange to ASLEEP and its look at all park words after that (monitor.c): one of the two sees
     * the other. */
    if (DOMI_UNLIKELY(atomic_load_explicit(&monitor->word, memory_order_seq_cst) ==
                      DOMI_MONITOR_ASLEEP))
        domi_monitor_wake_if_asleep(monitor);
}

#endif
