/* A system without threads: a test runs the phases of its threads by hand, on a virtual clock, over
 * a ring that shows only the completions that the test has set. So budgets and deadlines are exact,
 * on any machine.
 *
 * Each time a thread would sleep, the ring checks M3 (docs/contract.md): nothing may be left to do,
 * and the sleep must end when the next timer is due. Then the clock goes on to the end of the
 * sleep, unless the function `on_sleep` is set. */
#ifndef DOMT_STEPPED_H
#define DOMT_STEPPED_H

#include "runtime/system/system.h"

#include "tests/support/suite.h"

#define DOMT_START_NS UINT64_C(1000000000)

typedef struct domt_ring {
    domi_thread *thread;
    uint32_t completions; /* number of completions that the ring shows at the next reap */
    /* number of completions of the wake poll, shown behind `completions` */
    uint32_t wake_completions;
    uint64_t reap_takes_ns;
    uint32_t enters;
    uint32_t sleeps;
    uint32_t polls; /* number of polls of the thread's eventfd that were begun */
    uint32_t cancels;
    uint32_t wakes;    /* number of writes to the thread's eventfd */
    uint64_t sleep_ns; /* time-out of the thread's last sleep */
    bool queued;       /* true: operations were queued since the last enter */
} domt_ring;

typedef struct domt_stepped {
    domus_system *system;
    domt_ring *rings;
    /* Called when thread `index` falls asleep, with the clock at that time; it has to let the sleep
     * pass. NULL: the clock goes on to the end of the sleep. */
    void (*on_sleep)(struct domt_stepped *stepped, uint32_t index);
    /* Called when thread `index` arms its wake poll, which it does before the second look of a park
     * if the poll is not armed yet; may be NULL. */
    void (*on_poll)(struct domt_stepped *stepped, uint32_t index);
} domt_stepped;

/* The backend and the hooks of the stepped threads. The backend has no `poll_once`, so no
 * descriptor can be watched. */
extern const domi_backend domt_stepped_ring;
extern const domi_runtime_hooks domt_hooks_of_stepped;

/* Make a stepped system with this configuration; a process has only one at a time. */
void domt_stepped_init(domt_stepped *stepped, const domus_config *config);

/* Make a stepped system with the default configuration and this number of threads. */
void domt_stepped_init_default(domt_stepped *stepped, uint32_t threads);

/* End all actors of a stepped system, and free the system. */
void domt_stepped_fini(domt_stepped *stepped);

domi_thread *domt_stepped_thread(domt_stepped *stepped, uint32_t index);

/* Returns the time of the virtual clock that all stepped threads share. */
uint64_t domt_stepped_now_ns(const domt_stepped *stepped);
void domt_stepped_advance_clock(domt_stepped *stepped, uint64_t by_ns);

/* Run one iteration of thread `index`: its three phases and, if `rest` is true, the rest after
 * them. */
void domt_stepped_iterate(domt_stepped *stepped, uint32_t index, bool rest);

#endif
