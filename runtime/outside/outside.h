/* The outside's manager. Foreign threads enter one at a time, under a mutex, and use this manager
 * as a thread of the loop uses its own. */
#ifndef DOMI_RUNTIME_OUTSIDE_OUTSIDE_H
#define DOMI_RUNTIME_OUTSIDE_OUTSIDE_H

#include "house/conversation/promise.h"
#include "runtime/system/system.h"

/* Foreign threads may spawn until the drain begins, because a stop needs fewer actors and not more.
 * They may send notices, asks and stops during the drain, too, because conversations that have to
 * end may wait for these. */
#define DOMI_LAST_TO_SPAWN DOMI_STAGE_RUNNING
#define DOMI_LAST_TO_SEND  DOMI_STAGE_DRAINING

/* The allocator and the meter that a foreign thread had before it entered; it gets them back when
 * it leaves. */
typedef struct domi_visit {
    const domus_allocator *before;
    domi_meter *counted_before;
} domi_visit;

/* Make the outside's manager, and the actor in whose name foreign threads ask. Returns 0;
 * -ENOMEM. */
int domi_outside_init(domus_system *system);

/* End everything that is left in the outside's manager. The threads must have ended before. */
void domi_outside_fini(domus_system *system);

/* Lock the mutex of the outside, and own the outside's manager while it is locked. Any thread of
 * this process. */
void domi_outside_lock(domus_system *system);
bool domi_outside_try_lock(domus_system *system);
void domi_outside_unlock(domus_system *system);

/* Enter the outside. Returns 0; -ESHUTDOWN if the system does not run or has passed the stage
 * `last`; -ECHILD after a fork. On failure nothing is locked, and domi_outside_leave() must not be
 * called. */
int domi_outside_enter(domus_system *system, domi_stage last, domi_visit *ret_visit);

/* As domi_outside_enter(), for a thread that sends. While memory is short it returns -EBUSY, which
 * is counted. */
int domi_outside_enter_to_send(domus_system *system, domi_visit *ret_visit);
void domi_outside_leave(domus_system *system, const domi_visit *visit);

/* Wake the foreign thread that sleeps on the outside's park word: the leader of those that ask
 * (outside_ask.c). This is domi_manager.wake. */
void domi_outside_wake(domi_manager *manager);

/* Handle what has arrived for the outside: answers and time-outs. */
void domi_outside_handle_arrivals(domus_system *system);

/* End all asks of foreign threads with -ESHUTDOWN. Returns when all of these threads have left. */
void domi_outside_close(domus_system *system);

/* --- an ask ----------------------------------------------------------------------------------- */

struct domi_asking {
    domi_asking *next; /* the next ask that waits */
    domi_asking *previous;
    domi_promise *promise;
    pthread_cond_t woken;
    domus_outside_reply *reply;
    uint64_t until_ns;
    int result;
    bool sleeps; /* the asking thread sleeps on `woken`, so it may become the leader */
    bool done;
};

/* Send the ask and return. Called between enter and leave. Everything that the payload owns is
 * consumed in every case. If this returns 0, domi_asking_wait() has to follow. */
int domi_asking_begin(domus_system *system, domi_asking *asking, domus_address to,
                      const domus_type *type, const void *payload, uint64_t timeout_ns,
                      domus_outside_reply *reply);

/* Wait for the answer. Called between enter and leave; other foreign threads can enter
 * meanwhile. */
int domi_asking_wait(domus_system *system, domi_asking *asking);

#endif
