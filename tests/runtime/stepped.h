/* A system whose threads do not exist: the test runs their phases by hand, on a virtual clock, over
 * a ring that shows the completions it is given. So budgets and deadlines are exact, on any
 * machine.
 *
 * Each time a thread would sleep, the ring checks M3: nothing may be left to do, and the sleep ends
 * when the next timer is due. Then the clock goes on to the end of the sleep, unless `on_sleep`
 * changes that. */
#ifndef DOMT_STEPPED_H
#define DOMT_STEPPED_H

#include "runtime/system/system.h"

#include "tests/support/suite.h"

#define DOMT_START_NS UINT64_C(1000000000)

typedef struct domt_ring {
    domi_thread *thread;
    uint32_t completions;      /* completions that the next reap shows */
    uint32_t wake_completions; /* completions of the wake poll, shown behind `completions` */
    uint64_t reap_takes_ns;
    uint32_t enters;
    uint32_t sleeps;
    uint32_t polls; /* polls of the eventfd that were begun */
    uint32_t cancels;
    uint32_t wakes;    /* writes to the eventfd */
    uint64_t sleep_ns; /* how long the last sleep may take */
    bool queued;       /* operations were queued and not entered yet */
} domt_ring;

typedef struct domt_stepped {
    domus_system *system;
    domt_ring *rings;
    /* Called when thread `index` sleeps; the clock stands at the time when it fell asleep. NULL:
     * the thread sleeps to the end. */
    void (*on_sleep)(struct domt_stepped *stepped, uint32_t index);
    /* Called when thread `index` arms its wake poll, which it does before the second look of a park
     * if the poll is not armed. NULL: nothing is called. */
    void (*on_poll)(struct domt_stepped *stepped, uint32_t index);
} domt_stepped;

/* The ring and the hooks of the stepped threads. The ring has no `poll_once`: no descriptor is
 * watched. */
extern const domi_backend domt_stepped_ring;
extern const domi_runtime_hooks domt_hooks_of_stepped;

/* Make a stepped system; a process has one at a time. */
void domt_stepped_init(domt_stepped *stepped, const domus_config *config);

/* Make a stepped system of the default configuration. */
void domt_stepped_begin(domt_stepped *stepped, uint32_t threads);

/* End every actor and free the system. */
void domt_stepped_fini(domt_stepped *stepped);

domi_thread *domt_stepped_thread(domt_stepped *stepped, uint32_t index);

/* Returns the time of the virtual clock of all threads. */
uint64_t domt_stepped_now_ns(const domt_stepped *stepped);
void domt_stepped_advance(domt_stepped *stepped, uint64_t by_ns);

/* Run one iteration of thread `index`: its three phases and, with `rest`, the rest after them. */
void domt_stepped_iterate(domt_stepped *stepped, uint32_t index, bool rest);

#endif
