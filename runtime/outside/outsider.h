/* Helpers for the functions of outsiders: entering and leaving a seat. Only the thread that sits on
 * the seat can enter. */
#ifndef DOMI_RUNTIME_OUTSIDE_OUTSIDER_H
#define DOMI_RUNTIME_OUTSIDE_OUTSIDER_H

#include "house/conversation/stack.h"
#include "runtime/outside/seat.h"
#include "runtime/outside/visit.h"

/* Returns the seat whose manager runs this conversation. */
static inline domus_outsider *domi_outsider_of_stack(const domus_stack *stack)
{
    return (domus_outsider *)(void *)stack->manager;
}

/* Enter a seat: lock it for the calling thread, its owner. Returns 0; -ECHILD; -EPERM; -EDEADLK;
 * -ESHUTDOWN. On failure nothing is locked, and domi_outsider_leave() must not be called. */
int domi_outsider_enter(domus_outsider *seat, domi_visit *ret_visit);

/* Do the same as domi_outsider_enter(), but return -ESTALE if the actor was stopped. */
int domi_outsider_enter_alive(domus_outsider *seat, domi_visit *ret_visit);

/* Do the same as domi_outsider_enter_alive(), for a function that sends: while memory is short it
 * returns -EBUSY, as for all foreign threads. */
int domi_outsider_enter_to_send(domus_outsider *seat, domi_visit *ret_visit);

/* Leave the seat, and unlock it. domi_outsider_leave_unlocked() is for a seat that was closed
 * meanwhile, which is not locked any more. */
void domi_outsider_leave(domus_outsider *seat, const domi_visit *visit);
void domi_outsider_leave_unlocked(const domi_visit *visit);

/* Make a stack in the caller's frame, for a function that does not wait. The stack gets the message
 * that was received last; domi_outsider_end_verb() gives the message back to the seat. The caller
 * has locked the seat. */
void domi_outsider_begin_verb(domus_outsider *seat, domus_stack *stack);
void domi_outsider_end_verb(domus_outsider *seat, domus_stack *stack);

/* End the message that was received last: an unanswered ask fails with -ENOMSG. The caller has
 * locked the seat. */
void domi_outsider_end_last_message(domus_outsider *seat);

/* Returns the place for an event that was allocated when `watch` was made; NULL: there is none. The
 * caller has locked the seat. */
domi_outside_mail *domi_outsider_find_spare(const domus_outsider *seat, const void *watch);

/* Detach the calling thread, which stops the system, from all seats on which it sits. */
void domi_outsiders_detach_own(domus_system *system);

#endif
