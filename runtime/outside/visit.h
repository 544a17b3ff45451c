/* The way into the outside: one mutex, and the manager that it protects. Foreign threads enter one
 * at a time, and use this manager as a thread of the loop uses its own. The thread that is inside
 * also handles what has arrived for other foreign threads.
 *
 * Thread-safety: any thread of this process. */
#ifndef DOMI_RUNTIME_OUTSIDE_VISIT_H
#define DOMI_RUNTIME_OUTSIDE_VISIT_H

#include "runtime/system/system.h"

/* Foreign threads may spawn until the drain begins, because a stop needs fewer actors and not more.
 * During the drain they may still send notices, asks and stops, because conversations that have to
 * end may wait for these. */

/* last stage of a system in which a foreign thread may spawn */
#define DOMI_LAST_TO_SPAWN DOMI_STAGE_RUNNING
/* last stage of a system in which a foreign thread may send */
#define DOMI_LAST_TO_SEND DOMI_STAGE_DRAINING

/* The allocator and the meter that a foreign thread had before it entered the outside;
 * domi_outside_leave() restores them. */
typedef struct domi_visit {
    /* allocator that the foreign thread had before it entered the outside */
    const domus_allocator *before;
    /* meter that the foreign thread had before it entered the outside */
    domi_meter *counted_before;
} domi_visit;

/* Lock the mutex of the outside, and own the outside's manager until domi_outside_unlock().
 * domi_outside_try_lock() returns false if another thread has it. */
void domi_outside_lock(domus_system *system);
bool domi_outside_try_lock(domus_system *system);
void domi_outside_unlock(domus_system *system);

/* Enter the outside (lock its mutex and own its manager). Returns 0; -ESHUTDOWN if the system does
 * not run or has passed the stage `last`; -ECHILD after a fork. On failure nothing is locked, and
 * domi_outside_leave() must not be called. */
int domi_outside_enter(domus_system *system, domi_stage last, domi_visit *ret_visit);

/* Enter the outside as domi_outside_enter() does, for a thread that sends. While memory is short
 * this returns -EBUSY, which is counted. */
int domi_outside_enter_to_send(domus_system *system, domi_visit *ret_visit);
void domi_outside_leave(domus_system *system, const domi_visit *visit);

/* Handle the answers and time-outs that have arrived for the outside's manager. Called inside. */
void domi_outside_handle_arrivals(domus_system *system);

#endif
