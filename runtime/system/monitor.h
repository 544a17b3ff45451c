/* The monitor: a thread of the system that looks at the others, for what they cannot see
 * themselves.
 *
 * It looks now and then while a thread of the loop is awake, and some time longer. Then it sleeps
 * without a tick, so that an idle system costs nothing, and who is about to run an actor wakes it,
 * which costs one load when it does not sleep so. What is to be looked at is a call in
 * monitor.c, look(). A simulated system has no monitor, and its word is never ASLEEP. */
#ifndef DOMI_RUNTIME_SYSTEM_MONITOR_H
#define DOMI_RUNTIME_SYSTEM_MONITOR_H

#include "base/check.h"
#include "base/counter.h"
#include "runtime/system/stall.h"

#include <pthread.h>

/* It goes on for so long after the last sign of life: who sleeps and wakes often does not pay for
 * waking it each time. */
#define DOMI_MONITOR_LINGER_NS UINT64_C(100000000)

typedef enum domi_monitor_word {
    DOMI_MONITOR_AWAKE,
    DOMI_MONITOR_ASLEEP, /* until it is woken */
    DOMI_MONITOR_ENDING,
} domi_monitor_word;

typedef struct domi_monitor {
    alignas(DOMI_LINES) _Atomic uint32_t word; /* domi_monitor_word; slept on */
    alignas(DOMI_LINES) domi_counter looks;
    domi_counter cpu_clock; /* the clockid_t of its CPU clock */
    uint64_t lively_ns;     /* when somebody was at work */
    uint64_t works;         /* how much had been done by then */
    domi_stall_bound traces;
    bool started;
    pthread_t pthread;
} domi_monitor;

struct domus_system;

/* Once the threads run; before they are joined. Nothing to watch: nothing is started. Returns 0; a
 * negative errno. The second: NULL is not taken, one that was not started is. */
int domi_monitor_start(struct domus_system *system);
void domi_monitor_stop(struct domus_system *system);

void domi_monitor_wake(domi_monitor *monitor);

/* One sleep of the monitor: until somebody wakes it, or not at all when a thread of the loop is
 * awake or the system is to end. The monitor's thread; a test calls it to hold the second look. */
void domi_monitor_rest(struct domus_system *system);

/* By a thread of the loop that has left its park and is about to run an actor. */
static inline void domi_monitor_attend(domi_monitor *monitor)
{
    /* seq_cst, after the exchange of the park word to RUNNING: pairs with the exchange to ASLEEP
     * and the look at all park words after it (monitor.c). One of both sees the other. */
    if (DOMI_UNLIKELY(atomic_load_explicit(&monitor->word, memory_order_seq_cst) ==
                      DOMI_MONITOR_ASLEEP))
        domi_monitor_wake(monitor);
}

#endif
