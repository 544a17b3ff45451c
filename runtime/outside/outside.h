/* The outside's manager: foreign threads come in one at a time, under a mutex, and use it as a
 * thread uses its own. */
#ifndef DOMI_RUNTIME_OUTSIDE_OUTSIDE_H
#define DOMI_RUNTIME_OUTSIDE_OUTSIDE_H

#include "house/conversation/promise.h"
#include "runtime/system/system.h"

/* Spawning ends with the drain: who stops a system wants fewer actors, not more. Notices, asks and
 * stops go on, because what drains may wait for them. */
#define DOMI_LAST_TO_SPAWN DOMI_STAGE_RUNNING
#define DOMI_LAST_TO_SEND  DOMI_STAGE_DRAINING

/* What a foreign thread takes on and puts off again. */
typedef struct domi_visit {
    const domus_allocator *before;
    domi_meter *counted_before;
} domi_visit;

/* Make the manager, and the actor in whose name the outside asks. Returns 0; -ENOMEM. */
int domi_outside_init(domus_system *system);

/* End what is left in it. The threads have ended. */
void domi_outside_fini(domus_system *system);

/* The mutex of the outside, and with it the outside's manager. Any thread of this process. */
void domi_outside_lock(domus_system *system);
bool domi_outside_try_lock(domus_system *system);
void domi_outside_unlock(domus_system *system);

/* Come in. Returns 0; -ESHUTDOWN, and then there is nothing to leave, when the system does not run
 * or has come past `last`; -ECHILD after a fork. */
int domi_outside_enter(domus_system *system, domi_stage last, domi_visit *ret_visit);

/* The same for who sends. Also -EBUSY, which is counted, while memory is short. */
int domi_outside_enter_to_send(domus_system *system, domi_visit *ret_visit);
void domi_outside_leave(domus_system *system, const domi_visit *visit);

/* domi_manager.wake: who leads those that ask sleeps. */
void domi_outside_wake(domi_manager *manager);

/* Handle what has come for the outside: answers, and time-outs. */
void domi_outside_turn(domus_system *system);

/* Nobody asks any more: who waits gets -ESHUTDOWN. Returns when all of them have left. */
void domi_outside_close(domus_system *system);

/* --- an ask ----------------------------------------------------------------------------------- */

struct domi_asking {
    domi_asking *next; /* among those that wait */
    domi_asking *previous;
    domi_promise *promise;
    pthread_cond_t woken;
    domus_outside_reply *reply;
    uint64_t until_ns;
    int result;
    bool sleeps; /* on its condition: it may be given the lead */
    bool done;
};

/* Ask, and go on. Between enter and leave. What the payload owns is gone in every case.
 * domi_asking_wait() is to follow when this returns 0. */
int domi_asking_begin(domus_system *system, domi_asking *asking, domus_address to,
                      const domus_type *type, const void *payload, uint64_t timeout_ns,
                      domus_outside_reply *reply);

/* Wait for the answer. Between enter and leave; meanwhile others come in. */
int domi_asking_wait(domus_system *system, domi_asking *asking);

#endif
